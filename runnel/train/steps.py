"""The compiled functions of a Trainer: a step of training is one program, of forward, backward and update."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from runnel import ops
from runnel.compile.compiled import compile
from runnel.core.errors import ArgumentError
from runnel.core.pytree import flatten, unflatten
from runnel.core.showing import short_repr
from runnel.nn.module import Module
from runnel.nn.utils.clipping import clip_grad_norm_, clip_grad_value_
from runnel.optim.optimizer import Optimizer
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.tensor import Tensor

Loss = Callable[[Any, Any], Any]


class Steps:
    """The functions of a training.

    ``train(inputs, target)`` is a whole step. With accumulation ``backward(inputs, target, share)`` adds to the
    gradients those of ``share · loss``, and ``update()`` makes the step. All give the loss and the model's output, None
    if nobody asks for it. ``evaluate`` changes nothing, and ``predict`` needs no target.
    """

    def __init__(
        self,
        model: Module,
        loss: Loss,
        optimizer: Optimizer,
        clip_norm: float | None,
        clip_value: float | None,
        has_output: bool,
        compiled: bool,
    ) -> None:
        self._arguments = model, loss, optimizer, clip_norm, clip_value, has_output, compiled
        clip = _clipping(optimizer, clip_norm, clip_value)
        loss = _one_number(loss)

        def train(inputs: tuple[Any, ...], target: Any) -> tuple[Tensor, Any]:
            optimizer.zero_grad()
            output = model(*inputs)
            value = loss(output, target)
            value.backward()
            clip()
            optimizer.step()
            return value.detach(), detached(output) if has_output else None

        def backward(inputs: tuple[Any, ...], target: Any, share: float) -> tuple[Tensor, Any]:
            output = model(*inputs)
            value = loss(output, target)
            ops.multiply(value, share).backward()
            return value.detach(), detached(output) if has_output else None

        def update() -> None:
            clip()
            optimizer.step()

        def evaluate(inputs: tuple[Any, ...], target: Any) -> tuple[Tensor, Any]:
            with no_grad():
                output = model(*inputs)
                return loss(output, target), output if has_output else None

        def predict(inputs: tuple[Any, ...]) -> Any:
            with no_grad():
                return model(*inputs)

        wrap: Callable[[Any], Any] = compile if compiled else _as_it_is
        self.train, self.backward, self.update = wrap(train), wrap(backward), wrap(update)
        self.evaluate, self.predict = wrap(evaluate), wrap(predict)

    def __reduce__(self) -> tuple[type[Steps], tuple[Any, ...]]:
        return Steps, self._arguments  # copies have functions of their own, which train the copy of the model


def _as_it_is(function: Any) -> Any:
    return function


def _one_number(loss: Loss) -> Loss:
    """The loss, where it gives one; ArgumentError for one of each sample."""

    def checked(output: Any, target: Any) -> Any:
        value = loss(output, target)
        shape = getattr(value, "shape", None)
        if shape is None or math.prod(shape) != 1:
            what = short_repr(value) if shape is None else f"a tensor of shape {shape}"
            raise ArgumentError(
                f"[Trainer] the loss gives one number for a batch; received {what}. Take its mean (reduction='mean')."
            )
        return value

    return checked


def _clipping(optimizer: Optimizer, clip_norm: float | None, clip_value: float | None) -> Callable[[], None]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def clip() -> None:
        if clip_value is not None:
            clip_grad_value_(parameters, clip_value)
        if clip_norm is not None:
            clip_grad_norm_(parameters, clip_norm)

    return clip


def detached(output: Any) -> Any:
    """The same structure with tensors that have no tape."""
    leaves, structure = flatten(output)
    return unflatten(structure, [leaf.detach() if isinstance(leaf, Tensor) else leaf for leaf in leaves])
