"""The order of axes in which residuals are stored: the one of both programs, so that neither copies them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from runnel.core.avals import aval
from runnel.core.dispatch import apply
from runnel.graph.extract import placeholder
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Value, applied
from runnel.graph.rewriting import copied
from runnel.ops.convolution import convolution_input_gradient_p, convolution_p, convolution_weight_gradient_p
from runnel.ops.views import permute_p
from runnel.tensor.tensor import Tensor

_CONVOLUTIONS: Final = frozenset({convolution_p, convolution_input_gradient_p, convolution_weight_gradient_p})


def stored_layouts(outputs: Sequence[Value], residuals: Sequence[Value]) -> dict[Value, Value]:
    """What is stored for some of ``residuals``, which backward graphs of these ``outputs`` read: beside convolutions,
    which compute channels-last, images with their channels last."""
    ranks = {value.aval.ndim for value in topological(outputs) if value.op in _CONVOLUTIONS}
    return {x: _permuted(x, (0, *range(2, x.aval.ndim), 1)) for x in residuals if x.aval.ndim in ranks}


def unstored(inputs: Sequence[Value], outputs: Sequence[Value], stored: dict[Value, Value]) -> Graph:
    """The graph that computes ``outputs`` from ``inputs``, some of which are given as they are ``stored``."""
    placeholders = [placeholder(stored.get(x, x).aval, x.name) for x in inputs]
    fresh: dict[Value, Value] = {
        x: _permuted(x_stored, _back(x.aval.ndim)) if x in stored else x_stored
        for x, x_stored in zip(inputs, placeholders, strict=True)
    }
    known = copied(outputs, fresh)
    return Graph(placeholders, [known[o] for o in outputs], {}, "backward")


def as_computed(x: Value, stored: Value, tensor: Tensor) -> Tensor:
    """The value of ``x``, for which ``stored`` lies in memory."""
    if stored is x:
        return tensor
    return cast(Tensor, apply(permute_p, tensor, axes=_back(x.aval.ndim)))


def _back(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _permuted(x: Value, axes: tuple[int, ...]) -> Value:
    value = aval(tuple(x.aval.shape[i] for i in axes), x.aval.dtype)
    return applied(permute_p, (x,), {"axes": axes}, value, x.where)
