"""Up once and down once (L. Smith, N. Topin, "Super-convergence", 2017)."""

from __future__ import annotations

import math
from typing import Any

from runnel.optim.lr_scheduler.arguments import choice, per_group, real, whole
from runnel.optim.lr_scheduler.momentum import set_momentum, uses_betas
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer


class OneCycleLR(LRScheduler):
    """From max_lr/div_factor up to ``max_lr`` in the first ``pct_start`` of the steps, then down to
    max_lr/div_factor/final_div_factor. ``step()`` once a batch, ``total_steps`` = epochs·steps_per_epoch times at most.

    With ``three_phase`` it goes down to the first rate in as many steps as up, and then to the last. Each way is half a
    cosine, or a line (``anneal_strategy="linear"``). ``cycle_momentum`` moves the momentum the other way, from
    ``max_momentum``.
    """

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
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[OneCycleLR] schedules an Optimizer; received {type(optimizer).__name__}.")
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        start = real("OneCycleLR", "pct_start", pct_start, 0.0)
        if start > 1:
            raise ValueError(f"[OneCycleLR] pct_start lies in [0, 1]; received {pct_start!r}.")
        self._schedule_phases = _phases(float(start * self.total_steps) - 1, self.total_steps, three_phase)
        self._anneal_func_type = choice("OneCycleLR", "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self.cycle_momentum = cycle_momentum
        self.use_beta1 = uses_betas("OneCycleLR", optimizer) if cycle_momentum else False
        groups = optimizer.param_groups
        greatest = per_group("OneCycleLR", "max_lr", max_lr, len(groups))
        low = per_group("OneCycleLR", "base_momentum", base_momentum, len(groups))
        high = per_group("OneCycleLR", "max_momentum", max_momentum, len(groups))
        first, last = (
            real("OneCycleLR", name, value, 1e-300)
            for name, value in (("div_factor", div_factor), ("final_div_factor", final_div_factor))
        )
        if last_epoch == -1:
            for i, group in enumerate(groups):
                begin = greatest[i] / first
                group.update(initial_lr=begin, max_lr=greatest[i], min_lr=begin / last)
                if cycle_momentum:
                    set_momentum(group, high[i], base_momentum=low[i], max_momentum=high[i])
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.total_steps = whole("OneCycleLR", "total_steps", self.total_steps, 1)
        choice("OneCycleLR", "anneal_strategy", self._anneal_func_type, ("cos", "linear"))

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"[OneCycleLR] has {self.total_steps} steps; step() was called for step {step}.")
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
                set_momentum(group, momentum)
        return rates

    def _between(self, start: float, end: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def _total(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        return whole("OneCycleLR", "total_steps", total_steps, 1)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("[OneCycleLR] needs total_steps, or epochs and steps_per_epoch; received neither.")
    each = whole("OneCycleLR", "steps_per_epoch", steps_per_epoch, 1)
    return whole("OneCycleLR", "epochs", epochs, 1) * each


def _phases(top: float, total: int, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which values of the groups it goes."""
    rates = ["initial_lr", "max_lr", *(["initial_lr"] if three else []), "min_lr"]
    momenta = ["max_momentum", "base_momentum", *(["max_momentum"] if three else []), "max_momentum"]
    ends = [top, *([2 * top] if three else []), total - 1]
    return [
        {
            "end_step": end,
            "start_lr": rates[i],
            "end_lr": rates[i + 1],
            "start_momentum": momenta[i],
            "end_momentum": momenta[i + 1],
        }
        for i, end in enumerate(ends)
    ]
