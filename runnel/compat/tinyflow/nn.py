"""TinyFlow's layers. Weights that you do not pass are variables named after the layer; their shapes are inferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.compat.tinyflow.functions import (
    Symbol,
    declared,
    relu as relu,
    softmax as softmax,
    symbol,
    tanh as tanh,
)
from runnel.core.dtypes import int64
from runnel.core.errors import ArgumentError
from runnel.declarative.graph import default_graph, whole
from runnel.declarative.knowledge import infers_inputs
from runnel.declarative.operation import Dims
from runnel.declarative.state import variable
from runnel.nn import functional as F

_ONES = (1, 1, 1, 1)


@whole
def linear(
    data: Symbol,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    *,
    num_hidden: int,
    no_bias: bool = True,
    name: str | None = None,
) -> Symbol:
    """Return data · weightᵀ (+ bias), with ``num_hidden`` columns."""
    own = name or _layer("linear")
    inputs = _parameters(own, weight, None if no_bias else bias, no_bias)
    return declared(dense, symbol(data, own), *inputs, hidden=num_hidden, name=own)


@whole
def conv2d(
    data: Symbol,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    strides: Sequence[int] = _ONES,
    padding: str = "VALID",
    data_format: str = "NCHW",
    *,
    num_filter: int = 0,
    ksize: Sequence[int] = _ONES,
    no_bias: bool = True,
    name: str | None = None,
) -> Symbol:
    """Convolve data[N, C, H, W]; "SAME" pads (k - 1) // 2 on both sides."""
    own = name or _layer("conv2d")
    _require_nchw(own, data_format)
    inputs = _parameters(own, weight, None if no_bias else bias, no_bias)
    kernel = tuple(ksize[1:3])
    attributes = {"filters": num_filter, "kernel": kernel, "stride": tuple(strides[1:3])}
    return declared(convolved, symbol(data, own), *inputs, **attributes, padding=_around(padding, kernel), name=own)


def max_pool(
    data: Symbol,
    strides: Sequence[int] = _ONES,
    padding: str = "VALID",
    data_format: str = "NCHW",
    *,
    ksize: Sequence[int],
    name: str | None = None,
) -> Symbol:
    """Return the largest elements of windows."""
    _require_nchw("max_pool", data_format)
    kernel = tuple(ksize[1:3])
    return declared(
        F.max_pool2d, symbol(data, "max_pool"), kernel, tuple(strides[1:3]), _around(padding, kernel), name=name
    )


def avg_pool(
    data: Symbol,
    strides: Sequence[int] = _ONES,
    padding: str = "SAME",
    data_format: str = "NCHW",
    *,
    ksize: Sequence[int],
    name: str | None = None,
) -> Symbol:
    """Return the means of windows, including padding."""
    _require_nchw("avg_pool", data_format)
    kernel = tuple(ksize[1:3])
    return declared(
        F.avg_pool2d, symbol(data, "avg_pool"), kernel, tuple(strides[1:3]), _around(padding, kernel), name=name
    )


@whole
def batch_normalization(
    data: Symbol, gamma: Symbol | None = None, beta: Symbol | None = None, name: str | None = None
) -> Symbol:
    """Normalize channels over the batch, then multiply by gamma and add beta."""
    own = name or _layer("batch_normalization")
    gamma = variable(name=f"{own}_gamma") if gamma is None else gamma
    beta = variable(name=f"{own}_beta") if beta is None else beta
    return declared(normalized, symbol(data, own), gamma, beta, name=own)


def flatten_layer(data: Symbol, name: str | None = None) -> Symbol:
    """Flatten all axes except the first."""
    return declared(flattened, symbol(data, "flatten_layer"), name=name or "flatten_layer")


def mean_sparse_softmax_cross_entropy_with_logits(logits: Symbol, label: Symbol, name: str | None = None) -> Symbol:
    """Return the mean cross-entropy of logits[N, C] and float labels 0 … C - 1, of shape (1,)."""
    own = name or "mean_sparse_softmax_cross_entropy_with_logits"
    return declared(cross_entropy_of, symbol(logits, own), symbol(label, own), name=own)


# What runs ----------------------------------------------------------------------------------------------------------


def dense(x: Any, weight: Any, bias: Any = None, *, hidden: int) -> Any:
    return F.linear(x, weight, bias)


def convolved(x: Any, weight: Any, bias: Any = None, *, filters: int, kernel: Any, stride: Any, padding: Any) -> Any:
    return F.conv2d(x, weight, bias, stride, padding)


def normalized(x: Any, gamma: Any, beta: Any) -> Any:
    """Apply batch normalization by the statistics of the batch."""
    return F.batch_norm(x, None, None, gamma, beta, training=True)


def flattened(x: Any) -> Any:
    """Return a matrix with a row for each sample."""
    return ops.reshape(x, (x.shape[0], -1))


def cross_entropy_of(logits: Any, label: Any) -> Any:
    """Return the mean cross-entropy, of shape (1,)."""
    return ops.reshape(F.cross_entropy(logits, ops.cast(label, int64)), (1,))


@infers_inputs(dense)
def _dense_shapes(x: Any, weight: Any, bias: Any = None, *, hidden: int) -> dict[int, Dims]:
    shapes: dict[int, Dims] = {} if x.shape is None else {1: (hidden, x.shape[-1])}
    return shapes if bias is None else {**shapes, 2: (hidden,)}


@infers_inputs(convolved)
def _filter_shapes(x: Any, weight: Any, bias: Any = None, *, filters: int, kernel: Any, **_: Any) -> dict[int, Dims]:
    shapes: dict[int, Dims] = {} if x.shape is None else {1: (filters, x.shape[1], *kernel)}
    return shapes if bias is None else {**shapes, 2: (filters,)}


@infers_inputs(normalized)
def _channel_shapes(x: Any, gamma: Any, beta: Any) -> dict[int, Dims]:
    return {} if x.shape is None else {1: (x.shape[1],), 2: (x.shape[1],)}


def _parameters(name: str, weight: Symbol | None, bias: Symbol | None, no_bias: bool) -> list[Symbol]:
    inputs = [variable(name=f"{name}_weight") if weight is None else weight]
    if not no_bias:
        inputs.append(variable(name=f"{name}_bias") if bias is None else bias)
    return inputs


def _layer(kind: str) -> str:
    """Return a name for an unnamed layer: its kind and the number of the graph's next operation."""
    return f"{kind}{len(default_graph())}"


def _around(padding: str, kernel: tuple[int, ...]) -> tuple[int, ...]:
    if padding not in ("SAME", "VALID"):
        raise ArgumentError(f"[tinyflow] padding must be 'SAME' or 'VALID'; got {padding!r}.")
    return tuple((k - 1) // 2 if padding == "SAME" else 0 for k in kernel)


def _require_nchw(name: str, data_format: str) -> None:
    if data_format != "NCHW":
        raise ArgumentError(f"[{name}] data_format must be 'NCHW'; got {data_format!r}.")
