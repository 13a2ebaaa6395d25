"""Solve an expression for the elements of its result: find the points that are aggregated into each.

If a subscript of the target is a sum of indices, one of them follows from the others and the position in the result: in
O[y + i], y = o - i. Otherwise (O[2*i]) all remain, with the equation as two constraints.
"""

from __future__ import annotations

import functools

from runnel.core.records import record
from runnel.expressions import values
from runnel.expressions.affine import Affine, Range, greatest, index, least, number
from runnel.expressions.values import Element, Expression, Extents, Value

LONGEST = 1024  # most terms of a float sum or product in one chain


@record
class Solved:
    """For each point of ``axes``, the aggregate of ``term`` over the points of ``reduced`` with constraints ≥ 0.

    ``axes`` has an index for each axis of the result.
    """

    expression: Expression
    axes: Extents
    reduced: Extents
    constraints: tuple[Affine, ...]
    term: Value

    @property
    def rounds(self) -> bool:
        """True if the order of the terms matters for floats."""
        return self.expression.aggregation in ("sum", "prod")

    @property
    def chain(self) -> tuple[str, int] | None:
        """The reduced index at which terms are split into chains, and the number of its values in one chain.

        A chain has at most LONGEST terms; None if one chain has all. It has all values of the indices after this one.
        """
        inside = 1
        for name, extent in reversed(self.reduced if self.rounds else ()):
            if inside * extent > LONGEST:
                return name, LONGEST // inside
            inside *= extent
        return None

    @property
    def chains(self) -> int:
        """Number of chains into which the terms of an element are split."""
        if self.chain is None:
            return 1
        cut, length = self.chain
        count = 1
        for name, extent in self.reduced:
            if name == cut:
                return count * -(-extent // length)
            count *= extent
        return count


@functools.lru_cache(maxsize=1024)
def solved(expression: Expression) -> Solved:
    """Solve ``expression`` for each element of its result."""
    box: dict[str, Range] = {name: (0, max(extent, 1)) for name, extent in expression.indices}
    extents = dict(expression.indices)
    values_of: dict[str, Affine] = {}  # indices that follow from others
    constraints = list(expression.constraints)
    axes: dict[int, tuple[str, int]] = {}

    def limited(form: Affine) -> None:
        if least(form, box) < 0 or 0 in expression.shape:
            constraints.append(form)

    order = sorted(range(len(expression.target)), key=lambda d: expression.target[d].plain is None)
    for d in order:
        size, form = expression.shape[d], expression.target[d].replaced(values_of)
        name = form.plain
        if name is not None and name in extents and name not in (axis for axis, _ in axes.values()):
            axes[d] = name, size
            box[name] = (0, max(size, 1))
            limited(number(extents[name] - 1) - index(name))
            continue
        axis = _fresh(f"o{d}", {*box, *extents})
        axes[d] = axis, size
        box[axis] = (0, max(size, 1))
        taken = {known for known, _ in axes.values()}
        free = [n for n, c in form.terms if abs(c) == 1 and n not in taken]
        if free:
            eliminated = max(free, key=lambda n: extents[n])
            sign = form.coefficient(eliminated)
            solution = (index(axis) - form.without(eliminated)).scaled(sign)
            values_of = {n: f.replaced({eliminated: solution}) for n, f in values_of.items()} | {eliminated: solution}
            constraints = [c.replaced({eliminated: solution}) for c in constraints]
            del box[eliminated]
            limited(solution)
            limited(number(extents[eliminated] - 1) - solution)
        else:
            limited(index(axis) - form)
            limited(form - index(axis))
    axis_names = {name for name, _ in axes.values()}
    reduced = tuple((n, e) for n, e in expression.indices if n not in values_of and n not in axis_names)
    value = values.mapped(
        expression.term, lambda e: Element(e.name, tuple(s.replaced(values_of) for s in e.subscripts))
    )
    needed = tuple(dict.fromkeys(c for c in constraints if greatest(c, box) < 0 or least(c, box) < 0))
    return Solved(expression, tuple(axes[d] for d in range(len(axes))), reduced, needed, value)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
