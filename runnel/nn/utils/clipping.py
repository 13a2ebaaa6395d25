"""Gradient clipping, for use before the optimizer's step. The functions change ``.grad``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from runnel import ops
from runnel.core.errors import GradientError
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

Parameters = Iterable[Variable] | Variable


def _with_gradients(parameters: Parameters, name: str) -> list[tuple[Variable, Tensor]]:
    listed = [parameters] if isinstance(parameters, Variable) else list(parameters)
    pairs = [(p, g) for p in listed if (g := p.grad) is not None]
    if not pairs:
        raise GradientError(f"[{name}] none of the {len(listed)} Parameters has a gradient; call backward() first.")
    return pairs


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all ``tensors`` as if they were one. ``foreach`` has no effect."""
    listed = [tensors] if isinstance(tensors, (Tensor, Variable)) else list(tensors)
    if not listed:
        raise ValueError("[get_total_norm] there is no norm of no tensors.")
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
