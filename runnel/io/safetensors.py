"""Named tensors in a file of the safetensors format (github.com/huggingface/safetensors)."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from io import FileIO
from typing import Any, NamedTuple

import numpy as np

from runnel.backends.host import memory
from runnel.core import dtypes
from runnel.core.avals import aval
from runnel.core.errors import FileError
from runnel.core.files import write_atomically
from runnel.io import header
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor, from_storage

Path = str | os.PathLike[str]


def save_file(tensors: Mapping[str, Any], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors (as ``state_dict()`` gives them) to ``path``. On an error, what was there stays there.

    Args:
        tensors: tensors, Variables or NumPy arrays by name.
        path: the file.
        metadata: strings by name, kept in the file's header.

    Raises:
        FileError: the file cannot be written.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        if not header.is_name(name):
            raise ValueError(f"[save_file] a tensor cannot be called {name!r} in a file.")
        arrays[name] = asarray(value).numpy()
    for key, text in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"[save_file] metadata are strings by name; received {key!r}: {text!r}.")
    write("save_file", path, arrays, metadata or {})


def load_file(path: Path) -> dict[str, Tensor]:
    """The named tensors of the file at ``path``. FileError if it is damaged, or no safetensors file."""
    return dict(sorted(read("load_file", path).tensors.items()))


class Contents(NamedTuple):
    """What a file holds."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def write(op: str, path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write a file whole or not at all; errors name ``op``."""
    try:
        write_atomically(path, header.pieces(arrays, metadata))
    except OSError as error:
        wrapped = FileError(
            f"[{op}] '{os.fspath(path)}' could not be written: {error.strerror or error}. What was there is unchanged."
        )
        wrapped.errno = error.errno
        raise wrapped from error
    except ValueError as error:
        raise FileError(f"[{op}] '{os.fspath(path)}' was not written: {error}.") from None


def read(op: str, path: Path) -> Contents:
    """Read a file; errors name ``op``. Nothing is allocated for what the file does not hold."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not wait for its writer
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("it is no regular file")
        with FileIO(handle, closefd=False) as file:
            length = header.length(file.read(8), state.st_size)
            entries, metadata = header.parsed(file.read(length), state.st_size - 8 - length)
            return Contents({name: _tensor(file, name, entry) for name, entry in entries.items()}, metadata)
    except ValueError as error:
        raise damaged(op, path, str(error)) from None
    finally:
        os.close(handle)


def damaged(op: str, path: Path, reason: str) -> FileError:
    """The error for a file that is not what it should be."""
    return FileError(f"[{op}] '{os.fspath(path)}' cannot be read: {reason}.")


def _tensor(file: FileIO, name: str, entry: header.Entry) -> Tensor:
    dtype = header.BY_CODE[entry.code]
    storage = memory.allocate(entry.end - entry.start)
    room = storage.ndarray((entry.end - entry.start,), np.uint8, writeable=True)
    at = 0
    while at < room.size:
        count = file.readinto(room[at:].data)  # a system call gives at most 2 GiB
        if not count:
            raise ValueError(f"it ends in the middle of '{name}'")
        at += count
    if dtype is dtypes.bool_ and room.size and room.max() > 1:
        raise ValueError(f"'{name}' holds truth values other than 0 and 1")
    return from_storage(aval(entry.shape, dtype), storage)
