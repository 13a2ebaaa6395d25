"""Averages of a model over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from runnel import ops
from runnel.nn.module import Module
from runnel.nn.normalization import BatchNorm
from runnel.optim.lr_scheduler.scheduler import ANNEALING, EPOCH, LRScheduler, per_group
from runnel.optim.optimizer import Optimizer
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable, assign_together

Average = Callable[[Any, Any, Any], Any]
AverageAll = Callable[[Sequence[Variable], Sequence[Tensor], Any], None]


class AveragedModel(Module):
    """A copy of a model whose Parameters are averages of the model's Parameters over training.

    By default all models count alike (stochastic weight averaging: P. Izmailov et al., 2018). For exponential moving
    averages (D. Ruppert, 1988; B. Polyak, A. Juditsky, 1992) pass ``multi_avg_fn=get_ema_multi_avg_fn(decay)``.

    Args:
        model: the model to copy.
        device: has no effect; the copy is on the device of the model.
        avg_fn: ``avg_fn(average, new, n)`` returns the next average, given the average of n models.
        multi_avg_fn: ``multi_avg_fn(averages, new, n)`` changes a list of Variables; instead of ``avg_fn``.
        use_buffers: average the buffers too, instead of copying them.

    Attributes:
        module: the copy.
        n_averaged: a buffer, how many models were averaged.

    Example:
        >>> average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.99))
        >>> for x, y in loader:
        ...     train_step(x, y)
        ...     average.update_parameters(model)
    """

    n_averaged: Variable

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"[AveragedModel] model must be a Module; got {type(model).__name__}.")
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("[AveragedModel] must get avg_fn or multi_avg_fn; got both.")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", np.zeros((), np.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the present Parameters of ``model`` to the average. The first call copies them."""
        averages: list[Variable] = [*self.module.parameters()]
        new: list[Variable] = [*model.parameters()]
        buffers, new_buffers = list(self.module.buffers()), list(model.buffers())
        shapes, theirs = ([v.shape for v in vs] for vs in ([*averages, *buffers], [*new, *new_buffers]))
        if shapes != theirs:
            raise ValueError(f"[AveragedModel] Parameters and buffers must have the shapes {shapes}; got {theirs}.")
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
    """Return (average, new, n) → average + (new - average)/(n + 1), in which all models count alike."""

    def average_of_all(average: Any, new: Any, count: Any) -> Any:
        return average + (new - average) / ops.cast(count + 1, average.dtype)

    return average_of_all


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return (average, new, n) → decay·average + (1 - decay)·new."""
    if not 0 <= decay <= 1:
        raise ValueError(f"[get_ema_avg_fn] decay must be in [0, 1]; got {decay!r}.")

    def moving_average(average: Any, new: Any, count: Any) -> Any:
        return average * decay + new * (1 - decay)

    return moving_average


def get_swa_multi_avg_fn() -> AverageAll:
    """Return the formula of :func:`get_swa_avg_fn` for a list of Variables."""
    return _for_all(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """Return the formula of :func:`get_ema_avg_fn` for a list of Variables."""
    return _for_all(get_ema_avg_fn(decay))


def _for_all(formula: Average) -> AverageAll:
    def update(averages: Sequence[Variable], new: Sequence[Tensor], count: Any) -> None:
        for average, value in zip(averages, new, strict=True):
            average.assign(ops.cast(formula(average.value, value, count), average.dtype))

    return update


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalizations in ``model`` as averages over ``loader``.

    Args:
        loader: batches; if a batch is a list or tuple, its first item is the input.
        model: the model, for example an :class:`AveragedModel`, whose statistics do not fit its Parameters.
        device: has no effect.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, BatchNorm) and layer.running_mean is not None]
    if not layers:
        return
    training, momenta = {m: m.training for m in model.modules()}, [layer.momentum for layer in layers]
    for layer in layers:
        for buffer, value in ((layer.running_mean, 0.0), (layer.running_var, 1.0), (layer.num_batches_tracked, 0)):
            if buffer is not None:
                buffer.assign(np.full(buffer.shape, value, buffer.dtype.numpy))
        layer.momentum = None
    model.train()
    try:
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, list | tuple) else batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, was in training.items():
            module.training = was


class SWALR(LRScheduler):
    """Move each rate to ``swa_lr`` in ``anneal_epochs`` epochs; then keep it constant (P. Izmailov et al., 2018).

    lr = swa_lr·α(t) + l·(1 - α(t)), with α(t) = (1 - cos(π·t/anneal_epochs))/2 or t/anneal_epochs, and l the rate from
    which α(t - 1) led to the present one: other schedulers may change it before.

    Args:
        optimizer: the optimizer whose learning rates are set.
        swa_lr: the last rate, or one for each group.
        anneal_epochs: the number of epochs until then.
        anneal_strategy: "cos" or "linear".
        last_epoch: the epoch to continue after; -1 starts a new schedule.
    """

    rules: ClassVar = {"anneal_epochs": EPOCH, "_anneal_strategy": ANNEALING}

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

    def get_lr(self) -> list[float]:
        before, now = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        rates = []
        for group in self.optimizer.param_groups:
            rate, target = group.plain["lr"], group.plain["swa_lr"]
            origin = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + origin * (1 - now))
        return rates

    def _share(self, epoch: int) -> float:
        """Return how far the rates have moved in ``epoch``, from 0 to 1."""
        if self.anneal_epochs == 0:
            return 1.0 if epoch >= 0 else 0.0
        done = max(0.0, min(1.0, epoch / self.anneal_epochs))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2
