"""Rules for the hyper-parameters of optimizers and schedules: each returns a plain Python value or raises an error."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

Rule = Callable[[Any], Any]  # returns a value as plain Python, or raises TypeError or ValueError("be ...")


def number(value: Any) -> int | float:
    """Return a finite Python number from a number, or from an array or tensor that holds one."""
    if not isinstance(value, np.generic) and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError("be a number")
    if not math.isfinite(value):
        raise ValueError("be finite")
    return int(value) if isinstance(value, int | np.integer) else float(value)


def bounded(least: float = -math.inf, most: float = math.inf, *, whole: bool = False) -> Rule:
    """Return the rule for a number between two bounds, which may have to be a whole number."""
    must = f"at least {least:g}" if most == math.inf else f"at most {most:g}"
    must = must if math.inf in (-least, most) else f"in [{least:g}, {most:g}]"

    def rule(value: Any) -> int | float:
        plain = number(value)
        if whole and plain != int(plain):
            raise ValueError("be a whole number")
        if not least <= plain <= most:
            raise ValueError(f"be {must}")
        return int(plain) if whole else plain

    return rule


def one_of(*words: Any) -> Rule:
    """Return the rule for one of these words."""

    def rule(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"be {' or '.join(map(repr, words))}")
        return value

    return rule


def _numbers(count: int, must: str = "", holds: Callable[..., bool] = lambda *numbers: True) -> Rule:
    def rule(value: Any) -> tuple[int | float, ...]:
        if not isinstance(value, tuple | list) or len(value) != count:
            raise TypeError(f"be {count} numbers")
        plain = tuple(map(number, value))
        if not holds(*plain):
            raise ValueError(must)
        return plain

    return rule


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("be True or False")
    return bool(value)


def _epsilon(value: Any) -> Any:
    """Return a number, or Adafactor's numbers, which may be None."""
    if isinstance(value, tuple | list):
        return tuple(None if x is None else _NOT_NEGATIVE(x) for x in value)
    return _NOT_NEGATIVE(value)


_NOT_NEGATIVE: Final = bounded(0)

# Each value of these gets its own program; all other numbers are inputs of one program.
SHAPING: Final = frozenset({"max_size", "max_iter", "max_eval", "history_size", "ns_steps"})

_KEPT_BY_SCHEDULES: Final = frozenset({"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"})

RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(
        ("lr", "lr_decay", "weight_decay", "momentum", "momentum_decay", "lambd", "t0", "initial_accumulator_value",
         "tolerance_grad", "tolerance_change"), _NOT_NEGATIVE,
    ),
    **dict.fromkeys(("alpha", "rho"), bounded(0, 1)),
    **dict.fromkeys(SHAPING, bounded(1, whole=True)),
    **dict.fromkeys(("amsgrad", "centered", "maximize", "nesterov", "decoupled_weight_decay"), _flag),
    "dampening": number,
    "eps": _epsilon,
    "betas": _numbers(2, "be in [0, 1)", lambda a, b: 0 <= a < 1 and 0 <= b < 1),
    "beta2_decay": bounded(most=0),
    "d": bounded(1),
    "etas": _numbers(2, "be below and above 1", lambda a, b: 0 < a < 1 < b),
    "step_sizes": _numbers(2, "be a smallest and a largest step", lambda a, b: 0 <= a <= b),
    "ns_coefficients": _numbers(3),
    "ns_steps": bounded(1, 99, whole=True),
    "adjust_lr_fn": one_of("original", "match_rms_adamw", None),
    "line_search_fn": one_of("strong_wolfe", None),
    **dict.fromkeys(_KEPT_BY_SCHEDULES, number),
}  # fmt: skip


def require(owner: str, name: str, value: Any, rule: Rule) -> Any:
    """Return ``value`` as ``rule`` returns it; raise TypeError or ValueError with the names of owner and value."""
    try:
        return rule(value)
    except (TypeError, ValueError) as wrong:
        text = repr(value)
        received = text if len(text) <= 60 else f"{text[:57]}..."
        raise type(wrong)(f"[{owner}] {name} must {wrong}; got {received}.") from None


def checked(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyper-parameters as plain Python values; raise TypeError or ValueError for a wrong one.

    A name that resembles one of ``known``, or that belongs to another optimizer, is an error. Other names without a
    rule belong to a custom optimizer, or are notes of the user.
    """
    for name in values.keys() - known.keys() - _KEPT_BY_SCHEDULES:
        if name in RULES or difflib.get_close_matches(str(name), {*known, *RULES}, 1, 0.8):
            raise ValueError(f"[{owner}] has no hyper-parameter {name}; it has {', '.join(known)}.")
    return {name: require(owner, name, x, RULES[name]) if name in RULES else x for name, x in values.items()}
