"""Gradient clipping, for use before the optimizer's step. The functions change ``.grad``.
All Parameters as one vector, and back; and functions of PyTorch that need no work here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from runnel import ops
from runnel.core.errors import GradientError, ShapeError
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

Parameters = Iterable[Variable] | Variable


def _with_gradients(parameters: Parameters, name: str) -> list[tuple[Variable, Tensor]]:
    listed = [parameters] if isinstance(parameters, Variable) else list(parameters)
    pairs = [(p, g) for p in listed if (g := p.grad) is not None]
    if not pairs:
        raise GradientError(
            f"[{name}] at least one of the {len(listed)} Parameters must have a gradient; call backward() first."
        )
    return pairs


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all ``tensors`` as if they were one. ``foreach`` has no effect."""
    listed = [tensors] if isinstance(tensors, (Tensor, Variable)) else list(tensors)
    if not listed:
        raise ValueError("[get_total_norm] tensors must contain at least one tensor.")
    if math.isinf(norm_type):
        total = ops.max(ops.stack([ops.max(ops.abs(g)) for g in listed]))
    else:
        total = ops.norm(ops.stack([ops.norm(g, norm_type) for g in listed]), norm_type)
    if error_if_nonfinite and not bool(ops.isfinite(total)):
        raise GradientError(f"[get_total_norm] the norm of the gradients is {float(total)}.")
    result: Tensor = total
    return result


def clip_grads_with_norm_(
    parameters: Parameters, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale all gradients by max_norm / total_norm if that is less than 1. ``foreach`` has no effect."""
    scale = ops.minimum(max_norm / (total_norm + 1e-6), 1.0)
    for parameter, g in _with_gradients(parameters, "clip_grads_with_norm_"):
        parameter.grad = g * ops.cast(scale, g.dtype)


def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their common norm is at most ``max_norm``; return the norm they had.

    ``foreach`` has no effect.
    """
    with_gradients = [p for p, _ in _with_gradients(parameters, "clip_grad_norm_")]
    total = get_total_norm([p.grad for p in with_gradients], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(with_gradients, max_norm, total)
    return total


def clip_grad_value_(parameters: Parameters, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]. ``foreach`` has no effect."""
    for parameter, g in _with_gradients(parameters, "clip_grad_value_"):
        parameter.grad = ops.clip(g, -clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Variable]) -> Tensor:
    """Return the elements of all ``parameters``, one after the other."""
    result: Tensor = ops.concat([ops.reshape(p, (-1,)) for p in parameters])
    return result


def vector_to_parameters(vec: Any, parameters: Iterable[Variable]) -> None:
    """Assign the elements of a vector to ``parameters``, in their order."""
    listed = list(parameters)
    size = sum(p.size for p in listed)
    if vec.shape != (size,):
        raise ShapeError(
            f"[vector_to_parameters] vec must have shape ({size},) for {len(listed)} Parameters; got {vec.shape}."
        )
    at = 0
    for parameter in listed:
        part = ops.narrow(vec.read().without_tape(), 0, at, parameter.size)
        parameter.assign(ops.cast(ops.reshape(part, parameter.shape), parameter.dtype))
        at += parameter.size


def skip_init(module_cls: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)``, whose values will be loaded or set."""
    return module_cls(*args, **kwargs)


def unchanged(module: Any, memory_format: Any = None) -> Any:
    """Return ``module``, since each program decides how weights lie in memory."""
    return module
