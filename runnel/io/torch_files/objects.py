"""Functions and values that the pickles in PyTorch's files name, by their names in PyTorch.

``SAFE`` has all names that a file of weights may use. A tensor is a call of ``_rebuild_tensor_v2`` with a storage,
offset, size and strides; tensors of one storage share its memory, so that a write to one shows in the others.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.backends.host.memory import Storage
from runnel.core import dtypes
from runnel.core.avals import Shape, aval
from runnel.core.devices import CPU, Device, as_device
from runnel.core.dispatch import ViewStep
from runnel.core.dtypes import DType
from runnel.nn.parameter import Parameter
from runnel.ops.indexing.positions import as_strided, as_strided_scatter
from runnel.tensor import views
from runnel.tensor.tensor import Tensor, from_storage
from runnel.tensor.variable import Variable

NAME: Final = "_runnel_name"  # the attribute of a Parameter in a file that has its name


class StorageKind:
    """A class of storages in PyTorch, by its name; ``dtype`` is None for plain bytes."""

    def __init__(self, name: str, dtype: DType | None) -> None:
        self.name: Final = name
        self.dtype: Final = dtype


KINDS: Final = {
    dtype: StorageKind(f"{name}Storage", dtype)
    for dtype, name in {
        dtypes.float64: "Double", dtypes.float32: "Float", dtypes.float16: "Half", dtypes.bfloat16: "BFloat16",
        dtypes.int64: "Long", dtypes.int32: "Int", dtypes.int16: "Short", dtypes.int8: "Char", dtypes.uint8: "Byte",
        dtypes.bool_: "Bool", dtypes.complex64: "ComplexFloat", dtypes.complex128: "ComplexDouble",
    }.items()
}  # fmt: skip
UNTYPED: Final = StorageKind("UntypedStorage", None)


class Stored:
    """A storage of a file: its memory, the dtype of its elements (None for bytes), and the tensors made of it."""

    def __init__(self, memory: Storage, dtype: DType | None, device: Device = CPU) -> None:
        self.memory: Final = memory
        self.dtype: Final = dtype
        self.device: Final = device
        self._only: tuple[Tensor, ViewStep] | None = None  # the one tensor that was made up to now
        self._base: Tensor | None = None

    def tensor(self, dtype: DType, offset: int, size: Shape, strides: Shape) -> Tensor:
        """Return the tensor of these elements. ValueError if there are not so many."""
        count = self.memory.nbytes // dtype.itemsize
        numbers = (offset, *size, *strides)
        if len(size) != len(strides) or any(type(n) is not int or n < 0 for n in numbers):
            raise ValueError(f"a tensor has the impossible size {size}, strides {strides} and offset {offset}")
        last = offset + sum((n - 1) * step for n, step in zip(size, strides, strict=True))
        if 0 not in size and last >= count:
            raise ValueError(f"a tensor reaches element {last} of a storage of {count}")
        tensor = from_storage(aval(size, dtype, self.device), self.memory, offset if 0 not in size else 0, strides)
        step = ViewStep(
            lambda x: as_strided(x, size, strides, offset),
            lambda x, new: as_strided_scatter(x, new, size, strides, offset),
            lambda shape, steps: (size, strides),
        )
        if self._only is None:
            self._only = tensor, step
        else:
            if self._base is None:
                self._base = from_storage(aval((count,), dtype, self.device), self.memory)
                views.watched(self._only[0], self._base, (self._only[1],))
            if self._base.dtype is dtype:
                views.watched(tensor, self._base, (step,))
        return tensor


Place = Callable[[Stored, str], Stored]  # where a storage goes, by the device that it was on


def reference(content: Any) -> tuple[StorageKind, str, str, int]:
    """Return the kind, key, device and number of elements of a storage that a pickle refers to."""
    if type(content) is not tuple or len(content) != 5 or content[0] != "storage":
        raise ValueError("it refers to something other than a storage")
    _, kind, key, location, count = content
    if not isinstance(kind, StorageKind) or type(key) is not str or type(count) is not int or count < 0:
        raise ValueError("it refers to an impossible storage")
    return kind, key, str(location), count


def require_bools(stored: Stored) -> None:
    """Raise ValueError for a storage of bools with other bytes than 0 and 1."""
    if stored.dtype is dtypes.bool_ and np.asarray(stored.memory).max(initial=0) > 1:
        raise ValueError("the elements of a storage of bools must be 0 or 1")


def _rebuild_tensor(storage: Stored, offset: int, size: Shape, strides: Shape) -> Tensor:
    if storage.dtype is None:
        raise ValueError("a tensor has no dtype")
    return storage.tensor(storage.dtype, offset, tuple(size), tuple(strides))


def rebuild_tensor(
    storage: Stored, offset: int, size: Shape, strides: Shape, requires_grad: bool, hooks: Any, metadata: Any = None
) -> Tensor:
    """Return a tensor over a storage."""
    tensor = _rebuild_tensor(storage, offset, size, strides)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_of_dtype(
    storage: Stored, offset: int, size: Shape, strides: Shape, requires_grad: bool, hooks: Any, dtype: DType,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of ``dtype`` over a storage of bytes."""
    tensor = storage.tensor(dtype, offset, tuple(size), tuple(strides))
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any, state: Any = None) -> Parameter:
    """Return a Parameter of the value ``data``, with the attributes in ``state``."""
    attributes = dict(state or {})
    parameter: Parameter = Parameter.__new__(Parameter)
    Variable.__setstate__(
        parameter,
        {
            "value": data,
            "requires_grad": bool(requires_grad),
            "name": str(attributes.pop(NAME, "")),
            "grad": None,
            "attributes": {"is_sparse": False} | attributes,
        },
    )
    return parameter


def rebuild_with_attributes(function: Callable[..., Any], kind: Any, args: tuple[Any, ...], state: Any) -> Any:
    """Return the tensor ``function(*args)`` with the attributes that the user has set."""
    if kind is not Tensor and kind is not Parameter:
        raise ValueError(f"a tensor is of the class {getattr(kind, '__name__', kind)}")
    result = function(*args)
    attributes = state[0] if isinstance(state, tuple) else state
    for name, value in dict(attributes or {}).items():
        if not name.startswith("__"):
            setattr(result, name, value)
    return result


def _layout(name: str) -> str:
    """Return the layout of dense tensors, the only one here."""
    if name != "torch.strided":
        raise ValueError(f"a tensor has the layout {name}")
    return "strided"


def encode(text: str, encoding: str = "utf-8") -> bytes:
    """Return the bytes of ``text``, as pickles write bytes."""
    return codecs.encode(text, encoding) if encoding in ("latin1", "latin-1", "utf-8") else text.encode("ascii")


CALLED: Final[dict[str, Callable[..., Any]]] = {  # by their names in PyTorch
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild_of_dtype,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": rebuild_with_attributes,
}
VALUES: Final[dict[str, Any]] = {
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.Size": tuple,
    "torch.device": as_device,
    "torch.serialization._get_layout": _layout,
    **{f"torch.{dtype.name}": dtype for dtype in dtypes.ALL},
    **{f"torch.{kind.name}": kind for kind in KINDS.values()},
    "torch.storage.UntypedStorage": UNTYPED,
}
PLAIN: Final[dict[str, Any]] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": encode,
    **{
        f"{module}.{kind.__name__}": kind
        for kind in (set, bytearray, complex)
        for module in ("builtins", "__builtin__")
    },
}
SAFE: Final = CALLED | VALUES | PLAIN


def place_of(value: Any) -> str | None:
    """Return the name in PyTorch of a dtype, storage class, class or function here; None if it has none."""
    if isinstance(value, StorageKind):
        return f"torch.{value.name}" if value.dtype is not None else "torch.storage.UntypedStorage"
    if isinstance(value, DType):
        return f"torch.{value.name}"
    if value is Tensor or value is Parameter:
        return "torch.Tensor" if value is Tensor else "torch.nn.parameter.Parameter"
    if value is as_device:
        return "torch.device"
    return _NAMES.get(value) if callable(value) and getattr(value, "__module__", None) == __name__ else None


_NAMES: Final = {function: name for name, function in CALLED.items()}
