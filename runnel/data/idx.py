"""The idx format of the MNIST files (Y. LeCun): two zero bytes, element type, rank, sizes, big-endian elements."""

from __future__ import annotations

import math

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.gz import unpacked

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(data: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an idx file, compressed by gzip or not. ``name`` is for messages."""
    data = unpacked(data, name)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise RunnelError(f"[read_idx] '{name}' is no idx file.")
    dtype, rank = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise RunnelError(f"[read_idx] '{name}' has {len(data)} bytes; its header alone needs {start}.")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", rank, 4))
    size = start + math.prod(shape) * dtype.itemsize
    if len(data) != size:
        raise RunnelError(f"[read_idx] '{name}' has {len(data)} bytes; its header asks for {size}.")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
