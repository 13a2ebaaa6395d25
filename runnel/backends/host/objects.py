"""The cache on disk: from a key (SHA-256 in hex) to the bytes of an object file, of a program, or of measured rates.

Entries run as machine code. So the folder must be the user's own (``own_folder``), and each entry has a signature over
its key and body, which only the user can compute. An entry that is missing, damaged, or not a signed file of
reasonable size is a miss. Several processes may use one folder at once: files appear atomically. An unusable folder is
not an error: there is one warning and no cache. ``docs/deploy/cache.md`` describes what this trusts. Keys contain a
digest of the package's own sources.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import hmac
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runnel.backends.host.own_folder import open_own_folder, secret_in
from runnel.core import files as atomic_files, switches
from runnel.core.files import read_regular
from runnel.core.records import record

LARGEST: Final = 1 << 26  # bytes of an entry
_MAGIC: Final = b"runnel entry 2\n"
_SIGNATURE: Final = hashlib.sha256
_HEADER: Final = len(_MAGIC) + _SIGNATURE().digest_size
_SUFFIX: Final = ".rno"
_TOUCH_AFTER: Final = 3600.0  # seconds: the time stamp of a file is renewed at most once an hour
_SCAN_EVERY: Final = 64  # writes between two scans for files of other processes


@record(frozen=False)
class Statistics:
    """Kernels this process compiled, loaded from disk, and reused."""

    compiled: int = 0
    loaded: int = 0
    reused: int = 0


statistics: Final = Statistics()


def user_cache_dir() -> Path:
    """Return the folder of this system for a user's caches (XDG Base Directory Specification on Linux)."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg) and sys.platform != "darwin":
        return Path(xdg) / "runnel"
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise FileNotFoundError(errno.ENOENT, "This user has no home folder; RUNNEL_CACHE_DIR can name another", home)
    return Path(home, *(("Library", "Caches") if sys.platform == "darwin" else (".cache",)), "runnel")


class ObjectCache:
    """One folder of entries, holding at most ``limit`` bytes: the least recently used go first."""

    def __init__(self, folder: str | os.PathLike[str], limit: int) -> None:
        self.folder: Final = Path(os.path.abspath(folder))
        self.limit: Final = limit
        self._secret = b""
        self._is_usable = True
        self._has_warned = False
        self._nbytes = 0  # bytes in the folder at the last scan, and written since
        self._writes = 0

    def get(self, key: str) -> bytes | None:
        """Return the entry of ``key``; None if there is none, or none that this user has signed (such a file is
        removed)."""
        with self._opened(create=False) as folder:
            return None if folder is None else self._read(folder, key)

    def put(self, key: str, body: bytes) -> None:
        """Store ``body`` under ``key``. A full disk or a read-only folder leaves the cache unchanged."""
        if _HEADER + len(body) > min(self.limit, LARGEST):
            return
        with self._opened(create=True) as folder:
            if folder is None:
                return
            try:
                signed = [_MAGIC, self._sign(folder, key, body), body]
                atomic_files.put(folder, key + _SUFFIX, signed, 0o600, durable=False)
            except OSError as error:
                self._warn("cannot be written", error)
                return
            self._nbytes += _HEADER + len(body)
            if self._writes % _SCAN_EVERY == 0 or self._nbytes > self.limit:
                self._evict(folder)
            self._writes += 1

    def drop(self, key: str) -> None:
        """Remove the entry of ``key``."""
        with self._opened(create=False) as folder:
            if folder is not None:
                _remove(folder, key + _SUFFIX)

    @contextlib.contextmanager
    def _opened(self, *, create: bool) -> Iterator[int | None]:
        """Yield a handle to the folder; None if there is none, or if it must not be used."""
        handle = None
        if self._is_usable:
            try:
                handle = open_own_folder(self.folder, create=create)
            except OSError as error:
                if create or not isinstance(error, FileNotFoundError):
                    self._is_usable = False
                    self._warn("is not used", error)
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)

    def _read(self, folder: int, key: str) -> bytes | None:
        name = key + _SUFFIX
        try:
            content, state = read_regular(name, LARGEST, folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._discard(folder, name, str(error))
            return None
        body = content[_HEADER:]
        try:
            signature = _MAGIC + self._sign(folder, key, body)
        except OSError as error:
            self._is_usable = False
            self._warn("is not used", error)
            return None
        if not hmac.compare_digest(content[:_HEADER], signature):
            self._discard(folder, name, "not signed by this user for this key")
            return None
        if time.time() - state.st_mtime > _TOUCH_AFTER:
            with contextlib.suppress(OSError):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
        return body

    def _sign(self, folder: int, key: str, body: bytes) -> bytes:
        """Return the signature of an entry, which only this user can compute. The key is a digest of all versions that
        produced the body."""
        if not self._secret:
            self._secret = _user_secret(folder)
        signature = hmac.new(self._secret, _MAGIC + key.encode() + b"\n", _SIGNATURE)
        signature.update(body)
        return signature.digest()

    def _evict(self, folder: int) -> None:
        """Scan the folder and, above the limit, remove the oldest files down to three quarters of it."""
        atomic_files.remove_abandoned(folder)
        entries_by_age: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX):
                    with contextlib.suppress(OSError):
                        state = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(state.st_mode):
                            entries_by_age.append((state.st_mtime, state.st_size, entry.name))
        self._nbytes = sum(size for _, size, _ in entries_by_age)
        if self._nbytes <= self.limit:
            return
        for _, size, name in sorted(entries_by_age):
            if self._nbytes <= self.limit * 3 // 4:
                return
            _remove(folder, name)
            self._nbytes -= size

    def _discard(self, folder: int, name: str, reason: str) -> None:
        _note(f"removed {self.folder / name}: {reason}")
        _remove(folder, name)

    def _warn(self, what: str, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            _warn(f"The kernel cache {self.folder} {what}: {error}. Kernels are compiled again in each process.")


def _user_secret(folder: int) -> bytes:
    """Return the secret in the folder of the user's caches, whatever folder the cache is in, so that a copy of that
    folder does not contain it. For a user without a home it is in the folder itself."""
    try:
        home = open_own_folder(user_cache_dir(), create=True)
    except OSError:
        return secret_in(folder)
    try:
        return secret_in(home)
    except OSError:
        return secret_in(folder)
    finally:
        os.close(home)


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=folder)


def _note(text: str) -> None:
    if switches.debug.value >= 1:
        print(f"runnel: {text}", file=sys.stderr)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


_OPEN: dict[tuple[str, int], ObjectCache | None] = {}


def current() -> ObjectCache | None:
    """Return the cache chosen by the switches; None if it is off, or if this user has no home."""
    if not switches.cache.value:
        return None
    key = (switches.cache_dir.value, switches.cache_size.value)
    if key not in _OPEN:
        try:
            _OPEN[key] = ObjectCache(key[0] or user_cache_dir(), key[1])
        except OSError as error:
            _OPEN[key] = None
            _warn(f"There is no kernel cache: {error}. Kernels are compiled again in each process.")
    return _OPEN[key]


_UNSETTLED: Final = 2 * 10**9  # nanoseconds in which a second change of a file may leave its time as it is
_FORM: Final = re.compile("[0-9a-f]{64}")
_PACKAGE: Final = str(Path(__file__).parents[2])


@functools.cache
def digest(*folders: str) -> str:
    """Return a digest of all Python files in these folders of the package; ``/`` separates names.

    Reading them takes longer than loading a program. So the digest is on disk as well, filed under the files' names,
    sizes and times: a file that these do not show as changed is the same to Python, too, which uses its bytecode.
    """
    files = sorted((path, state) for folder in folders for path, state in _files(os.path.join(_PACKAGE, folder)))
    newest = max((state.st_mtime_ns for _, state in files), default=0)
    cache = current() if time.time_ns() - newest > _UNSETTLED else None
    if cache is None:
        return _of_contents([path for path, _ in files])
    listing = "".join(f"{path} {state.st_size} {state.st_mtime_ns} {state.st_ino}\n" for path, state in files)
    key = hashlib.sha256(f"sources\n{listing}".encode()).hexdigest()
    filed = (cache.get(key) or b"").decode("ascii", "replace")
    if not _FORM.fullmatch(filed):
        filed = _of_contents([path for path, _ in files])
        cache.put(key, filed.encode())
    return filed


def _of_contents(paths: list[str]) -> str:
    checksum = hashlib.sha256()
    for path in paths:
        content = Path(path).read_bytes()
        place = path[len(_PACKAGE) :].replace(os.sep, "/")
        checksum.update(f"{place} {len(content)}\n".encode() + content)
    return checksum.hexdigest()


def _files(folder: str) -> list[tuple[str, os.stat_result]]:
    listed = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                listed.append((entry.path, entry.stat()))
            elif entry.is_dir() and entry.name != "__pycache__":
                listed += _files(entry.path)
    return listed
