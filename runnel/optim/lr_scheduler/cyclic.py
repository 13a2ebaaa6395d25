"""Rates that go up and down (L. Smith, "Cyclical learning rates for training neural networks", 2015)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from runnel.optim.lr_scheduler.arguments import choice, per_group, real, whole
from runnel.optim.lr_scheduler.momentum import set_momentum, uses_betas
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """Between ``base_lr`` and ``max_lr``: up in ``step_size_up`` steps, down in ``step_size_down``. ``step()`` once a
    batch.

    lr = base_lr + (max_lr - base_lr)·h·s, with h from 0 to 1 and back, and s = 1 ("triangular"), 1/2^(cycle - 1)
    ("triangular2") or gamma^steps ("exp_range"). ``scale_fn`` gives another s, of the cycle's number, counted from 1,
    or with ``scale_mode="iterations"`` of the steps. ``cycle_momentum`` moves the momentum the other way, from
    ``max_momentum``.
    """

    not_saved = ("optimizer", "scale_fn")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[CyclicLR] schedules an Optimizer; received {type(optimizer).__name__}.")
        groups = len(optimizer.param_groups)
        up = whole("CyclicLR", "step_size_up", step_size_up, 1)
        down = up if step_size_down is None else whole("CyclicLR", "step_size_down", step_size_down, 1)
        first = per_group("CyclicLR", "base_lr", base_lr, groups)
        self.max_lrs = per_group("CyclicLR", "max_lr", max_lr, groups)
        self.total_size = float(up + down)
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self.check()
        if cycle_momentum:
            self.use_beta1 = uses_betas("CyclicLR", optimizer)
            self.base_momentums = per_group("CyclicLR", "base_momentum", base_momentum, groups)
            self.max_momentums = per_group("CyclicLR", "max_momentum", max_momentum, groups)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.update(lr=first[i], initial_lr=first[i])
            if last_epoch == -1 and cycle_momentum:
                low, high = self.base_momentums[i], self.max_momentums[i]
                set_momentum(group, high, base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = first

    def check(self) -> None:
        self.gamma = real("CyclicLR", "gamma", self.gamma, 0.0)
        self.total_size = float(real("CyclicLR", "total_size", self.total_size, 1))
        self.step_ratio = float(real("CyclicLR", "step_ratio", self.step_ratio, 0.0))
        choice("CyclicLR", "mode", self.mode, _MODES)
        choice("CyclicLR", "scale_mode", self.scale_mode, ("cycle", "iterations"))

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        return [*super().functions(), *([] if self.scale_fn is None else [(self.scale_fn, (1.0,))])]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        done = 1 + self.last_epoch / self.total_size - cycle
        height = done / self.step_ratio if done <= self.step_ratio else (done - 1) / (self.step_ratio - 1)
        scale = self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in bounds:
                set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (x - 1)) if self.mode == "triangular2" else float(self.gamma**x)
