"""What each hyper-parameter may be. A name means the same in every optimizer, so there is one rule for each name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.tensor.tensor import Tensor


class Rule(NamedTuple):
    """``read`` makes a plain Python value of what was given, or raises; ``holds`` says whether that may be.

    Of a number that ``shapes`` the program (a count of iterations) each value has a program of its own. States that
    were saved elsewhere may lack what is ``optional``: the group's own value stays then.
    """

    read: Callable[[Any], Any]
    holds: Callable[[Any], bool]
    sentence: str
    shapes: bool = False
    optional: bool = False


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


def numbers(count: int) -> Callable[[Any], tuple[int | float, ...]]:
    """A reader of so many numbers."""

    def read(value: Any) -> tuple[int | float, ...]:
        if not isinstance(value, tuple | list) or len(value) != count:
            raise TypeError(f"are {('two', 'three')[count - 2]} numbers")
        return tuple(map(number, value))

    return read


def whole(value: Any) -> int:
    """A whole number."""
    plain = number(value)
    if plain != int(plain):
        raise ValueError("is a whole number")
    return int(plain)


def epsilon(value: Any) -> Any:
    """A number, or (None or a number, a number): Adafactor's two."""
    if not isinstance(value, tuple | list):
        return number(value)
    if len(value) != 2:
        raise TypeError("is a number or two")
    return None if value[0] is None else number(value[0]), number(value[1])


def one_of(*words: str | None) -> Callable[[Any], str | None]:
    """A reader of one of these words."""

    def read(value: Any) -> str | None:
        if value not in words:
            raise ValueError(f"is {' or '.join(map(repr, words))}")
        return None if value is None else str(value)

    return read


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _none_negative(value: Any) -> bool:
    return all(x is None or x >= 0 for x in (value if isinstance(value, tuple) else (value,)))


_NOT_NEGATIVE: Final = Rule(number, _none_negative, "must not be negative")
_ANY: Final = Rule(number, lambda x: True, "is a number")
_FLAG: Final = Rule(flag, lambda x: True, "is True or False")
_SHARE: Final = Rule(number, lambda x: 0 <= x <= 1, "lies in [0, 1]")
_COUNT: Final = Rule(whole, lambda x: x >= 1, "is at least 1", shapes=True)
# How PyTorch computes an update. Here each step is one program, whatever they say.
_HOW: Final = Rule(_or_none(flag), lambda x: True, "is True, False or None", optional=True)
# Noted in groups by schedules.
_NOTED: Final = Rule(number, lambda x: True, "is a number", optional=True)

RULES: Final[Mapping[str, Rule]] = {
    "lr": _NOT_NEGATIVE,
    "lr_decay": _NOT_NEGATIVE,
    "eps": Rule(epsilon, _none_negative, "must not be negative"),
    "weight_decay": _NOT_NEGATIVE,
    "initial_accumulator_value": _NOT_NEGATIVE,
    "momentum": _NOT_NEGATIVE,
    "momentum_decay": _NOT_NEGATIVE,
    "dampening": _ANY,
    "alpha": _SHARE,
    "rho": _SHARE,
    "lambd": _NOT_NEGATIVE,
    "t0": _NOT_NEGATIVE,
    "betas": Rule(numbers(2), lambda x: all(0 <= beta < 1 for beta in x), "lie in [0, 1)"),
    "beta2_decay": Rule(number, lambda x: x <= 0, "must not be positive"),
    "d": Rule(number, lambda x: x >= 1, "is at least 1"),
    "etas": Rule(numbers(2), lambda x: 0 < x[0] < 1 < x[1], "lie below and above 1"),
    "step_sizes": Rule(numbers(2), lambda x: 0 <= x[0] <= x[1], "are a smallest and a greatest step"),
    "ns_coefficients": Rule(numbers(3), lambda x: True, "are three numbers"),
    "ns_steps": Rule(whole, lambda x: 1 <= x < 100, "lies in [1, 100)", shapes=True),
    "adjust_lr_fn": Rule(one_of("original", "match_rms_adamw", None), lambda x: True, ""),
    "max_size": _COUNT,
    "max_iter": _COUNT,
    "max_eval": _COUNT,
    "history_size": _COUNT,
    "tolerance_grad": _NOT_NEGATIVE,
    "tolerance_change": _NOT_NEGATIVE,
    "line_search_fn": Rule(one_of("strong_wolfe", None), lambda x: True, ""),
    "amsgrad": _FLAG,
    "centered": _FLAG,
    "maximize": _FLAG,
    "nesterov": _FLAG,
    "decoupled_weight_decay": _FLAG._replace(optional=True),
    "foreach": _HOW,
    "fused": _HOW,
    "capturable": _HOW,
    "differentiable": _HOW._replace(
        holds=lambda x: not x,
        sentence="is False: a step is not recorded for differentiation; to differentiate updates write them in ops, "
        "with runnel.grad",
    ),
}

NOTES: Final[Mapping[str, Rule]] = dict.fromkeys(
    ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"), _NOTED
)  # what groups may hold besides their hyper-parameters


def require_no_slips(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """ValueError if a name is nearly that of a hyper-parameter in ``known``, or of one that other optimizers have.
    All other names are the user's notes, which a group keeps."""
    for name in values.keys() - known.keys() - NOTES.keys():
        if name in RULES or difflib.get_close_matches(str(name), {*known, *RULES}, 1, 0.8):
            raise ValueError(f"[{owner}] knows no {name}; it has {', '.join(known)}.")


def hyperparameters_in(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters among ``locals()`` at the start of an optimizer's constructor."""
    return {name: value for name, value in arguments.items() if name not in ("self", "params", "__class__")}


def checked(owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` as plain Python values. TypeError or ValueError for one that its name does not allow; names that have
    no rule are those of an optimizer from outside this package, whose ``check`` looks at them."""
    return {
        name: _checked(owner, name, value, rule) if (rule := rule_of(name)) else value for name, value in values.items()
    }


def rule_of(name: str) -> Rule | None:
    """The rule for a name; None for one of an optimizer from outside this package."""
    return RULES.get(name) or NOTES.get(name)


def _checked(owner: str, name: str, value: Any, rule: Rule) -> Any:
    try:
        plain = rule.read(value)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"[{owner}] {name} {wrong}; received {_repr(value)}.") from None
    if not rule.holds(plain):
        raise ValueError(f"[{owner}] {name} {rule.sentence}; received {_repr(value)}.")
    return plain


def _repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
