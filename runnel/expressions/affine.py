"""Affine forms Σ coefficient·index + constant over integers, and their smallest and largest values over boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from runnel.core.records import record

Range = tuple[int, int]  # the first value, and the one after the last
Box = Mapping[str, Range]


@record
class Affine:
    """Σ coefficient·name + constant; ``terms`` are sorted by name, without zeros."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    @property
    def plain(self) -> str | None:
        """The index, if the form is a single index, else None."""
        return self.terms[0][0] if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1 else None

    def coefficient(self, name: str) -> int:
        return next((c for n, c in self.terms if n == name), 0)

    def __add__(self, other: Affine) -> Affine:
        return combined(((1, self), (1, other)))

    def __sub__(self, other: Affine) -> Affine:
        return combined(((1, self), (-1, other)))

    def scaled(self, factor: int) -> Affine:
        return combined(((factor, self),))

    def plus(self, number: int) -> Affine:
        return Affine(self.terms, self.constant + number)

    def without(self, name: str) -> Affine:
        return Affine(tuple(t for t in self.terms if t[0] != name), self.constant)

    def replaced(self, values: Mapping[str, Affine]) -> Affine:
        """Substitute ``values`` for indices."""
        if not any(name in values for name, _ in self.terms):
            return self
        parts = [(c, values[n] if n in values else index(n)) for n, c in self.terms]
        return combined((*parts, (1, number(self.constant))))

    def __str__(self) -> str:
        text = ""
        for name, c in self.terms:
            size = name if abs(c) == 1 else f"{abs(c)}*{name}"
            text += (f" - {size}" if c < 0 else f" + {size}") if text else (f"-{size}" if c < 0 else size)
        if not text:
            return str(self.constant)
        return text + (f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}" if self.constant else "")


def index(name: str) -> Affine:
    return Affine(((name, 1),))


def number(value: int) -> Affine:
    return Affine((), value)


ZERO: Final = number(0)


def combined(parts: Iterable[tuple[int, Affine]]) -> Affine:
    """Return Σ factor·form."""
    sums: dict[str, int] = {}
    constant = 0
    for factor, form in parts:
        constant += factor * form.constant
        for name, c in form.terms:
            sums[name] = sums.get(name, 0) + factor * c
    return Affine(tuple(sorted((n, c) for n, c in sums.items() if c)), constant)


def least(form: Affine, box: Box) -> int:
    """Return the smallest value if each index is in its range, which must not be empty."""
    return form.constant + sum(c * (box[n][0] if c > 0 else box[n][1] - 1) for n, c in form.terms)


def greatest(form: Affine, box: Box) -> int:
    return form.constant + sum(c * (box[n][1] - 1 if c > 0 else box[n][0]) for n, c in form.terms)


def least_within(form: Affine, box: Box, constraints: Iterable[Affine]) -> int:
    """Return a lower bound of ``form`` over the points of a box where all ``constraints`` are ≥ 0.

    It is exact in the usual cases. For any λ ≥ 0, form ≥ form - λ·constraint at these points. λ is chosen so that an
    index cancels, for up to two constraints together.
    """
    known = tuple(constraints)
    best = _fraction_least(_fractions(form), box)
    for first in known:
        for once in _eliminated(_fractions(form), first):
            best = max(best, _fraction_least(once, box))
            for second in known:
                if second is not first:
                    for twice in _eliminated(once, second):
                        best = max(best, _fraction_least(twice, box))
    return -int((-best) // 1)  # rounded up: the form is an integer


_Form = dict[str, Fraction]  # "" is the constant


def _fractions(form: Affine) -> _Form:
    return {"": Fraction(form.constant), **{n: Fraction(c) for n, c in form.terms}}


def _fraction_least(form: _Form, box: Box) -> Fraction:
    return form[""] + sum((c * (box[n][0] if c > 0 else box[n][1] - 1) for n, c in form.items() if n), Fraction(0))


def _eliminated(form: _Form, constraint: Affine) -> list[_Form]:
    """Subtract multiples of ``constraint`` from ``form`` so that an index cancels."""
    results = []
    for factor in {form[n] / c for n, c in constraint.terms if form.get(n, 0) * c > 0}:
        changed = dict(form)
        for n, c in (*constraint.terms, ("", constraint.constant)):
            changed[n] = changed.get(n, Fraction(0)) - factor * c
        results.append({n: c for n, c in changed.items() if c or not n})
    return results


def rank(forms: Iterable[Affine]) -> int:
    """Return the number of linearly independent forms, without constants."""
    rows = [{n: Fraction(c) for n, c in form.terms} for form in forms]
    count = 0
    while rows:
        row = rows.pop()
        if not row:
            continue
        count += 1
        pivot, value = next(iter(row.items()))
        for other in rows:
            factor = other.get(pivot, Fraction(0)) / value
            for n, c in row.items():
                other[n] = other.get(n, Fraction(0)) - factor * c
                if not other[n]:
                    del other[n]
    return count
