"""What each hyper-parameter may be. A name means the same in every optimizer, so there is one rule for each name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.tensor.tensor import Tensor


class Rule(NamedTuple):
    """``read`` makes a plain Python value of what was given, or raises; ``holds`` says whether that may be."""

    read: Callable[[Any], Any]
    holds: Callable[[Any], bool]
    sentence: str


def number(value: Any) -> int | float:
    """A finite Python number: from an int or a float, or from an array or tensor that holds one."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError("is a number")
    plain = int(value) if isinstance(value, int | np.integer) else float(value)
    if not math.isfinite(plain):
        raise ValueError("is finite")
    return plain


def flag(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError("is True or False")
    return bool(value)


def pair(value: Any) -> tuple[int | float, int | float]:
    """Two numbers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError("are two numbers")
    return number(value[0]), number(value[1])


_NOT_NEGATIVE: Final = Rule(number, lambda x: x >= 0, "must not be negative")
_ANY: Final = Rule(number, lambda x: True, "is a number")
_FLAG: Final = Rule(flag, lambda x: True, "is True or False")

RULES: Final[Mapping[str, Rule]] = {
    "lr": _NOT_NEGATIVE,
    "lr_decay": _NOT_NEGATIVE,
    "eps": _NOT_NEGATIVE,
    "weight_decay": _NOT_NEGATIVE,
    "initial_accumulator_value": _NOT_NEGATIVE,
    "momentum": _NOT_NEGATIVE,
    "dampening": _ANY,
    "alpha": Rule(number, lambda x: 0 <= x <= 1, "lies in [0, 1]"),
    "betas": Rule(pair, lambda x: all(0 <= beta < 1 for beta in x), "lie in [0, 1)"),
    "amsgrad": _FLAG,
    "centered": _FLAG,
    "maximize": _FLAG,
    "nesterov": _FLAG,
}


def checked(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` as plain Python values. TypeError or ValueError for one that its name does not allow; names that have
    no rule are those of an optimizer from outside this package, whose ``check`` looks at them."""
    return {name: _checked(owner, name, value) if name in RULES else value for name, value in values.items()}


def _checked(owner: str, name: str, value: Any) -> Any:
    rule = RULES[name]
    try:
        plain = rule.read(value)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"[{owner}] {name} {wrong}; received {_shown(value)}.") from None
    if not rule.holds(plain):
        raise ValueError(f"[{owner}] {name} {rule.sentence}; received {_shown(value)}.")
    return plain


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
