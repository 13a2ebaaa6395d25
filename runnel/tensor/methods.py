"""The operators and methods that Tensor and Variable share. Most call the function of that meaning in ``ops``.

Names and defaults follow the Array API where it has the method, PyTorch elsewhere
(``core.spelling`` has the other names of their arguments: ``dim`` for ``axis``, ``keepdim`` for ``keepdims``).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from runnel import ops
from runnel.core import dtypes, public
from runnel.core.avals import extent_of
from runnel.core.devices import CPU, Device, as_device
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import Dtype
from runnel.core.errors import ArgumentError
from runnel.core.missing import missing
from runnel.core.overrides import Override, overridden
from runnel.core.recall import Recalled, recalled
from runnel.core.tracebacks import end_at_user
from runnel.ops.promotion import is_operand
from runnel.tensor.function_methods import FunctionMethods, ResultT

_MARKS_READ_ONLY: Final = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # NumPy's DLPack capsules
_API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")  # of the Array API


class _Unmarked:
    """The memory of a read-only array without the mark, for consumers that cannot see it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # what keeps the memory
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _device_and_dtype(target: Any, dtype: Any, device: Any) -> tuple[Device | None, Any]:
    """Return the device and dtype that the arguments of ``to`` mean: a device, a dtype or an array first, or either
    by name."""
    if isinstance(target, TensorLike):
        return target.aval.device, target.dtype
    if isinstance(target, Device) or (isinstance(target, str) and target not in dtypes.names()):
        if device is not None:
            raise ArgumentError(f"[to] the device is given twice: {target} and {device}; give one.")
        device = target
    elif target is not None:
        if dtype is not None:
            raise ArgumentError(f"[to] the dtype is given twice: {target} and {dtype}; give one.")
        dtype = target
    return None if device is None else as_device(device), dtype


_T = TypeVar("_T", bound=TensorLike)


def _left(function: Callable[[Any, Any], Any]) -> Callable[[ArrayMethods[_T], Any], _T]:
    """Return the operator with self on the left."""
    recalled = Recalled(function)

    def operator(self: ArrayMethods[_T], other: Any) -> _T:
        try:
            result: _T = recalled.call(self, other)
        except Override as override:
            result = overridden(override, function, (self, other), {})
        except Exception as error:
            end_at_user(error)
            raise
        return result

    return operator


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[ArrayMethods[_T], Any], _T]:
    """Return the operator for ``==`` or ``!=``. For anything that is not an operand, Python compares identities, so
    that ``x == None`` is False, as in PyTorch."""
    recalled = Recalled(function)

    def operator(self: ArrayMethods[_T], other: Any) -> _T:
        try:
            result: _T = recalled.call(self, other)
        except Override as override:
            result = overridden(override, function, (self, other), {})
        except Exception as error:
            if isinstance(error, TypeError) and not is_operand(other):
                return NotImplemented
            end_at_user(error)
            raise
        return result

    return operator


def _right(function: Callable[[Any, Any], Any]) -> Callable[[ArrayMethods[_T], Any], _T]:
    """Return the operator with self on the right."""
    recalled = Recalled(function)

    def operator(self: ArrayMethods[_T], other: Any) -> _T:
        try:
            result: _T = recalled.call(other, self)
        except Override as override:
            result = overridden(override, function, (other, self), {})
        except Exception as error:
            end_at_user(error)
            raise
        return result

    return operator


def _unary(function: Callable[[Any], Any]) -> Callable[[ArrayMethods[_T]], _T]:
    """Return the operator of self."""
    recalled = Recalled(function)

    def operator(self: ArrayMethods[_T]) -> _T:
        try:
            result: _T = recalled.call(self)
        except Override as override:
            result = overridden(override, function, (self,), {})
        return result

    return operator


def _converted(name: str, dtype: dtypes.DType) -> Callable[[Any], Any]:
    """Return the method ``name``, which converts to ``dtype``."""

    def method(self: Any) -> Any:
        return self.astype(dtype)

    method.__name__, method.__doc__ = name, f"Convert to {dtype.name}."
    return method


@public.methods
class ArrayMethods(FunctionMethods[ResultT]):
    """Arithmetic, comparison, reductions and views as operators and methods."""

    __slots__ = ()
    is_sparse: builtins.bool = False  # of a Parameter, whether its gradient names few rows
    __array_priority__ = 1000  # NumPy arrays on the left leave binary operators to us

    def read(self) -> ResultT:
        """Return the present value as a tensor."""
        raise NotImplementedError

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the values as a read-only NumPy array."""
        raise NotImplementedError

    def reshape_in_place(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Like ``update``, for a value that may have another shape. Only tensors can change their shape."""
        return self.update(name, change)

    def _other(self, view: Any) -> Any:
        """Return ``view`` as a handle other than this one, so that writing to it does not change this one; likewise
        each array of a tuple."""
        if view is self:
            return self.handle()
        return tuple([self.handle() if each is self else each for each in view]) if isinstance(view, tuple) else view

    if not TYPE_CHECKING:  # type checkers report missing attributes themselves

        def __getattr__(self, name: str) -> Any:
            raise missing("Tensor", name, lambda: dir(type(self)))

    # Arithmetic -------------------------------------------------------------------------------------------------------

    __add__ = _left(ops.add)
    __radd__ = _right(ops.add)
    __sub__ = _left(ops.subtract)
    __rsub__ = _right(ops.subtract)
    __mul__ = _left(ops.multiply)
    __rmul__ = _right(ops.multiply)
    __truediv__ = _left(ops.divide)
    __rtruediv__ = _right(ops.divide)
    __floordiv__ = _left(ops.floor_divide)
    __rfloordiv__ = _right(ops.floor_divide)
    __mod__ = _left(ops.remainder)
    __rmod__ = _right(ops.remainder)
    __pow__ = _left(ops.pow)
    __rpow__ = _right(ops.pow)
    __matmul__ = _left(ops.matmul)
    __rmatmul__ = _right(ops.matmul)

    __neg__ = _unary(ops.negative)
    __abs__ = _unary(ops.abs)

    def __pos__(self) -> ResultT:
        return self.read()

    # Bits and comparison ----------------------------------------------------------------------------------------------

    __and__ = _left(ops.bitwise_and)
    __rand__ = _right(ops.bitwise_and)
    __or__ = _left(ops.bitwise_or)
    __ror__ = _right(ops.bitwise_or)
    __xor__ = _left(ops.bitwise_xor)
    __rxor__ = _right(ops.bitwise_xor)
    __invert__ = _unary(ops.bitwise_invert)
    __lshift__ = _left(ops.bitwise_left_shift)
    __rlshift__ = _right(ops.bitwise_left_shift)
    __rshift__ = _left(ops.bitwise_right_shift)
    __rrshift__ = _right(ops.bitwise_right_shift)
    __lt__ = _left(ops.less)
    __le__ = _left(ops.less_equal)
    __gt__ = _left(ops.greater)
    __ge__ = _left(ops.greater_equal)
    __eq__ = _comparison(ops.equal)  # type: ignore[assignment]
    __ne__ = _comparison(ops.not_equal)  # type: ignore[assignment]

    __hash__ = object.__hash__

    # Indexing ---------------------------------------------------------------------------------------------------------

    __getitem__ = _left(ops.getitem)

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("[iter] a 0-d tensor cannot be iterated over.")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        """Return whether an element equals ``value``. For an array, broadcast and compare all pairs, as in NumPy and
        PyTorch."""
        return bool(ops.any(ops.equal(self, value)))

    # Functions as methods ---------------------------------------------------------------------------------------------

    def clone(self) -> ResultT:
        """Return a separate tensor with the same value, through which gradients flow."""
        copy: ResultT = self.handle()
        return copy

    def astype(self, dtype: Dtype) -> ResultT:
        """Convert the values to ``dtype``."""
        return ops.cast(self, dtypes.as_dtype(dtype))

    def to(
        self, target: Any = None, dtype: Dtype = None, *flags: bool, device: Any = None, copy: bool = False
    ) -> ResultT:
        """Move to another device, convert to another dtype, or both.

        Accepts ``x.to("interpreter")``, ``x.to("float64")``, ``x.to(device, dtype)`` and ``x.to(y)``, which takes
        both from ``y``. Gradients flow back to the original device. With ``copy`` the result is a new tensor even if
        nothing changes. ``flags`` are PyTorch's ``non_blocking``, which has no effect, and ``copy``.

        DeviceError if the device does not exist, or if a compiled function, which computes on one device, moves to
        another.
        """
        if isinstance(dtype, bool):
            flags, dtype = (dtype, *flags), None
        if len(flags) > 2:
            raise ArgumentError(f"[to] arguments after device and dtype must be non_blocking and copy; got {flags}.")
        copy = copy or flags[1:] == (True,)
        place, kind = _device_and_dtype(target, dtype, device)
        moved: Any = self.read()
        if place is not None:
            moved = moved.on(place)
        result: ResultT = moved if kind is None else moved.astype(kind)
        return result.clone() if copy else result  # type: ignore[attr-defined]

    def to_device(self, device: Any, *, stream: Any = None) -> ResultT:
        """Move the values to another device (Array API). Devices have no streams."""
        if stream is not None:
            raise ArgumentError(f"[to_device] stream must be None, since devices have no streams; got {stream!r}.")
        return self.to(device=device)

    def cpu(self) -> ResultT:
        """Move to the CPU."""
        return self.to(CPU)

    def cuda(self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None) -> ResultT:
        """Raise DeviceError, since GPUs are not supported."""
        return self.to(device="cuda")

    @property
    def size(self) -> Any:
        """The number of elements; ``x.size()`` is the shape, and ``x.size(0)`` the size of an axis, as in PyTorch."""
        return extent_of(self.shape)

    @property
    def data(self) -> ResultT:
        """The value without its tape."""
        values: ResultT = self.read().without_tape()  # type: ignore[attr-defined]
        return values

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace of functions for this array (Array API). ValueError for an unknown version."""
        if api_version is not None and api_version not in _API_VERSIONS:
            raise ValueError(
                f"[__array_namespace__] the version must be one of {', '.join(_API_VERSIONS)}; got {api_version!r}."
            )
        return sys.modules["runnel"]

    @property
    def device(self) -> Device:
        """Where the array lives."""
        return self.aval.device

    @property
    def is_leaf(self) -> builtins.bool:
        """True unless the array was computed from values that require a gradient."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The record of the operation that computed the array, if it requires a gradient; else None."""
        value: Any = self.read()
        return value._record if value.requires_grad else None

    @property
    def is_cuda(self) -> builtins.bool:
        """False: memory of GPUs is not supported."""
        return False

    @property
    def is_cpu(self) -> builtins.bool:
        """True: all arrays are in CPU memory."""
        return True

    is_meta = is_mps = is_quantized = is_sparse_csr = is_nested = is_mkldnn = is_xpu = is_cuda

    @property
    def layout(self) -> str:
        """How the elements lie in memory: "strided"."""
        return "strided"

    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    # Dtypes by PyTorch's names
    cfloat = _converted("cfloat", dtypes.complex64)
    cdouble = _converted("cdouble", dtypes.complex128)
    float = _converted("float", dtypes.float32)
    double = _converted("double", dtypes.float64)
    long = _converted("long", dtypes.int64)
    half = _converted("half", dtypes.float16)
    bfloat16 = _converted("bfloat16", dtypes.bfloat16)
    int = _converted("int", dtypes.int32)
    short = _converted("short", dtypes.int16)
    char = _converted("char", dtypes.int8)
    byte = _converted("byte", dtypes.uint8)
    bool = _converted("bool", dtypes.bool_)

    @property
    @recalled
    def T(self) -> ResultT:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"[T] the tensor must be a matrix; got shape {self.shape}. Use permute() or mT.")
        return ops.transpose(self, 0, 1)

    @property
    @recalled
    def mT(self) -> ResultT:
        """The last two axes swapped."""
        return ops.transpose(self, -2, -1)

    @property
    def mH(self) -> ResultT:
        """The last two axes swapped, of the complex conjugate."""
        return ops.transpose(ops.conj(self), -2, -1)

    @property
    def H(self) -> ResultT:
        """The conjugate transpose of a matrix."""
        return ops.conj(self.T)

    @property
    def real(self) -> ResultT:
        """The real part."""
        return ops.real(self)

    @property
    def imag(self) -> ResultT:
        """The imaginary part of complex numbers."""
        part: ResultT = ops.imag(self)
        return part

    @property
    def nbytes(self) -> builtins.int:
        return self.aval.nbytes

    # Other libraries --------------------------------------------------------------------------------------------------

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[builtins.int, builtins.int] | None = None,
        dl_device: tuple[builtins.int, builtins.int] | None = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """Return a DLPack capsule: of the same memory, marked as read-only, or of a copy, which may be written to.

        Args:
            stream: None, since the CPU has no streams (else ArgumentError).
            max_version: the newest version of the protocol that the consumer supports. None, or less than (1, 0),
                cannot mark memory as read-only: the capsule then contains a copy, unless ``copy`` is False.
            dl_device: the device that the consumer wants: None or (1, 0), the CPU (else BufferError).
            copy: True: a copy. False: no copy, and a consumer that cannot see the mark must not write to the memory.
                None: a copy where needed.
        """
        if stream is not None:
            raise ArgumentError(f"[__dlpack__] stream must be None, since the CPU has no streams; got {stream!r}.")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"[__dlpack__] dl_device must be the CPU, (1, 0); got {dl_device}.")
        if self.dtype is dtypes.bfloat16:
            raise BufferError("[__dlpack__] NumPy, which makes capsules, has none of bfloat16; cast to float32.")
        array = self.numpy()
        if _MARKS_READ_ONLY and max_version is not None and max_version >= (1, 0):
            return array.__dlpack__(max_version=max_version, copy=copy)
        return (self._unmarked() if copy is False else array.copy()).__dlpack__()

    def _unmarked(self) -> np.ndarray:
        """Return the values as an array that shares memory and is not marked as read-only."""
        return np.asarray(_Unmarked(self.numpy()))

    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        return (1, 0)
