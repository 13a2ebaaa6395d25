"""The header of a safetensors file (github.com/huggingface/safetensors).

Eight bytes say how long the header is; the header is JSON and gives dtype, shape and place of each array by name; then
come the arrays' bytes in one row without gaps.

It is written and read here, so that a state is neither copied on its way to the disk nor from it; the tests compare
with that library.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from runnel.core import dtypes
from runnel.core.dtypes import DType

HEADER_LIMIT: Final = 100_000_000  # bytes, as in that library
_METADATA: Final = "__metadata__"
_AXES: Final = 32  # as many as every version of NumPy has
_ALIGNMENT: Final = 8


class Entry(NamedTuple):
    """One array: the format's name of its dtype, its shape, and its bytes' place behind the header."""

    code: str
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """What stands in front of the bytes; entries in the order of the bytes."""

    entries: dict[str, Entry]
    metadata: dict[str, str]


def _code(dtype: DType) -> str:
    """The format's name of a dtype: F32, BF16, I64, U8, BOOL."""
    if dtype is dtypes.bool_:
        return "BOOL"
    if dtype is dtypes.bfloat16:
        return "BF16"
    return f"{dtype.kind[0].upper()}{8 * dtype.itemsize}"


BY_CODE: Final = {_code(dtype): dtype for dtype in dtypes.ALL}


def is_name(name: Any) -> bool:
    """Whether an array may be called that."""
    if not isinstance(name, str) or name == _METADATA:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def pieces(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> Iterator[memoryview]:
    """The file, piece by piece. Elements of many bytes come first, so that each lies at a multiple of its size."""
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
        raise ValueError(f"the header takes {len(header)} bytes, more than the {HEADER_LIMIT} that the format allows")
    yield memoryview(len(header).to_bytes(8, "little") + header)
    for name in order:
        native = arrays[name].astype(arrays[name].dtype.newbyteorder("="), order="C", copy=False)
        yield native.reshape(-1).view(np.uint8).data


_CONVERT: Final = "write its tensors there by safetensors.torch.save_file, and read them by runnel.load_file"
_OTHERS: Final = {  # what other files begin with, where that is no length of a header
    b"PK\x03\x04": f"a ZIP archive, such as torch.save and numpy.savez write: for torch.save, {_CONVERT}",
    b"\x80\x02": f"a pickle, such as torch.save wrote before: {_CONVERT}",
    b"\x93NUMPY": "an array of NumPy's: numpy.load reads it",
}


def length(start: bytes, size: int) -> int:
    """The length of the header of a file of ``size`` bytes that begins with ``start``. ValueError if it cannot be."""
    if len(start) < 8:
        raise ValueError(f"it has {size} bytes, too few for a header")
    stated = int.from_bytes(start[:8], "little")
    if stated > HEADER_LIMIT or stated > size - 8:
        for beginning, what in _OTHERS.items():
            if start.startswith(beginning):
                raise ValueError(f"it is {what}")
        raise ValueError(f"it is cut short, or no safetensors file: its header would take {stated} bytes of {size}")
    return stated


def parsed(header: bytes, room: int) -> Header:
    """What a header says, if it fits ``room`` bytes behind it. ValueError if it breaks a rule of the format."""
    try:
        content = json.loads(header.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is no JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError("its header is no JSON object")
    metadata = content.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata are no strings")
    entries = {name: _entry(name, entry) for name, entry in content.items()}
    in_order = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)))
    place = 0
    for name, entry in in_order.items():
        if entry.start != place:
            raise ValueError(f"'{name}' begins at byte {entry.start}, and not at {place}")
        place = entry.end
    if place != room:
        raise ValueError(f"its arrays take {place} bytes, and {room} are there")
    return Header(in_order, metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name stands there twice")
    return entries


def _entry(name: str, entry: Any) -> Entry:
    if not isinstance(entry, dict) or not entry.keys() >= {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"'{name}' is not described by dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"'{name}' is described by other things than a string and whole numbers")
    if len(shape) > _AXES or math.prod(max(n, 1) for n in shape) >= 1 << 60:
        raise ValueError(f"'{name}' has the shape {str(shape)[:100]}, which no array has")
    dtype = BY_CODE.get(code)
    if dtype is None:
        raise ValueError(f"'{name}' has element type {code[:20]}, which Runnel does not hold")
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"'{name}' has shape {shape} and {offsets[1] - offsets[0]} bytes")
    return Entry(code, tuple(shape), offsets[0], offsets[1])


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)
