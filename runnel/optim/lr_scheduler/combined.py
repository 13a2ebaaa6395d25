"""Schedulers that follow a metric, or combine other schedulers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from runnel.optim.lr_scheduler.scheduler import EPOCH, NOT_NEGATIVE, LRScheduler, per_group
from runnel.optim.optimizer import Optimizer
from runnel.optim.settings import bounded, one_of, require
from runnel.optim.state import require_keys, state_error


def _below_1(value: Any) -> int | float:
    factor: int | float = NOT_NEGATIVE(value)
    if factor >= 1:
        raise ValueError("be less than 1")
    return factor


class ReduceLROnPlateau(LRScheduler):
    """Reduce lr when a metric stops improving. Call ``step(metrics)`` once an epoch.

    After more than ``patience`` epochs without a better value, lr ← max(lr·factor, min_lr), and the next ``cooldown``
    epochs are not counted. A value is better, in ``mode`` "min", if it is less than best·(1 - threshold), or with
    ``threshold_mode="abs"`` less than best - threshold; in "max", if it is more than best·(1 + threshold) or
    best + threshold.

    Args:
        optimizer: the optimizer whose learning rates are set.
        mode: "min" or "max".
        factor: the factor of lr, in [0, 1).
        patience: the number of epochs without a better value that are tolerated.
        threshold: the smallest improvement.
        threshold_mode: "rel" or "abs".
        cooldown: the number of epochs after a reduction that are not counted.
        min_lr: the smallest rate, or one for each group.
        eps: the smallest reduction; a smaller one is left out.

    Attributes:
        best: the best value so far.
        num_bad_epochs: the epochs since then.

    Example:
        >>> scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=5)
        >>> scheduler.step(validation_loss)
    """

    rules: ClassVar = {
        "mode": one_of("min", "max"),
        "threshold_mode": one_of("rel", "abs"),
        "factor": _below_1,
        "patience": EPOCH,
        "cooldown": EPOCH,
        "threshold": NOT_NEGATIVE,
        "eps": NOT_NEGATIVE,
    }

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
        self.min_lrs = per_group("ReduceLROnPlateau", "min_lr", min_lr, groups)
        super().__init__(optimizer)

    def begin(self, last_epoch: int) -> None:
        self.last_epoch = 0
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go to the next epoch, given the metric of this one."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                new = max(float(group["lr"]) * self.factor, least)
                if float(group["lr"]) - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """True while epochs after a reduction are not counted."""
        return self.cooldown_counter > 0

    def is_better(self, value: float, best: float) -> bool:
        """Return whether ``value`` counts as better than ``best``."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound


class _Combined(LRScheduler):
    """A combination of schedulers of one optimizer, whose states are part of its state."""

    not_saved = ("optimizer", "_schedulers")

    def _take(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        if not isinstance(schedulers, list | tuple) or not schedulers:
            raise TypeError(f"[{name}] schedulers must be a non-empty list; got {schedulers!r}.")
        for one in schedulers:
            if isinstance(one, ReduceLROnPlateau):
                raise TypeError(f"[{name}] has no metric for ReduceLROnPlateau; call its step(metrics) yourself.")
            if not isinstance(one, LRScheduler):
                raise TypeError(f"[{name}] schedulers must be LRSchedulers; got {type(one).__name__}.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not self.optimizer for one in schedulers):
            raise ValueError(f"[{name}] schedulers must have the same optimizer.")
        self._schedulers = list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        name = type(self).__name__
        require_keys(f"the state of {name}", state, self.state_dict())
        theirs = state["_schedulers"]
        if not isinstance(theirs, list | tuple) or len(theirs) != len(self._schedulers):
            raise state_error(f'"_schedulers" of {name} must be {len(self._schedulers)} states; got {theirs!r}')
        others = [one.loaded(saved, least=-1)[0] for one, saved in zip(self._schedulers, theirs, strict=True)]
        try:
            rates = per_group(name, "a learning rate", list(state["_last_lr"]), len(self.optimizer.param_groups))
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        self._load_own(state)
        for one, loaded in zip(self._schedulers, others, strict=True):
            one.__dict__.update(loaded.__dict__)
        self.set_rates(rates)

    def _load_own(self, state: Mapping[str, Any]) -> None:
        """Restore the attributes that belong to the combination itself."""


class SequentialLR(_Combined):
    """Run one scheduler after the other: ``schedulers[i]`` starts at the epoch ``milestones[i - 1]``.

    Args:
        optimizer: the optimizer of all ``schedulers``.
        schedulers: the schedulers, in order.
        milestones: one epoch less than schedulers, in increasing order.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Example:
        >>> warmup = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=5)
        >>> cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=95)
        >>> scheduler = lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[5])
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._take(schedulers, optimizer)
        self._milestones = [require("SequentialLR", "a milestone", m, EPOCH) for m in milestones]
        if len(self._milestones) != len(self._schedulers) - 1 or self._milestones != sorted(self._milestones):
            raise ValueError(
                f"[SequentialLR] milestones must be {len(self._schedulers) - 1} increasing epochs for "
                f"{len(self._schedulers)} schedulers; got {milestones!r}."
            )
        self.last_epoch = require("SequentialLR", "last_epoch", last_epoch, bounded(-1, whole=True)) + 1
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
            epoch = require("SequentialLR", "last_epoch", state["last_epoch"], EPOCH)
            milestones = [require("SequentialLR", "a milestone", m, EPOCH) for m in state["_milestones"]]
        except (TypeError, ValueError) as error:
            raise state_error(str(error).rstrip(".")) from error
        self.last_epoch, self._milestones = epoch, milestones


class ChainedScheduler(_Combined):
    """Run several schedulers at once. Each one continues from the rate that the previous one in the list set.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: this optimizer; None takes it from the schedulers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)

    def step(self, epoch: int | None = None) -> None:
        for one in self._schedulers:
            one.step()
