"""Gradients kept in bounds before the optimizer's step. Changes ``.grad``, returns what it measured."""

from __future__ import annotations

import math
from collections.abc import Iterable

from runnel import ops
from runnel.core.errors import GradientError
from runnel.nn.utils import rnn
from runnel.nn.utils.fusion import fuse_conv_bn
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

__all__ = ["clip_grad_norm_", "clip_grad_value_", "fuse_conv_bn", "rnn"]


def _with_gradients(parameters: Iterable[Variable] | Variable, name: str) -> list[tuple[Variable, Tensor]]:
    given = [parameters] if isinstance(parameters, Variable) else list(parameters)
    found = [(p, g) for p in given if (g := p.grad) is not None]
    if not found:
        raise GradientError(f"[{name}] none of the {len(given)} Parameters has a gradient; call backward() first.")
    return found


def clip_grad_norm_(parameters: Iterable[Variable] | Variable, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale all gradients so that their common norm is at most ``max_norm``; returns the norm they had."""
    pairs = _with_gradients(parameters, "clip_grad_norm_")
    if math.isinf(norm_type):
        total = ops.max(ops.stack([ops.max(ops.abs(g)) for _, g in pairs]))
    else:
        norms = [ops.norm(g, norm_type) for _, g in pairs]
        total = ops.norm(ops.stack(norms), norm_type)
    scale = ops.minimum(max_norm / (total + 1e-6), 1.0)
    for parameter, g in pairs:
        parameter.grad = g * ops.cast(scale, g.dtype)
    result: Tensor = total
    return result


def clip_grad_value_(parameters: Iterable[Variable] | Variable, clip_value: float) -> None:
    """Bring every element of the gradients into [-clip_value, clip_value]."""
    for parameter, g in _with_gradients(parameters, "clip_grad_value_"):
        parameter.grad = ops.clip(g, -clip_value, clip_value)
