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
from runnel.core.errors import ShapeError
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.elementwise.complex_parts import conj
from runnel.ops.shapes.broadcasting import broadcast_to
from runnel.ops.shapes.views import permute, reshape, transpose
from runnel.tensor.trace import ACTIVE


def numel(x: Array) -> int:
    """The number of elements."""
    return int(x.size)


def dim(x: Array) -> int:
    """The number of axes."""
    return int(x.ndim)


def element_size(x: Array) -> int:
    """The size of an element in bytes."""
    return int(x.dtype.itemsize)


def stride(x: Array, axis: int | None = None) -> Any:
    """The steps in elements along each axis, or along one. A compiled function checks those of tensors from outside;
    one that asks for those of what it computes runs eagerly, since its program decides them."""
    steps = _layout_of(x).strides
    return steps if axis is None else steps[axis]


def is_contiguous(x: Array) -> bool:
    """Whether the elements stand in row-major order without gaps. A compiled function checks it of tensors from
    outside; one that asks it of what it computes runs eagerly, since its program decides it."""
    return bool(_layout_of(x).is_dense)


def _layout_of(x: Array) -> Any:
    """The value of ``x``, of which a trace is told that its strides matter."""
    value, trace = x.read(), ACTIVE.trace
    if trace is not None and trace.layout_asked is not None:
        trace.layout_asked(value)
    return value


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is an array of this library."""
    return isinstance(obj, TensorLike)


def is_floating_point(x: Array) -> bool:
    """Whether the elements are floats."""
    return bool(x.dtype.is_float)


def is_complex(x: Array) -> bool:
    """Whether the elements are complex numbers."""
    return bool(x.dtype.is_complex)


def is_signed(x: Array) -> bool:
    """Whether the dtype has negative numbers."""
    return x.dtype.kind not in ("bool", "uint")


def is_same_size(x: Array, other: Array) -> bool:
    """Whether two arrays have one shape."""
    return bool(x.shape == other.shape)


def is_marked(x: Array) -> bool:
    """Whether the memory of ``x`` is marked as something else than its values: never."""
    return False


def get_device(x: Array) -> int:
    """The number of the GPU, or -1: arrays are in the memory of the CPU."""
    return -1


def storage_offset(x: Array) -> int:
    """How many elements stand in the array's memory before its own: 0, since views of a value are values."""
    return 0


def is_nonzero(x: Array) -> bool:
    """Whether the one element of ``x`` is not 0."""
    return bool(x)


def astype(x: Array, dtype: Dtype, copy: bool = True, device: Any = None) -> Array:
    """``x`` in another dtype, and on another device if one is named."""
    result = cast(x, dtypes.as_dtype(dtype))
    result = result if device is None else result.to(device=device)
    return result.handle() if result is x and copy else result


def expand_as(x: Array, other: Array) -> Array:
    """``x`` repeated along axes of size 1 and new leading axes to the shape of ``other``."""
    return broadcast_to(x, other.shape)


def reshape_as(x: Array, other: Array) -> Array:
    """``x`` under the shape of ``other``."""
    return reshape(x, other.shape)


def type_as(x: Array, other: Array) -> Array:
    """``x`` in the dtype of ``other``."""
    return cast(x, other.dtype)


def t(x: Array) -> Array:
    """The transpose of a matrix; a vector or number itself."""
    if x.ndim > 2:
        raise ShapeError(f"[t] takes a matrix, a vector or a number; received shape {x.shape}.")
    return transpose(x, 0, 1) if x.ndim == 2 else permute(x, tuple(range(x.ndim)))


def matrix_transpose(x: Array) -> Array:
    """The last two axes exchanged."""
    return transpose(x, -2, -1)


def adjoint(x: Array) -> Array:
    """The last two axes exchanged, of the complex conjugate."""
    return transpose(conj(x), -2, -1)


# --- threads ------------------------------------------------------------------------------------------------------


def set_num_threads(count: int) -> None:
    """Run programs on ``count`` threads from now on; 0: on as many as the process may use. Results do not depend on
    it. SettingError for another value."""
    switches.num_threads.set(operator.index(count))


def get_num_threads() -> int:
    """How many threads a program runs on."""
    return context.current().threads


# --- the Array API's inspection -----------------------------------------------------------------------------------


class ArrayNamespaceInfo:
    """What this library can do, as the Array API asks for it."""

    __module__ = "runnel"

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices, shapes that depend on values (both where values are known), and no bound on axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Where new arrays are made."""
        return context.default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of Python numbers and of positions, on every device."""
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> tuple[Device, ...]:
        """All devices."""
        return tuple(every_device())

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name, all or those of a kind."""
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
    """What this library can do (Array API, "Inspection")."""
    return ArrayNamespaceInfo()
