"""Schedules made of others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runnel.optim.lr_scheduler.arguments import rate, whole
from runnel.optim.lr_scheduler.plateau import ReduceLROnPlateau
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer
from runnel.optim.state import require_keys, state_error


class _Combined(LRScheduler):
    """Others of the same optimizer, whose states are part of this one's."""

    not_saved = ("optimizer", "_schedulers")

    def _take(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        if not isinstance(schedulers, list | tuple) or not schedulers:
            raise TypeError(f"[{name}] combines a list of schedules; received {schedulers!r}.")
        for one in schedulers:
            if isinstance(one, ReduceLROnPlateau):
                raise TypeError(f"[{name}] knows no measured value for ReduceLROnPlateau; step that one by itself.")
            if not isinstance(one, LRScheduler):
                raise TypeError(f"[{name}] combines schedules; received {type(one).__name__}.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not self.optimizer for one in schedulers):
            raise ValueError(f"[{name}] combines schedules of one optimizer; received some of several.")
        self._schedulers = list(schedulers)

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        return [one for schedule in self._schedulers for one in schedule.functions()]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        name = type(self).__name__
        require_keys(f"the state of {name}", state, self.state_dict())
        theirs = state["_schedulers"]
        if not isinstance(theirs, list | tuple) or len(theirs) != len(self._schedulers):
            raise state_error(f'"_schedulers" of {name} are {len(self._schedulers)} states; received {theirs!r}')
        others = [one.loaded(saved, least=-1)[0] for one, saved in zip(self._schedulers, theirs, strict=True)]
        try:
            in_force = [rate(name, value) for value in state["_last_lr"]]
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        if len(in_force) != len(self.optimizer.param_groups):
            raise state_error(f'"_last_lr" of {name} has a number for each group; received {in_force!r}')
        self._load_own(state)
        for one, loaded in zip(self._schedulers, others, strict=True):
            one.__dict__.update(loaded.__dict__)
        for group, value in zip(self.optimizer.param_groups, in_force, strict=True):
            group["lr"] = value

    def _load_own(self, state: Mapping[str, Any]) -> None:
        """Take over what is this schedule's own."""


class SequentialLR(_Combined):
    """One schedule after the other: ``schedulers[i]`` begins at the epoch ``milestones[i - 1]``."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._take(schedulers, optimizer)
        self._milestones = [whole("SequentialLR", "a milestone", m, 0) for m in milestones]
        if len(self._milestones) != len(self._schedulers) - 1 or self._milestones != sorted(self._milestones):
            raise ValueError(
                f"[SequentialLR] {len(self._schedulers)} schedules have {len(self._schedulers) - 1} rising milestones "
                f"between them; received {milestones!r}."
            )
        self.last_epoch = whole("SequentialLR", "last_epoch", last_epoch, -1) + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for one in self._schedulers:
            one.last_epoch -= 1
        self._schedulers[0].begin(self._schedulers[0].last_epoch)

    def advance(self) -> None:
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        if place and self._milestones[place - 1] == self.last_epoch:
            self._schedulers[place].jump(0)
        else:
            self._schedulers[place].step()

    def _load_own(self, state: Mapping[str, Any]) -> None:
        try:
            epoch = whole("SequentialLR", "last_epoch", state["last_epoch"], 0)
            milestones = [whole("SequentialLR", "a milestone", m, 0) for m in state["_milestones"]]
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        self.last_epoch, self._milestones = epoch, milestones


class ChainedScheduler(_Combined):
    """Several schedules at once: each goes from the rate that the one before it in the list set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)

    def step(self, epoch: int | None = None) -> None:
        for one in self._schedulers:
            one.step()
