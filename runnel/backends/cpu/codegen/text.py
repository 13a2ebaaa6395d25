"""LLVM text, one instruction at a time.

A :class:`Body` numbers values and blocks. An :class:`Emitter` adds vectors, constants and the intrinsics that a module
must declare. A :class:`Flow` adds addresses and loops over elements, for code that is mostly addresses and control: the
tiles, the packing and the driver of the contraction.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Iterator, Sequence

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
    """Return the LLVM type of one element in a register (a bool is an i1; in memory it is a byte)."""
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


Operand = str | int


class Body:
    """The body of one function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
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
        """Reserve memory of type ``kind`` in the function's frame; returns its address."""
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
        """Add an edge to an earlier :meth:`phi`."""
        start = f"  {phi} = phi "
        at = next(i for i in reversed(range(len(self.lines))) if self.lines[i].startswith(start))
        self.lines[at] += f", [ {operand}, %{label} ]"

    def declare(self, name: str, result: str, *types: str) -> None:
        self.declarations.add(f"declare {result} @{name}({', '.join(types)})")

    def add(self, a: Operand, b: Operand, kind: str = "i64") -> str:
        return self.value(f"add {kind} {a}, {b}")

    def sub(self, a: Operand, b: Operand, kind: str = "i64") -> str:
        return self.value(f"sub {kind} {a}, {b}")

    def mul(self, a: Operand, b: Operand) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def test(self, predicate: str, a: Operand, b: Operand, kind: str = "i64") -> str:
        return self.value(f"icmp {predicate} {kind} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.value(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.value(f"or i1 {a}, {b}")

    def select(self, condition: str, a: Operand, b: Operand, kind: str = "i64") -> str:
        return self.value(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    @property
    def has_ended(self) -> bool:
        """True if the current block ends in a branch or a return."""
        return bool(self.lines) and self.lines[-1].startswith(("  br ", "  ret "))

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run the body if ``condition`` holds."""
        then, after = self.new_label("then"), self.new_label("after")
        self.branch(condition, then, after)
        self.start(then)
        yield
        if not self.has_ended:
            self.jump(after)
        self.start(after)

    def unless(self, condition: str) -> contextlib.AbstractContextManager[None]:
        """Run the body if ``condition`` does not hold."""
        return self.when(self.value(f"xor i1 {condition}, true"))


class Emitter(Body):
    """The body of one function with vectors for ``target``."""

    def __init__(self, target: InstructionSet) -> None:
        super().__init__()
        self.target = target
        self.definitions: dict[str, str] = {}  # internal functions of the module: name → text

    def constant(self, value: bool | int | float, dtype: DType, lanes: int) -> str:
        """Return a constant operand (without its type) of ``lanes`` lanes."""
        text = literal(value, dtype)
        return text if lanes == 1 else f"splat ({element(dtype)} {text})"

    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call ``@name`` with (type, operand) pairs, declaring it; returns the result's name."""
        self.declare(name, result, *(t for t, _ in arguments))
        return self.value(f"call {result} @{name}({', '.join(f'{t} {x}' for t, x in arguments)})")

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


# No pass of LLVM's middle end runs; this keeps the code generator from unrolling too.
_ROLLED = ", !llvm.loop !0"
METADATA = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}\n'


class Flow(Emitter):
    """The body of one function over elements of ``dtype``. All integers are i64, all strides count elements."""

    def __init__(self, target: InstructionSet, dtype: DType) -> None:
        super().__init__(target)
        self.dtype = dtype
        self.lanes = target.vector_bytes // dtype.itemsize
        self.scalar_kind = element(dtype)
        self.vector_kind = vector(dtype, self.lanes)
        self.mask_kind = f"<{self.lanes} x i1>"
        self.alignment = dtype.itemsize  # of loads and stores

    @property
    def masked_loads(self) -> bool:
        """True if a masked load is one instruction (x86: vmaskmov or predicates); NEON has none."""
        return self.target.vector_bytes >= 32

    def divide(self, a: Operand, b: Operand) -> str:
        """Emit a / b rounded down, for 0 ≤ a and 0 < b below 2³¹ (the narrow division is several times faster)."""
        above = self.value(f"trunc i64 {a} to i32")
        below = str(b) if isinstance(b, int) else self.value(f"trunc i64 {b} to i32")
        return self.value(f"zext i32 {self.value(f'udiv i32 {above}, {below}')} to i64")

    def ceil_div(self, a: Operand, b: Operand) -> str:
        """Emit a / b rounded up, for 0 ≤ a and 0 < b below 2³⁰."""
        return self.divide(self.sub(self.add(a, b), 1), b)

    def minimum(self, a: Operand, b: Operand) -> str:
        return self.select(self.test("slt", a, b), a, b)

    def at(self, pointer: str, *offsets: Operand) -> str:
        """Move ``pointer`` by the sum of ``offsets``, in elements."""
        for offset in offsets:
            if offset != 0:
                pointer = self.value(f"getelementptr {self.scalar_kind}, ptr {pointer}, i64 {offset}")
        return pointer

    def indirect(self, pointer: str, position: Operand) -> str:
        """Load entry ``position`` of a table of i32, as an i64."""
        entry = self.value(f"getelementptr i32, ptr {pointer}, i64 {position}")
        return self.value(f"sext i32 {self.value(f'load i32, ptr {entry}, align 4')} to i64")

    def load(self, pointer: str, kind: str = "") -> str:
        """Load one vector, or one ``kind``; aligned like an element, because strides are arbitrary."""
        return self.value(f"load {kind or self.vector_kind}, ptr {pointer}, align {self.alignment}")

    def store(self, operand: str, pointer: str, kind: str = "") -> None:
        self.effect(f"store {kind or self.vector_kind} {operand}, ptr {pointer}, align {self.alignment}")

    def first_lanes(self, count: str) -> str:
        """Return the mask of the first ``count`` lanes."""
        bits = self.dtype.itemsize * 8
        kind = f"<{self.lanes} x i{bits}>"
        few = count if bits == 64 else self.value(f"trunc i64 {count} to i{bits}")
        one = self.value(f"insertelement {kind} poison, i{bits} {few}, i32 0")
        every = self.value(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        lane_ids = ", ".join(f"i{bits} {lane}" for lane in range(self.lanes))
        return self.value(f"icmp ult {kind} <{lane_ids}>, {every}")

    def masked_load(self, pointer: str, mask: str) -> str:
        """Load the lanes in ``mask`` of one vector; the others are zero."""
        return self.intrinsic(
            f"llvm.masked.load.v{self.lanes}f{self.dtype.itemsize * 8}.p0",
            self.vector_kind,
            ("ptr", pointer),
            ("i32", str(self.dtype.itemsize)),
            (self.mask_kind, mask),
            (self.vector_kind, "zeroinitializer"),
        )

    def masked_store(self, operand: str, pointer: str, mask: str) -> None:
        """Store the lanes in ``mask`` of a vector."""
        name = f"llvm.masked.store.v{self.lanes}f{self.dtype.itemsize * 8}.p0"
        self.declare(name, "void", self.vector_kind, "ptr", "i32", self.mask_kind)
        self.effect(
            f"call void @{name}({self.vector_kind} {operand}, ptr {pointer}, i32 {self.dtype.itemsize}, "
            f"{self.mask_kind} {mask})"
        )

    @contextlib.contextmanager
    def loop(self, start: Operand, end: Operand, step: Operand) -> Iterator[str]:
        """Run the body for the index start, start + step, … while below ``end``, possibly never."""
        body, done, head = self.new_label("body"), self.new_label("done"), self.new_label("head")
        before = self.block
        self.jump(head)
        self.start(head)
        index = self.phi("i64", (str(start), before))
        self.branch(self.test("slt", index, end), body, done)
        self.start(body)
        yield index
        self.add_edge(index, self.add(index, step), self.block)
        self.effect(f"br label %{head}{_ROLLED}")
        self.start(done)

    def define(self, signature: str, attributes: str = "nounwind") -> str:
        """Return the finished function: ``signature`` up to its closing parenthesis, and the body written so far."""
        return "\n".join([f"define {signature} {attributes} {{", "entry:", *self.lines, "}"])


def rolled_branch(em: Flow, condition: str, again: str, done: str) -> None:
    """End of a bottom-tested loop."""
    em.branch(condition, again, done, _ROLLED)
