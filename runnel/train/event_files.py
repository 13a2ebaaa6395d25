"""TensorBoard's event files, written by their public format: records of serialized ``Event`` messages.

A record is the length of its data (uint64, little-endian), the masked CRC-32C of these eight bytes, the data, and their
masked CRC-32C (tensorflow/core/lib/io/record_writer.h). A message is a sequence of fields, each a key
``number << 3 | wire type`` and a value (protobuf.dev, "Encoding"). The fields are those of ``event.proto`` and
``summary.proto``: Event(wall_time=1, step=2, file_version=3, summary=5, session_log=7), Summary(value=1),
Value(tag=1, simple_value=2), SessionLog(status=1).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

_MASK: Final = 0xA282EAD8
_VERSION: Final = b"brain.Event:2"
_START: Final = 1  # SessionLog.START: what has this step or a later one, and was written before, is void


def _table() -> tuple[int, ...]:
    """The CRC-32C of each byte: polynomial 0x1EDC6F41, reflected (G. Castagnoli et al., 1993)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    """The checksum of ``data``: CRC-32C."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """A checksum as records hold it: rotated by 15 bits, plus a constant."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A record of a file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(crc32c(length))) + data + struct.pack("<I", masked(crc32c(data)))


def first_event(wall_time: float) -> bytes:
    """What a file begins with."""
    return _event(wall_time, 0, _bytes(3, _VERSION))


def start_event(wall_time: float, step: int) -> bytes:
    """What a training that is continued begins with."""
    return _event(wall_time, step, _bytes(7, _varint(1, _START)))


def scalars(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """Figures by their tags, at a step."""
    parts = [_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items()]
    return _event(wall_time, step, _bytes(5, b"".join(parts)))


def _event(wall_time: float, step: int, what: bytes) -> bytes:
    return _key(1, 1) + struct.pack("<d", wall_time) + _varint(2, step) + what


def _key(number: int, wire: int) -> bytes:
    return _base128(number << 3 | wire)


def _varint(number: int, value: int) -> bytes:
    return _key(number, 0) + _base128(value & 0xFFFFFFFFFFFFFFFF)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _base128(len(value)) + value


def _float(number: int, value: float) -> bytes:
    return _key(number, 5) + struct.pack("<f", value)


def _base128(value: int) -> bytes:
    """Groups of seven bits, the lowest first; all but the last have the top bit set."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)
