"""Rates that go down when a measured value does not get better."""

from __future__ import annotations

import math
from typing import Any

from runnel.optim.lr_scheduler.arguments import choice, per_group, real, whole
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """``step(metrics)`` once an epoch: after more than ``patience`` epochs without a better value, lr ← max(lr·factor,
    min_lr), and then ``cooldown`` epochs are not counted. A change by ``eps`` or less is left out.

    Better than the best so far is, in ``mode`` "min", less than best·(1 - threshold), or with ``threshold_mode="abs"``
    less than best - threshold; in "max" more than best·(1 + threshold) or best + threshold.

    Attributes:
        best: the best value so far.
        num_bad_epochs: the epochs since then.
    """

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
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def check(self) -> None:
        name = "ReduceLROnPlateau"
        choice(name, "mode", self.mode, ("min", "max"))
        choice(name, "threshold_mode", self.threshold_mode, ("rel", "abs"))
        self.factor = real(name, "factor", self.factor, 0.0)
        if self.factor >= 1:
            raise ValueError(f"[{name}] factor lies in [0, 1); received {self.factor}.")
        self.patience = whole(name, "patience", self.patience, 0)
        self.cooldown = whole(name, "cooldown", self.cooldown, 0)
        self.threshold = real(name, "threshold", self.threshold, 0.0)
        self.eps = real(name, "eps", self.eps, 0.0)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go to the next epoch, with the value that was measured in this one."""
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
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted yet."""
        return self.cooldown_counter > 0

    def is_better(self, value: float, best: float) -> bool:
        """Whether ``value`` counts as better than ``best``."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            rate = float(group["lr"])
            new = max(rate * self.factor, least)
            if rate - new > self.eps:
                group["lr"] = new
