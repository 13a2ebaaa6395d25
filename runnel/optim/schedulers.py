"""Learning rates that change from epoch to epoch: formulas of the epoch's number, set in the optimizer's groups."""

from __future__ import annotations

import math
from typing import Any

from runnel.optim.optimizer import Optimizer


class LRScheduler:
    """The base class: ``rate(base, epoch)`` gives the rate of a group that began with ``base``. Call ``step()`` once
    an epoch, after the optimizer's steps."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lrs = [float(group["lr"]) for group in optimizer.param_groups]
        self.last_epoch = 0
        self._set()

    def rate(self, base: float, epoch: int) -> float:
        """The learning rate in ``epoch``."""
        raise NotImplementedError

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = self.rate(base, self.last_epoch)

    def get_last_lr(self) -> list[float]:
        """The learning rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["base_lrs"]) != len(self.base_lrs):
            raise ValueError(f"[load_state_dict] has {len(self.base_lrs)} groups; received {len(state['base_lrs'])}.")
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._set()


class StepLR(LRScheduler):
    """Multiplied by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, epoch: int) -> float:
        return float(base * self.gamma ** (epoch // self.step_size))


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate down to ``eta_min`` in ``T_max`` epochs (I. Loshchilov, F. Hutter, 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer)

    def rate(self, base: float, epoch: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class LinearLR(LRScheduler):
    """A factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs: the usual warm-up."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        if not 0 < start_factor <= 1 or end_factor < 0 or total_iters < 1:
            raise ValueError("[LinearLR] needs 0 < start_factor <= 1, end_factor >= 0 and total_iters >= 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer)

    def rate(self, base: float, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)
