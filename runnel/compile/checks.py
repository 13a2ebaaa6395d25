"""Comparisons of watched things with what they were: what guards call when identity does not settle it."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from runnel.compile.origin import is_plain
from runnel.core.lifetime import Weak
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


def keys_differ(value: Any, expected: tuple[Any, ...]) -> bool:
    """Whether the keys of a dict differ from those expected, in order or in kind."""
    return len(value) != len(expected) or any(
        k is not e and (k is None or k is not e() if type(e) is Weak else not is_plain(e) or differs(k, e))
        for k, e in zip(value, expected, strict=True)
    )


def members_differ(value: Any, expected: tuple[Any, ...]) -> bool:
    """Whether the members of a set differ from those expected, which are in the order of a set."""
    if len(value) != len(expected):
        return True
    if not keys_differ(value, expected):
        return False
    kinds = {(type(x), x) for x in value if is_plain(x)}
    members = {id(x) for x in value}
    for e in expected:
        if type(e) is Weak:
            member = e()
            if member is None or id(member) not in members:
                return True
        elif (type(e), e) not in kinds if is_plain(e) else id(e) not in members:
            return True
    return False


def array_differs(value: Any, expected: np.ndarray) -> bool:
    """Whether an array has other contents than the copy made of it, bit by bit."""
    return bool(
        type(value) is not type(expected)
        or value.shape != expected.shape
        or value.dtype != expected.dtype
        or _bits_differ(value, expected)
    )


def _bits_differ(value: np.ndarray, expected: np.ndarray) -> bool:
    if value.flags.c_contiguous:
        return bool((value.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8)).any())
    return value.tobytes() != expected.tobytes()


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
