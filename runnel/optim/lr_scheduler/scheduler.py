"""What all schedules share: epochs, rates set in the optimizer's groups, saving and loading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Final

from runnel.core import kinds
from runnel.optim.lr_scheduler.arguments import per_group, rate, whole
from runnel.optim.optimizer import Optimizer
from runnel.optim.state import require_keys, state_error
from runnel.tensor.scalars import RunTimeNumbers, Schedule

# What PyTorch's states hold besides, of which nothing here depends.
_PYTORCHS: Final = frozenset(
    (
        "_step_count", "_is_initial", "_get_lr_called_within_step", "verbose", "default_min_lr", "default_lr",
        "mode_worse", "lr_lambdas", "_scale_fn_custom",
    )
)  # fmt: skip


@kinds.declare
class LRScheduler(Schedule):
    """The base class. Call ``step()`` once an epoch, after the optimizer's steps; a compiled function may do so, too.

    Either ``multiplier(epoch)`` gives what the first rate is multiplied by in an epoch, or ``get_lr()`` gives the rates
    of the epoch ``last_epoch``, one for each group. All attributes but the optimizer are the schedule's state.

    With f the multiplier, lr = floor + (first lr - floor)·f(epoch). Where the rate before is not this formula's (it was
    set by hand, or by another schedule of the same optimizer), the next goes from there: its distance from ``floor`` is
    multiplied by f(epoch)/f(epoch - 1).

    Attributes:
        base_lrs: the first rates, one for each group.
        last_epoch: the epoch, counted from 0.
    """

    not_saved: ClassVar[tuple[str, ...]] = ("optimizer",)
    changed_by_step = ("advance", "jump", "set_rates", "get_last_lr")

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[{name}] schedules an Optimizer; received {type(optimizer).__name__}.")
        self.optimizer = optimizer
        last_epoch = whole(name, "last_epoch", last_epoch, -1)
        self.check()
        if last_epoch >= 0 and not all("initial_lr" in group for group in optimizer.param_groups):
            raise ValueError(
                f'[{name}] last_epoch={last_epoch} goes on with a schedule, but the groups have no "initial_lr": load '
                "the optimizer's state first, or leave last_epoch out."
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
        """The rate that the multiplier 0 stands for."""
        return 0.0

    def multiplier(self, epoch: int) -> float:
        """What the first rate is multiplied by in ``epoch``."""
        raise NotImplementedError(
            f"[{type(self).__name__}] defines neither multiplier(self, epoch) nor get_lr(self): the learning rates."
        )

    def get_lr(self) -> list[float]:
        """The rates of the epoch ``last_epoch``, one for each group."""
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
        """Raise TypeError or ValueError for attributes that make no sense. Called when they are set, by the constructor
        and by ``load_state_dict``."""

    # Going on ---------------------------------------------------------------------------------------------------------

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to ``epoch``."""
        if epoch is None:
            self.advance()
        else:
            self.jump(whole(type(self).__name__, "epoch", epoch, 0))

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
        """The learning rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def numbers(self) -> Sequence[RunTimeNumbers]:
        return self.optimizer.param_groups

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        return [(self.get_lr, ()), (self.multiplier, (self.last_epoch + 1,)), (type(self).floor.__get__, (self,))]

    # Saving and loading -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The attributes but for the optimizer and functions, and the rates in force."""
        saved = {name: _own(value) for name, value in self.__dict__.items() if name not in self.not_saved}
        return {**saved, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, or PyTorch's schedule of this name, and set the rates that were in force
        then. StateError if it is not the state of such a schedule; then nothing has changed."""
        loaded, in_force = self.loaded(state)
        self.__dict__.update(loaded.__dict__)
        for group, value in zip(self.optimizer.param_groups, in_force, strict=True):
            group["lr"] = value

    def loaded(self, state: Mapping[str, Any], least: int = 0) -> tuple[LRScheduler, list[float]]:
        """A schedule with this state, of the epoch ``least`` or later, and the rates in force. StateError if it is not
        one of such a schedule."""
        name = type(self).__name__
        if isinstance(state, Mapping):
            state = {key: value for key, value in state.items() if key not in _PYTORCHS}
        require_keys(f"the state of {name}", state, self.state_dict())
        groups = len(self.optimizer.param_groups)
        for key in ("base_lrs", "_last_lr"):
            if key in state and (not isinstance(state[key], list | tuple) or len(state[key]) != groups):
                raise state_error(
                    f'"{key}" of {name} has a number for each of {groups} groups; received {state[key]!r}'
                )
        loaded = copy(self)
        loaded.__dict__.update({key: _own(value) for key, value in state.items() if key != "_last_lr"})
        try:
            loaded.last_epoch = whole(name, "last_epoch", state["last_epoch"], least)
            in_force = [rate(name, value) for value in state["_last_lr"]]
            if "base_lrs" in state:
                loaded.base_lrs = per_group(name, "a learning rate", list(state["base_lrs"]), groups)
            loaded.check()
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        return loaded, in_force


def _own(value: Any) -> Any:
    """A list or dict of its own, so that a state does not change with the schedule."""
    if isinstance(value, Mapping):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value
