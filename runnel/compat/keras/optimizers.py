"""Optimizers under Keras's names and with its defaults; they get their Parameters when the model is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import optim
from runnel.core.errors import ArgumentError


class Optimizer:
    """An optimizer of ``rn.optim`` to be built later. ``clipnorm`` and ``clipvalue`` limit gradients."""

    def __init__(
        self,
        make: Callable[..., Any],
        learning_rate: float,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        **options: Any,
    ) -> None:
        self._make, self._first_rate, self._options = make, learning_rate, options
        self.clipnorm, self.clipvalue = clipnorm, clipvalue
        self._optimizer: Any = None

    def build(self, parameters: Any) -> Any:
        """Make the optimizer of these Parameters."""
        self._optimizer = self._make(parameters, lr=self._first_rate, **self._options)
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """Current learning rate, which you can set."""
        return self._first_rate if self._optimizer is None else float(self._optimizer.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._first_rate = float(rate)
        if self._optimizer is not None:
            for group in self._optimizer.param_groups:
                group["lr"] = self._first_rate


def SGD(learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False, **clip: Any) -> Optimizer:
    return Optimizer(optim.SGD, learning_rate, momentum=momentum, nesterov=nesterov, **clip)


def Adam(
    learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **clip: Any
) -> Optimizer:
    return Optimizer(optim.Adam, learning_rate, betas=(beta_1, beta_2), eps=epsilon, **clip)


def AdamW(
    learning_rate: float = 0.001,
    weight_decay: float = 0.004,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-7,
    **clip: Any,
) -> Optimizer:
    betas = (beta_1, beta_2)
    return Optimizer(optim.AdamW, learning_rate, betas=betas, eps=epsilon, weight_decay=weight_decay, **clip)


def RMSprop(
    learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7, **clip: Any
) -> Optimizer:
    return Optimizer(optim.RMSprop, learning_rate, alpha=rho, momentum=momentum, eps=epsilon, **clip)


def Adagrad(learning_rate: float = 0.001, epsilon: float = 1e-7, **clip: Any) -> Optimizer:
    return Optimizer(optim.Adagrad, learning_rate, initial_accumulator_value=0.1, eps=epsilon, **clip)


BY_NAME: dict[str, Callable[[], Optimizer]] = {
    "sgd": SGD, "adam": Adam, "adamw": AdamW, "rmsprop": RMSprop, "adagrad": Adagrad,
}  # fmt: skip


def get(optimizer: Any) -> Optimizer:
    """Return an optimizer by its name; an optimizer of this module is returned unchanged."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    if not isinstance(optimizer, str) or optimizer.lower() not in BY_NAME:
        raise ArgumentError(
            f"[compile] optimizer must be one of keras.optimizers, or {', '.join(BY_NAME)}; got {optimizer!r}."
        )
    return BY_NAME[optimizer.lower()]()
