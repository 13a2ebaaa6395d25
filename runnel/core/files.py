"""Atomic file writes: to an unnamed file, synced, then put in place at the end.

A writer that is killed leaves nothing behind, because a file without a name goes with its last handle. Where the file
system has no unnamed files, and for the instant in which an existing file is replaced, the new file has a name of its
own. It is locked for as long as its writer lives, so whoever writes into the folder next knows it is abandoned.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterable
from typing import Final

Piece = bytes | bytearray | memoryview

_PREFIX: Final = ".runnel-"
_SUFFIX: Final = ".part"
_ABANDONED_AFTER: Final = 86_400.0  # seconds without a write, where the file system has no locks to ask
_NO_UNNAMED_FILES: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS)


def write_atomically(path: str | bytes | os.PathLike[str], pieces: Iterable[Piece]) -> None:
    """Make the concatenation of ``pieces`` the content of the file at ``path``, durably.

    Whatever happens meanwhile, the file there is the old one or all of the new one. Like ``open(path, "wb")`` this
    follows links, keeps the permissions of a file that exists, and asks for the right to write to it; unlike ``open``
    it refuses what is no regular file (a device, a pipe), which it could only replace.

    Raises:
        OSError: the file cannot be written; what was there is unchanged.
    """
    folder_path, name = os.path.split(os.path.realpath(os.fsdecode(path)))
    folder = open_folder(folder_path)
    try:
        mode = _mode_to_keep(folder, name, os.fsdecode(path))
        remove_abandoned(folder)
        put(folder, name, pieces, mode, durable=True)
    finally:
        os.close(folder)


def open_folder(path: str | os.PathLike[str]) -> int:
    """Return a handle to a folder, relative to which files are named."""
    return os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)


def put(
    folder: int, name: str, pieces: Iterable[Piece], mode: int | None = None, *, durable: bool, replace: bool = True
) -> None:
    """Write ``pieces`` as the content of file ``name`` in an open folder.

    ``mode`` is its permissions, None for the default of new files. A file that is not ``durable`` may be lost or
    damaged if the machine stops, though not if the process does. Without ``replace``, an existing file is a
    FileExistsError.
    """
    file = _NewFile(folder)
    try:
        if mode is not None:
            os.fchmod(file.handle, mode)
        for piece in pieces:
            _write(file.handle, memoryview(piece))
        if durable:
            os.fsync(file.handle)
        file.place(name, replace)
    finally:
        file.close()
    if durable:
        _sync(folder)


def remove_abandoned(folder: int) -> None:
    """Remove what writers that were killed have left in the folder."""
    with contextlib.suppress(OSError):
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            with os.scandir(listing) as entries:
                parts = [e.name for e in entries if e.name.startswith(_PREFIX) and e.name.endswith(_SUFFIX)]
        finally:
            os.close(listing)
        for part in parts:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(folder, part)


def _remove_if_abandoned(folder: int, part: str) -> None:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(part, flags, dir_fd=folder)
    try:
        if _is_abandoned(handle):
            os.unlink(part, dir_fd=folder)
    finally:
        os.close(handle)


def _is_abandoned(handle: int) -> bool:
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return time.time() - state.st_mtime > _ABANDONED_AFTER
    return True


def _mode_to_keep(folder: int, name: str, path: str) -> int | None:
    """Return the permissions of the file to replace, None if it does not exist. Refuse files that may not be
    replaced."""
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(state.st_mode):
        raise FileExistsError(errno.EEXIST, "It exists and is no regular file", path)
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return stat.S_IMODE(state.st_mode)


class _NewFile:
    """A new, locked file in a folder: without a name, or under one that nobody else uses."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._part: str | None = None
        unnamed = _open_unnamed(folder)
        self.handle: Final = self._open_named() if unnamed is None else unnamed

    def place(self, name: str, replace: bool) -> None:
        """Give it its name."""
        if self._part is None and self._link(name):
            return
        if not replace:
            os.link(self._named(), name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            return
        os.replace(self._named(), name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._part = None

    def close(self) -> None:
        """Let go of it. A file that was not placed is gone."""
        if self._part is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._part, dir_fd=self._folder)
        os.close(self.handle)

    def _named(self) -> str:
        if self._part is None:
            self._part = _new_name()
            self._link(self._part)
        return self._part

    def _link(self, name: str) -> bool:
        """Give an unnamed file a name. False if the name is taken."""
        try:  # with a folder this is linkat, which follows links
            os.link(f"/proc/self/fd/{self.handle}", name, dst_dir_fd=self._folder)
        except FileExistsError:
            return False
        return True

    def _open_named(self) -> int:
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            self._part = _new_name()
            handle = os.open(self._part, flags, 0o666, dir_fd=self._folder)
            _lock(handle)
            if os.fstat(handle).st_nlink:
                return handle
            os.close(handle)  # before it was locked, somebody took it for abandoned


def _open_unnamed(folder: int) -> int | None:
    """Return a new, locked file without a name; None if it cannot be made, or could not be named later."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        handle = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            return None
        raise
    if not os.path.exists(f"/proc/self/fd/{handle}"):
        os.close(handle)
        return None
    _lock(handle)
    return handle


def _new_name() -> str:
    return f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"


def _lock(handle: int) -> None:
    """Lock a new file until it is closed, where files can be locked."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)


def _write(handle: int, data: memoryview) -> None:
    if data.nbytes:
        data = data.cast("B")
    while data.nbytes:
        data = data[os.write(handle, data) :]


def _sync(folder: int) -> None:
    """Make the new name itself durable, where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_regular(path: str | os.PathLike[str], largest: int, folder: int | None = None) -> tuple[bytes, os.stat_result]:
    """Return the content and the state of the regular file at ``path`` (in an open ``folder``), of at most
    ``largest`` bytes.

    A pipe would block its reader for ever, and a file of holes can be larger than memory.

    Raises:
        OSError: the file does not exist, is larger, or is a link, a folder, a pipe, a socket or a device.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "No regular file", os.fspath(path))
        if state.st_size > largest:
            raise OSError(errno.EFBIG, f"{state.st_size} bytes; at most {largest} are read", os.fspath(path))
        return _read(handle, state.st_size), state
    finally:
        os.close(handle)


def _read(handle: int, size: int) -> bytes:
    content = os.read(handle, size)
    if len(content) == size:
        return content
    pieces = [content]  # a system call gives at most 2 GiB
    while content:
        size -= len(content)
        content = os.read(handle, size)
        pieces.append(content)
    return b"".join(pieces)
