"""The files of ``torch.save`` before PyTorch 1.6: pickles in a row, followed by the bytes of the storages.

The pickles are a magic number, the version of the format, facts about the machine, the object, and the keys of the
storages in the order of their bytes. Tensors are made over memory that is filled when the bytes are read.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import IO, Any, Final

import numpy as np

from runnel.backends.host import memory
from runnel.io.torch_files import objects
from runnel.io.torch_files.objects import Place, Stored

_MAGIC: Final = 0x1950A86A20F9469CFC6C
_VERSION: Final = 1001


class _Facts(pickle.Unpickler):
    """Unpickles numbers, strings and containers of them."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(f"its header names {module}.{name}")


def load(file: IO[bytes], make: Callable[[IO[bytes]], Any], place: Place) -> Any:
    """Return the object in a file; ``make`` returns an unpickler. ValueError if the file is of another kind."""
    try:
        is_ours = _Facts(file).load() == _MAGIC
    except Exception as error:
        raise ValueError("it is not a file of torch.save, or it is damaged") from error
    if not is_ours:
        raise ValueError("it is a pickle that torch.save did not write; read it with pickle.load")
    version, facts = _Facts(file).load(), _Facts(file).load()
    if version != _VERSION or not isinstance(facts, dict):
        raise ValueError(f"its version must be {_VERSION}; got {version!r}")
    if not facts.get("little_endian", True):
        raise ValueError("its numbers begin with their highest bytes")
    room = _room(file)
    stored: dict[str, Stored] = {}

    def persistent_load(reference: Any) -> Any:
        if type(reference) is tuple and len(reference) == 4 and reference[0] == "module":
            return reference[1]  # a class, followed by its source
        if type(reference) is not tuple or len(reference) != 6 or reference[5] is not None:
            raise ValueError("it refers to something other than a whole storage")
        kind, key, location, count = objects.reference(reference[:5])
        size = 1 if kind.dtype is None else kind.dtype.itemsize
        if key not in stored:
            if count * size > room:
                raise ValueError(f"storage {key} has {count * size} bytes, and the file has {room}")
            stored[key] = place(Stored(memory.allocate(count * size), kind.dtype), location)
        return stored[key]

    unpickler = make(file)
    unpickler.persistent_load = persistent_load
    result = unpickler.load()
    for key in _Facts(file).load():
        _fill(file, stored[key])
    return result


def _room(file: IO[bytes]) -> int:
    """Return the number of bytes that follow."""
    at = file.tell()
    end = file.seek(0, 2)
    file.seek(at)
    return end - at


def _fill(file: IO[bytes], stored: Stored) -> None:
    size = 1 if stored.dtype is None else stored.dtype.itemsize
    (count,) = struct.unpack("<q", file.read(8))
    room = stored.memory.ndarray((stored.memory.nbytes,), np.uint8, writeable=True)
    if count * size != room.size:
        raise ValueError(f"a storage of {room.size} bytes has {count * size} in the file")
    content = file.read(room.size)
    if len(content) != room.size:
        raise ValueError("it ends in the middle of a storage")
    room[...] = np.frombuffer(content, np.uint8)
    objects.require_bools(stored)
