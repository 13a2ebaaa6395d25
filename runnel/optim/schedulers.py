"""Learning rates that change from epoch to epoch: formulas of the epoch's number, set in the optimizer's groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

from runnel.optim.hyperparameters import number
from runnel.optim.optimizer import Optimizer
from runnel.optim.state import refusal, require_keys


class LRScheduler:
    """The base class: ``rate(base, epoch)`` gives the rate of a group that began with ``base``. Call ``step()`` once
    an epoch, after the optimizer's steps.

    All its attributes but the optimizer are its state.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[{type(self).__name__}] schedules an Optimizer; received {type(optimizer).__name__}.")
        self.optimizer = optimizer
        self.base_lrs = [float(group["lr"]) for group in optimizer.param_groups]
        self.last_epoch = 0
        self.check()
        self._set(self._rates())

    def rate(self, base: float, epoch: int) -> float:
        """The learning rate in ``epoch``."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no rate(self, base, epoch): the learning rate.")

    def check(self) -> None:
        """Raise TypeError or ValueError for attributes that make no sense. Called when they are set, by the constructor
        and by ``load_state_dict``."""

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        self._set(self._rates())

    def _rates(self) -> list[float]:
        return [self.rate(base, self.last_epoch) for base in self.base_lrs]

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The learning rates in force, one for each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The attributes but for the optimizer, and the rates in force."""
        kept = {name: _own(value) for name, value in self.__dict__.items() if name != "optimizer"}
        return {**kept, "_last_lr": self.get_last_lr()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, and set the rates that were in force then. StateError if it is not the
        state of such a scheduler; then nothing has changed."""
        name = type(self).__name__
        require_keys(f"the state of {name}", state, self.state_dict())
        groups = len(self.optimizer.param_groups)
        for rates in ("base_lrs", "_last_lr"):
            if not isinstance(state[rates], list | tuple) or len(state[rates]) != groups:
                raise refusal(
                    f'"{rates}" of {name} has a number for each of {groups} groups; received {state[rates]!r}'
                )
        loaded = copy(self)
        loaded.__dict__.update({key: _own(value) for key, value in state.items() if key != "_last_lr"})
        try:
            epoch = whole(name, "last_epoch", state["last_epoch"], 0)
            loaded.base_lrs = [_rate(name, rate) for rate in state["base_lrs"]]
            in_force = [_rate(name, rate) for rate in state["_last_lr"]]
            loaded.check()
        except (TypeError, ValueError) as error:
            raise refusal(str(error).rstrip(".")) from error
        loaded.last_epoch = epoch
        self.__dict__.update(loaded.__dict__)
        self._set(in_force)


class StepLR(LRScheduler):
    """Multiplied by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer)

    def check(self) -> None:
        self.step_size = whole("StepLR", "step_size", self.step_size, 1)
        self.gamma = real("StepLR", "gamma", self.gamma, 0.0)

    def rate(self, base: float, epoch: int) -> float:
        return float(base * self.gamma ** (epoch // self.step_size))


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate down to ``eta_min`` in ``T_max`` epochs (I. Loshchilov, F. Hutter, 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer)

    def check(self) -> None:
        self.T_max = whole("CosineAnnealingLR", "T_max", self.T_max, 1)
        self.eta_min = real("CosineAnnealingLR", "eta_min", self.eta_min, 0.0)

    def rate(self, base: float, epoch: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class LinearLR(LRScheduler):
    """A factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters`` epochs: the usual warm-up."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer)

    def check(self) -> None:
        self.start_factor = real("LinearLR", "start_factor", self.start_factor, 0.0)
        self.end_factor = real("LinearLR", "end_factor", self.end_factor, 0.0)
        self.total_iters = whole("LinearLR", "total_iters", self.total_iters, 1)
        if not 0 < self.start_factor <= 1:
            raise ValueError(f"[LinearLR] start_factor lies in (0, 1]; received {self.start_factor}.")

    def rate(self, base: float, epoch: int) -> float:
        done = min(epoch, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


def whole(owner: str, name: str, value: Any, least: int) -> int:
    """``value`` as an int of at least ``least``, or TypeError or ValueError."""
    plain = real(owner, name, value, least)
    if plain != int(plain):
        raise ValueError(f"[{owner}] {name} is a whole number; received {value!r}.")
    return int(plain)


def real(owner: str, name: str, value: Any, least: float) -> int | float:
    """``value`` as a finite number of at least ``least``, or TypeError or ValueError."""
    try:
        plain = number(value)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"[{owner}] {name} {wrong}; received {value!r}.") from None
    if plain < least:
        raise ValueError(f"[{owner}] {name} is at least {least}; received {value!r}.")
    return plain


def _rate(owner: str, value: Any) -> float:
    return float(real(owner, "a learning rate", value, 0.0))


def _own(value: Any) -> Any:
    """A list of its own, so that a state does not change with the scheduler."""
    return list(value) if isinstance(value, list) else value
