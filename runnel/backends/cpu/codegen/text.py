"""LLVM text, one instruction at a time. An :class:`Emitter` numbers values, spells types and constants, and collects
the intrinsics a module must declare.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

import numpy as np

from runnel.backends.cpu.target import InstructionSet
from runnel.core.conversion import rounded
from runnel.core.dtypes import DType

_ELEMENT = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
    "complex64": "i64", "complex128": "i128",  # which are moved only: NumPy computes with them
}  # fmt: skip


def element(dtype: DType) -> str:
    """The LLVM type of one element in a register (a bool is an i1; in memory it is a byte)."""
    return _ELEMENT[dtype.name]


@functools.cache
def vector(dtype: DType, lanes: int) -> str:
    """Return the LLVM type of ``lanes`` elements; a scalar for one lane."""
    return element(dtype) if lanes == 1 else f"<{lanes} x {element(dtype)}>"


def literal(value: bool | int | float, dtype: DType) -> str:
    """Return a constant in LLVM's syntax: floats as the hexadecimal bits of their double."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if dtype.is_integer:
        bits = dtype.itemsize * 8
        wrapped = int(value) & ((1 << bits) - 1)
        return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
    if dtype.name == "float16":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype.name == "bfloat16":
        return f"0xR{int(rounded(value, dtype).view(np.uint16)):04X}"
    exact = float(np.float32(value)) if dtype.name == "float32" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"


class Emitter:
    """The body of one function under construction."""

    def __init__(self, target: InstructionSet) -> None:
        self.target = target
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.definitions: dict[str, str] = {}  # internal functions of the module: name → text
        self._count = 0
        self._labels = 0
        self.block = "entry"  # the label of the current block, for phis

    def value(self, instruction: str) -> str:
        """Append ``%n = instruction`` and return ``%n``."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def effect(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def reserve(self, kind: str, alignment: int) -> str:
        """Memory of type ``kind`` in the function's frame; returns its address."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.insert(0, f"  {name} = alloca {kind}, align {alignment}")  # in the entry block: once for each call
        return name

    def new_label(self, hint: str) -> str:
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Begin the block ``label`` (the previous one must have ended in a branch)."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block: go to ``label``."""
        self.effect(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str, suffix: str = "") -> None:
        """End the block: go to ``then`` if ``condition`` holds."""
        self.effect(f"br i1 {condition}, label %{then}, label %{otherwise}{suffix}")

    def phi(self, kind: str, *edges: tuple[str, str]) -> str:
        """Return a phi of (operand, label) edges; :meth:`add_edge` completes it once a loop's body is written."""
        return self.value(f"phi {kind} " + ", ".join(f"[ {x}, %{label} ]" for x, label in edges))

    def add_edge(self, phi: str, operand: str, label: str) -> None:
        """One more edge of an earlier :meth:`phi`."""
        start = f"  {phi} = phi "
        at = next(i for i in reversed(range(len(self.lines))) if self.lines[i].startswith(start))
        self.lines[at] += f", [ {operand}, %{label} ]"

    def constant(self, value: bool | int | float, dtype: DType, lanes: int) -> str:
        """Return a constant operand (without its type) of ``lanes`` lanes."""
        text = literal(value, dtype)
        return text if lanes == 1 else f"splat ({element(dtype)} {text})"

    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call ``@name`` with (type, operand) pairs, declaring it; returns the result's name."""
        self.declare(name, result, *(t for t, _ in arguments))
        return self.value(f"call {result} @{name}({', '.join(f'{t} {x}' for t, x in arguments)})")

    def declare(self, name: str, result: str, *types: str) -> None:
        self.declarations.add(f"declare {result} @{name}({', '.join(types)})")

    def table(self, name: str, kind: str, values: Sequence[int]) -> str:
        """Return a private constant array of the module; returns its address."""
        items = ", ".join(f"{kind} {v}" for v in values)
        self.declarations.add(f"@{name} = private unnamed_addr constant [{len(values)} x {kind}] [{items}]")
        return f"@{name}"

    def broadcast(self, operand: str, dtype: DType, lanes: int) -> str:
        """Return a scalar in every lane."""
        if lanes == 1:
            return operand
        kind = vector(dtype, lanes)
        one = self.value(f"insertelement {kind} poison, {element(dtype)} {operand}, i32 0")
        return self.value(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
