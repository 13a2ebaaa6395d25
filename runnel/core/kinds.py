"""What kind of value each parameter of a public function takes, read from its annotation (or, where that is ``Any``,
from its name): how a value of that kind is told, and how it is described.

Annotations are the one place where this is declared; nobody looks at them before something has failed, but for the
constructors of layers and optimizers, whose arguments are checked when the object is made.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from runnel.core import dtypes
from runnel.core.dispatch import TensorLike

T = TypeVar("T")


class Kind(NamedTuple):
    """A kind of argument: ``fits`` tells one, ``description`` is what a message calls it, and ``remedy`` what to do
    with something else. ``settle`` gives the plain Python form of a value that fits."""

    fits: Callable[[Any], bool]
    description: str
    settle: Callable[[Any], Any] = lambda value: value
    remedy: Callable[[Any], str] = lambda value: ""


def _is_int(value: Any) -> bool:
    if isinstance(value, TensorLike):
        return value.size == 1 and value.dtype.is_integer
    return hasattr(type(value), "__index__") and not (isinstance(value, np.ndarray) and value.ndim)


def _is_number(value: Any) -> bool:
    if isinstance(value, TensorLike):
        return value.size == 1
    return isinstance(value, (bool, int, float, np.number, np.bool_)) and not isinstance(value, np.complexfloating)


def _is_any_number(value: Any) -> bool:
    return isinstance(value, (TensorLike, complex, np.complexfloating)) or _is_number(value)


def _are_numbers(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_any_number(item) or _are_numbers(item) for item in value)
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OSUV"


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (type(value) is int and value in (0, 1))


def _is_row(value: Any) -> bool:
    if isinstance(value, np.ndarray) and not value.ndim:
        return False
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, TensorLike))


def _holds_parameters(value: Any) -> bool:
    return isinstance(value, (TensorLike, Iterable)) and not isinstance(value, np.ndarray)


def _are(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_row(value) and (not isinstance(value, Sequence | np.ndarray) or all(map(test, value)))


def _is_dtype(value: Any) -> bool:
    try:
        dtypes.as_dtype(value)
    except (TypeError, ValueError):
        return False
    return True


def _as_tensor(value: Any) -> str:
    if isinstance(value, (int, float, list, tuple, np.ndarray, np.generic)) or hasattr(value, "__dlpack__"):
        return "make a tensor of it with runnel.asarray()"
    return ""


def _is_shape(value: Any) -> bool:
    return _is_int(value) or _are(_is_int)(value)


def _plain_int(value: Any) -> Any:
    return int(value) if isinstance(value, (np.integer, np.bool_)) else value


def _plain_ints(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain_int, value)) if type(value) in (list, tuple) else value
    return _plain_int(value)


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


_NAMES: Final = ", ".join(dtypes.names())
_INTS = Kind(_are(_is_int), "a sequence of ints", _plain_ints)
_INT_OR_INTS = Kind(_is_shape, "an int or a sequence of ints", _plain_ints)
_ANY_NUMBER = Kind(_is_any_number, "a number", _plain_number)
_PAIR = _are(_is_int)
_INTS_OR_WORD = Kind(
    lambda v: isinstance(v, str) or _is_shape(v) or _are(lambda pair: _PAIR(pair) and len(pair) == 2)(v),
    "an int, a sequence of ints or of pairs (before, after), or a string", _plain_ints,
)  # fmt: skip

KINDS: Final[dict[str, Kind]] = {
    "Array": Kind(lambda v: isinstance(v, TensorLike), "a tensor", remedy=_as_tensor),
    "ArrayT": Kind(lambda v: isinstance(v, TensorLike), "a tensor", remedy=_as_tensor),
    "TensorLike": Kind(lambda v: isinstance(v, TensorLike), "a tensor", remedy=_as_tensor),
    "Operand": Kind(
        lambda v: isinstance(v, np.ndarray) or _is_any_number(v), "a tensor, a number or a NumPy array",
        remedy=_as_tensor,
    ),
    "RandomKey": Kind(
        lambda v: isinstance(v, TensorLike),
        "a key of random numbers (from Generator.next_key() or runnel.split_key())",
        remedy=lambda v: "runnel.randn() and runnel.rand() draw without one",
    ),
    "Numbers": Kind(
        lambda v: _is_any_number(v) or _are_numbers(v), "a tensor, a number, or numbers in an array or a list",
    ),
    "Array | int": Kind(lambda v: isinstance(v, TensorLike) or _is_int(v), "a tensor or an int", _plain_int),
    "float | Array": Kind(lambda v: isinstance(v, TensorLike) or _is_number(v), "a tensor or a number", _plain_number),
    "float | Array | Sequence[float]": Kind(
        lambda v: isinstance(v, TensorLike) or _is_number(v) or _are(_is_number)(v),
        "a tensor, a number or a sequence of numbers", _plain_number,
    ),
    "Array | int | Sequence[int]": Kind(
        lambda v: isinstance(v, TensorLike) or _is_shape(v), "a tensor, an int or a sequence of ints", _plain_ints
    ),
    "Array | Sequence[int]": Kind(
        lambda v: isinstance(v, (TensorLike, np.ndarray)) or _are(_is_int)(v), "a tensor or a sequence of ints",
        _plain_ints,
    ),
    "int | Sequence[int | None]": Kind(
        lambda v: _is_int(v) or _are(lambda n: n is None or _is_int(n))(v), "an int or a sequence of ints and None"
    ),
    "Sequence[int | None]": Kind(_are(lambda n: n is None or _is_int(n)), "a sequence of ints and None"),
    "int | tuple[Sequence[int], Sequence[int]]": Kind(
        lambda v: _is_int(v) or (_are(_are(_is_int))(v) and len(v) == 2), "an int or two sequences of axes"
    ),
    "Axis": Kind(lambda v: v is None or _is_shape(v), "an axis, several or None", _plain_ints),
    "int": Kind(_is_int, "an int", _plain_int),
    "complex": _ANY_NUMBER,
    "float": Kind(_is_number, "a number", _plain_number),
    "bool": Kind(_is_bool, "True or False", bool),
    "bool | int | float | complex": _ANY_NUMBER,
    "bool | int | float": Kind(_is_number, "a number", _plain_number),
    "float | str": Kind(lambda v: isinstance(v, str) or _is_number(v), "a number or a string", _plain_number),
    "str": Kind(lambda v: isinstance(v, str), "a string"),
    "Sequence[int]": _INTS,
    "Iterable[int]": _INTS,
    "int | Sequence[int]": _INT_OR_INTS,
    "int | Iterable[int]": _INT_OR_INTS,
    "Size": _INT_OR_INTS,
    "Shape": _INT_OR_INTS,
    "str | Size": _INTS_OR_WORD,
    "str | int | Sequence[Any]": _INTS_OR_WORD,
    "Sequence[Array]": Kind(
        lambda v: isinstance(v, Sequence) and not isinstance(v, str) and all(isinstance(x, TensorLike) for x in v),
        "a sequence of tensors", remedy=lambda v: "put tensors into a list; runnel.asarray() makes them",
    ),
    "Sequence[tuple[int, int]]": Kind(
        _are(lambda pair: _are(_is_int)(pair) and len(pair) == 2), "a pair of ints (before, after) for each axis"
    ),
    "tuple[float, float]": Kind(
        lambda v: _is_row(v) and len(tuple(v)) == 2 and all(map(_is_number, v)), "two numbers",
        lambda v: tuple(map(_plain_number, v)),
    ),
    "Parameters": Kind(_holds_parameters, "Parameters, or dicts with them: model.parameters()"),
    "Dtype": Kind(_is_dtype, f"a dtype (one of {_NAMES}, or NumPy's)"),
    "Mapping[str, Any]": Kind(lambda v: isinstance(v, Mapping), "a dict"),
    "Mapping[Value, Value]": Kind(lambda v: isinstance(v, Mapping), "a dict"),
    "Callable": Kind(callable, "a function"),
}  # fmt: skip


_DECLARED: Final[dict[str, tuple[type, ...]]] = {}


def declare(kind: type[T]) -> type[T]:
    """A class decorator: parameters that are annotated with ``kind`` take its instances. Of classes with the same name
    they take either: the function itself says which."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    kinds = _DECLARED[kind.__name__] = (*_DECLARED.get(kind.__name__, ()), kind)
    KINDS[kind.__name__] = Kind(lambda value: isinstance(value, kinds), f"{article} {kind.__name__}")
    KINDS[f"Sequence[{kind.__name__}]"] = Kind(
        lambda value: _is_row(value) and all(isinstance(item, kinds) for item in value),
        f"a sequence of {kind.__name__}s",
    )
    _kind.cache_clear()
    return kind


_BY_NAME: Final = {
    "axis": "Axis", "dim": "Axis", "shape": "Shape", "dtype": "Dtype", "x": "Array", "query": "Array",
    "params": "Parameters",
}  # fmt: skip


def kind_of(parameter: inspect.Parameter) -> Kind | None:
    """The kind of values that ``parameter`` takes; None where that is not declared."""
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else "Any"
    return _kind(_BY_NAME.get(parameter.name, "Any") if annotation == "Any" else annotation, parameter.default is None)


@functools.cache
def _kind(annotation: str, default_is_none: bool) -> Kind | None:
    required, bar, none = annotation.rpartition(" | ")
    optional = bool(bar) and none == "None"
    base = required if optional else annotation
    if base.startswith("Callable["):
        base = "Callable"
    kind = KINDS.get(base)
    if kind is None:
        return None
    if kind.fits(None) or not (optional or default_is_none):
        return kind
    return Kind(
        lambda value: value is None or kind.fits(value),
        f"{kind.description}, or None",
        lambda value: None if value is None else kind.settle(value),
        kind.remedy,
    )
