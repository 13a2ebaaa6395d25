"""An :class:`Emitter` with integer arithmetic, loops and branches, for code that is mostly
addresses and control: the tiles, the packing and the driver of the contraction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from runnel.backends.cpu.codegen.text import Emitter, element, vector
from runnel.backends.cpu.target import InstructionSet
from runnel.core.dtypes import DType

Operand = str | int

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
        """Whether a masked load is one instruction (x86: vmaskmov or predicates); NEON has none."""
        return self.target.vector_bytes >= 32

    def add(self, a: Operand, b: Operand) -> str:
        return self.value(f"add i64 {a}, {b}")

    def sub(self, a: Operand, b: Operand) -> str:
        return self.value(f"sub i64 {a}, {b}")

    def mul(self, a: Operand, b: Operand) -> str:
        return self.value(f"mul i64 {a}, {b}")

    def divide(self, a: Operand, b: Operand) -> str:
        """a / b rounded down, for 0 ≤ a and 0 < b below 2³¹ (the narrow division is several times faster)."""
        above = self.value(f"trunc i64 {a} to i32")
        below = str(b) if isinstance(b, int) else self.value(f"trunc i64 {b} to i32")
        return self.value(f"zext i32 {self.value(f'udiv i32 {above}, {below}')} to i64")

    def ceil_div(self, a: Operand, b: Operand) -> str:
        """a / b rounded up, for 0 ≤ a and 0 < b below 2³⁰."""
        return self.divide(self.sub(self.add(a, b), 1), b)

    def test(self, predicate: str, a: Operand, b: Operand) -> str:
        return self.value(f"icmp {predicate} i64 {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.value(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.value(f"or i1 {a}, {b}")

    def select(self, condition: str, a: Operand, b: Operand, kind: str = "i64") -> str:
        return self.value(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def minimum(self, a: Operand, b: Operand) -> str:
        return self.select(self.test("slt", a, b), a, b)

    def at(self, pointer: str, *offsets: Operand) -> str:
        """``pointer`` moved by the sum of ``offsets``, in elements."""
        for offset in offsets:
            if offset != 0:
                pointer = self.value(f"getelementptr {self.scalar_kind}, ptr {pointer}, i64 {offset}")
        return pointer

    def indirect(self, pointer: str, position: Operand) -> str:
        """Entry ``position`` of a table of i32, as an i64."""
        entry = self.value(f"getelementptr i32, ptr {pointer}, i64 {position}")
        return self.value(f"sext i32 {self.value(f'load i32, ptr {entry}, align 4')} to i64")

    def load(self, pointer: str, kind: str = "") -> str:
        """One vector, or one ``kind``; aligned like an element, because strides are arbitrary."""
        return self.value(f"load {kind or self.vector_kind}, ptr {pointer}, align {self.alignment}")

    def store(self, operand: str, pointer: str, kind: str = "") -> None:
        self.effect(f"store {kind or self.vector_kind} {operand}, ptr {pointer}, align {self.alignment}")

    def first_lanes(self, count: str) -> str:
        """The mask of the first ``count`` lanes."""
        bits = self.dtype.itemsize * 8
        kind = f"<{self.lanes} x i{bits}>"
        few = count if bits == 64 else self.value(f"trunc i64 {count} to i{bits}")
        one = self.value(f"insertelement {kind} poison, i{bits} {few}, i32 0")
        every = self.value(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        lane_ids = ", ".join(f"i{bits} {lane}" for lane in range(self.lanes))
        return self.value(f"icmp ult {kind} <{lane_ids}>, {every}")

    def masked_load(self, pointer: str, mask: str) -> str:
        """One vector of which only the lanes in ``mask`` are read; the others are zero."""
        return self.intrinsic(
            f"llvm.masked.load.v{self.lanes}f{self.dtype.itemsize * 8}.p0",
            self.vector_kind,
            ("ptr", pointer),
            ("i32", str(self.dtype.itemsize)),
            (self.mask_kind, mask),
            (self.vector_kind, "zeroinitializer"),
        )

    def masked_store(self, operand: str, pointer: str, mask: str) -> None:
        """The lanes in ``mask`` of a vector."""
        name = f"llvm.masked.store.v{self.lanes}f{self.dtype.itemsize * 8}.p0"
        self.declare(name, "void", self.vector_kind, "ptr", "i32", self.mask_kind)
        self.effect(
            f"call void @{name}({self.vector_kind} {operand}, ptr {pointer}, i32 {self.dtype.itemsize}, "
            f"{self.mask_kind} {mask})"
        )

    @contextlib.contextmanager
    def loop(self, start: Operand, end: Operand, step: Operand) -> Iterator[str]:
        """The body runs for the index start, start + step, … while below ``end``, possibly never."""
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

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """The body runs if ``condition`` holds."""
        then, after = self.new_label("then"), self.new_label("after")
        self.branch(condition, then, after)
        self.start(then)
        yield
        self.jump(after)
        self.start(after)

    def define(self, signature: str, attributes: str = "nounwind") -> str:
        """Return the finished function: ``signature`` up to its closing parenthesis, and the body written so far."""
        return "\n".join([f"define {signature} {attributes} {{", "entry:", *self.lines, "}"])


def rolled_branch(em: Flow, condition: str, again: str, done: str) -> None:
    """End of a bottom-tested loop."""
    em.branch(condition, again, done, _ROLLED)
