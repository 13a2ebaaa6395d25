"""Files compressed by gzip or not."""

from __future__ import annotations

import gzip
import zlib

from runnel.core.errors import RunnelError


def unpacked(data: bytes, name: str) -> bytes:
    """The bytes of file ``name``, uncompressed if they are compressed."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise RunnelError(f"'{name}' is no intact gzip file: {error}.") from None
