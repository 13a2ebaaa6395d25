"""Memory-mapped files: arrays and lines of text. Only what you read is loaded, and processes share it."""

from __future__ import annotations

import bisect
import itertools
import mmap
import operator
import os
import struct
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy

from runnel.core.errors import ArgumentError, FileError
from runnel.data.datasets import Dataset
from runnel.io import safetensors

Path = str | os.PathLike[str]


def open_array(path: Path) -> np.ndarray:
    """Return the array of a ``.npy`` file, mapped and read-only. FileError if it is truncated or holds objects."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            return _mapped_npy(file, 0, os.fstat(file.fileno()).st_size)
    except (ValueError, EOFError) as error:
        raise FileError(f"[open_array] '{name}' is no .npy file that can be mapped: {error}.") from None


def open_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a ``.npz`` or ``.safetensors`` file by name, mapped and read-only.

    Compressed members of an npz file (``np.savez_compressed``) are read into memory. FileError for a file that is
    truncated or damaged.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            start = file.read(4)
            file.seek(0)
            return _npz(path, file) if start == b"PK\x03\x04" else _safetensors(file)
    except (ValueError, EOFError, KeyError, struct.error, zipfile.BadZipFile) as error:
        raise FileError(f"[open_arrays] '{name}' is no .npz or .safetensors file that can be read: {error}.") from None


def _mapped_npy(file: Any, start: int, end: int) -> np.ndarray:
    """Map the array whose npy header begins at byte ``start``."""
    file.seek(start)
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format is not known")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    return _mapped(file, file.tell(), end, shape, dtype, "F" if is_fortran else "C")


def _mapped(file: Any, start: int, end: int, shape: tuple[int, ...], dtype: np.dtype, order: Any = "C") -> np.ndarray:
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if start + size > end:
        raise ValueError(f"it has {end - start} bytes of {size}")
    if not size:
        return np.zeros(shape, dtype)
    return np.ndarray(shape, dtype, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), start, order=order)


def _npz(path: Path, file: Any) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    end = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type == zipfile.ZIP_STORED:
                file.seek(entry.header_offset + 26)  # the local header's lengths of name and extra field
                lengths = struct.unpack("<HH", file.read(4))
                start = entry.header_offset + 30 + sum(lengths)
                arrays[name] = _mapped_npy(file, start, min(start + entry.file_size, end))
            else:
                with archive.open(entry) as member:
                    arrays[name] = npy.read_array(member, allow_pickle=False)
    return arrays


def _safetensors(file: Any) -> dict[str, np.ndarray]:
    size = os.fstat(file.fileno()).st_size
    length = safetensors.length(file.read(8), size)
    entries, _ = safetensors.parsed(file.read(length), size - 8 - length)
    start = 8 + length
    return {
        name: _mapped(file, start + entry.start, start + entry.end, entry.shape, safetensors.BY_CODE[entry.code].numpy)
        for name, entry in entries.items()
    }


class TextLines(Dataset[str]):
    """The lines of UTF-8 files, in the order of the files, without line ends.

    Files are mapped, and only the starts of lines are kept in memory. FileError for a line that is not UTF-8.
    """

    def __init__(self, *paths: Path) -> None:
        if not paths:
            raise ArgumentError("[TextLines] there are no files; pass one at least.")
        self.paths = [os.fspath(path) for path in paths]
        self._open()
        self._ends = list(itertools.accumulate(len(begins) - 1 for _, begins in self._files))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: Any) -> str:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"[TextLines] line {number} of {len(self)} was asked for.")
        number %= len(self)
        file = bisect.bisect_right(self._ends, number)
        line = number - (self._ends[file - 1] if file else 0)
        content, begins = self._files[file]
        text = content[begins[line] : begins[line + 1]].removesuffix(b"\n").removesuffix(b"\r")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FileError(f"[TextLines] line {line + 1} of '{self.paths[file]}' is no UTF-8: {error}.") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self.paths, "_ends": self._ends}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _open(self) -> None:
        self._files = [_lines(path) for path in self.paths]


def _lines(path: str) -> tuple[Any, np.ndarray]:
    """Return the bytes of a file, and the offsets of its lines and of the end."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b"", np.zeros(1, np.int64)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begins = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    ends = [] if len(begins) and begins[-1] == len(content) else [len(content)]
    return content, np.concatenate([[0], begins, ends]).astype(np.int64)
