"""Write the archives that ``torch.save`` writes: PyTorch reads the tensors in them."""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from pathlib import PurePath
from typing import Any, Final, cast

import numpy as np

from runnel.backends.host.memory import Storage
from runnel.core.devices import Device, as_device
from runnel.core.errors import FileError
from runnel.core.files import write_atomically
from runnel.io.torch_files import archive, objects
from runnel.nn.parameter import Parameter
from runnel.tensor import copying
from runnel.tensor.tensor import Tensor

_TENSORS: Final = (Tensor, Parameter)
_PythonPickler: Any = vars(pickle)["_Pickler"]  # the one whose names can be replaced


class Pickler(_PythonPickler):  # type: ignore[misc]
    """Pickles objects with PyTorch's names for tensors, Parameters and dtypes, and collects their ``storages``."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: Final[dict[str, np.ndarray]] = {}
        self._keys: Final[dict[tuple[int, str], str]] = {}
        self._owners: Final[list[Storage]] = []  # keeps the storages alive whose ids are in _keys

    def persistent_id(self, obj: Any) -> Any:
        """Return PyTorch's reference to a storage; None for other objects."""
        if type(obj) is not _Elements:
            return None
        storage, kind, itemsize = obj
        place = id(storage), kind.name
        key = self._keys.get(place)
        if key is None:
            key = self._keys[place] = str(len(self._keys))
            self._owners.append(storage)
            self.storages[key] = np.asarray(storage)
        return ("storage", kind, key, "cpu", self.storages[key].nbytes // itemsize)

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is made again, if PyTorch makes it in a special way."""
        kind = type(obj)
        if kind is Tensor:
            return _tensor(obj)
        if kind is Parameter:
            state = obj.__getstate__()
            attributes = {name: x for name, x in state["attributes"].items() if name != "is_sparse" or x}
            named = {objects.NAME: obj.name} if obj.name else {}
            return objects.rebuild_parameter, (state["value"], obj.requires_grad, OrderedDict(), named | attributes)
        if isinstance(obj, Device):
            return as_device, (obj.name,)
        return objects.place_of(obj) or NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a class or function, its name in PyTorch if it has one."""
        place = objects.place_of(obj)
        if place is None:
            super().save_global(obj, name)
            return
        module, _, own = place.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{own}\n".encode())
        self.memoize(obj)


class _Elements(tuple[Any, ...]):
    """The storage of a tensor, its class in PyTorch, and the size of its elements."""

    __slots__ = ()


def _tensor(tensor: Tensor) -> tuple[Any, ...]:
    storage, offset, strides = copying.memory_of(tensor)
    dtype = tensor.dtype
    kind = objects.KINDS.get(dtype)
    elements = _Elements((storage, kind or objects.UNTYPED, dtype.itemsize if kind else 1))
    args: Any = elements, offset, tuple(tensor.shape), strides, tensor.requires_grad, OrderedDict()
    made: tuple[Any, ...] = (objects.rebuild_tensor, args) if kind else (objects.rebuild_of_dtype, (*args, dtype))
    attributes = copying.added_to(tensor)
    return (objects.rebuild_with_attributes, (made[0], Tensor, made[1], attributes)) if attributes else made


def save(obj: Any, file: Any, protocol: int = 2) -> None:
    """Write an object to a path or an open file.

    A file at a path replaces an old one when it is complete and on the disk.

    Raises:
        FileError: the file cannot be written. An existing file is unchanged.
    """
    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol)
    pickler.dump(obj)
    is_open = hasattr(file, "write")
    folder = "archive" if is_open else PurePath(os.fsdecode(file)).stem or "archive"
    pieces = archive.pieces(folder, pickled.getvalue(), pickler.storages)
    if is_open:
        for piece in pieces:
            file.write(piece)
        return
    try:
        write_atomically(cast(Any, file), pieces)
    except OSError as error:
        raise FileError(
            f"[save] '{os.fsdecode(file)}' could not be written: {error.strerror or error}. An existing file is "
            "unchanged."
        ) from error
