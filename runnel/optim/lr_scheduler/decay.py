"""Schedulers whose rate is a function of the epoch: steps, lines, powers, cosines, and functions that you give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from runnel.optim.lr_scheduler.scheduler import COUNT, EPOCH, NOT_NEGATIVE, SHARE, LRScheduler
from runnel.optim.optimizer import Optimizer
from runnel.optim.settings import bounded, require

Functions = Callable[[int], float] | Sequence[Callable[[int], float]]


class _ByFunctions(LRScheduler):
    """Schedulers that call ``lr_lambda``, which is not part of the saved state."""

    not_saved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups or not all(map(callable, self.lr_lambdas)):
            raise TypeError(
                f"[{type(self).__name__}] lr_lambda must be a function, or one for each of {groups} groups; got "
                f"{lr_lambda!r}."
            )
        super().__init__(optimizer, last_epoch)


class LambdaLR(_ByFunctions):
    """Set lr = first lr · lr_lambda(epoch).

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: a function of the epoch, or one for each group.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Example:
        >>> scheduler = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    """

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """Multiply the previous lr by lr_lambda(epoch) in each epoch after the first.

    Args:
        optimizer: the optimizer whose learning rates are set.
        lr_lambda: a function of the epoch, or one for each group.
        last_epoch: the epoch to continue after; -1 starts a new schedule.
    """

    def get_lr(self) -> list[float]:
        now = self.get_last_lr()
        if self.last_epoch == 0:
            return now
        return [rate * f(self.last_epoch) for rate, f in zip(now, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Multiply lr by ``gamma`` every ``step_size`` epochs: f(t) = gamma^⌊t/step_size⌋.

    Args:
        optimizer: the optimizer whose learning rates are set.
        step_size: the number of epochs with the same rate.
        gamma: the factor.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Example:
        >>> scheduler = optim.StepLR(optimizer, step_size=30)  # lr/10 every 30 epochs
    """

    rules: ClassVar = {"step_size": COUNT, "gamma": NOT_NEGATIVE}

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


def _counts(value: Any) -> dict[int, int]:
    if not isinstance(value, Mapping):
        raise TypeError("be a dict from epoch to count")
    return {EPOCH(epoch): COUNT(times) for epoch, times in value.items()}


class MultiStepLR(LRScheduler):
    """Multiply lr by ``gamma`` at each of the epochs ``milestones``; at one that occurs twice, twice.

    Args:
        optimizer: the optimizer whose learning rates are set.
        milestones: epochs.
        gamma: the factor.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Attributes:
        milestones: how often each epoch occurs.
    """

    rules: ClassVar = {"milestones": _counts, "gamma": NOT_NEGATIVE}

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if not isinstance(milestones, Iterable) or isinstance(milestones, str):
            raise TypeError(f"[MultiStepLR] milestones must be a list of epochs; got {milestones!r}.")
        self.milestones = dict(Counter(require("MultiStepLR", "a milestone", m, EPOCH) for m in milestones))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma ** sum(times for m, times in self.milestones.items() if m <= epoch))


class ConstantLR(LRScheduler):
    """Multiply lr by ``factor`` for the first ``total_iters`` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        factor: the factor, in [0, 1].
        total_iters: the number of epochs.
        last_epoch: the epoch to continue after; -1 starts a new schedule.
    """

    rules: ClassVar = {"factor": SHARE, "total_iters": EPOCH}

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def multiplier(self, epoch: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


def _positive_share(value: Any) -> int | float:
    share: int | float = SHARE(value)
    if not share:
        raise ValueError("be positive")
    return share


class LinearLR(LRScheduler):
    """Multiply lr by a factor that changes linearly, as for warm-up.

    Args:
        optimizer: the optimizer whose learning rates are set.
        start_factor: the factor in the first epoch, in (0, 1].
        end_factor: the factor from epoch ``total_iters`` on, in [0, 1].
        total_iters: the number of epochs between them.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Example:
        >>> warmup = optim.LinearLR(optimizer, start_factor=0.01, total_iters=500)
    """

    rules: ClassVar = {"start_factor": _positive_share, "end_factor": SHARE, "total_iters": COUNT}

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

    def multiplier(self, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(LRScheduler):
    """Multiply lr by ``gamma`` in each epoch: f(t) = gammaᵗ.

    Args:
        optimizer: the optimizer whose learning rates are set.
        gamma: the factor.
        last_epoch: the epoch to continue after; -1 starts a new schedule.
    """

    rules: ClassVar = {"gamma": NOT_NEGATIVE}

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def multiplier(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class PolynomialLR(LRScheduler):
    """Decrease lr to 0 in ``total_iters`` epochs: f(t) = (1 - min(t, total_iters)/total_iters)^power.

    Args:
        optimizer: the optimizer whose learning rates are set.
        total_iters: the number of epochs.
        power: the exponent; 1 is a line.
        last_epoch: the epoch to continue after; -1 starts a new schedule.
    """

    rules: ClassVar = {"total_iters": COUNT, "power": NOT_NEGATIVE}

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def multiplier(self, epoch: int) -> float:
        return float((1 - min(epoch, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Follow half a cosine (I. Loshchilov, F. Hutter, "SGDR", 2016).

    lr = eta_min + (first lr - eta_min)·(1 + cos(π·t/T_max))/2, which increases again after ``T_max`` epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        T_max: the number of epochs from the first rate down to ``eta_min``.
        eta_min: the smallest rate.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Example:
        >>> scheduler = optim.CosineAnnealingLR(optimizer, T_max=epochs)
    """

    rules: ClassVar = {"T_max": COUNT, "eta_min": NOT_NEGATIVE}

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    @property
    def floor(self) -> float:
        return self.eta_min

    def multiplier(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Follow half a cosine, and start again after T_0, T_0·T_mult, T_0·T_mult², … epochs (SGDR, 2016).

    lr = eta_min + (first lr - eta_min)·(1 + cos(π·T_cur/T_i))/2. ``step(epoch)`` also accepts fractions of epochs.

    Args:
        optimizer: the optimizer whose learning rates are set.
        T_0: the length of the first cycle in epochs.
        T_mult: the factor by which each cycle is longer than the one before it.
        eta_min: the smallest rate.
        last_epoch: the epoch to continue after; -1 starts a new schedule.

    Attributes:
        T_i: the length of the current cycle.
        T_cur: the epochs since it started.
    """

    rules: ClassVar = {"T_0": COUNT, "T_i": COUNT, "T_mult": COUNT, "eta_min": NOT_NEGATIVE, "T_cur": bounded(-1)}

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        if epoch is None:
            self.advance()
        else:
            self.jump(float(require("CosineAnnealingWarmRestarts", "epoch", epoch, NOT_NEGATIVE)))

    def advance(self) -> None:
        self.last_epoch += 1
        self._go_to(self.T_cur + 1)

    def jump(self, epoch: float) -> None:
        self.last_epoch, self.T_i = math.floor(epoch), self.T_0
        self._go_to(epoch % self.T_0 if self.T_mult == 1 else epoch)

    def _go_to(self, epochs: float) -> None:
        """Set the rates so many epochs after the start of a cycle of ``T_i`` epochs."""
        while epochs >= self.T_i:
            epochs -= self.T_i
            self.T_i *= self.T_mult
        self.T_cur = epochs
        self.set_rates(self.get_lr())

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
