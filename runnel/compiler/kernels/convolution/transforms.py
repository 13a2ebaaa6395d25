"""Small constant matrices applied to values in registers: straight-line statements of few operations."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from runnel.core.dtypes import DType
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Let, Ref, Stmt

Row = Sequence[Fraction]


class StraightLine:
    """Straight-line code under construction: each intermediate value gets a name, beginning with ``prefix``."""

    def __init__(self, prefix: str, dtype: DType) -> None:
        self.prefix = prefix
        self.dtype = dtype
        self.statements: list[Stmt] = []

    def let(self, value: Expr) -> Ref:
        name = f"{self.prefix}{len(self.statements)}"
        self.statements.append(Let(name, value))
        return Ref(name, self.dtype)

    def multiply(self, matrix: Sequence[Row], values: Sequence[Expr]) -> list[Expr]:
        """matrix · values. Columns that are equal up to signs share sums and differences of their values; rows that are
        share the parts in which they agree and differ."""
        recipe = _recipe(tuple(map(tuple, matrix)))
        known = list(values)
        for op, operands, factor in recipe.steps:
            read: list[Expr] = [known[i] for i in operands]
            if factor is not None:
                read.insert(1, Const(float(self.dtype.numpy.type(float(factor))), self.dtype))
            known.append(self.let(Apply(op, tuple(read), self.dtype)))
        return [known[i] for i in recipe.results]


class _Step(NamedTuple):
    """``op`` of earlier values, by number; ``factor`` is its second operand, if it is not None."""

    op: scalar.ScalarOp
    operands: tuple[int, ...]
    factor: Fraction | None = None


class _Recipe:
    """The steps that apply a matrix, whose values are numbered after those of the operands, and the numbers of the
    results."""

    def __init__(self, operands: int) -> None:
        self.operands = operands
        self.steps: list[_Step] = []
        self.results: list[int] = []

    def step(self, op: scalar.ScalarOp, operands: tuple[int, ...], factor: Fraction | None = None) -> int:
        self.steps.append(_Step(op, operands, factor))
        return self.operands + len(self.steps) - 1

    def add(self, x: int, y: int) -> int:
        return self.step(scalar.add, (x, y))

    def subtract(self, x: int, y: int) -> int:
        return self.step(scalar.sub, (x, y))

    def combination(self, row: Row, values: Sequence[int]) -> int:
        """Σ row·values, the terms with coefficients ±1 first, then a fused multiply-add for each other one."""
        pairs = [(c, v) for c, v in zip(row, values, strict=True) if c]
        (c, v), *rest = sorted(pairs, key=lambda t: (abs(t[0]) != 1, -t[0]))
        total = v if c == 1 else self.step(scalar.mul, (v,), c)
        for c, v in rest:
            if c == 1:
                total = self.add(total, v)
            elif c == -1:
                total = self.subtract(total, v)
            else:
                total = self.step(scalar.fma, (v, total), c)
        return total

    def by_columns(self, columns: list[list[Fraction]], twins: dict[int, int]) -> None:
        new_columns: list[list[Fraction]] = []
        new_values: list[int] = []
        for j, column in enumerate(columns):
            other = twins.get(j)
            if other is None:
                if j not in twins.values():
                    new_columns.append(column)
                    new_values.append(j)
                continue
            new_columns += _equal_and_opposite(column, columns[other])
            new_values += [self.add(j, other), self.subtract(j, other)]
        rows = [[column[i] for column in new_columns] for i in range(len(columns[0]))]
        self.results = [self.combination(row, new_values) for row in rows]

    def by_rows(self, matrix: Sequence[Row]) -> None:
        twins, values = _twins(matrix), range(self.operands)
        results: dict[int, int] = {}
        for i, row in enumerate(matrix):
            other = twins.get(i)
            if other is not None:
                equal, opposite = _equal_and_opposite(row, matrix[other])
                same, different = self.combination(equal, values), self.combination(opposite, values)
                results[i], results[other] = self.add(same, different), self.subtract(same, different)
            elif i not in results:
                results[i] = self.combination(row, values)
        self.results = [results[i] for i in range(len(matrix))]


@functools.cache
def _recipe(matrix: tuple[tuple[Fraction, ...], ...]) -> _Recipe:
    columns = [list(column) for column in zip(*matrix, strict=True)]
    twins = _twins(columns)
    recipe = _Recipe(len(columns))
    if twins:
        recipe.by_columns(columns, twins)
    else:
        recipe.by_rows(matrix)
    return recipe


def _equal_and_opposite(x: Row, y: Row) -> tuple[list[Fraction], list[Fraction]]:
    """The entries of ``x`` where ``y`` has the same, and the others; 0 elsewhere."""
    equal = [c if c == d else Fraction(0) for c, d in zip(x, y, strict=True)]
    return equal, [c if c != d else Fraction(0) for c, d in zip(x, y, strict=True)]


def _twins(rows: Sequence[Row]) -> dict[int, int]:
    """Pairs of rows that are equal up to the signs of entries, with entries of both kinds: first → second."""
    twins: dict[int, int] = {}
    paired: set[int] = set()
    for i, row in enumerate(rows):
        for j in range(i + 1, len(rows)):
            pairs = [(c, d) for c, d in zip(row, rows[j], strict=True) if c or d]
            alike = all(abs(c) == abs(d) for c, d in pairs)
            if alike and len({c == d for c, d in pairs}) == 2 and i not in paired and j not in paired:
                twins[i] = j
                paired |= {i, j}
    return twins
