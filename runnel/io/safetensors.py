"""Named tensors in files of the safetensors format (github.com/huggingface/safetensors).

A file consists of eight bytes with the length of the header, the header, and the bytes of all arrays without gaps. The
header is JSON: the dtype, shape and byte range of each array by name.

This module reads and writes the format itself, so that a state is copied neither on its way to the disk nor back. The
tests compare with the original library.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.backends.host import memory
from runnel.core import dtypes
from runnel.core.avals import aval
from runnel.core.dtypes import DType
from runnel.core.errors import FileError
from runnel.core.files import write_atomically
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor, from_storage

HEADER_LIMIT: Final = 100_000_000  # bytes, as in that library
_METADATA: Final = "__metadata__"
_AXES: Final = 32  # as many as every version of NumPy has
_ALIGNMENT: Final = 8


class Entry(NamedTuple):
    """An array in a file: the format's name of its dtype, its shape, and its byte range after the header."""

    code: str
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """The header of a file, with entries in the order of their bytes."""

    entries: dict[str, Entry]
    metadata: dict[str, str]


def _code(dtype: DType) -> str:
    """Return the format's name of a dtype: F32, BF16, I64, U8, BOOL."""
    if dtype is dtypes.bool_:
        return "BOOL"
    if dtype is dtypes.bfloat16:
        return "BF16"
    return f"{dtype.kind[0].upper()}{8 * dtype.itemsize}"


BY_CODE: Final = {_code(dtype): dtype for dtype in dtypes.ALL}


def is_name(name: Any) -> bool:
    """Return whether an array can have this name."""
    if not isinstance(name, str) or name == _METADATA:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def pieces(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> Iterator[memoryview]:
    """Yield the bytes of a file. Larger elements come first, so that each is aligned to its size."""
    order = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    described: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    place = 0
    for name in order:
        array = arrays[name]
        offsets = [place, place + array.nbytes]
        described[name] = {
            "dtype": _code(dtypes.from_numpy(array.dtype)), "shape": list(array.shape), "data_offsets": offsets,
        }  # fmt: skip
        place += array.nbytes
    header = json.dumps(described, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNMENT)
    if len(header) > HEADER_LIMIT:
        raise ValueError(f"the header must have at most {HEADER_LIMIT} bytes; it would have {len(header)}")
    yield memoryview(len(header).to_bytes(8, "little") + header)
    for name in order:
        native = arrays[name].astype(arrays[name].dtype.newbyteorder("="), order="C", copy=False)
        yield native.reshape(-1).view(np.uint8).data


_OTHERS: Final = {  # how other files begin, unless it is the length of a header
    b"PK\x03\x04": "a ZIP archive; runnel.compat.torch.load reads files of torch.save, numpy.load files of numpy.savez",
    b"\x80\x02": "a pickle; runnel.compat.torch.load reads files of older versions of torch.save",
    b"\x93NUMPY": "a NumPy array; numpy.load reads it",
    b"\x89HDF": "an HDF5 file; h5py reads it",
    b"GGUF": "a GGUF file, which Runnel does not read; convert it to safetensors",
    b"{": "JSON; if it is the index of a model in several files, load each file that it names",
    b"\x08": "no safetensors file; if it is an ONNX model, load the weights that it was exported from",
}


def length(start: bytes, size: int) -> int:
    """Return the length of the header of a file that has ``size`` bytes and begins with ``start``.

    Raises:
        ValueError: the file cannot have a header of this length.
    """
    if len(start) < 8:
        raise ValueError(f"a header takes at least 8 bytes, and it has {size}")
    stated = int.from_bytes(start[:8], "little")
    if stated > HEADER_LIMIT or stated > size - 8:
        for beginning, what in _OTHERS.items():
            if start.startswith(beginning):
                raise ValueError(f"it is {what}")
        raise ValueError(f"it is truncated, or not a safetensors file; it has {size} bytes")
    return stated


def parsed(header: bytes, room: int) -> Header:
    """Parse a header that is followed by ``room`` bytes; raise ValueError if it violates the format."""
    try:
        content = json.loads(header.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError("its header is not a JSON object")
    metadata = content.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata are not strings")
    entries = {name: _entry(name, entry) for name, entry in content.items()}
    in_order = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)))
    place = 0
    for name, entry in in_order.items():
        if entry.start != place:
            raise ValueError(f"'{name}' must begin at byte {place}, and begins at {entry.start}")
        place = entry.end
    if place != room:
        raise ValueError(f"its arrays take {place} bytes, and it has {room}")
    return Header(in_order, metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _entry(name: str, entry: Any) -> Entry:
    if not isinstance(entry, dict) or not entry.keys() >= {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"'{name}' must have dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"the dtype of '{name}' must be a string, and its shape and data_offsets whole numbers")
    if len(shape) > _AXES or math.prod(max(n, 1) for n in shape) >= 1 << 60:
        raise ValueError(f"'{name}' has the impossible shape {str(shape)[:100]}")
    dtype = BY_CODE.get(code)
    if dtype is None:
        raise ValueError(f"'{name}' has element type {code[:20]}, which Runnel does not support")
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"'{name}' has shape {shape} and {offsets[1] - offsets[0]} bytes")
    return Entry(code, tuple(shape), offsets[0], offsets[1])


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


Path = str | os.PathLike[str]


def save_file(tensors: Mapping[str, Any], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors, for example a ``state_dict()``, to a file.

    Args:
        tensors: tensors, Variables or NumPy arrays by name.
        path: the file.
        metadata: strings by name, which are stored in the header of the file.

    Raises:
        FileError: the file cannot be written. An existing file is unchanged.

    Example:
        >>> rn.save_file(model.state_dict(), "model.safetensors")
    """
    arrays: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        if not is_name(name):
            raise ValueError(f"[save_file] a name must be a string other than {_METADATA!r}; got {name!r}.")
        arrays[name] = asarray(value).numpy()
    for key, text in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"[save_file] metadata must be strings by name; got {key!r}: {text!r}.")
    write("save_file", path, arrays, metadata or {})


def load_file(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a file by name, sorted.

    Raises:
        FileError: the file is damaged, or not a safetensors file.

    Example:
        >>> model.load_state_dict(rn.load_file("model.safetensors"))
    """
    return dict(sorted(read("load_file", path).tensors.items()))


class Contents(NamedTuple):
    """The contents of a file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def write(op: str, path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write a file completely or not at all. Errors name ``op``."""
    try:
        write_atomically(path, pieces(arrays, metadata))
    except OSError as error:
        wrapped = FileError(
            f"[{op}] '{os.fspath(path)}' could not be written: {error.strerror or error}. An existing file is "
            "unchanged."
        )
        wrapped.errno = error.errno
        raise wrapped from error
    except ValueError as error:
        raise FileError(f"[{op}] '{os.fspath(path)}' was not written: {error}.") from None


def read(op: str, path: Path) -> Contents:
    """Read a file. Errors name ``op``. Memory is allocated only for bytes that the file has."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not wait for its writer
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("it is not a regular file")
        with FileIO(handle, closefd=False) as file:
            header_bytes = length(file.read(8), state.st_size)
            entries, metadata = parsed(file.read(header_bytes), state.st_size - 8 - header_bytes)
            return Contents({name: _tensor(file, name, entry) for name, entry in entries.items()}, metadata)
    except ValueError as error:
        raise damaged(op, path, str(error)) from None
    finally:
        os.close(handle)


def damaged(op: str, path: Path, reason: str) -> FileError:
    """Return the error for a damaged file."""
    return FileError(f"[{op}] '{os.fspath(path)}' cannot be read: {reason}.")


def _tensor(file: FileIO, name: str, entry: Entry) -> Tensor:
    dtype = BY_CODE[entry.code]
    storage = memory.allocate(entry.end - entry.start)
    room = storage.ndarray((entry.end - entry.start,), np.uint8, writeable=True)
    at = 0
    while at < room.size:
        count = file.readinto(room[at:].data)  # a system call reads at most 2 GiB
        if not count:
            raise ValueError(f"it ends in the middle of '{name}'")
        at += count
    if dtype is dtypes.bool_ and room.size and room.max() > 1:
        raise ValueError(f"the bools of '{name}' must be 0 or 1")
    return from_storage(aval(entry.shape, dtype), storage)
