"""Lengths: sizes that a program learns at each call, as polynomials of symbols.

A graph with lengths in its shapes is compiled once, for the lengths of one call, and serves others: sizes, offsets and
extents are expressions, which are evaluated for the lengths of a new call. Where Python asks something that the answer
depends on (a comparison, a conversion to int), the answer for the first lengths is used, and is written down as a
condition; the program serves the lengths for which all conditions hold.

A :class:`Length` is not an int. Code that needs an int asks for one, which adds a condition: code that knows nothing of
lengths makes a program less general, but never wrong. :func:`expected` returns the value without a condition, for
decisions that do not change results, such as predicted times.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core import functions

_Monomial = tuple[int, ...]  # numbers of atoms, ascending
_Terms = dict[_Monomial, int]  # coefficients, none 0
_NAME: Final = re.compile(r"\ba(\d+)\b")
_SYMBOL: Final = re.compile(r"symbols\[(\d+)\]")
_NEAR: Final = (1, -1, 2, -2, 8, 16, 64)
LEAST: Final = 2  # of a symbol: shapes with 0 or 1 elements along an axis have separate programs


class _Atom(NamedTuple):
    """A symbol, a quotient rounded down, or the largest of several lengths."""

    code: str  # over the names of earlier atoms
    value: int  # for the first lengths
    least: float
    most: float


class Lengths:
    """The symbols of one program, and the conditions on them.

    Attributes:
        symbols: the lengths that differ from call to call, in the order in which they were made.
        conditions: what must hold, as code over the names of atoms.
        number: makes a run-time number of a length, for arithmetic with tensors; None where there is no such number.
    """

    def __init__(self) -> None:
        self.symbols: Final[list[Length]] = []
        self.conditions: Final[dict[str, None]] = {}
        self.number: Callable[[Length], Any] | None = None
        self._atoms: Final[list[_Atom]] = []
        self._numbers: Final[dict[str, int]] = {}  # of atoms, by their code
        self._interned: Final[dict[tuple[tuple[_Monomial, int], ...], Length]] = {}

    def symbol(self, value: int) -> Length:
        """Return a new symbol: ``value`` for the first lengths, and at least 2 for all."""
        if value < LEAST:
            raise ValueError(f"[lengths] a length that changes must be at least {LEAST}; got {value}.")
        symbol = self._atom(f"symbols[{len(self.symbols)}]", value, LEAST, math.inf)
        self.symbols.append(symbol)
        return symbol

    @property
    def values(self) -> list[int]:
        """The first lengths."""
        return [symbol.value for symbol in self.symbols]

    def vary(self) -> bool:
        """Return whether the conditions admit other lengths near the first ones."""
        holds = self.evaluator(())
        places = range(len(self.values))
        steps = [[by if i == j else 0 for j in places] for i in places for by in _NEAR]
        steps += [[by] * len(places) for by in _NEAR]
        return any(holds([v + by for v, by in zip(self.values, step, strict=True)]) is not None for step in steps)

    def name(self, number: int) -> str:
        """Return an atom in words: ``n0`` is the first symbol."""
        code = self._atoms[number].code
        symbol = _SYMBOL.fullmatch(code)
        return f"n{symbol[1]}" if symbol else f"({_NAME.sub(lambda match: self.name(int(match[1])), code)})"

    def text(self, length: Length) -> str:
        """Return ``length`` as code over the symbols ``{a0}``, ``{a1}``, ..."""

        def atom(match: re.Match[str]) -> str:
            code = self._atoms[int(match[1])].code
            symbol = _SYMBOL.fullmatch(code)
            return f"{{a{symbol[1]}}}" if symbol else f"({_NAME.sub(atom, code)})"

        return _NAME.sub(atom, length.code)

    def evaluator(self, lengths: Sequence[Length | int]) -> Callable[[Sequence[int]], tuple[int, ...] | None]:
        """Return a function from the values of the symbols to the values of ``lengths``; it returns None where a
        condition does not hold."""
        texts = [_code(length) for length in lengths]
        atoms = [f"a{i} = {atom.code}" for i, atom in enumerate(self._atoms)]
        least = [f"min(symbols) < {LEAST}"] if self.symbols else []
        tests = [*least, *(f"not ({condition})" for condition in self.conditions)]
        lines = ["try:", *[f"    {atom}" for atom in atoms], "except ZeroDivisionError: return None"]
        lines = [*(lines if atoms else ()), *([f"if {' or '.join(tests)}: return None"] if tests else ())]
        lines.append(f"return ({''.join(f'{text}, ' for text in texts)})")
        evaluate: Callable[[Sequence[int]], tuple[int, ...] | None] = functions.function(
            "evaluate(symbols)", lines, {}, "lengths of a call"
        )
        return evaluate

    def require(self, left: Length, sign: str, right: int) -> None:
        """Write down a condition."""
        self.conditions[f"{left.code} {sign} {right}"] = None

    def of(self, terms: _Terms) -> Length | int:
        """Return the length with these terms; an int if it is constant."""
        terms = {monomial: factor for monomial, factor in terms.items() if factor}
        if not terms or terms.keys() == {()}:
            return terms.get((), 0)
        key = tuple(sorted(terms.items()))
        length = self._interned.get(key)
        if length is None:
            value = sum(factor * math.prod(self._atoms[i].value for i in monomial) for monomial, factor in key)
            length = self._interned[key] = Length(self, dict(key), value)
        return length

    def quotient(self, numerator: Length | int, denominator: Length | int) -> Length | int:
        """Return a quotient rounded down, which polynomials cannot express."""
        value = expected(numerator) // expected(denominator)
        least, most = -math.inf, math.inf
        (low, high), (least_divisor, _) = _bounds(numerator), _bounds(denominator)
        if low >= 0 and least_divisor > 0:
            least, most = 0, high // least_divisor if math.isfinite(high) else math.inf
        return self._atom(f"{_code(numerator)} // {_code(denominator)}", value, least, most)

    def largest(self, lengths: Iterable[Length | int]) -> Length | int:
        """Return the largest length, whichever it is: an expression, not a condition."""
        distinct = list(dict.fromkeys(lengths))
        rest = [x for x in distinct if not any(x is not y and _bounds(y - x)[0] >= 0 for y in distinct)] or distinct[:1]
        if len(rest) == 1:
            return rest[0]
        bounds = [_bounds(x) for x in rest]
        code = f"max({', '.join(map(_code, rest))})"
        return self._atom(code, max(map(expected, rest)), max(b[0] for b in bounds), max(b[1] for b in bounds))

    def _atom(self, code: str, value: int, least: float, most: float) -> Length:
        number = self._numbers.setdefault(code, len(self._atoms))
        if number == len(self._atoms):
            self._atoms.append(_Atom(code, value, least, most))
        length: Any = self.of({(number,): 1})
        return length

    def bounds(self, terms: _Terms) -> tuple[float, float]:
        """Return the least and the largest value of a polynomial, as far as its terms tell."""
        least = most = 0.0
        for monomial, factor in terms.items():
            lows = [self._atoms[i].least for i in monomial]
            if min(lows, default=0) < 0:
                return -math.inf, math.inf
            low, high = math.prod(lows), math.prod(self._atoms[i].most for i in monomial)
            least += factor * (low if factor > 0 else high)
            most += factor * (high if factor > 0 else low)
        return least, most


class Length:
    """A polynomial of the symbols of one program. Make one with :meth:`Lengths.symbol`, and compute with it."""

    __slots__ = ("__weakref__", "code", "lengths", "terms", "value")

    def __init__(self, lengths: Lengths, terms: _Terms, value: int) -> None:
        self.lengths: Final = lengths
        self.terms: Final = terms
        self.value: Final = value  # for the first lengths
        parts = ["*".join([str(factor), *(f"a{i}" for i in monomial)]) for monomial, factor in terms.items()]
        self.code: Final = f"({' + '.join(parts)})"

    def __reduce__(self) -> Any:
        raise TypeError("[lengths] a length belongs to the program of this process; pickle its value.")

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        parts = [
            "·".join([*([str(factor)] if factor != 1 or not monomial else []), *map(self.lengths.name, monomial)])
            for monomial, factor in sorted(self.terms.items(), reverse=True)
        ]
        return " + ".join(parts)

    # Asked for an int: the program serves this value only.

    def __index__(self) -> int:
        self.lengths.require(self, "==", self.value)
        return self.value

    def __int__(self) -> int:
        return operator.index(self)

    def __float__(self) -> float:
        return float(operator.index(self))

    def __bool__(self) -> bool:
        return self != 0

    # Polynomials.

    def __neg__(self) -> Any:
        return self.lengths.of({monomial: -factor for monomial, factor in self.terms.items()})

    def __pos__(self) -> Any:
        return self.lengths.of(self.terms)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self._rounded(operator.add, other)
        terms = dict(self.terms)
        for monomial, factor in _terms(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return self.lengths.of(terms)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self._rounded(operator.mul, other)
        terms: _Terms = {}
        for monomial, factor in self.terms.items():
            for more, times in _terms(other).items():
                joined = tuple(sorted(monomial + more))
                terms[joined] = terms.get(joined, 0) + factor * times
        return self.lengths.of(terms)

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is int and 0 <= exponent <= 8:
            return math.prod([self] * exponent)
        return self._rounded(operator.pow, exponent)

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self._rounded(operator.floordiv, other)
        if not isinstance(other, Length):
            other = int(other)
            whole = {m: f // other for m, f in self.terms.items() if f % other == 0}
            rest = self.lengths.of({m: f for m, f in self.terms.items() if f % other})
            last = rest // other if isinstance(rest, int) else self.lengths.quotient(rest, other)
            return self.lengths.of(whole) + last
        exact = _exact(self, other)
        if exact is not None:
            return exact
        if not other:
            raise ZeroDivisionError("division by a length that is 0")
        return self.lengths.quotient(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return other // operator.index(self)
        if not self:
            raise ZeroDivisionError("division by a length that is 0")
        return self.lengths.quotient(int(other), self)

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - quotient * other

    def __rdivmod__(self, other: Any) -> Any:
        quotient = other // self
        return quotient, other - quotient * self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _rounded(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        return function(operator.index(self), other) if isinstance(other, (float, complex)) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return operator.index(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / operator.index(self)

    # Comparisons: known from the bounds, or conditions.

    def _compared(self, other: Any, sign: str, compare: Callable[[Any, Any], bool]) -> bool:
        if not isinstance(other, _WHOLE):
            return compare(operator.index(self), other)
        difference = self - other
        if isinstance(difference, int):
            return compare(difference, 0)
        least, most = difference.lengths.bounds(difference.terms)
        if compare(least, 0) == compare(most, 0) and (sign not in ("==", "!=") or least > 0 or most < 0):
            return compare(least, 0)
        answer = compare(difference.value, 0)
        self.lengths.require(difference, sign if answer else _OPPOSITE[sign], 0)
        return answer

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, (*_WHOLE, float)) and self._compared(other, "==", operator.eq)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "<", operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "<=", operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, ">", operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, ">=", operator.ge)


_WHOLE: Final = (int, np.integer, Length)
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _terms(x: Any) -> _Terms:
    return x.terms if isinstance(x, Length) else {(): int(x)}


def _code(x: Length | int) -> str:
    return x.code if isinstance(x, Length) else str(x)


def _bounds(x: Length | int) -> tuple[float, float]:
    return x.lengths.bounds(x.terms) if isinstance(x, Length) else (x, x)


def _exact(numerator: Length, denominator: Length) -> Any:
    """Return the quotient if the denominator divides each term; else None. The denominator is not 0 in the first call,
    nor where its bounds exclude it."""
    if len(denominator.terms) > 1:
        return 1 if numerator is denominator and denominator != 0 else None
    ((divisor, by),) = denominator.terms.items()
    if denominator.lengths.bounds(denominator.terms)[0] <= 0:
        return None
    terms: _Terms = {}
    for monomial, factor in numerator.terms.items():
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % by:
            return None
        terms[tuple(rest)] = factor // by
    return numerator.lengths.of(terms)


def expected(x: Any) -> Any:
    """Return a length's value for the first lengths, without a condition, and anything else as it is. Use it where the
    answer does not change results."""
    return x.value if isinstance(x, Length) else x


def as_size(x: Any) -> Any:
    """Return ``x`` if it is a length, and else as an int; TypeError if it is not integral."""
    return +x if isinstance(x, Length) else operator.index(x)


def as_number(x: Any) -> Any:
    """Return a number for arithmetic with floating tensors: a length as a run-time number, anything else as it is."""
    if not isinstance(x, Length):
        return x
    return operator.index(x) if x.lengths.number is None else x.lengths.number(x)


class Span(NamedTuple):
    """The elements ``start + step·i`` of an axis, ``size`` of them."""

    start: Any
    size: Any
    step: int


def span(key: slice, n: Any) -> Span:
    """Return the elements that ``key`` takes of an axis of ``n`` elements, as Python's sequences do."""
    if not is_static((key.start, key.stop, key.step, n)) and (key.step is None or key.step > 0):
        step = 1 if key.step is None else operator.index(key.step)
        start, stop = (_clipped(bound, default, n) for bound, default in ((key.start, 0), (key.stop, n)))
        count = (stop - start + step - 1) // step
        return Span(start, count if count > 0 else 0, step)
    start, stop, step = key.indices(operator.index(n))
    return Span(start, len(range(start, stop, step)), step)


def _clipped(bound: Any, default: Any, n: Any) -> Any:
    """Return a bound of a slice, counted from the front and between 0 and ``n``."""
    if bound is None:
        return default
    place = as_size(bound)
    if place < 0:
        place = place + n
    return 0 if place < 0 else n if place > n else place


def largest(lengths: Iterable[Length | int]) -> Any:
    """Return the largest of ``lengths``, which may be an expression."""
    every = list(lengths)
    symbolic = next((x for x in every if isinstance(x, Length)), None)
    return max(every) if symbolic is None else symbolic.lengths.largest(every)


def fixed(x: Any) -> Any:
    """Return ``x``, perhaps nested in tuples, lists and dicts, with ints for lengths: a program for these only."""
    if isinstance(x, Length):
        return operator.index(x)
    if isinstance(x, dict):
        return {key: fixed(value) for key, value in x.items()}
    return type(x)(map(fixed, x)) if type(x) in (tuple, list) else x


def is_static(shape: Iterable[Any]) -> bool:
    """Return whether there is no length in ``shape``."""
    return not any(isinstance(n, Length) for n in shape)
