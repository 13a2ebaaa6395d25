"""Values of expressions: elements of arrays, derivatives, and evaluation by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.avals import Shape
from runnel.core.records import record
from runnel.expressions.affine import Affine, Box, index


@record
class Literal:
    value: int | float


@record
class Element:
    """An element of operand ``name``."""

    name: str
    subscripts: tuple[Affine, ...]


@record
class Compute:
    """A function of values, named as in ``syntax``."""

    function: str
    args: tuple[Value, ...]


Value = Literal | Element | Compute
ONE: Final = Literal(1)
ZERO: Final = Literal(0)
COMPARISONS: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_INEXACT: Final = frozenset({"div", "exp", "log", "sqrt", "tanh", "sigmoid", "sin", "cos"})
_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SIGNS_OF: Final = {**_SIGNS, "eq": "==", "ne": "!="}


def parts(value: Value) -> Iterator[Value]:
    """Yield the value and everything inside it, from left to right."""
    yield value
    if isinstance(value, Compute):
        for arg in value.args:
            yield from parts(arg)


def elements(value: Value) -> list[Element]:
    """Return the distinct elements in order of appearance."""
    return list(dict.fromkeys(x for x in parts(value) if isinstance(x, Element)))


def is_inexact(value: Value) -> bool:
    """Return True if the value of integers is a float."""
    return any(
        (isinstance(x, Literal) and isinstance(x.value, float)) or (isinstance(x, Compute) and x.function in _INEXACT)
        for x in parts(value)
    )


def mapped(value: Value, change: Callable[[Element], Value]) -> Value:
    """Return ``value`` with its elements changed."""
    if isinstance(value, Element):
        return change(value)
    if isinstance(value, Compute):
        return Compute(value.function, tuple(mapped(x, change) for x in value.args))
    return value


def written(value: Value) -> str:
    """Return the value as the text of an expression."""
    if isinstance(value, Literal):
        return repr(value.value) if value.value >= 0 else f"(-{-value.value!r})"
    if isinstance(value, Element):
        return f"{value.name}[{', '.join(map(str, value.subscripts))}]"
    args = [written(x) for x in value.args]
    sign = _SIGNS_OF.get(value.function)
    if sign is not None:
        return f"({args[0]} {sign} {args[1]})"
    return f"(-{args[0]})" if value.function == "neg" else f"{value.function}({', '.join(args)})"


# --- arithmetic that leaves out what has no effect ------------------------------------------------------------------


def add(x: Value, y: Value) -> Value:
    return y if x == ZERO else x if y == ZERO else Compute("add", (x, y))


def negated(x: Value) -> Value:
    return ZERO if x == ZERO else Compute("neg", (x,))


def mul(x: Value, y: Value) -> Value:
    if ZERO in (x, y):
        return ZERO
    return y if x == ONE else x if y == ONE else Compute("mul", (x, y))


def where(function: str, x: Value, y: Value, then: Value, otherwise: Value) -> Value:
    """Return ``then`` if the comparison holds, else ``otherwise``."""
    if then == otherwise:
        return then
    return Compute("where", (Compute(function, (x, y)), then, otherwise))


# --- derivatives ------------------------------------------------------------------------------------------------------

Partials = Callable[..., tuple[Value, ...]]


def _extreme(function: str) -> Partials:
    """Return the partial derivatives of an extreme; equal arguments share."""

    def partials(x: Value, y: Value) -> tuple[Value, Value]:
        half = where("eq", x, y, Literal(0.5), ZERO)
        return where(function, x, y, ONE, half), where(function, y, x, ONE, half)

    return partials


_PARTIALS: Final[dict[str, Partials]] = {
    "add": lambda x, y: (ONE, ONE),
    "sub": lambda x, y: (ONE, Literal(-1)),
    "mul": lambda x, y: (y, x),
    "div": lambda x, y: (Compute("div", (ONE, y)), negated(Compute("div", (Compute("div", (x, y)), y)))),
    "neg": lambda x: (Literal(-1),),
    "abs": lambda x: (Compute("sign", (x,)),),
    "cos": lambda x: (negated(Compute("sin", (x,))),),
    "exp": lambda x: (Compute("exp", (x,)),),
    "log": lambda x: (Compute("div", (ONE, x)),),
    "maximum": _extreme("gt"),
    "minimum": _extreme("lt"),
    "relu": lambda x: (where("gt", x, ZERO, ONE, ZERO),),
    "sigmoid": lambda x: (
        mul(Compute("sigmoid", (x,)), Compute("sub", (ONE, Compute("sigmoid", (x,))))),
    ),
    "sign": lambda x: (ZERO,),
    "sin": lambda x: (Compute("cos", (x,)),),
    "sqrt": lambda x: (Compute("div", (Literal(0.5), Compute("sqrt", (x,)))),),
    "square": lambda x: (mul(Literal(2), x),),
    "tanh": lambda x: (Compute("sub", (ONE, Compute("square", (Compute("tanh", (x,)),)))),),
}  # fmt: skip


def derivative(value: Value, tangents: Mapping[Element, Value]) -> Value:
    """Return the directional derivative of ``value`` for ``tangents`` of its elements."""
    if isinstance(value, Element):
        return tangents.get(value, ZERO)
    if isinstance(value, Literal) or value.function in COMPARISONS:
        return ZERO
    if value.function == "where":
        condition, then, otherwise = value.args
        slopes = derivative(then, tangents), derivative(otherwise, tangents)
        return slopes[0] if slopes[0] == slopes[1] else Compute("where", (condition, *slopes))
    total: Value = ZERO
    slopes_of = [derivative(x, tangents) for x in value.args]
    if any(s != ZERO for s in slopes_of):
        for slope, partial in zip(slopes_of, _PARTIALS[value.function](*value.args), strict=True):
            if slope == ZERO:
                continue
            if partial == Literal(-1):
                total = add(total, negated(slope))
            else:
                total = add(total, mul(slope, partial))
    return total


# --- values in NumPy --------------------------------------------------------------------------------------------------

_NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.abs, "cos": np.cos, "exp": np.exp, "log": np.log, "maximum": np.maximum, "minimum": np.minimum,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt, "square": np.square, "tanh": np.tanh, "where": np.where,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


def evaluated(value: Value, element: Callable[[Element], Any], dtype: np.dtype[Any]) -> Any:
    """Return the value in NumPy, in ``dtype``."""
    if isinstance(value, Literal):
        return np.asarray(value.value).astype(dtype)
    if isinstance(value, Element):
        return element(value)
    args: Sequence[Any] = [evaluated(x, element, dtype) for x in value.args]
    return _NUMPY[value.function](*args)


Extents = tuple[tuple[str, int], ...]


@record
class Expression:
    """result[target] is the aggregate of ``term`` over all points.

    Points are indices from 0 to below their extents at which each constraint is ≥ 0. ``names`` and ``shapes`` are the
    operands' in order of appearance. ``indices`` are in order of appearance in the term, then those only in the target.
    """

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
        """The expression as text that has the same meaning for operands of these shapes."""
        axes = ", ".join(f"{subscript}: {size}" for subscript, size in zip(self.target, self.shape, strict=True))
        sign = {"assign": "=", "sum": "+=", "prod": "*=", "max": "max=", "min": "min="}[self.aggregation]
        stated = self._stated()
        limits = [f"{name} < {extent}" for name, extent in self.indices if (name, extent) not in stated]
        limits += [f"0 <= {form}" for form in self.constraints]
        where = f" where {', '.join(limits)}" if limits else ""
        return f"{self.name}[{axes}] {sign} {written(self.term)}{where}"

    def _stated(self) -> set[tuple[str, int]]:
        """Return the extents that arrays imply. An extent that is smaller elsewhere must be stated."""
        sizes: dict[str, set[int]] = {}
        accesses = [(e.subscripts, self.shapes[self.names.index(e.name)]) for e in elements(self.term)]
        for subscripts, shape in [*accesses, (self.target, self.shape)]:
            for subscript, size in zip(subscripts, shape, strict=True):
                if subscript.plain is not None:
                    sizes.setdefault(subscript.plain, set()).add(size)
        return {(name, size) for name, extents in sizes.items() for size in extents if len(extents) == 1}


def point(names: tuple[str, ...]) -> tuple[Affine, ...]:
    """Plain subscripts."""
    return tuple(index(name) for name in names)
