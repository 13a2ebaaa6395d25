"""TinyFlow's functions of tensors: everything is float32, and results without axes get the shape (1,)."""

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
    """Return ``x``, which must be a symbol."""
    if not isinstance(x, Declared):
        raise ArgumentError(f"[{name or 'tinyflow'}] takes a symbol; got {type(x).__name__}.")
    return x


def declared(function: Callable[..., Any], *args: Any, name: str | None = None, **kwargs: Any) -> Symbol:
    """Declare a call of ``function`` as an operation; ``name`` is the user's."""
    result: Symbol = call(function, *args, name=name or "", **kwargs)
    return result


def _of_symbol(own: str) -> Callable[..., Symbol]:
    def function(data: Symbol, name: str | None = None) -> Symbol:
        return declared(getattr(ops, own), symbol(data, own), name=name)

    function.__name__, function.__doc__ = own, f"Return an operation that computes ``runnel.{own}``."
    return function


exp, log, sqrt, tanh, relu = map(_of_symbol, ("exp", "log", "sqrt", "tanh", "relu"))
zeros_like, ones_like = map(_of_symbol, ("zeros_like", "ones_like"))


def softmax(data: Symbol, name: str | None = None) -> Symbol:
    """Return softmax over axis 1."""
    return declared(ops.softmax, symbol(data, "softmax"), axis=1, name=name)


def matmul(lhs: Symbol, rhs: Symbol, name: str | None = None) -> Symbol:
    return declared(ops.matmul, symbol(lhs, "matmul"), symbol(rhs, "matmul"), name=name)


def equal(lhs: Symbol, rhs: Symbol, name: str | None = None) -> Symbol:
    """Return 1.0 where two tensors are equal, else 0.0."""
    return declared(are_equal, lhs, rhs, name=name or "equal")


def argmax(x: Symbol, axis: int, name: str | None = None) -> Symbol:
    """Return the position of the largest element along ``axis`` as float32."""
    return declared(place_of_greatest, symbol(x, "argmax"), axis, name=name or "argmax")


def reduce_sum(data: Symbol, reduction_indices: Any = None, name: str | None = None) -> Symbol:
    """Sum over the axes ``reduction_indices``, by default all."""
    return declared(reduced, symbol(data, "reduce_sum"), ops.sum, _axes(reduction_indices), name=name or "reduce_sum")


def reduce_mean(data: Symbol, reduction_indices: Any = None, name: str | None = None) -> Symbol:
    """Average over the axes ``reduction_indices``, by default all."""
    return declared(
        reduced, symbol(data, "reduce_mean"), ops.mean, _axes(reduction_indices), name=name or "reduce_mean"
    )


def zeros(shape: Iterable[int], name: str | None = None) -> Symbol:
    return declared(creation.zeros, tuple(shape), name=name)


def ones(shape: Iterable[int], name: str | None = None) -> Symbol:
    return declared(creation.ones, tuple(shape), name=name)


def normal(shape: Iterable[int], stdev: float = 1.0, name: str | None = None) -> Symbol:
    """Draw normal numbers around 0, different ones in each run."""
    return declared(drawn, tuple(shape), float(stdev), name=name or "normal")


def pad(data: Symbol, dim: int, pad: int, name: str | None = None) -> Symbol:
    """Add ``|pad|`` zeros along axis ``dim``: at the start if ``pad`` is negative, else at the end."""
    return declared(padded, symbol(data, "pad"), int(dim), int(pad), name=name or "pad")


# What runs ----------------------------------------------------------------------------------------------------------


def are_equal(x: Any, y: Any) -> Any:
    return ops.cast(ops.equal(x, y), float32)


def place_of_greatest(x: Any, axis: int) -> Any:
    return ops.cast(ops.argmax(x, axis), float32)


def reduced(x: Any, reduction: Callable[..., Any], axes: tuple[int, ...] | None) -> Any:
    """Reduce over axes; a result without axes gets one."""
    result = reduction(x, axis=axes)
    return ops.reshape(result, (1,)) if result.ndim == 0 else result


def drawn(shape: tuple[int, ...], stdev: float) -> Any:
    return randn(shape) * stdev


def padded(x: Any, dim: int, count: int) -> Any:
    """Add zeros before or after an axis."""
    shape = tuple(abs(count) if axis == dim else n for axis, n in enumerate(x.shape))
    more = ops.broadcast_to(ops.reshape(ops.zeros_like(x[(slice(0, 1),) * x.ndim]), (1,) * x.ndim), shape)
    return ops.concat([more, x] if count < 0 else [x, more], dim)


def _axes(indices: Any) -> tuple[int, ...] | None:
    if indices is None:
        return None
    return (indices,) if isinstance(indices, int) else tuple(indices)
