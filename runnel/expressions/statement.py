"""A tensor expression whose sizes are known: indices with ranges, constraints, and a value that is aggregated."""

from __future__ import annotations

from runnel.core.avals import Shape
from runnel.core.records import record
from runnel.expressions import values
from runnel.expressions.affine import Affine, Box, index
from runnel.expressions.values import Value

Extents = tuple[tuple[str, int], ...]


@record
class Expression:
    """result[target] is the aggregate of ``term`` over all points: indices from 0 below their extents at which each
    constraint is ≥ 0. ``names`` are those of the operands, of ``shapes``, in order of appearance; ``indices`` have the
    order in which they appear in the term, those of the target alone behind."""

    aggregation: str  # "assign", "sum", "prod", "max" or "min"
    name: str
    target: tuple[Affine, ...]
    shape: Shape
    indices: Extents
    constraints: tuple[Affine, ...]
    term: Value
    names: tuple[str, ...]
    shapes: tuple[Shape, ...]

    @property
    def box(self) -> Box:
        return {name: (0, extent) for name, extent in self.indices}

    @property
    def is_empty(self) -> bool:
        return any(extent == 0 for _, extent in self.indices)

    @property
    def text(self) -> str:
        """As text that means the same for operands of these shapes."""
        axes = ", ".join(f"{subscript}: {size}" for subscript, size in zip(self.target, self.shape, strict=True))
        sign = {"assign": "=", "sum": "+=", "prod": "*=", "max": "max=", "min": "min="}[self.aggregation]
        stated = self._stated()
        limits = [f"{name} < {extent}" for name, extent in self.indices if (name, extent) not in stated]
        limits += [f"0 <= {form}" for form in self.constraints]
        where = f" where {', '.join(limits)}" if limits else ""
        return f"{self.name}[{axes}] {sign} {values.written(self.term)}{where}"

    def _stated(self) -> set[tuple[str, int]]:
        """The extents that arrays have by themselves. One that is smaller elsewhere is no contradiction if stated."""
        sizes: dict[str, set[int]] = {}
        accesses = [(e.subscripts, self.shapes[self.names.index(e.name)]) for e in values.elements(self.term)]
        for subscripts, shape in [*accesses, (self.target, self.shape)]:
            for subscript, size in zip(subscripts, shape, strict=True):
                if subscript.plain is not None:
                    sizes.setdefault(subscript.plain, set()).add(size)
        return {(name, size) for name, extents in sizes.items() for size in extents if len(extents) == 1}


def point(names: tuple[str, ...]) -> tuple[Affine, ...]:
    """Plain subscripts."""
    return tuple(index(name) for name in names)
