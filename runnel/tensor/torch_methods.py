"""Methods that make arrays like another one, or say whether one is; and PyTorch's ``type`` and ``where``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.conversion import fitting
from runnel.core.devices import as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.core.errors import GradientError
from runnel.core.viewing import viewing
from runnel.ops.arguments import Array, Axis, Operand, as_sizes, gathered, normalize_axes
from runnel.ops.conversion import cast
from runnel.ops.elementwise.comparison import where as chosen
from runnel.ops.elementwise.numbers import array_equal
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.joining import chunk
from runnel.ops.shapes.pieces import narrow
from runnel.ops.shapes.views import squeeze as squeezed, with_axis
from runnel.ops.sorting.sets import nonzero as positions
from runnel.tensor.grad_hooks import AFTER_ACCUMULATION, ON_GRADIENT, GradientHook, Keeping, require_no_trace
from runnel.tensor.handle import version
from runnel.tensor.variable import Variable


def _filled(x: Array, shape: Any, value: Any, dtype: Any, device: Any) -> Array:
    kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    filled = broadcast_to(
        x.read().lift(fitting("new_full", value, kind), kind), as_sizes("new_full", shape)
    ).contiguous()
    moved: Array = filled if device is None else filled.to(as_device(device))
    return moved


def _sizes(size: tuple[Any, ...], named: Any) -> Any:
    return gathered(size) if named is None else named


def new_zeros(x: Array, *sizes: Any, size: Any = None, dtype: Dtype = None, device: Any = None) -> Array:
    """Zeros of another shape, in the dtype of ``x`` unless one is named."""
    return _filled(x, _sizes(sizes, size), 0, dtype, device)


def new_ones(x: Array, *sizes: Any, size: Any = None, dtype: Dtype = None, device: Any = None) -> Array:
    """Ones of another shape, in the dtype of ``x`` unless one is named."""
    return _filled(x, _sizes(sizes, size), 1, dtype, device)


def new_full(x: Array, size: Any, fill_value: bool | int | float, dtype: Dtype = None, device: Any = None) -> Array:
    """Create a tensor of another shape filled with ``fill_value``, in the dtype of ``x`` by default."""
    return _filled(x, size, fill_value, dtype, device)


def new_tensor(x: Array, data: Any, dtype: Dtype = None, device: Any = None) -> Array:
    """Create a tensor from ``data``, in the dtype of ``x`` by default."""
    kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, TensorLike):
        values: Any = cast(data, kind)
        return values.without_tape()
    array = data if isinstance(data, np.ndarray) else fitting("new_tensor", data, kind)
    tensor: Array = x.read().lift(array, kind).handle()
    return tensor if device is None else tensor.to(as_device(device))


def equal(x: Array, other: Array) -> bool:
    """Return whether shapes and all elements are equal, as a Python bool. (``x == other`` and ``rn.equal`` compare
    element by element.)"""
    return array_equal(x, other)


def where(x: Array, condition: Array, other: Operand) -> Array:
    """Return the elements of ``x`` where ``condition`` holds, and of ``other`` elsewhere."""
    return chosen(condition, x, other)


@viewing
def squeeze(x: Array, axis: Axis = None) -> Array:
    """Remove the axes of size 1 among ``axis`` (None: all). (``rn.squeeze`` refuses axes of other sizes.)"""
    axes = normalize_axes("squeeze", axis, x.ndim)
    return squeezed(x, tuple(a for a in axes if x.shape[a] == 1))


def type_of(x: Array, dtype: Dtype = None) -> Any:
    """Convert ``x`` to a dtype or PyTorch's tensor type ("torch.FloatTensor"); without one, return the name of its
    type."""
    if dtype is not None:
        return cast(x, dtypes.as_dtype(dtype))
    return _TYPES.get(x.dtype.name, f"torch.{x.dtype.name}Tensor")


_TYPES = {name: kind for kind, name in dtypes.TYPES.items()}


def nonzero(x: Array, as_tuple: bool = False) -> Any:
    """Return the int64 positions of the nonzero elements as rows; with ``as_tuple``, a vector for each axis, as
    ``rn.nonzero``."""
    return positions(with_axis(x) if as_tuple else x, as_tuple)


def data_ptr(x: Array) -> int:
    """Return the address of the first element. Do not write to it."""
    return int(x.read().address)


def is_set_to(x: Array, tensor: Array) -> bool:
    """Return whether both tensors show the same elements of the same memory."""
    ours, theirs = x.read(), tensor.read()
    same = ours.shape == theirs.shape and ours.strides == theirs.strides and ours.dtype is theirs.dtype
    return bool(same and ours.address == theirs.address)


def is_distributed(x: Array) -> bool:
    """False: there is one process, and tensors are dense."""
    return False


def as_it_is(x: Array, *ignored: Any, **options: Any) -> Array:
    """Return ``x``: tensors are dense and in CPU memory."""
    return x


def dense_dim(x: Array) -> int:
    """Return the number of axes."""
    return int(x.ndim)


def sparse_dim(x: Array) -> int:
    """Return 0: tensors are dense."""
    return 0


def dim_order(x: Array, *ignored: Any, **options: Any) -> tuple[int, ...]:
    """Return the axes from the outermost in memory to the innermost, which is their order."""
    return tuple(range(x.ndim))


def unsafe_chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Split into ``chunks``, as :func:`chunk` does."""
    return tuple(chunk(x, chunks, dim))


def unsafe_split(x: Array, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    """Split into sections, as ``split`` does."""
    parts: tuple[Array, ...] = tuple(x.split(split_size, dim))
    return parts


def narrow_copy(x: Array, dim: int, start: int, length: int) -> Array:
    """Return a part along an axis, as :func:`narrow` does."""
    return narrow(x, dim, start, length)


def is_size(x: Any) -> bool:
    """Return whether the only argument of ``Tensor(x)`` is a size, as ints of NumPy are, too, and not data."""
    return isinstance(x, (int, np.integer)) or (isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "iu")


def new(x: Array, *args: Any) -> Array:
    """Create a tensor in the dtype of ``x``: zeros of the given sizes, or from data."""
    if len(args) == 1 and not is_size(args[0]):
        made: Array = x.new_tensor(args[0])
        return made
    return new_zeros(x, *(args or (0,)))


def new_empty_strided(
    x: Array, size: Sequence[int], stride: Sequence[int], dtype: Dtype = None, device: Any = None
) -> Array:
    """Create a tensor of unspecified values (zeros) in row-major order, whatever ``stride`` says."""
    return new_zeros(x, size=size, dtype=dtype, device=device)


def _node(name: str, x: Any) -> Any:
    """Return the node of ``x`` on the tape, which lives as long as ``x``."""
    if not x.requires_grad:
        raise GradientError(f"[{name}] the tensor requires no gradient; call requires_grad_() on a leaf.")
    return x if isinstance(x, Variable) else version(x)


def register_hook(x: Any, hook: Callable[[Any], Any]) -> GradientHook:
    """Call ``hook(gradient)`` whenever the gradient of ``x`` is computed; what it returns, if not None, takes the
    gradient's place. The answer's ``remove()`` ends that. Compiled functions in which a hook is attached or called run
    eagerly."""
    require_no_trace("register_hook")
    return GradientHook(ON_GRADIENT, _node("register_hook", x), hook)


def register_post_hook(x: Any, hook: Callable[[Any], Any]) -> GradientHook:
    """Call ``hook(x)`` whenever ``backward()`` has added to ``x.grad``, of a leaf. Compiled functions in which one is
    attached or called run eagerly."""
    require_no_trace("register_post_accumulate_grad_hook")
    if not x.is_leaf:
        raise GradientError("[register_post_accumulate_grad_hook] gradients are accumulated in leaves alone.")
    return GradientHook(AFTER_ACCUMULATION, x, hook)


def retain_grad(x: Any) -> None:
    """Let ``backward()`` put the gradient of ``x`` into ``x.grad``, though ``x`` was computed; of a leaf it does."""
    if not x.is_leaf:
        register_hook(x, Keeping(x))
