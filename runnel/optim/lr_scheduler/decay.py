"""Rates that go down, or up, by factors of the epoch's number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from runnel.optim.lr_scheduler.arguments import real, whole
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplied by ``gamma`` every ``step_size`` epochs: f(t) = gamma^⌊t/step_size⌋."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.step_size = whole("StepLR", "step_size", self.step_size, 1)
        self.gamma = real("StepLR", "gamma", self.gamma, 0.0)

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Multiplied by ``gamma`` at each of the epochs ``milestones``; at one that is named twice, twice.

    Attributes:
        milestones: how often each epoch was named.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones: dict[int, int] = self._counted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _counted(self, milestones: Any) -> dict[int, int]:
        if not isinstance(milestones, Iterable) or isinstance(milestones, str):
            raise TypeError(f"[MultiStepLR] milestones are epochs; received {milestones!r}.")
        return dict(Counter(whole("MultiStepLR", "a milestone", m, 0) for m in milestones))

    def check(self) -> None:
        self.gamma = real("MultiStepLR", "gamma", self.gamma, 0.0)
        if not isinstance(self.milestones, Mapping):
            raise TypeError(f"[MultiStepLR] milestones say how often each epoch is one; received {self.milestones!r}.")
        self.milestones = {
            whole("MultiStepLR", "a milestone", m, 0): whole("MultiStepLR", "how often", times, 1)
            for m, times in self.milestones.items()
        }

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma ** sum(times for m, times in self.milestones.items() if m <= epoch))


class ConstantLR(LRScheduler):
    """Multiplied by ``factor``, at most 1, for the first ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.factor = real("ConstantLR", "factor", self.factor, 0.0)
        self.total_iters = whole("ConstantLR", "total_iters", self.total_iters, 0)
        if self.factor > 1:
            raise ValueError(f"[ConstantLR] factor lies in [0, 1]; received {self.factor}.")

    def multiplier(self, epoch: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """A factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs: the usual warm-up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.start_factor = real("LinearLR", "start_factor", self.start_factor, 0.0)
        self.end_factor = real("LinearLR", "end_factor", self.end_factor, 0.0)
        self.total_iters = whole("LinearLR", "total_iters", self.total_iters, 1)
        if not 0 < self.start_factor <= 1:
            raise ValueError(f"[LinearLR] start_factor lies in (0, 1]; received {self.start_factor}.")
        if self.end_factor > 1:
            raise ValueError(f"[LinearLR] end_factor lies in [0, 1]; received {self.end_factor}.")

    def multiplier(self, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(LRScheduler):
    """Multiplied by ``gamma`` in each epoch: f(t) = gammaᵗ."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.gamma = real("ExponentialLR", "gamma", self.gamma, 0.0)

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class PolynomialLR(LRScheduler):
    """Down to 0 in ``total_iters`` epochs: f(t) = (1 - min(t, total_iters)/total_iters)^power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.total_iters = whole("PolynomialLR", "total_iters", self.total_iters, 1)
        self.power = real("PolynomialLR", "power", self.power, 0.0)

    def multiplier(self, epoch: int) -> float:
        return float((1 - min(epoch, self.total_iters) / self.total_iters) ** self.power)
