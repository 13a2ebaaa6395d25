"""TinyFlow's functions of tensors: everything is float32, and what has no axes left has the shape (1,)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel import ops
from runnel.core.dtypes import float32
from runnel.core.errors import ArgumentError
from runnel.declarative.calls import call
from runnel.declarative.operation import Declared
from runnel.tensor import creation
from runnel.tensor.random import randn

Symbol = Declared


def symbol(x: Any, name: str = "") -> Symbol:
    """``x``, which has to be a symbol."""
    if not isinstance(x, Declared):
        raise ArgumentError(f"[{name or 'tinyflow'}] takes a symbol; received {type(x).__name__}.")
    return x


def declared(function: Callable[..., Any], *args: Any, name: str | None = None, **kwargs: Any) -> Symbol:
    """A call of ``function`` as an operation; ``name`` is the user's."""
    result: Symbol = call(function, *args, name=name or "", **kwargs)
    return result


def exp(data: Symbol, name: str | None = None) -> Symbol:
    """Elementwise exponential."""
    return declared(ops.exp, symbol(data, "exp"), name=name)


def log(data: Symbol, name: str | None = None) -> Symbol:
    """Elementwise natural logarithm."""
    return declared(ops.log, symbol(data, "log"), name=name)


def sqrt(data: Symbol, name: str | None = None) -> Symbol:
    """Elementwise square root."""
    return declared(ops.sqrt, symbol(data, "sqrt"), name=name)


def tanh(data: Symbol, name: str | None = None) -> Symbol:
    """Elementwise hyperbolic tangent."""
    return declared(ops.tanh, symbol(data, "tanh"), name=name)


def relu(data: Symbol, name: str | None = None) -> Symbol:
    """max(x, 0), elementwise."""
    return declared(ops.relu, symbol(data, "relu"), name=name)


def softmax(data: Symbol, name: str | None = None) -> Symbol:
    """Softmax over axis 1."""
    return declared(ops.softmax, symbol(data, "softmax"), axis=1, name=name)


def matmul(lhs: Symbol, rhs: Symbol, name: str | None = None) -> Symbol:
    """The product of two matrices."""
    return declared(ops.matmul, symbol(lhs, "matmul"), symbol(rhs, "matmul"), name=name)


def equal(lhs: Symbol, rhs: Symbol, name: str | None = None) -> Symbol:
    """1.0 where two tensors are equal, else 0.0."""
    return declared(are_equal, lhs, rhs, name=name or "equal")


def argmax(x: Symbol, axis: int, name: str | None = None) -> Symbol:
    """The place of the greatest element along ``axis``, as float32."""
    return declared(place_of_greatest, symbol(x, "argmax"), axis, name=name or "argmax")


def reduce_sum(data: Symbol, reduction_indices: Any = None, name: str | None = None) -> Symbol:
    """The sum over the axes ``reduction_indices``, by default all."""
    return declared(reduced, symbol(data, "reduce_sum"), ops.sum, _axes(reduction_indices), name=name or "reduce_sum")


def reduce_mean(data: Symbol, reduction_indices: Any = None, name: str | None = None) -> Symbol:
    """The mean over the axes ``reduction_indices``, by default all."""
    return declared(
        reduced, symbol(data, "reduce_mean"), ops.mean, _axes(reduction_indices), name=name or "reduce_mean"
    )


def zeros(shape: Iterable[int], name: str | None = None) -> Symbol:
    """Zeros."""
    return declared(creation.zeros, tuple(shape), name=name)


def ones(shape: Iterable[int], name: str | None = None) -> Symbol:
    """Ones."""
    return declared(creation.ones, tuple(shape), name=name)


def zeros_like(data: Symbol, name: str | None = None) -> Symbol:
    """Zeros in the shape of ``data``."""
    return declared(ops.zeros_like, symbol(data, "zeros_like"), name=name)


def ones_like(data: Symbol, name: str | None = None) -> Symbol:
    """Ones in the shape of ``data``."""
    return declared(ops.ones_like, symbol(data, "ones_like"), name=name)


def normal(shape: Iterable[int], stdev: float = 1.0, name: str | None = None) -> Symbol:
    """Numbers of the normal distribution around 0, drawn anew in each run."""
    return declared(drawn, tuple(shape), float(stdev), name=name or "normal")


def pad(data: Symbol, dim: int, pad: int, name: str | None = None) -> Symbol:
    """``|pad|`` zeros along axis ``dim``: in front if ``pad`` is negative, else behind."""
    return declared(padded, symbol(data, "pad"), int(dim), int(pad), name=name or "pad")


# What runs ----------------------------------------------------------------------------------------------------------


def are_equal(x: Any, y: Any) -> Any:
    """x == y as float32."""
    return ops.cast(ops.equal(x, y), float32)


def place_of_greatest(x: Any, axis: int) -> Any:
    """The place of the greatest element as float32."""
    return ops.cast(ops.argmax(x, axis), float32)


def reduced(x: Any, reduction: Callable[..., Any], axes: tuple[int, ...] | None) -> Any:
    """``reduction`` over some axes; a result without axes gets one."""
    result = reduction(x, axis=axes)
    return ops.reshape(result, (1,)) if result.ndim == 0 else result


def drawn(shape: tuple[int, ...], stdev: float) -> Any:
    """Normal random numbers."""
    return randn(shape) * stdev


def padded(x: Any, dim: int, count: int) -> Any:
    """Zeros in front of or behind an axis."""
    shape = tuple(abs(count) if axis == dim else n for axis, n in enumerate(x.shape))
    more = ops.broadcast_to(ops.reshape(ops.zeros_like(x[(slice(0, 1),) * x.ndim]), (1,) * x.ndim), shape)
    return ops.concat([more, x] if count < 0 else [x, more], dim)


def _axes(indices: Any) -> tuple[int, ...] | None:
    if indices is None:
        return None
    return (indices,) if isinstance(indices, int) else tuple(indices)
