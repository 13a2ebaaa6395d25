"""Queries: sizes and kinds of arrays, the Array API's inspection functions, threads."""

from __future__ import annotations

import operator
from typing import Any, Final

from runnel.backends import context
from runnel.core import dtypes, switches
from runnel.core.devices import Device, devices as every_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtype_info import isdtype
from runnel.core.dtypes import DType, Dtype
from runnel.core.errors import ArgumentError, ShapeError
from runnel.core.viewing import viewing
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.elementwise.complex_parts import conj
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import permute, reshape, transpose
from runnel.tensor.trace import ACTIVE


def numel(x: Array) -> int:
    """Return the number of elements."""
    return int(x.size)


def dim(x: Array) -> int:
    """Return the number of axes."""
    return int(x.ndim)


def element_size(x: Array) -> int:
    """Return the size of an element in bytes."""
    return int(x.dtype.itemsize)


def stride(x: Array, axis: int | None = None) -> Any:
    """Return the steps in elements along each axis, or along one.

    A compiled function checks the strides of tensors from outside at each call. If it asks for the strides of a
    computed tensor, which its program decides, it runs eagerly.
    """
    steps = _layout_of(x).strides
    return steps if axis is None else steps[axis]


def is_contiguous(x: Array) -> bool:
    """Return whether the elements are in row-major order without gaps. In compiled functions the rules of
    :func:`stride` hold."""
    return bool(_layout_of(x).is_dense)


def _layout_of(x: Array) -> Any:
    """Return the value of ``x``, and tell the active trace that its strides matter."""
    value, trace = x.read(), ACTIVE.trace
    if trace is not None and trace.layout_asked is not None:
        trace.layout_asked(value)
    return value


def is_tensor(obj: Any) -> bool:
    """Return whether ``obj`` is one of Runnel's arrays."""
    return isinstance(obj, TensorLike)


def is_floating_point(x: Array) -> bool:
    """Return whether the elements are floats."""
    return bool(x.dtype.is_float)


def is_complex(x: Array) -> bool:
    """Return whether the elements are complex numbers."""
    return bool(x.dtype.is_complex)


def is_signed(x: Array) -> bool:
    """Return whether the dtype has negative numbers."""
    return x.dtype.kind not in ("bool", "uint")


def is_same_size(x: Array, other: Array) -> bool:
    """Return whether two arrays have the same shape."""
    return bool(x.shape == other.shape)


def is_marked(x: Array) -> bool:
    """Return False: memory has no conjugate or negative marks."""
    return False


def get_device(x: Array) -> int:
    """Return -1, PyTorch's number for the CPU."""
    return -1


def storage_offset(x: Array) -> int:
    """Return how many elements of its base lie before the first element of a view; 0 for what is no view. In compiled
    functions the rules of :func:`stride` hold."""
    value = _layout_of(x)
    if value._view is None:
        return 0
    base = value._view.root.base.read()
    if base._storage is not value._storage or base.dtype is not value.dtype:
        raise ArgumentError(
            f"[storage_offset] x must lie in the memory of its base; got a view of shape {value.shape} that was "
            "gathered from it. Use a slice."
        )
    return int(value._layout[0] - base._layout[0])


def is_nonzero(x: Array) -> bool:
    """Return whether the only element of ``x`` is not 0."""
    return bool(x)


def astype(x: Array, dtype: Dtype, copy: bool = True, device: Any = None) -> Array:
    """Convert ``x`` to another dtype, and move it to another device if one is named."""
    result = cast(x, dtypes.as_dtype(dtype))
    result = result if device is None else result.to(device=device)
    return result.handle() if result is x and copy else result


def expand_as(x: Array, other: Array) -> Array:
    """Broadcast ``x`` to the shape of ``other``."""
    return broadcast_to(x, other.shape)


def reshape_as(x: Array, other: Array) -> Array:
    """Reshape ``x`` to the shape of ``other``."""
    return reshape(x, other.shape)


def type_as(x: Array, other: Array) -> Array:
    """Convert ``x`` to the dtype of ``other``."""
    return cast(x, other.dtype)


@viewing
def t(x: Array) -> Array:
    """Transpose a matrix; return a vector or number as it is."""
    if x.ndim > 2:
        raise ShapeError(f"[t] the tensor must have at most 2 dimensions; got shape {x.shape}.")
    return transpose(x, 0, 1) if x.ndim == 2 else permute(x, tuple(range(x.ndim)))


@viewing
def matrix_transpose(x: Array) -> Array:
    """Exchange the last two axes."""
    return transpose(x, -2, -1)


def adjoint(x: Array) -> Array:
    """Exchange the last two axes of the complex conjugate."""
    return transpose(conj(x), -2, -1)


# --- threads ------------------------------------------------------------------------------------------------------


def set_num_threads(count: int) -> None:
    """Run programs on ``count`` threads from now on; 0: on as many as the process may use. Results do not depend on
    it. SettingError for another value."""
    switches.num_threads.set(operator.index(count))


def get_num_threads() -> int:
    """Return the number of threads that programs run on."""
    return context.current().threads


# --- the Array API's inspection -----------------------------------------------------------------------------------


class ArrayNamespaceInfo:
    """The library's capabilities (Array API, "Inspection")."""

    __module__ = "runnel"

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices, shapes that depend on values (both where values are known), and no bound on axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Return the device of new arrays."""
        return context.default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes of Python numbers and of positions, which are the same on every device."""
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> tuple[Device, ...]:
        """Return all devices."""
        return tuple(every_device())

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the standard's dtypes by name, all or only one kind."""
        every = {d.name: d for d in dtypes.ALL if d.name in _STANDARD}
        return every if kind is None else {name: d for name, d in every.items() if isdtype(d, kind)}


_STANDARD: Final = frozenset(
    {
        "bool",
        "float32",
        "float64",
        "complex64",
        "complex128",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    }
)


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Return the library's capabilities (Array API, "Inspection")."""
    return ArrayNamespaceInfo()
