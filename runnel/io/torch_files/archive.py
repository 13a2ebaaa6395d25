"""The archive of a file: ZIP without compression, whose first folder has any name.

``data.pkl`` is the pickled object, ``data/0`` … are the storages that it refers to, ``byteorder`` and ``version``
describe them. Storages begin at multiples of 64 bytes, so that they can be mapped into memory.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from typing import IO, Any, Final

import numpy as np

from runnel.backends.host import memory
from runnel.backends.host.memory import Storage

ALIGNMENT: Final = 64
START: Final = b"PK\x03\x04"
_CHUNK: Final = 1 << 24  # bytes that are read at a time
_HEADER: Final = 30  # bytes of an entry's header before its name
_PADDING: Final = 0x4246  # the kind of extra field that only fills


class Pieces:
    """A file that is written from the start to the end and collects what is written, without copying it."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.length = 0

    def write(self, data: Any) -> int:
        """Append ``data``, which must not change from now on."""
        size = len(data)
        self.pieces.append(data)
        self.length += size
        return size

    def tell(self) -> int:
        """Return the number of bytes."""
        return self.length

    def flush(self) -> None:
        """Do nothing: the pieces are in memory."""


def pieces(folder: str, pickled: bytes, storages: Mapping[str, np.ndarray]) -> list[Any]:
    """Return the bytes of an archive, in pieces. ``storages`` are vectors of bytes by key."""
    entries: dict[str, Any] = {
        "data.pkl": pickled,
        ".format_version": b"1",
        ".storage_alignment": str(ALIGNMENT).encode(),
        "byteorder": b"little",
        **{f"data/{key}": storage.data for key, storage in storages.items()},
        "version": b"3\n",
    }
    written = Pieces()
    with zipfile.ZipFile(written, "w") as archive:  # type: ignore[call-overload]
        for name, content in entries.items():
            entry = zipfile.ZipInfo(f"{folder}/{name}")
            entry.file_size = len(content)
            begins = written.length + _HEADER + len(entry.filename.encode()) + 4
            if len(content) * 1.05 > zipfile.ZIP64_LIMIT:
                begins += 20
            filler = -begins % ALIGNMENT
            entry.extra = struct.pack("<HH", _PADDING, filler) + bytes(filler)
            archive.writestr(entry, content)
    return written.pieces


class Archive:
    """An archive that is read. Raises ValueError or zipfile.BadZipFile if it is damaged, KeyError for entries that it
    does not have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file: Final = file
        self._zip: Final = zipfile.ZipFile(file)
        names = self._zip.namelist()
        ends = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
        self.is_script: Final = any(name.endswith("/constants.pkl") for name in names)
        if len(ends) != 1:
            raise ValueError("it is a ZIP archive without the entry data.pkl, and so not a file of torch.save")
        self._folder: Final = ends[0].removesuffix("data.pkl")
        order = f"{self._folder}byteorder"
        self.is_little: Final = order not in names or self._zip.read(order) == b"little"

    def pickled(self) -> bytes:
        """Return the pickled object."""
        return self._zip.read(f"{self._folder}data.pkl")

    def storage(self, key: str, nbytes: int) -> Storage:
        """Return the ``nbytes`` bytes of a storage in new memory."""
        entry = self._entry(key, nbytes)
        storage = memory.allocate(nbytes)
        room = storage.ndarray((nbytes,), np.uint8, writeable=True)
        at = 0
        with self._zip.open(entry) as content:
            while at < nbytes:
                count = content.readinto(room[at : at + _CHUNK].data)  # type: ignore[attr-defined]
                if not count:
                    raise ValueError(f"it ends in the middle of storage {key}")
                at += count
            content.read(1)  # checks the sum
        return storage

    def mapped(self, key: str, nbytes: int, path: str) -> Storage:
        """Return the bytes of a storage in the file at ``path``, which are read when they are used."""
        entry = self._entry(key, nbytes)
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"mmap=True needs storages without compression, and storage {key} is compressed")
        self._file.seek(entry.header_offset)
        header = self._file.read(_HEADER)
        name, extra = struct.unpack("<HH", header[26:30])
        begin = entry.header_offset + _HEADER + name + extra
        mapped: Any = np.memmap(path, np.uint8, "c", begin, (nbytes,)) if nbytes else np.zeros(0, np.uint8)
        return Storage.wrap(mapped)

    def _entry(self, key: str, nbytes: int) -> zipfile.ZipInfo:
        entry = self._zip.getinfo(f"{self._folder}data/{key}")
        if entry.file_size != nbytes:
            raise ValueError(f"storage {key} has {entry.file_size} bytes, and {nbytes} are expected")
        return entry
