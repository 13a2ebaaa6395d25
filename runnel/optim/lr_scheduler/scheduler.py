"""The base of all learning-rate schedulers: epochs, rates in the optimizer's groups, saving and loading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Final

from runnel.core import kinds
from runnel.optim.optimizer import Optimizer
from runnel.optim.settings import Rule, bounded, one_of, require
from runnel.optim.state import require_keys, state_error

NOT_NEGATIVE: Final = bounded(0)
SHARE: Final = bounded(0, 1)
EPOCH: Final = bounded(0, whole=True)
COUNT: Final = bounded(1, whole=True)
ANNEALING: Final = one_of("cos", "linear")

# Entries of PyTorch's states that nothing here depends on.
_PYTORCHS: Final = frozenset(
    ("_step_count", "_is_initial", "_get_lr_called_within_step", "verbose", "default_min_lr", "default_lr",
     "mode_worse", "lr_lambdas", "_scale_fn_custom")
)  # fmt: skip


@kinds.declare
class LRScheduler:
    """The base class of schedulers. Call ``step()`` once an epoch, after the optimizer's steps, compiled or not.

    A subclass defines either ``multiplier(epoch)``, the factor f of the first rate in an epoch, or ``get_lr()``, the
    rates of the epoch ``last_epoch``, one for each group. All attributes but the optimizer are saved.

    With a multiplier, lr = floor + (first lr - floor)·f(epoch). If the previous rate is not this formula's, because you
    or another scheduler set it, the next one continues from there: its distance from ``floor`` is multiplied by
    f(epoch)/f(epoch - 1).

    Args:
        optimizer: the optimizer whose ``param_groups[i]["lr"]`` is set.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Attributes:
        base_lrs: the first rates, one for each group.
        last_epoch: the epoch, counted from 0.

    Example:
        >>> class Halving(LRScheduler):
        ...     def multiplier(self, epoch):
        ...         return 0.5**epoch
    """

    not_saved: ClassVar[tuple[str, ...]] = ("optimizer",)
    rules: ClassVar[Mapping[str, Rule]] = {}  # of attributes, also of loaded ones

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        require_optimizer(name, optimizer)
        self.optimizer = optimizer
        last_epoch = require(name, "last_epoch", last_epoch, bounded(-1, whole=True))
        self.check()
        if last_epoch >= 0 and not all("initial_lr" in group for group in optimizer.param_groups):
            raise ValueError(
                f'[{name}] last_epoch={last_epoch} continues a schedule, but the groups have no "initial_lr": load the '
                "optimizer's state first, or leave last_epoch out."
            )
        self.begin(last_epoch)

    def begin(self, last_epoch: int) -> None:
        """Set the rates of the epoch after ``last_epoch``."""
        for group in self.optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(group["initial_lr"]) for group in self.optimizer.param_groups]
        self.last_epoch = last_epoch
        self.advance()

    # What a subclass defines ------------------------------------------------------------------------------------------

    @property
    def floor(self) -> float:
        """The rate for a multiplier of 0."""
        return 0.0

    def multiplier(self, epoch: int) -> float:
        """Return the factor of the first rate in ``epoch``."""
        raise NotImplementedError(
            f"[{type(self).__name__}] must define multiplier(self, epoch) or get_lr(self): the learning rates."
        )

    def get_lr(self) -> list[float]:
        """Return the rates of the epoch ``last_epoch``, one for each group."""
        now = self.multiplier(self.last_epoch)
        before = self.multiplier(self.last_epoch - 1) if self.last_epoch > 0 else 1.0
        rates = []
        for current, base in zip(self.get_last_lr(), self.base_lrs, strict=True):
            if current == self._rate(base, before):
                rates.append(self._rate(base, now))
            elif before:
                rates.append(self.floor + (current - self.floor) * (now / before))
            else:
                rates.append(current + (base - self.floor) * now)
        return rates

    def _rate(self, base: float, multiplier: float) -> float:
        return self.floor + (base - self.floor) * multiplier

    def check(self) -> None:
        """Read attributes by their ``rules``; raise TypeError or ValueError for a wrong one."""
        for name, rule in self.rules.items():
            setattr(self, name, require(type(self).__name__, name, getattr(self, name), rule))

    # Stepping ---------------------------------------------------------------------------------------------------------

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, and set its rates."""
        if epoch is None:
            self.advance()
        else:
            self.jump(require(type(self).__name__, "epoch", epoch, EPOCH))

    def advance(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        self.set_rates(self.get_lr())

    def jump(self, epoch: int) -> None:
        """Go to ``epoch``, whatever the rates are now."""
        self.last_epoch = epoch
        if type(self).multiplier is LRScheduler.multiplier:
            self.set_rates(self.get_lr())
        else:
            self.set_rates([self._rate(base, self.multiplier(epoch)) for base in self.base_lrs])

    def set_rates(self, rates: Sequence[float]) -> None:
        """Set the rate of each group."""
        for group, value in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = value

    def get_last_lr(self) -> list[float]:
        """Return the current learning rates, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer and functions, and the current rates."""
        saved = {name: _copied(value) for name, value in self.__dict__.items() if name not in self.not_saved}
        return {**saved, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``, here or in PyTorch, and set the rates that were current then.

        Raises:
            StateError: it is not the state of such a scheduler. Nothing has changed then.
        """
        loaded, rates = self.loaded(state)
        self.__dict__.update(loaded.__dict__)
        self.set_rates(rates)

    def loaded(self, state: Mapping[str, Any], least: int = 0) -> tuple[LRScheduler, list[float]]:
        """Return a scheduler with this state, of the epoch ``least`` or later, and its rates; raise StateError."""
        name = type(self).__name__
        if isinstance(state, Mapping):
            state = {key: value for key, value in state.items() if key not in _PYTORCHS}
        require_keys(f"the state of {name}", state, self.state_dict())
        groups = len(self.optimizer.param_groups)
        for key in ("base_lrs", "_last_lr"):
            if key in state and (not isinstance(state[key], list | tuple) or len(state[key]) != groups):
                raise state_error(
                    f'"{key}" of {name} must have a number for each of {groups} groups; got {state[key]!r}'
                )
        loaded = copy(self)
        loaded.__dict__.update({key: _copied(value) for key, value in state.items() if key != "_last_lr"})
        try:
            loaded.last_epoch = require(name, "last_epoch", state["last_epoch"], bounded(least, whole=True))
            rates = per_group(name, "a learning rate", list(state["_last_lr"]), groups)
            if "base_lrs" in state:
                loaded.base_lrs = per_group(name, "a learning rate", list(state["base_lrs"]), groups)
            loaded.check()
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        return loaded, rates


def _copied(value: Any) -> Any:
    """Copy lists and dicts, so that a state does not change with its scheduler."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


# Checks of arguments --------------------------------------------------------------------------------------------------


def require_optimizer(owner: str, optimizer: Any) -> None:
    """Raise TypeError unless ``optimizer`` is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"[{owner}] optimizer must be an Optimizer; got {type(optimizer).__name__}.")


def per_group(owner: str, name: str, value: Any, groups: int) -> list[float]:
    """Return a number for each group, from one number for all or from a list."""
    values = list(value) if isinstance(value, list | tuple) else [value] * groups
    if len(values) != groups:
        raise ValueError(f"[{owner}] {name} must be a number, or one for each of {groups} groups; got {value!r}.")
    return [float(require(owner, name, one, NOT_NEGATIVE)) for one in values]
