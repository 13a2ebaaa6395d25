"""The lowerings of elementwise ops and reductions, which share loops with other ops at the same points."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from runnel.compiler.kernels.elementwise import nests
from runnel.compiler.kernels.elementwise.nests import Passes
from runnel.compiler.lowering.protocol import IndexBound, Lowering, Request
from runnel.compiler.plan_ir.clusters import Cluster, Form, essential_strides, reduces_last
from runnel.compiler.plan_ir.regions import Section
from runnel.compiler.plan_ir.strides import Strided
from runnel.core.avals import Shape
from runnel.graph.node import Constant, Value
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr, Ref
from runnel.loops.uses import parts

SHORTEST: Final = 16  # adjacent elements that are worth storing into a subview
_OF_EQUAL_VALUES: Final = ("any", "all", "max", "min")  # idempotent: the reduction of equal values is that value
_ROUNDED_ONCE: Final = {
    scalar.maximum, scalar.minimum,
    scalar.add, scalar.sub, scalar.mul, scalar.div, scalar.sqrt, scalar.neg, scalar.abs_, scalar.sign,
    scalar.floor, scalar.ceil, scalar.trunc, scalar.rint, scalar.cast, scalar.bitcast, scalar.select,
    scalar.lt, scalar.le, scalar.gt, scalar.ge, scalar.eq, scalar.ne, scalar.isnan, scalar.isinf,
}  # fmt: skip


class NestLowering(Lowering):
    """The base of all members of nests."""

    recompute_rank: ClassVar[int] = 0

    def form(self, node: Value, views: dict[Value, Strided]) -> Form:
        return Form.NEST

    def build(self, request: Request) -> Section:
        section = Section()
        section.add([nests.build(request)])
        return section

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        """With reductions, ``result`` must be stored after all reads: in the last pass along a row."""
        if not cluster.reduced or result in cluster.reduced_members:
            return True
        passes = Passes(cluster, views, {})
        return reduces_last(cluster.domain, cluster.reduced) and passes.level[result] == passes.last

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return True

    def takes_subview(self, node: Value, shape: Shape, strides: Shape, size: int) -> bool:
        """Return whether enough elements are adjacent."""
        run = 1
        for n, step in reversed([*zip((n for n in shape if n != 1), essential_strides(shape, strides), strict=True)]):
            if step != run:
                break
            run *= n
        return run >= SHORTEST


class ElementwiseLowering(NestLowering):
    """Each element is an expression of the operands' elements."""

    is_expression: ClassVar[bool] = True
    merges_rows: ClassVar[bool] = True

    def __init__(self, rule: Any) -> None:
        super().__init__(rule)
        self.has_literals = rule.literal

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        value: Expr = self.rule.expr((*(x.aval for x in node.inputs), node.aval), *operands, **node.attrs)
        return value

    def is_function_of_elements(self, node: Value) -> bool:
        return True

    def agrees_with_reference(self, node: Value) -> bool:
        """True for integers and bools, and for single correctly rounded operations of IEEE 754."""
        value = self.expression(node, [Ref(f"x{i}", x.aval.dtype) for i, x in enumerate(node.inputs)], None)
        if isinstance(value, Apply) and all(isinstance(arg, Ref) for arg in value.args):
            return value.op in _ROUNDED_ONCE or not _has_floats(node)
        return not any(part.dtype.is_float for part in parts(value))


class BoundsCheckedLowering(ElementwiseLowering):
    """Elementwise, with a bounds check of indices."""

    merges_rows: ClassVar[bool] = False
    stays_in_step: ClassVar[bool] = True

    def index_bound(self, node: Value) -> IndexBound:
        return node.inputs[0], node.attrs["extent"], node.attrs["allowed"]

    def agrees_with_reference(self, node: Value) -> bool:
        """True where the indices are known to be in the range; else the check remains in the program."""
        indices, extent, allowed = self.index_bound(node)
        if not isinstance(indices, Constant):
            return False
        known = np.asarray(indices.value)
        return bool((((known >= 0) & (known < extent)) | (known == allowed)).all())


class PositionLowering(NestLowering):
    """Elementwise, with a number that depends on the position (iota-like)."""

    is_expression: ClassVar[bool] = True
    merges_rows: ClassVar[bool] = True

    def position_steps(self, node: Value) -> Shape:
        steps: Shape = self.rule.steps(node.aval, **node.attrs)
        return steps

    def expression(self, node: Value, operands: list[Expr], position: Expr | None) -> Expr:
        value: Expr = self.rule.expr((*(x.aval for x in node.inputs), node.aval), position, *operands, **node.attrs)
        return value

    def agrees_with_reference(self, node: Value) -> bool:
        return not _has_floats(node)


class ReductionLowering(NestLowering):
    """Reduces the elements along some axes."""

    merges_rows: ClassVar[bool] = True
    recompute_rank: ClassVar[int] = 1

    def __init__(self, rule: Any) -> None:
        super().__init__(rule)
        self.reduction = rule.op

    def point_shape(self, node: Value) -> Shape:
        return node.inputs[0].aval.shape

    def reduced_axes(self, node: Value) -> tuple[int, ...]:
        shape, axes = node.inputs[0].aval.shape, node.attrs["axes"]
        essential = [axis for axis, n in enumerate(shape) if n != 1]
        return tuple(position for position, axis in enumerate(essential) if axis in axes)

    def is_function_of_elements(self, node: Value) -> bool:
        return self.reduction in _OF_EQUAL_VALUES

    def agrees_with_reference(self, node: Value) -> bool:
        return not _has_floats(node)


def _has_floats(node: Value) -> bool:
    return node.aval.dtype.is_float or any(x.aval.dtype.is_float for x in node.inputs)
