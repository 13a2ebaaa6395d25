"""Comparisons of watched things with what they were: what guards call when identity does not settle it."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from runnel.compile.origin import is_plain
from runnel.tensor.tensor import Tensor


class _Missing:
    """Stands for an attribute, global or cell that is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()


def cell_contents(cell: Any) -> Any:
    """What a closure cell holds; MISSING for an empty one."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def differs(value: Any, expected: Any) -> bool:
    """Whether two plain values are told apart by any Python code: by type, value, sign of zero."""
    if type(value) is not type(expected):
        return True
    if isinstance(value, float):
        if value != value:
            return bool(expected == expected)
        return bool(value != expected) or math.copysign(1.0, value) != math.copysign(1.0, expected)
    same: bool = value == expected or (value != value and expected != expected)
    return not same


def items_differ(value: Any, expected: tuple[Any, ...]) -> bool:
    """Whether a list or tuple of plain values differs from its copy."""
    if len(value) != len(expected):
        return True
    if all(map(operator.is_, value, expected)):
        return False
    return any(a is not b and differs(a, b) for a, b in zip(value, expected, strict=True))


def keys_differ(value: Any, expected: Any) -> bool:
    """Whether the keys of two dicts differ, in order or in kind."""
    return len(value) != len(expected) or any(
        k is not e and (not is_plain(e) or differs(k, e)) for k, e in zip(value, expected, strict=True)
    )


def array_differs(value: Any, expected: np.ndarray) -> bool:
    """Whether an array has other contents than the copy made of it, bit by bit."""
    return bool(
        type(value) is not type(expected)
        or value.shape != expected.shape
        or value.dtype != expected.dtype
        or _bits_differ(value, expected)
    )


def _bits_differ(value: np.ndarray, expected: np.ndarray) -> bool:
    if value.dtype.hasobject:
        return any(x is not y for x, y in zip(value.flat, expected.flat, strict=True))
    if value.flags.c_contiguous:
        return bool((value.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8)).any())
    return value.tobytes() != expected.tobytes()


def tensor_differs(value: Any, aval: Any, requires_grad: bool) -> bool:
    """Whether a tensor could not stand in for the one seen when the function was traced."""
    return type(value) is not Tensor or value._aval is not aval or value.requires_grad != requires_grad


def shown(value: Any) -> str:
    """A watched thing for one line of text."""
    if isinstance(value, Tensor):
        return f"a tensor {value.aval}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value) if isinstance(value, (bool, int, float, str, bytes, type(None), _Missing)) else _described(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _described(value: Any) -> str:
    if isinstance(value, (list, dict, set, tuple, frozenset)):
        return f"a {type(value).__name__} of {len(value)}"
    name = getattr(value, "__qualname__", None)
    return f"{type(value).__name__} {name}" if isinstance(name, str) else f"a {type(value).__name__}"
