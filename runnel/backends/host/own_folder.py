"""Folders that only the user can change, and the user's secret in such a folder.

No other user can write to such a folder or replace it. The path to the folder is checked as well: each folder on it
must belong to the user or to root, and must not be writable by others, unless it has the sticky bit, like ``/tmp``, so
that other users cannot rename its files. Links are followed if they belong to the user or to root, and are in such
folders themselves. The secret is 32 random bytes in a file that only the user can read; it is the key of the
signatures of cache entries.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import secrets
import stat
from typing import Final

from runnel.core import files
from runnel.core.files import read_regular

ROOT: Final = 0
_LINKS: Final = 40  # most links in a path, as on Linux


def open_own_folder(path: str | os.PathLike[str], *, create: bool = False) -> int:
    """Return a handle to the folder at ``path``. With ``create`` missing folders are created with access for the user
    only.

    Raises:
        FileNotFoundError: there is no such folder.
        PermissionError: other users can change its content or replace it.
    """
    place = _resolved(os.fspath(path) if os.path.isabs(path) else os.path.join(os.getcwd(), path), create)
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        state = os.fstat(handle)
        if state.st_uid != os.geteuid():
            raise _permission_error(f"it belongs to {_user(state.st_uid)}", place)
        if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _permission_error(f"others may write to it (chmod go-w {place})", place)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _resolved(path: str, create: bool) -> str:
    """Return the path without links; every folder on it has been checked."""
    here, links = "/", 0
    _check(here, os.lstat(here))
    names = path.split("/")[::-1]
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, name)
        state = _state(there, create)
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if state.st_uid not in (os.geteuid(), ROOT):
                raise _permission_error(f"the link {there} belongs to {_user(state.st_uid)}", path)
            target = os.readlink(there)
            names += target.split("/")[::-1]
            here = "/" if target.startswith("/") else here
        elif not stat.S_ISDIR(state.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), there)
        else:
            if any(names):
                _check(there, state)
            here = there
    return here


def _state(path: str, create: bool) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # another process was first
        os.mkdir(path, 0o700)
    return os.lstat(path)


def _check(folder: str, state: os.stat_result) -> None:
    """Refuse a folder in which other users can rename files that are not theirs."""
    if state.st_uid not in (os.geteuid(), ROOT):
        raise _permission_error(f"{folder} belongs to {_user(state.st_uid)}", folder)
    by_group = state.st_mode & stat.S_IWGRP and not _is_of_one_user(state)
    if (state.st_mode & stat.S_IWOTH or by_group) and not state.st_mode & stat.S_ISVTX:
        raise _permission_error(f"others may write to {folder}", folder)


def _is_of_one_user(state: os.stat_result) -> bool:
    """Return whether a folder's group is the private group of its user, with the same name and number."""
    if state.st_gid != state.st_uid:
        return False
    try:
        group = grp.getgrgid(state.st_gid)
    except KeyError:
        return False
    name = _user_name(state.st_uid)
    return group.gr_name == name and set(group.gr_mem) <= {name}


def _user(uid: int) -> str:
    return f"user {_user_name(uid) or uid}"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _permission_error(reason: str, path: str) -> PermissionError:
    return PermissionError(errno.EPERM, reason, path)


SECRET_NAME: Final = "signature.key"
SECRET_BYTES: Final = 32


def secret_in(folder: int) -> bytes:
    """Return the secret in an open folder of the user's own, created if there is none. A secret that is damaged, or
    that other users may have read, is replaced."""
    try:
        return _read_secret(folder)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another process was first
            _make_secret(folder, replace=False)
    except OSError:
        _make_secret(folder, replace=True)
    return _read_secret(folder)


def _make_secret(folder: int, *, replace: bool) -> None:
    files.put(folder, SECRET_NAME, [secrets.token_bytes(SECRET_BYTES)], 0o600, durable=True, replace=replace)


def _read_secret(folder: int) -> bytes:
    content, state = read_regular(SECRET_NAME, SECRET_BYTES, folder)
    is_private = state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o077
    if not is_private or len(content) != SECRET_BYTES:
        raise PermissionError(f"{SECRET_NAME} is no secret")
    return content
