"""Small constant matrices applied to values in registers: straight-line statements of few operations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from runnel.core.dtypes import DType
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Let, Ref, Stmt

Row = Sequence[Fraction]


class Straight:
    """Straight-line code under construction: each intermediate value gets a name, beginning with ``prefix``."""

    def __init__(self, prefix: str, dtype: DType) -> None:
        self.prefix = prefix
        self.dtype = dtype
        self.statements: list[Stmt] = []

    def let(self, value: Expr) -> Ref:
        name = f"{self.prefix}{len(self.statements)}"
        self.statements.append(Let(name, value))
        return Ref(name, self.dtype)

    def add(self, x: Expr, y: Expr) -> Ref:
        return self.let(Apply(scalar.add, (x, y), self.dtype))

    def subtract(self, x: Expr, y: Expr) -> Ref:
        return self.let(Apply(scalar.sub, (x, y), self.dtype))

    def combination(self, row: Row, values: Sequence[Expr]) -> Expr:
        """Σ row·values, the terms with coefficients ±1 first, then a fused multiply-add for each other one."""
        terms = sorted(((c, v) for c, v in zip(row, values, strict=True) if c), key=lambda t: (abs(t[0]) != 1, -t[0]))
        (c, v), *rest = terms
        total = v if c == 1 else self.let(Apply(scalar.mul, (v, self._constant(c)), self.dtype))
        for c, v in rest:
            if c == 1:
                total = self.add(total, v)
            elif c == -1:
                total = self.subtract(total, v)
            else:
                total = self.let(Apply(scalar.fma, (v, self._constant(c), total), self.dtype))
        return total

    def _constant(self, c: Fraction) -> Const:
        return Const(float(self.dtype.numpy.type(float(c))), self.dtype)

    def multiply(self, matrix: Sequence[Row], values: Sequence[Expr]) -> list[Expr]:
        """matrix · values. Where two columns are equal up to signs, sums and differences of their values serve both;
        where two rows are, so do the parts in which they agree and differ."""
        columns = [[row[j] for row in matrix] for j in range(len(values))]
        twins = _twins(columns)
        if twins:
            return self._by_columns(columns, twins, values)
        return self._by_rows(matrix, values)

    def _by_columns(self, columns: list[list[Fraction]], twins: dict[int, int], values: Sequence[Expr]) -> list[Expr]:
        new_columns: list[list[Fraction]] = []
        new_values: list[Expr] = []
        for j, column in enumerate(columns):
            other = twins.get(j)
            if other is None:
                if j not in twins.values():
                    new_columns.append(column)
                    new_values.append(values[j])
                continue
            equal = [c if c == d else Fraction(0) for c, d in zip(column, columns[other], strict=True)]
            opposite = [c if c != d else Fraction(0) for c, d in zip(column, columns[other], strict=True)]
            new_columns += [equal, opposite]
            new_values += [self.add(values[j], values[other]), self.subtract(values[j], values[other])]
        rows = [[column[i] for column in new_columns] for i in range(len(columns[0]))]
        return [self.combination(row, new_values) for row in rows]

    def _by_rows(self, matrix: Sequence[Row], values: Sequence[Expr]) -> list[Expr]:
        twins = _twins(matrix)
        results: list[Expr | None] = [None] * len(matrix)
        for i, row in enumerate(matrix):
            other = twins.get(i)
            if other is not None:
                equal = [c if c == d else Fraction(0) for c, d in zip(row, matrix[other], strict=True)]
                opposite = [c if c != d else Fraction(0) for c, d in zip(row, matrix[other], strict=True)]
                same, different = self.combination(equal, values), self.combination(opposite, values)
                results[i], results[other] = self.add(same, different), self.subtract(same, different)
            elif results[i] is None:
                results[i] = self.combination(row, values)
        return [r for r in results if r is not None]


def _twins(rows: Sequence[Row]) -> dict[int, int]:
    """Pairs of rows that are equal up to the signs of entries, with entries of both kinds: first → second."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    for i, row in enumerate(rows):
        for j in range(i + 1, len(rows)):
            pairs = [(c, d) for c, d in zip(row, rows[j], strict=True) if c or d]
            alike = all(abs(c) == abs(d) for c, d in pairs)
            if alike and len({c == d for c, d in pairs}) == 2 and i not in taken and j not in taken:
                found[i] = j
                taken |= {i, j}
    return found
