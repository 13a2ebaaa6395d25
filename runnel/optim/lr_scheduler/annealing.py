"""Rates that follow a cosine (I. Loshchilov, F. Hutter, "SGDR", 2016)."""

from __future__ import annotations

import math

from runnel.optim.lr_scheduler.arguments import real, whole
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (first lr - eta_min)·(1 + cos(π·t/T_max))/2: down in ``T_max`` epochs, and then up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.T_max = whole("CosineAnnealingLR", "T_max", self.T_max, 1)
        self.eta_min = real("CosineAnnealingLR", "eta_min", self.eta_min, 0.0)

    @property
    def floor(self) -> float:
        return self.eta_min

    def multiplier(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """lr = eta_min + (first lr - eta_min)·(1 + cos(π·T_cur/T_i))/2, begun anew after T_i = T_0, T_0·T_mult,
    T_0·T_mult², … epochs. ``step(epoch)`` takes fractions of epochs, too.

    Attributes:
        T_i: the length of the present run.
        T_cur: the epochs since it began.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        name = "CosineAnnealingWarmRestarts"
        self.T_0 = whole(name, "T_0", self.T_0, 1)
        self.T_i = whole(name, "T_i", self.T_i, 1)
        self.T_mult = whole(name, "T_mult", self.T_mult, 1)
        self.eta_min = real(name, "eta_min", self.eta_min, 0.0)
        self.T_cur = real(name, "T_cur", self.T_cur, -1)

    def step(self, epoch: float | None = None) -> None:
        if epoch is None:
            self.advance()
        else:
            self._go_to(float(real("CosineAnnealingWarmRestarts", "epoch", epoch, 0)))

    def advance(self) -> None:
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self.last_epoch += 1
        self.set_rates(self.get_lr())

    def jump(self, epoch: int) -> None:
        self._go_to(epoch)

    def _go_to(self, epoch: float) -> None:
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur %= self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self.set_rates(self.get_lr())

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
