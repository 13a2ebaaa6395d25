"""The user's secret: 32 random bytes in a file that only the user can read. Seals of cache entries are keyed with
it."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import Final

from runnel.core import atomic_files
from runnel.core.regular_files import read_regular

NAME: Final = "signature.key"
SIZE: Final = 32


def secret_in(folder: int) -> bytes:
    """The secret in an open folder of the user's own, created if there is none. A secret that is damaged, or that other
    users may have read, is replaced."""
    try:
        return _read(folder)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another process was first
            _make(folder, replace=False)
    except OSError:
        _make(folder, replace=True)
    return _read(folder)


def _make(folder: int, *, replace: bool) -> None:
    atomic_files.put(folder, NAME, [secrets.token_bytes(SIZE)], 0o600, durable=True, replace=replace)


def _read(folder: int) -> bytes:
    content, state = read_regular(NAME, SIZE, folder)
    is_private = state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o077
    if not is_private or len(content) != SIZE:
        raise PermissionError(f"{NAME} is no secret")
    return content
