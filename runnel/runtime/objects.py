"""The cache of compiled objects on disk: a key (SHA-256 in hex) to the bytes of an object file, or of a program.

Several processes may use one folder at once: files appear by renaming, each carries its checksum, and whoever finds a
file missing, damaged or in the way treats it as a miss. A folder that cannot be used is no error, only no cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runnel.core import switches

_MAGIC: Final = b"runnel object 1\n"
_HEADER: Final = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX: Final = ".rno"
_TOUCH_AFTER: Final = 3600.0  # seconds: a file used within the hour is young enough not to be touched again
_ABANDONED_AFTER: Final = 3600.0  # seconds after which a temporary file belongs to no living writer
_SCAN_EVERY: Final = 64  # writes between two looks at what other processes put into the folder


@dataclass(slots=True)
class Statistics:
    """Kernels this process compiled, read from disk, and found already linked."""

    compiled: int = 0
    loaded: int = 0
    reused: int = 0


statistics: Final = Statistics()


def user_cache_dir() -> Path:
    """Where this system keeps a user's caches (XDG Base Directory Specification on Linux)."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(base) / "runnel" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "runnel"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "runnel"


class ObjectCache:
    """One folder of objects, holding at most ``limit`` bytes: the least recently used go first."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder: Final = folder
        self.limit: Final = limit
        self._held = 0  # bytes in the folder at the last scan, and written since
        self._writes = 0

    def get(self, key: str) -> bytes | None:
        """The object stored under ``key``; None if there is none or the file is damaged (then it is removed)."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                content = file.read()
                modified = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        body = content[_HEADER:]
        if content[:_HEADER] != _MAGIC + hashlib.sha256(body).digest():
            _note(f"removed the damaged object {path}")
            _remove(path)
            return None
        if time.time() - modified > _TOUCH_AFTER:
            with contextlib.suppress(OSError):
                os.utime(path)
        return body

    def put(self, key: str, body: bytes) -> None:
        """Store ``body`` under ``key``. A full disk or a folder that cannot be written leaves the cache as it was."""
        content = _MAGIC + hashlib.sha256(body).digest() + body
        if len(content) > self.limit:
            return
        temporary = ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(suffix=".tmp", dir=self.folder)
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, self._path(key))
        except OSError as error:
            _note(f"the kernel cache {self.folder} cannot be written: {error}")
            if temporary:
                _remove(temporary)
            return
        self._held += len(content)
        if self._writes % _SCAN_EVERY == 0 or self._held > self.limit:
            self._evict()
        self._writes += 1

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key + _SUFFIX)

    def _evict(self) -> None:
        """Count the folder anew and, above the limit, remove the oldest files down to three quarters of it."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    state = entry.stat()
                    if entry.name.endswith(_SUFFIX):
                        found.append((state.st_mtime, state.st_size, entry.path))
                    elif entry.name.endswith(".tmp") and time.time() - state.st_mtime > _ABANDONED_AFTER:
                        _remove(entry.path)
        self._held = sum(size for _, size, _ in found)
        if self._held <= self.limit:
            return
        for _, size, path in sorted(found):
            if self._held <= self.limit * 3 // 4:
                return
            _remove(path)
            self._held -= size


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)


def _note(text: str) -> None:
    if switches.debug.value >= 1:
        print(f"runnel: {text}", file=sys.stderr)


_OPEN: dict[tuple[str, int], ObjectCache] = {}


def current() -> ObjectCache | None:
    """The cache the switches ask for; None where they ask for none, or this user has no home."""
    if not switches.cache.value:
        return None
    key = (switches.cache_dir.value, switches.cache_size.value)
    if key not in _OPEN:
        try:
            folder = Path(key[0]) if key[0] else user_cache_dir()
        except RuntimeError as error:
            _note(f"no kernel cache: {error}")
            return None
        _OPEN[key] = ObjectCache(folder, key[1])
    return _OPEN[key]
