"""The training and evaluation steps of a Trainer, and the search for the source of a NaN or infinity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from runnel import ops
from runnel.compile.compiled import compile
from runnel.core import switches
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, NonFiniteError
from runnel.core.pytree import flatten, unflatten
from runnel.nn.module import Module
from runnel.nn.utils.parameters import clip_grad_norm_, clip_grad_value_
from runnel.optim.optimizer import Optimizer
from runnel.tensor.grad_mode import no_grad
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.train.batches import Batch
from runnel.uneven.value import Ragged

Loss = Callable[[Any, Any], Any]


class Steps:
    """The functions of a training run.

    ``train(inputs, target)`` is a whole step. With accumulation, ``backward(inputs, target, share)`` adds the gradients
    of ``share · loss``, and ``update()`` takes the step. They return the loss and the model's output, or None if it is
    not needed. ``evaluate`` changes nothing, and ``predict`` needs no target.
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
            return value.without_tape(), detached(output) if has_output else None

        def backward(inputs: tuple[Any, ...], target: Any, share: float) -> tuple[Tensor, Any]:
            output = model(*inputs)
            value = loss(output, target)
            ops.multiply(value, share).backward()
            return value.without_tape(), detached(output) if has_output else None

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
        return Steps, self._arguments  # the functions of a copy train the copied model


def _as_it_is(function: Any) -> Any:
    return function


def _one_number(loss: Loss) -> Loss:
    """Check that the loss returns one number; ArgumentError if not."""

    def checked(output: Any, target: Any) -> Any:
        value = loss(output, target)
        shape = getattr(value, "shape", None)
        if shape is None or math.prod(shape) != 1:
            what = short_repr(value) if shape is None else f"a tensor of shape {shape}"
            raise ArgumentError(
                f"[Trainer] loss must return one number for a batch; got {what}. Take its mean (reduction='mean')."
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
    """Return the same structure with tensors without a tape."""
    leaves, structure = flatten(output)
    return unflatten(structure, [leaf.without_tape() if isinstance(leaf, Tensor) else leaf for leaf in leaves])


def is_finite(value: Any) -> bool:
    """Return True if all numbers of an array are finite."""
    array = value.numpy()
    if array.dtype.kind in "biu":
        return True
    return bool(np.isfinite(array if array.dtype.kind in "fc" else array.astype(np.float64)).all())


def parameters_that_are_not(model: Module) -> list[str]:
    """Return the paths of the Parameters that contain NaN or infinity."""
    return [path for path, parameter in model.named_parameters() if not is_finite(parameter)]


def traced_back(batches: Iterable[Batch], again: Callable[[], Any], where: str) -> NonFiniteError:
    """Return the error for a step that made a NaN or an infinity.

    ``again`` repeats the step from the same state, op by op.
    """
    for batch in batches:
        for what, value in (("input", batch.inputs), ("target", batch.target)):
            place = _not_finite_in(value, what)
            if place:
                return NonFiniteError(f"[Trainer] {place} of {where} contains a NaN or an infinity.")
    try:
        with switches.override(check_nans=True):
            again()
    except NonFiniteError as error:
        error.args = (f"{error} That was in {where}, repeated op by op; the state is from before the step.",)
        return error
    return NonFiniteError(
        f"[Trainer] {where} made a NaN or an infinity, but not when it was repeated op by op; the state is from "
        "before the step. The loss reads something that changes from call to call."
    )


def _not_finite_in(value: Any, path: str) -> str:
    """Return the place of the first NaN or infinity in nested inputs; '' if there is none."""
    if isinstance(value, Ragged):
        return _not_finite_in(value.values, f"{path}.values")
    if isinstance(value, ArrayMethods):
        return "" if is_finite(value) else path
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    return next((place for key, item in items if (place := _not_finite_in(item, f"{path}[{key!r}]"))), "")
