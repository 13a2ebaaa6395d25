"""The kind of value that each parameter of a public function takes, read from its annotation.

Annotations are the only place that declares it. They are read after a call has failed; arguments of constructors of
layers and optimizers are checked when the object is created.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from runnel.core import dtypes
from runnel.core.dispatch import TensorLike

T = TypeVar("T")


class Kind(NamedTuple):
    """A kind of argument.

    Attributes:
        fits: tests whether a value is of this kind.
        description: names the kind in messages.
        several: names several values of the kind in messages.
        settle: returns the plain Python form of a value that fits.
        remedy: returns what to do with a value that does not fit, or "".
    """

    fits: Callable[[Any], bool]
    description: str
    several: str = ""
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


def _are_two(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_row(value) and len(tuple(value)) == 2 and all(map(test, value))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorLike)


def _plain_int(value: Any) -> Any:
    return int(value) if isinstance(value, (np.integer, np.bool_)) else value


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


ALIASES: Final = {
    "ArrayT": "Array",
    "TensorLike": "Array",
    "Axis": "int | Sequence[int] | None",
    "Operand": "Array | complex | np.ndarray",
    "Shape": "int | Sequence[int]",
    "Size": "int | Sequence[int]",
}

KINDS: Final[dict[str, Kind]] = {
    "Array": Kind(_is_tensor, "a tensor", "tensors", remedy=_as_tensor),
    "RandomKey": Kind(
        _is_tensor, "a key of random numbers (from Generator.next_key() or runnel.split_key())",
        remedy=lambda v: "runnel.randn() and runnel.rand() draw without one",
    ),
    "Numbers": Kind(
        lambda v: _is_any_number(v) or _are_numbers(v), "a tensor, a number, or numbers in an array or a list",
    ),
    "np.ndarray": Kind(lambda v: isinstance(v, np.ndarray), "a NumPy array", "NumPy arrays"),
    "int": Kind(_is_int, "an int", "ints", _plain_int),
    "float": Kind(_is_number, "a number", "numbers", _plain_number),
    "complex": Kind(_is_any_number, "a number", "numbers", _plain_number),
    "bool": Kind(_is_bool, "True or False", "bools", bool),
    "str": Kind(lambda v: isinstance(v, str), "a string", "strings"),
    "Sequence[Array]": Kind(
        lambda v: _is_row(v) and not isinstance(v, Iterator) and all(map(_is_tensor, v)), "a sequence of tensors",
        remedy=lambda v: "put tensors into a list; runnel.asarray() makes them",
    ),
    "tuple[int, int]": Kind(_are_two(_is_int), "a pair of ints"),
    "Sequence[tuple[int, int]]": Kind(_are(_are_two(_is_int)), "a pair of ints (before, after) for each axis"),
    "tuple[float, float]": Kind(_are_two(_is_number), "two numbers", settle=lambda v: tuple(map(_plain_number, v))),
    "tuple[Sequence[int], Sequence[int]]": Kind(_are_two(_are(_is_int)), "two sequences of ints"),
    "Parameters": Kind(_holds_parameters, "Parameters, or dicts with them: model.parameters()"),
    "Dtype": Kind(_is_dtype, f"a dtype (one of {', '.join(dtypes.names())}, or NumPy's)"),
    "Callable": Kind(callable, "a function", "functions"),
    "Mapping": Kind(lambda v: isinstance(v, Mapping), "a dict", "dicts"),
    "None": Kind(lambda v: v is None, "None", "None"),
}  # fmt: skip

_NARROWER: Final = {"complex": {"float", "int", "bool"}, "float": {"int", "bool"}, "int": {"bool"}}
_DECLARED: Final[dict[str, tuple[type, ...]]] = {}


def declare(kind: type[T]) -> type[T]:
    """Decorate a class: parameters annotated with its name take its instances. Several classes may share a name."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    kinds = _DECLARED[kind.__name__] = (*_DECLARED.get(kind.__name__, ()), kind)
    KINDS[kind.__name__] = Kind(
        lambda value: isinstance(value, kinds), f"{article} {kind.__name__}", f"{kind.__name__}s"
    )
    _kind.cache_clear()
    return kind


def kind_of(parameter: inspect.Parameter) -> Kind | None:
    """Return the kind of values that ``parameter`` takes; None if its annotation does not say."""
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else "Any"
    return _kind(f"{annotation} | None" if parameter.default is None else annotation)


@functools.cache
def _kind(annotation: str) -> Kind | None:
    parts = dict.fromkeys(_parts(annotation))
    for wide, narrow in _NARROWER.items():
        if wide in parts:
            parts = {part: None for part in parts if part not in narrow}
    kinds = [_single(part) for part in sorted(parts, key=lambda part: part == "None")]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    return known[0] if len(known) == 1 else _union(known)


def _parts(annotation: str) -> list[str]:
    """Return the members of a union, with aliases replaced by their meaning."""
    node = ast.parse(annotation, mode="eval").body
    if isinstance(node, ast.BinOp):
        return [*_parts(ast.unparse(node.left)), *_parts(ast.unparse(node.right))]
    return _parts(ALIASES[annotation]) if annotation in ALIASES else [annotation]


def _single(annotation: str) -> Kind | None:
    name, _, inner = annotation.partition("[")
    if annotation not in KINDS and name in ("Sequence", "Iterable"):
        item = _kind(inner[:-1])
        return None if item is None else _sequence(item)
    return KINDS.get(annotation) or (KINDS[name] if name in ("Callable", "Mapping") else None)


def _sequence(item: Kind) -> Kind:
    def settle(value: Any) -> Any:
        return type(value)(map(item.settle, value)) if type(value) in (list, tuple) else value

    return Kind(_are(item.fits), f"a sequence of {item.several}", f"sequences of {item.several}", settle)


def _union(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of values that are of any of ``kinds``."""

    def settle(value: Any) -> Any:
        return next(kind.settle(value) for kind in kinds if kind.fits(value))

    return Kind(
        lambda value: any(kind.fits(value) for kind in kinds),
        _listed([kind.description for kind in kinds]),
        _listed([kind.several for kind in kinds]),
        settle,
        lambda value: next(filter(None, (kind.remedy(value) for kind in kinds)), ""),
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
