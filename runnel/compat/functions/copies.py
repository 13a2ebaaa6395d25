"""PyTorch's second names for functions: those that promise a copy (tensors are values, and each result is one), those
that skip checks, and those that update an argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runnel import ops
from runnel.ops.arguments import Array, normalize_axis
from runnel.ops.items import getitem
from runnel.ops.library.joining import chunk, unstack
from runnel.ops.library.plane import view_as_complex, view_as_real
from runnel.ops.library.scattering import select
from runnel.ops.library.triangles import diagonal, unfold
from runnel.tensor.library.asking import t
from runnel.tensor.library.likeness import squeeze
from runnel.tensor.tensor import Tensor

diagonal_copy = diagonal
expand_copy = ops.broadcast_to
narrow_copy = ops.narrow
permute_copy = ops.permute
select_copy = select
split_copy = unsafe_split = split_with_sizes_copy = unsafe_split_with_sizes = ops.split
squeeze_copy = squeeze
t_copy = t
transpose_copy = ops.transpose
unbind_copy = unstack
unfold_copy = unfold
unsafe_chunk = chunk
unsqueeze_copy = ops.expand_dims
view_as_complex_copy = view_as_complex
view_as_real_copy = view_as_real
view_copy = ops.reshape


def alias_copy(input: Array) -> Array:
    """Another tensor of the same value."""
    copy: Array = input.clone()
    return copy


def slice_copy(input: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    """The slice start:end:step along the axis ``dim``."""
    axis = normalize_axis("slice_copy", dim, input.ndim)
    if step == 0:
        raise ValueError("[slice_copy] the step is not 0.")
    return getitem(input, (*[slice(None)] * axis, slice(start, end, step)))


def _updating(name: str) -> Callable[..., Any]:
    """The method ``name`` as a function."""

    def update(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(input, name)(*args, **kwargs)

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"Give ``input`` the value of ``{name[:-1]}`` of it and the arguments; returns ``input`` itself."
    return update


globals().update({name: _updating(name) for name in dir(Tensor) if re.fullmatch("[a-z].*[^_]_", name)})

if TYPE_CHECKING:  # those are found by their names alone

    def __getattr__(name: str) -> Any: ...
