"""Rates given by functions of the epoch's number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer

Functions = Callable[[int], float] | Sequence[Callable[[int], float]]


class _ByFunctions(LRScheduler):
    """``lr_lambda`` is a function of the epoch's number, or one for each group. It is no part of the saved state."""

    not_saved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups or not all(map(callable, self.lr_lambdas)):
            raise TypeError(
                f"[{type(self).__name__}] lr_lambda is a function, or one for each of {groups} groups; received "
                f"{lr_lambda!r}."
            )
        super().__init__(optimizer, last_epoch)

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        return [*super().functions(), *((f, (self.last_epoch + 1,)) for f in self.lr_lambdas)]


class LambdaLR(_ByFunctions):
    """lr = first lr · lr_lambda(epoch)."""

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """lr = lr of the epoch before · lr_lambda(epoch); the first is that of the group."""

    def get_lr(self) -> list[float]:
        now = self.get_last_lr()
        if self.last_epoch == 0:
            return now
        return [rate * f(self.last_epoch) for rate, f in zip(now, self.lr_lambdas, strict=True)]
