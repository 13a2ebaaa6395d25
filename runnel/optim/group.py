"""Parameter groups: Parameters with the hyper-parameters they share."""

from __future__ import annotations

import difflib
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.core import tracebacks
from runnel.core.errors import SideEffectError
from runnel.tensor import tracing
from runnel.tensor.floats import RunTimeNumbers
from runnel.tensor.variable import Variable

Rule = Callable[[Any], Any]  # returns a value as plain Python, or raises TypeError or ValueError("be ...")


def number(value: Any) -> int | float:
    """Return a finite Python number from a number, or from an array or tensor that holds one."""
    if not isinstance(value, np.generic) and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError("be a number")
    plain = int(value) if isinstance(value, int | np.integer) else float(value)
    if not math.isfinite(plain):
        raise ValueError("be finite")
    return plain


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


def one_of(*words: str | None) -> Rule:
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

# Each value of these gets a program; all other numbers are inputs of one program.
SHAPING: Final = frozenset({"max_size", "max_iter", "max_eval", "history_size", "ns_steps"})

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
}  # fmt: skip

# Numbers that schedules keep in groups.
NOTES: Final = frozenset({"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"})


def checked(owner: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyper-parameters of a group as plain Python values; raise TypeError or ValueError for a wrong one.

    A name that resembles one of ``known``, or that belongs to another optimizer, is an error. Other names without a
    rule belong to a custom optimizer, or are notes of the user.
    """
    for name in values.keys() - known.keys() - NOTES:
        if name in RULES or difflib.get_close_matches(str(name), {*known, *RULES}, 1, 0.8):
            raise ValueError(f"[{owner}] has no hyper-parameter {name}; it has {', '.join(known)}.")
    rules = {name: RULES.get(name) or (number if name in NOTES else None) for name in values}
    return {name: require(owner, name, values[name], rule) if rule else values[name] for name, rule in rules.items()}


def require(owner: str, name: str, value: Any, rule: Rule) -> Any:
    """Return ``value`` as ``rule`` returns it; raise TypeError or ValueError with the names of owner and value."""
    try:
        return rule(value)
    except (TypeError, ValueError) as wrong:
        text = repr(value)
        received = text if len(text) <= 60 else f"{text[:57]}..."
        raise type(wrong)(f"[{owner}] {name} must {wrong}; got {received}.") from None


class ParamGroup(RunTimeNumbers, MutableMapping[str, Any]):
    """The dict of one group: "params" and hyper-parameters, which you may change between steps.

    In a trace, numbers are inputs of the program, read at each run; so a learning-rate schedule does not retrace.

    Attributes:
        params: the Parameters.
        plain: the hyper-parameters. Programs keep alive nothing else of the group.
    """

    __slots__ = ("_optimizer", "params", "plain")
    shaping = SHAPING

    def __init__(self, params: Sequence[Variable], values: Mapping[str, Any], optimizer: Any = None) -> None:
        self.params = tuple(params)
        self.plain = dict(values)
        self._optimizer = None if optimizer is None else weakref.ref(optimizer)

    @property
    def optimizer(self) -> Any:
        """The optimizer of the group, which the group does not keep alive; None for a copy of the group alone."""
        return None if self._optimizer is None else self._optimizer()

    def __reduce__(self) -> Any:
        return ParamGroup, (self.params, self.plain)

    def __getitem__(self, key: str) -> Any:
        if key == "params":
            return self.params
        return self.read(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        raise ValueError(f"[param_groups] '{key}' cannot be removed; set it to another value.")

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several hyper-parameters at once. All are checked first: after an error, none has changed."""
        values = dict(*args, **kwargs)
        if "params" in values:
            raise ValueError("[param_groups] the Parameters of a group cannot change; call add_param_group().")
        trace = tracing.ACTIVE.trace
        if trace is not None:
            names = ", ".join(map(repr, values))
            if trace.refuse is not None:
                trace.refuse(f"{names} of a group is set", "set it between calls, or step a schedule")
            raise SideEffectError(
                f"[param_groups] {names} was set in a loop at {tracebacks.user_line()}; set it outside."
            )
        optimizer = self.optimizer
        before, values = dict(self.plain), {**self.plain, **values}
        self.plain.update(values if optimizer is None else optimizer.checked_group(values, self.params))
        if optimizer is not None and not self._keeps_shape(before):  # a learning rate changes at each step
            optimizer.group_changed(self)

    def _keeps_shape(self, before: dict[str, Any]) -> bool:
        """Return whether programs of the update are as before: only numbers that are inputs have changed."""
        now = self.plain
        changed = [name for name, value in now.items() if before.get(name, self) is not value]
        return all(
            name in before and self.shape_of(name, before[name]) == self.shape_of(name, now[name]) for name in changed
        )

    def __iter__(self) -> Iterator[str]:
        return iter(("params", *self.plain))

    def __len__(self) -> int:
        return 1 + len(self.plain)

    def __repr__(self) -> str:
        return f"ParamGroup({dict(self)!r})"

    def has(self, key: str) -> bool:
        """Return whether a hyper-parameter is set and not 0 or False. This is part of the program's structure."""
        return bool(self.plain.get(key))
