"""Reading files that may be compressed by gzip."""

from __future__ import annotations

import gzip
import io
import zlib

from runnel.core.errors import RunnelError


def unpacked(data: bytes, name: str, largest: int = 1 << 32) -> bytes:
    """The bytes of file ``name``, uncompressed if they are compressed; an error if there are more than ``largest``."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RunnelError(f"'{name}' is no intact gzip file: {error}.") from None
    if len(content) > largest:
        raise RunnelError(f"'{name}' has more than {largest} bytes when it is uncompressed.")
    return content
