"""Axis rules (table ``axes``): what an op does when an axis is added, or axes are reordered or merged.

For most ops the rule is a description of their attributes (:class:`Aligned`). Others say how they are carried out with
a new axis in front of their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from runnel.core.avals import Shape, ShapedArray
from runnel.core.dispatch import apply
from runnel.core.records import field, record
from runnel.core.tables import Op, axes

Attrs = dict[str, Any]
SIZE: Final = "size"  # an entry that is the size of the axis


class AxisRule:
    """A row of table ``axes``. By default an op takes no new axis, no other order and no merged rows."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        """Return the results for ``size`` elements, stacked along a new axis 0; None if this op has no specialized
        way. The operands have that axis, of ``size`` or, if they are the same for all elements, of 1."""
        return None

    def in_order(self, attrs: Attrs, order: Shape, result: ShapedArray) -> Attrs | None:
        """Return the attributes after axis i of all operands and of the ``result`` becomes the former axis order[i];
        None if the values would change."""
        return None

    def with_rows_merged(self, attrs: Attrs, ndim: int) -> Attrs | None:
        """Return the attributes after all ``ndim`` axes except the last are merged into one; None if that is
        impossible."""
        return None


# --- attributes that are about axes -------------------------------------------------------------------------------


@record
class Each:
    """An attribute with an entry for each axis; ``new`` is the entry of an axis that the op does not touch."""

    new: Any

    def with_axis(self, value: Any, size: int) -> Any:
        return (size if self.new is SIZE else self.new, *value)

    def in_order(self, value: Any, order: Shape) -> Any:
        return tuple(value[a] for a in order)

    def with_rows_merged(self, value: Any, ndim: int) -> Any:
        if self.new is SIZE:
            return (math.prod(value[:-1]), value[-1])
        return (self.new, value[-1]) if all(entry == self.new for entry in value[:-1]) else None


class One:
    """The number of an axis."""

    def with_axis(self, value: Any, size: int) -> Any:
        return value + 1

    def in_order(self, value: Any, order: Shape) -> Any:
        return order.index(value)

    def with_rows_merged(self, value: Any, ndim: int) -> Any:
        return 1 if value == ndim - 1 else None


class Some:
    """Numbers of axes, ascending."""

    def with_axis(self, value: Any, size: int) -> Any:
        return tuple(a + 1 for a in value)

    def in_order(self, value: Any, order: Shape) -> Any:
        return tuple(sorted(order.index(a) for a in value))

    def with_rows_merged(self, value: Any, ndim: int) -> Any:
        rows, last = tuple(range(ndim - 1)), (ndim - 1,)
        return {rows: (0,), last: (1,)}.get(tuple(value))  # sums over both are sums in another order


AboutAxes = Each | One | Some


# --- rules --------------------------------------------------------------------------------------------------------


@record(slots=False)
class Aligned(AxisRule):
    """Operands and result have the same axes, one by one, and an operand's axis of size 1 is repeated: elementwise ops,
    reductions that keep their axes, slices. ``about`` says which attributes are about axes. ``is_ordered``: float
    results depend on the order of axes, since they are sums."""

    about: Mapping[str, AboutAxes] = field(default_factory=dict)
    is_ordered: bool = False

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        return apply(op, *operands, **self._changed(attrs, lambda kind, value: kind.with_axis(value, size)))

    def in_order(self, attrs: Attrs, order: Shape, result: ShapedArray) -> Attrs | None:
        if self.is_ordered and result.dtype.is_float:
            return None
        return self._changed(attrs, lambda kind, value: kind.in_order(value, order))

    def with_rows_merged(self, attrs: Attrs, ndim: int) -> Attrs | None:
        changed = self._changed(attrs, lambda kind, value: kind.with_rows_merged(value, ndim))
        return None if any(changed[name] is None for name in self.about) else changed

    def _changed(self, attrs: Attrs, change: Callable[[AboutAxes, Any], Any]) -> Attrs:
        return attrs | {name: change(kind, attrs[name]) for name, kind in self.about.items()} if self.about else attrs


ELEMENTWISE: Final = Aligned()
REDUCTION: Final = Aligned({"axes": Some()}, is_ordered=True)


@record(slots=False)
class Batching(AxisRule):
    """``rule(size, *operands, **attrs)`` applies the op with a new axis, or returns None if it has no specialized
    way."""

    rule: Callable[..., Any]

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        return self.rule(size, *operands, **attrs)


LOOPED: Final = AxisRule()  # no way but element by element


def batching(op: Op) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: register a function as ``op``'s :class:`Batching`."""

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        axes.register(op, Batching(rule))
        return rule

    return decorate
