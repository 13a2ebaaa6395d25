"""A model whose Parameters are averages over training.

Stochastic weight averaging (P. Izmailov et al., 2018); exponential moving averages (D. Ruppert, 1988; B. Polyak, A.
Juditsky, 1992).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.nn.module import Module
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable, assign_together

Average = Callable[[Any, Any, Any], Any]


class AveragedModel(Module):
    """A copy of ``model`` whose Parameters are averages of the model's: each ``update_parameters(model)`` adds one.

    ``avg_fn(average, new, n)`` gives the next average, n being how many it is of; by default all count alike:
    average + (new - average)/(n + 1). ``multi_avg_fn(averages, new, n)`` changes a list of Variables. Buffers are
    averaged with ``use_buffers``, and else copied. The first call copies.

    Attributes:
        module: the copy.
        n_averaged: a buffer, how many models were averaged.
    """

    n_averaged: Variable

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[[Sequence[Variable], Sequence[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"[AveragedModel] averages a Module; received {type(model).__name__}.")
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("[AveragedModel] takes avg_fn or multi_avg_fn, and received both.")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", np.zeros((), np.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the present Parameters of ``model`` to the average."""
        averages: list[Variable] = [*self.module.parameters()]
        new: list[Variable] = [*model.parameters()]
        buffers, new_buffers = list(self.module.buffers()), list(model.buffers())
        shapes, theirs = ([v.shape for v in vs] for vs in ([*averages, *buffers], [*new, *new_buffers]))
        if shapes != theirs:
            raise ValueError(
                f"[AveragedModel] averages a model whose Parameters and buffers have the shapes {shapes}; "
                f"received {theirs}."
            )
        if self.use_buffers:
            averages, new = averages + buffers, new + new_buffers
        else:
            assign_together([(b, n.value) for b, n in zip(buffers, new_buffers, strict=True)])
        values = [v.value for v in new]
        count = self.n_averaged.value
        with no_grad():
            if self.multi_avg_fn is None:
                formula = self.avg_fn or get_swa_avg_fn()
                pairs = list(zip(averages, values, strict=True))
                assign_together([(a, _next(formula, a.value, v, count)) for a, v in pairs])
            else:
                self.multi_avg_fn(averages, values, count)
                pairs = list(zip(averages, values, strict=True))
                assign_together([(a, ops.where(count == 0, v, a.value)) for a, v in pairs])
        self.n_averaged.assign(count + 1)


def _next(formula: Average, average: Tensor, new: Tensor, count: Tensor) -> Tensor:
    result: Tensor = ops.cast(ops.where(count == 0, new, formula(average, new, count)), average.dtype)
    return result


def get_swa_avg_fn() -> Average:
    """(average, new, n) → average + (new - average)/(n + 1): all count alike."""

    def average_of_all(average: Any, new: Any, count: Any) -> Any:
        return average + (new - average) / ops.cast(count + 1, average.dtype)

    return average_of_all


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """(average, new, n) → decay·average + (1 - decay)·new."""
    _require_share(decay)

    def moving_average(average: Any, new: Any, count: Any) -> Any:
        return average * decay + new * (1 - decay)

    return moving_average


def get_swa_multi_avg_fn() -> Callable[[Sequence[Variable], Sequence[Tensor], Any], None]:
    """The formula of :func:`get_swa_avg_fn`, for a list of Variables."""
    return _for_all(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Sequence[Variable], Sequence[Tensor], Any], None]:
    """The formula of :func:`get_ema_avg_fn`, for a list of Variables."""
    return _for_all(get_ema_avg_fn(decay))


def _for_all(formula: Average) -> Callable[[Sequence[Variable], Sequence[Tensor], Any], None]:
    def update(averages: Sequence[Variable], new: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, new, strict=True):
            average.assign(ops.cast(formula(average.value, value, count), average.dtype))

    return update


def _require_share(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"[get_ema_avg_fn] decay lies in [0, 1]; received {decay!r}.")
