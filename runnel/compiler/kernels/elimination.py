"""Systems of few equations as kernels: Gaussian elimination with partial pivoting in memory of the thread, one matrix
after another, in float64 (G. Golub, C. Van Loan, "Matrix Computations", 3.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from runnel.backends.host import layout
from runnel.compiler.lowering.parts import Parts, binary, clipped, compared, count
from runnel.compiler.lowering.protocol import Lowering, Request
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.core.dtypes import bool_, float64, int64
from runnel.core.lengths import fixed
from runnel.core.records import replace
from runnel.graph.node import Value
from runnel.loops import ir, scalar

_WIDE: Final = 12  # rows from which on columns are computed in vectors
_MATRIX, _STEP, _ROW, _COLUMN, _INNER = (ir.Var(name) for name in ("matrix", "step", "row", "column", "inner"))


class SmallSolveLowering(Lowering):
    """SmallSolve: x with a·x = b, for each matrix a."""

    stays_in_step: ClassVar[bool] = True

    def may_fail(self, node: Value) -> bool:
        return True

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        a, b = (request.operands.dense(x) for x in request.node.inputs)
        return [_Elimination(request.node, a, b, results[0]).call()]


class _Elimination:
    """The kernel of one node. The scratch buffers ``m`` and ``y`` become the upper triangle and the solution."""

    def __init__(self, node: Value, a: tuple[Allocation, int], b: tuple[Allocation, int], x: Allocation) -> None:
        self.node, self.dtype = node, node.aval.dtype
        n, k = fixed(node.aval.shape[-2:])
        self.matrices = node.aval.size // (n * k)
        self.work = 2 * n**3 // 3 + 2 * n * n * k
        self.kind = "vec" if n >= _WIDE else "seq"  # of loops over columns
        self.parts = Parts()
        self.n, self.k = self.parts.param(n), self.parts.param(k)
        self.last, self.a_size, self.b_size = map(self.parts.param, (n - 1, n * n, n * k))
        for name, allocation, offset, mode, size in (
            ("a", *a, "in", n * n), ("b", *b, "in", n * k), ("x", x, 0, "out", n * k)
        ):  # fmt: skip
            self.parts.declare(BufferAccess(allocation, mode == "out", offset, size, 0, size), mode, name=name)
        self.parts.scratch("m", float64, n * n)
        self.parts.scratch("y", float64, n * k)
        self.parts.scratch("largest", float64, 1)
        self.parts.scratch("pivot", int64, 1)

    def call(self) -> Call:
        body = (
            self._copy("a", "m", self.a_size),
            self._copy("b", "y", self.b_size),
            ir.For(_STEP, 0, self.n, "seq", tuple(self._eliminated())),
            ir.For(_STEP, 0, self.n, "seq", tuple(self._substituted())),
            self._copy("y", "x", self.b_size),
        )  # fmt: skip
        loop = ir.For(_MATRIX, ir.RangeBound.I0, ir.RangeBound.I1, "seq", body)
        call = self.parts.call("small_solve", (loop,), (self.matrices, 1), self.matrices * self.work, self.node)
        return replace(call, checks=True)

    def _eliminated(self) -> list[ir.Stmt]:
        """Return the statements of a step: the row with the largest element of a column changes places with the first
        one, and a multiple of it is subtracted from all below."""
        row, size = count("next"), ir.Ref("size", float64)
        largest, pivot = _load("largest", ir.Index()), ir.Load("pivot", ir.Index(), int64)
        at_step = ir.Index(((_STEP, self.n), (_STEP, 1)))
        below = ir.Index(((_ROW, self.n), (_STEP, 1)))
        search = ir.For(_ROW, row, self.n, "seq", (
            ir.Let("size", ir.Apply(scalar.abs_, (_load("m", below),), float64)),
            ir.Let("is_larger", compared(scalar.gt, size, largest)),
            ir.Let("best", _chosen(ir.Position(_ROW, int64), pivot)),
            ir.Let("most", _chosen(size, largest)),
            ir.Store("pivot", ir.Index(), count("best")),
            ir.Store("largest", ir.Index(), ir.Ref("most", float64)),
        ))  # fmt: skip
        zero = ir.Const(0.0, float64)
        return [
            ir.Let("next", binary(scalar.add, ir.Position(_STEP, int64), ir.Const(1, int64))),
            ir.Store("pivot", ir.Index(), ir.Position(_STEP, int64)),
            ir.Store("largest", ir.Index(), ir.Apply(scalar.abs_, (_load("m", at_step),), float64)),
            search,
            ir.Let("chosen", clipped(pivot, 0, self.last)),
            self._exchanged("m", self.n),
            self._exchanged("y", self.k),
            ir.Let("divisor", _load("m", at_step)),
            ir.Check(compared(scalar.ne, ir.Ref("divisor", float64), zero), layout.SINGULAR),
            ir.For(_ROW, row, self.n, "seq", (
                ir.Let("factor", binary(scalar.div, _load("m", below), ir.Ref("divisor", float64))),
                self._reduced("m", row, self.n, ((_ROW, self.n),), ((_STEP, self.n),)),
                self._reduced("y", 0, self.k, ((_ROW, self.k),), ((_STEP, self.k),)),
            )),
        ]  # fmt: skip

    def _substituted(self) -> list[ir.Stmt]:
        """Return the statements that compute a row of the solution, the last first."""
        row = count("at")
        own = ((row, self.k),)
        element = ir.Index(((_COLUMN, 1),), 0, own)
        diagonal = ir.Index((), 0, ((row, self.n), (row, 1)))
        return [
            ir.Let("at", binary(scalar.sub, self.last, ir.Position(_STEP, int64))),
            ir.Let("after", binary(scalar.add, row, ir.Const(1, int64))),
            ir.For(_INNER, count("after"), self.n, "seq", (
                ir.Let("factor", _load("m", ir.Index(((_INNER, 1),), 0, ((row, self.n),)))),
                self._reduced("y", 0, self.k, (), ((_INNER, self.k),), own),
            )),
            ir.For(_COLUMN, 0, self.k, self.kind, (
                ir.Store("y", element, binary(scalar.div, _load("y", element), _load("m", diagonal))),
            )),
        ]  # fmt: skip

    def _reduced(
        self, buffer: str, begin: ir.Bound, end: ir.Bound, target: Sequence[tuple[ir.Var, ir.Stride]],
        source: Sequence[tuple[ir.Var, ir.Stride]], gathered: Sequence[tuple[ir.Expr, ir.Stride]] = (),
    ) -> ir.For:  # fmt: skip
        """Return the loop over columns that subtracts ``factor`` times a row from another."""
        own = ir.Index((*target, (_COLUMN, 1)), 0, tuple(gathered))
        multiple = binary(scalar.mul, ir.Ref("factor", float64), _load(buffer, ir.Index((*source, (_COLUMN, 1)))))
        return ir.For(
            _COLUMN, begin, end, self.kind, (ir.Store(buffer, own, binary(scalar.sub, _load(buffer, own), multiple)),)
        )

    def _exchanged(self, buffer: str, length: ir.Param) -> ir.For:
        """Return the loop that exchanges the rows ``step`` and ``chosen``."""
        here = ir.Index(((_STEP, length), (_COLUMN, 1)))
        there = ir.Index(((_COLUMN, 1),), 0, ((count("chosen"), length),))
        first, second = f"first_{buffer}", f"second_{buffer}"
        return ir.For(_COLUMN, 0, length, self.kind, (
            ir.Let(first, _load(buffer, here)),
            ir.Let(second, _load(buffer, there)),
            ir.Store(buffer, here, ir.Ref(second, float64)),
            ir.Store(buffer, there, ir.Ref(first, float64)),
        ))  # fmt: skip

    def _copy(self, source: str, target: str, size: ir.Param) -> ir.For:
        """Return the loop that copies a matrix to memory of the thread, or the solution from there."""
        here, there = ir.Index(((_MATRIX, size), (_INNER, 1))), ir.Index(((_INNER, 1),))
        outward = target == "x"
        value: ir.Expr = _load("y", there) if outward else ir.Load(source, here, self.dtype)
        if self.dtype is not float64:
            value = ir.Apply(scalar.cast, (value,), self.dtype if outward else float64)
        return ir.For(_INNER, 0, size, "vec", (ir.Store(target, here if outward else there, value),))


def _chosen(x: ir.Expr, y: ir.Expr) -> ir.Expr:
    return ir.Apply(scalar.select, (ir.Ref("is_larger", bool_), x, y), x.dtype)


def _load(buffer: str, index: ir.Index) -> ir.Load:
    return ir.Load(buffer, index, float64)
