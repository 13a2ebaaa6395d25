"""Schedulers that step once a batch and move the rate up and down, and the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from runnel.optim.group import ParamGroup
from runnel.optim.lr_scheduler.scheduler import (
    ANNEALING,
    COUNT,
    NOT_NEGATIVE,
    SHARE,
    LRScheduler,
    per_group,
    require_optimizer,
)  # fmt: skip
from runnel.optim.optimizer import Optimizer
from runnel.optim.settings import bounded, one_of, require


def _uses_betas(owner: str, optimizer: Optimizer) -> bool:
    """Return whether the momentum is the first of the betas. Raise ValueError if the optimizer has neither."""
    if "betas" in optimizer.defaults or "momentum" in optimizer.defaults:
        return "betas" in optimizer.defaults
    raise ValueError(
        f"[{owner}] cycle_momentum must be False for {type(optimizer).__name__}, which has neither momentum nor betas."
    )


def _set_momentum(group: ParamGroup, value: float, **more: Any) -> None:
    """Set the momentum of a group, and ``more`` of its values."""
    if "betas" in group.plain:
        group.update(more, betas=(value, *group.plain["betas"][1:]))
    else:
        group.update(more, momentum=value)


class CyclicLR(LRScheduler):
    """Move lr between ``base_lr`` and ``max_lr`` (L. Smith, "Cyclical learning rates", 2015). Step once a batch.

    lr = base_lr + (max_lr - base_lr)·h·s, with h from 0 to 1 and back, and s = 1 ("triangular"), 1/2^(cycle - 1)
    ("triangular2") or gamma^steps ("exp_range").

    Args:
        optimizer: the optimizer whose learning rates are set.
        base_lr: the smallest rate, or one for each group.
        max_lr: the largest rate, or one for each group.
        step_size_up: the number of steps up.
        step_size_down: the number of steps down; None is ``step_size_up``.
        mode: "triangular", "triangular2" or "exp_range".
        gamma: the base of "exp_range".
        scale_fn: a function that returns s, instead of ``mode``.
        scale_mode: the argument of ``scale_fn``: the number of the cycle from 1 ("cycle"), or of steps ("iterations").
        cycle_momentum: move the momentum, or the first of the betas, the other way.
        base_momentum: the smallest momentum, or one for each group.
        max_momentum: the largest momentum, or one for each group.
        last_epoch: the step to continue after; -1 starts a new schedule.
    """

    not_saved = ("optimizer", "scale_fn")
    rules: ClassVar = {
        "gamma": NOT_NEGATIVE,
        "total_size": bounded(1),
        "step_ratio": NOT_NEGATIVE,
        "mode": one_of("triangular", "triangular2", "exp_range"),
        "scale_mode": one_of("cycle", "iterations"),
    }

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
        require_optimizer("CyclicLR", optimizer)
        groups = len(optimizer.param_groups)
        up = require("CyclicLR", "step_size_up", step_size_up, COUNT)
        down = up if step_size_down is None else require("CyclicLR", "step_size_down", step_size_down, COUNT)
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
            self.use_beta1 = _uses_betas("CyclicLR", optimizer)
            self.base_momentums = per_group("CyclicLR", "base_momentum", base_momentum, groups)
            self.max_momentums = per_group("CyclicLR", "max_momentum", max_momentum, groups)
        for i, group in enumerate(optimizer.param_groups if last_epoch == -1 else ()):
            group.update(lr=first[i], initial_lr=first[i])
            if cycle_momentum:
                low, high = self.base_momentums[i], self.max_momentums[i]
                _set_momentum(group, high, base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = first

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        done = 1 + self.last_epoch / self.total_size - cycle
        height = done / self.step_ratio if done <= self.step_ratio else (done - 1) / (self.step_ratio - 1)
        scale = self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in bounds:
                _set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (x - 1)) if self.mode == "triangular2" else float(self.gamma**x)


class OneCycleLR(LRScheduler):
    """Move lr up once and down once (L. Smith, N. Topin, "Super-convergence", 2017). Step once a batch.

    lr goes from max_lr/div_factor up to ``max_lr`` in the first ``pct_start`` of the steps, and then down to
    max_lr/div_factor/final_div_factor. ``step()`` may be called ``total_steps`` times.

    Args:
        optimizer: the optimizer whose learning rates are set.
        max_lr: the largest rate, or one for each group.
        total_steps: the number of steps; None is epochs·steps_per_epoch.
        epochs: the number of epochs.
        steps_per_epoch: the number of steps in each epoch.
        pct_start: the share of the steps that go up, in [0, 1].
        anneal_strategy: "cos" for half a cosine each way, or "linear".
        cycle_momentum: move the momentum, or the first of the betas, the other way.
        base_momentum: the smallest momentum, or one for each group.
        max_momentum: the largest momentum, or one for each group.
        div_factor: the quotient of the largest and the first rate.
        final_div_factor: the quotient of the first and the last rate.
        three_phase: go down to the first rate in as many steps as up, and then to the last rate.
        last_epoch: the step to continue after; -1 starts a new schedule.

    Example:
        >>> scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=10, steps_per_epoch=len(loader))
    """

    rules: ClassVar = {"total_steps": COUNT, "_anneal_func_type": ANNEALING}

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        name = "OneCycleLR"
        require_optimizer(name, optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(f"[{name}] must get total_steps, or epochs and steps_per_epoch.")
            each = require(name, "steps_per_epoch", steps_per_epoch, COUNT)
            total_steps = require(name, "epochs", epochs, COUNT) * each
        self.total_steps = require(name, "total_steps", total_steps, COUNT)
        top = float(require(name, "pct_start", pct_start, SHARE) * self.total_steps) - 1
        self._schedule_phases = _phases(top, self.total_steps, three_phase)
        self._anneal_func_type = require(name, "anneal_strategy", anneal_strategy, ANNEALING)
        self.cycle_momentum = cycle_momentum
        self.use_beta1 = _uses_betas(name, optimizer) if cycle_momentum else False
        groups = optimizer.param_groups
        largest = per_group(name, "max_lr", max_lr, len(groups))
        low = per_group(name, "base_momentum", base_momentum, len(groups))
        high = per_group(name, "max_momentum", max_momentum, len(groups))
        div_factor = require(name, "div_factor", div_factor, bounded(1e-300))
        final_div_factor = require(name, "final_div_factor", final_div_factor, bounded(1e-300))
        for i, group in enumerate(groups if last_epoch == -1 else ()):
            first = largest[i] / div_factor
            group.update(initial_lr=first, max_lr=largest[i], min_lr=first / final_div_factor)
            if cycle_momentum:
                _set_momentum(group, high[i], base_momentum=low[i], max_momentum=high[i])
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"[OneCycleLR] step() must be called at most {self.total_steps} times; got step {step}.")
        begin = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            begin = end
        done = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            values = group.plain
            rates.append(self._between(values[phase["start_lr"]], values[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = self._between(values[phase["start_momentum"]], values[phase["end_momentum"]], done)
                _set_momentum(group, momentum)
        return rates

    def _between(self, start: float, end: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def _phases(top: float, total: int, three: bool) -> list[dict[str, Any]]:
    """Return where each phase ends, and the names of the values that it goes from and to."""
    rates = ["initial_lr", "max_lr", *(["initial_lr"] if three else []), "min_lr"]
    momenta = ["max_momentum", "base_momentum", *(["max_momentum"] if three else []), "max_momentum"]
    ends = [top, *([2 * top] if three else []), total - 1]
    keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    rows = zip(ends, rates, rates[1:], momenta, momenta[1:], strict=False)
    return [dict(zip(keys, row, strict=True)) for row in rows]
