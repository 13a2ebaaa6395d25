"""Machine code that was generated when the package was built: one file of object files beside this module.

The file is part of wheels (``scripts/prebuilt.py`` makes it), and absent from a checkout. Its keys are digests of the
generator's sources, the target, and the identity of each module, so code of other sources is never found. The package's
own Python code is trusted as much.

The file: ``MAGIC``, the number of entries (8 bytes), for each entry its key (32 bytes), offset and length (8 bytes
each), then the object files. Numbers are little-endian.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("prebuilt.bin")
MAGIC: Final = b"runnel code 1\n"
_ENTRY: Final = struct.Struct("<32sQQ")

recording: dict[bytes, bytes] | None = None  # object files by key, while an archive is made


def key(machine: str, identity: str) -> bytes:
    """Return the key of a module; ``machine`` describes the LLVM machine in full."""
    return hashlib.sha256(f"{machine}\n{identity}".encode()).digest()


def get(key: bytes) -> bytes | None:
    """Return the object file of a module; None if it was not prebuilt."""
    content, places = _opened()
    place = places.get(key)
    return None if place is None else content[place[0] : place[0] + place[1]]


def write(path: Path, codes: Mapping[bytes, bytes]) -> None:
    """Write an archive of object files by key."""
    offset = len(MAGIC) + 8 + len(codes) * _ENTRY.size
    index = []
    for each, code in sorted(codes.items()):
        index.append(_ENTRY.pack(each, offset, len(code)))
        offset += len(code)
    bodies = [code for _, code in sorted(codes.items())]
    path.write_bytes(b"".join([MAGIC, len(codes).to_bytes(8, "little"), *index, *bodies]))


@functools.cache
def _opened() -> tuple[bytes | mmap.mmap, dict[bytes, tuple[int, int]]]:
    """Return the content of the file and the offset and length of each entry; nothing if it is absent or cut off."""
    try:
        with PATH.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: an empty file
        return b"", {}
    begin = len(MAGIC) + 8
    count = int.from_bytes(content[len(MAGIC) : begin], "little")
    end = begin + count * _ENTRY.size
    if content[: len(MAGIC)] != MAGIC or end > len(content):
        return b"", {}
    places = {each: (offset, length) for each, offset, length in _ENTRY.iter_unpack(content[begin:end])}
    is_whole = all(offset + length <= len(content) for offset, length in places.values())
    return (content, places) if is_whole else (b"", {})
