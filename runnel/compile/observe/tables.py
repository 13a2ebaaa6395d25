"""The exception table and the position table of code objects: reading and writing.

Formats: CPython's ``Objects/exception_handling_notes.txt`` and ``Objects/locations.md``. Offsets count code units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

Position = tuple[int | None, int | None, int | None, int | None]  # line, end line, column, end column


class Handler(NamedTuple):
    """Exceptions between ``start`` and ``end`` go to ``target``, the stack cut to ``depth``."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def read_handlers(table: bytes) -> list[Handler]:
    """The entries of a ``co_exceptiontable``."""
    handlers: list[Handler] = []
    units = iter(table)
    for first in units:
        start = _big_endian(first, units)
        length = _big_endian(next(units), units)
        target = _big_endian(next(units), units)
        depth = _big_endian(next(units), units)
        handlers.append(Handler(start, start + length, target, depth >> 1, bool(depth & 1)))
    return handlers


def write_handlers(handlers: Iterable[Handler]) -> bytes:
    """A ``co_exceptiontable``; entries in order of their start."""
    out = bytearray()
    for start, end, target, depth, lasti in handlers:
        first = len(out)
        for value in (start, end - start, target, depth << 1 | lasti):
            _write_big_endian(out, value)
        out[first] |= 0x80
    return bytes(out)


def _big_endian(first: int, units: Iterator[int]) -> int:
    value = first & 0x3F
    while first & 0x40:
        first = next(units)
        value = value << 6 | first & 0x3F
    return value


def _write_big_endian(out: bytearray, value: int) -> None:
    chunks = [value & 0x3F]
    while value := value >> 6:
        chunks.append(value & 0x3F | 0x40)
    out.extend(reversed(chunks))


_NO_COLUMNS, _LONG, _NONE = 13, 14, 15


def write_positions(first_line: int, spans: Iterable[tuple[int, Position]]) -> bytes:
    """A ``co_linetable``: pairs of a number of code units and the position that these have."""
    out = bytearray()
    line = first_line
    for size, (start, end, column, end_column) in spans:
        while size > 0:
            length = min(size, 8)
            size -= length
            if start is None:
                out.append(0x80 | _NONE << 3 | length - 1)
                continue
            has_columns = end is not None and column is not None and end_column is not None
            out.append(0x80 | (_LONG if has_columns else _NO_COLUMNS) << 3 | length - 1)
            delta = start - line
            _write_little_endian(out, -delta << 1 | 1 if delta < 0 else delta << 1)
            if end is not None and column is not None and end_column is not None:
                _write_little_endian(out, end - start)
                _write_little_endian(out, column + 1)
                _write_little_endian(out, end_column + 1)
            line = start
    return bytes(out)


def _write_little_endian(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(value & 0x3F | 0x40)
        value >>= 6
    out.append(value)
