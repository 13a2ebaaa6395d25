"""Reads of untrusted paths: regular files only, of bounded size, and without blocking.

A pipe in a file's place would make its reader wait for ever, and a file of holes can be larger than memory.
"""

from __future__ import annotations

import errno
import os
import stat


def read_regular(path: str | os.PathLike[str], largest: int, folder: int | None = None) -> tuple[bytes, os.stat_result]:
    """The content and the state of the regular file at ``path`` (in an open ``folder``), of at most ``largest`` bytes.

    Raises:
        OSError: there is none, it is larger, or what is there is a link, a folder, a pipe, a socket or a device.
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
