"""Rules for hyper-parameters. A name means the same in every optimizer, so there is one rule for each name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.tensor.tensor import Tensor


class Rule(NamedTuple):
    """A rule for one name: ``read`` converts a value to plain Python, or raises; ``holds`` tests the result.

    A number that ``shapes`` the program, such as a count of iterations, gets a program for each value.
    """

    read: Callable[[Any], Any]
    holds: Callable[[Any], bool] = lambda plain: True
    must: str = ""
    shapes: bool = False


def number(value: Any) -> int | float:
    """Return a finite Python number from a number, or from an array or tensor that holds one."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError("be a number")
    plain = int(value) if isinstance(value, int | np.integer) else float(value)
    if not math.isfinite(plain):
        raise ValueError("be finite")
    return plain


def whole(value: Any) -> int:
    """Return an int from a number without a fraction."""
    plain = number(value)
    if plain != int(plain):
        raise ValueError("be a whole number")
    return int(plain)


def _numbers(count: int) -> Callable[[Any], tuple[int | float, ...]]:
    def read(value: Any) -> tuple[int | float, ...]:
        if not isinstance(value, tuple | list) or len(value) != count:
            raise TypeError(f"be {count} numbers")
        return tuple(map(number, value))

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("be True or False")
    return bool(value)


def _epsilon(value: Any) -> Any:
    """Return a number, or Adafactor's pair, whose first item may be None."""
    if not isinstance(value, tuple | list):
        return number(value)
    if len(value) != 2:
        raise TypeError("be a number or two")
    return None if value[0] is None else number(value[0]), number(value[1])


def _word(*words: str | None) -> Rule:
    return Rule(lambda value: value, lambda value: value in words, f"be {' or '.join(map(repr, words))}")


_NOT_NEGATIVE: Final = Rule(number, lambda x: x >= 0, "be at least 0")
_SHARE: Final = Rule(number, lambda x: 0 <= x <= 1, "be in [0, 1]")
_COUNT: Final = Rule(whole, lambda x: x >= 1, "be at least 1", shapes=True)

RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(
        ("lr", "lr_decay", "weight_decay", "momentum", "momentum_decay", "lambd", "t0", "initial_accumulator_value",
         "tolerance_grad", "tolerance_change"), _NOT_NEGATIVE,
    ),
    **dict.fromkeys(("alpha", "rho"), _SHARE),
    **dict.fromkeys(("max_size", "max_iter", "max_eval", "history_size"), _COUNT),
    **dict.fromkeys(("amsgrad", "centered", "maximize", "nesterov", "decoupled_weight_decay"), Rule(_flag)),
    "dampening": Rule(number),
    "eps": Rule(_epsilon, lambda x: all(e is None or e >= 0 for e in np.ravel(x)), "be at least 0"),
    "betas": Rule(_numbers(2), lambda x: all(0 <= beta < 1 for beta in x), "be in [0, 1)"),
    "beta2_decay": Rule(number, lambda x: x <= 0, "be at most 0"),
    "d": Rule(number, lambda x: x >= 1, "be at least 1"),
    "etas": Rule(_numbers(2), lambda x: 0 < x[0] < 1 < x[1], "be below and above 1"),
    "step_sizes": Rule(_numbers(2), lambda x: 0 <= x[0] <= x[1], "be a smallest and a largest step"),
    "ns_coefficients": Rule(_numbers(3)),
    "ns_steps": Rule(whole, lambda x: 1 <= x < 100, "be in [1, 100)", shapes=True),
    "adjust_lr_fn": _word("original", "match_rms_adamw", None),
    "line_search_fn": _word("strong_wolfe", None),
}  # fmt: skip

# Numbers that schedules keep in groups.
NOTES: Final = frozenset({"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"})


def require_no_slips(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ValueError if a name resembles a hyper-parameter of this optimizer, or belongs to another one.

    All other names are the user's notes, which a group keeps.
    """
    for name in values.keys() - known.keys() - NOTES:
        if name in RULES or difflib.get_close_matches(str(name), {*known, *RULES}, 1, 0.8):
            raise ValueError(f"[{owner}] has no hyper-parameter {name}; it has {', '.join(known)}.")


def checked(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as plain Python values; raise TypeError or ValueError for one that its rule does not allow.

    Names without a rule belong to a custom optimizer, which checks them itself.
    """
    return {name: _checked(owner, name, value) for name, value in values.items()}


def _checked(owner: str, name: str, value: Any) -> Any:
    rule = RULES.get(name) or (Rule(number) if name in NOTES else None)
    if rule is None:
        return value
    try:
        plain = rule.read(value)
        if not rule.holds(plain):
            raise ValueError(rule.must)
    except (TypeError, ValueError) as wrong:
        text = repr(value)
        received = text if len(text) <= 60 else f"{text[:57]}..."
        raise type(wrong)(f"[{owner}] {name} must {wrong}; got {received}.") from None
    return plain
