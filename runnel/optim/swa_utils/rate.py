"""The rate that goes with averages of Parameters (P. Izmailov et al., 2018)."""

from __future__ import annotations

import math

from runnel.optim.lr_scheduler.arguments import choice, per_group, whole
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer


class SWALR(LRScheduler):
    """From each group's rate to ``swa_lr`` in ``anneal_epochs`` epochs, along half a cosine or a line; then constant.

    With α(t) = (1 - cos(π·t/anneal_epochs))/2 or t/anneal_epochs, lr = swa_lr·α(t) + l·(1 - α(t)), and l the rate from
    which α(t - 1) led to the present one: other schedules may change it before.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        self.anneal_epochs = anneal_epochs
        self._anneal_strategy = anneal_strategy
        self.check()
        if isinstance(optimizer, Optimizer):
            rates = per_group("SWALR", "swa_lr", swa_lr, len(optimizer.param_groups))
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def check(self) -> None:
        self.anneal_epochs = whole("SWALR", "anneal_epochs", self.anneal_epochs, 0)
        choice("SWALR", "anneal_strategy", self._anneal_strategy, ("cos", "linear"))

    def get_lr(self) -> list[float]:
        before, now = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        rates = []
        for group in self.optimizer.param_groups:
            rate, target = group.plain["lr"], group.plain["swa_lr"]
            origin = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + origin * (1 - now))
        return rates

    def _share(self, epoch: int) -> float:
        """How far the rates have gone in ``epoch``: from 0 to 1."""
        if self.anneal_epochs == 0:
            return 1.0 if epoch >= 0 else 0.0
        done = max(0.0, min(1.0, epoch / self.anneal_epochs))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2
