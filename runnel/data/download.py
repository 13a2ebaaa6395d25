"""Locate, download and read the files of data sets: cache folders, checksums, gzip, npz and idx (MNIST's format)."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

import numpy as np

from runnel.backends.host.objects import user_cache_dir
from runnel.core import switches
from runnel.core.errors import RunnelError
from runnel.core.files import read_regular, write_atomically

Folder = str | os.PathLike[str]


def cache_folder(data_set: str, cache: Folder | None) -> Path:
    """Return the folder for downloads of ``data_set``.

    It is ``cache``, or a subfolder of the switch ``data_dir`` or of the user's cache folder.
    """
    if cache is not None:
        return Path(cache)
    return (Path(switches.data_dir.value) if switches.data_dir.value else user_cache_dir()) / data_set


def folder_of(data_set: str, folder: Folder | None, *names: str) -> Folder | None:
    """Return the folder with the files of a data set, or None if they must be downloaded.

    It is ``folder`` if given, or the folder of the switch ``data_dir`` if that has one of ``names``.
    """
    if folder is None and switches.data_dir.value and _first(switches.data_dir.value, data_set, names) is not None:
        return switches.data_dir.value
    return folder


def file_in(folder: Folder, data_set: str, *names: str) -> Path:
    """Return the first of ``names`` that exists in ``folder`` or in its subfolder for the data set."""
    path = _first(folder, data_set, names)
    if path is None:
        raise RunnelError(f"[{data_set}] the folder '{os.fspath(folder)}' has no file {' or '.join(names)}.")
    return path


def _first(folder: Folder, data_set: str, names: tuple[str, ...]) -> Path | None:
    places = (place / name for name in names for place in (Path(folder), Path(folder) / data_set))
    return next((path for path in places if path.is_file()), None)


def unpacked(data: bytes, name: str, largest: int = 1 << 32) -> bytes:
    """Return the bytes of file ``name``, decompressed if need be; RunnelError if there are more than ``largest``."""
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


LARGEST: Final = 1 << 30  # bytes of a file, from the web or the disk
_TIMEOUT: Final = 30.0  # seconds without an answer


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path, *, unpack: bool = True) -> bytes:
    """Return the content of file ``name`` from ``folder``, or from the first mirror that has it intact.

    ``sha256`` is the hash of the uncompressed content, however a mirror compresses it; with ``unpack=False``, of the
    file itself. If the file cannot be kept, a warning says so.
    """
    cached = _cached(folder / name)
    content = None if cached is None else _intact(cached, name, sha256, unpack)
    if isinstance(content, bytes):
        return content
    failures: list[str] = []
    for mirror in mirrors:
        url = mirror.rstrip("/") + "/" + name
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
                data = answer.read(LARGEST + 1)
                announced = int(answer.headers.get("Content-Length") or len(data))
        except (OSError, ValueError, HTTPException) as error:
            failures.append(f"{url}: {error}")
            if isinstance(error, HTTPError):  # an answer, too, with a connection
                error.close()
            continue
        if len(data) < min(announced, LARGEST):
            failures.append(f"{url}: the connection ended after {len(data)} of {announced} bytes")
            continue
        content = _intact(data, name, sha256, unpack)
        if isinstance(content, bytes):
            _keep(folder / name, data)
            return content
        failures.append(f"{url}: {content}")
    raise RunnelError(
        f"[download] {name} could not be had from any mirror:\n  "
        + "\n  ".join(failures)
        + f"\nWhere there is no network, put it into '{folder}' yourself."
    )


def _cached(path: Path) -> bytes | None:
    """Return the content of the file at ``path``, or None if it cannot be read."""
    try:
        return read_regular(os.path.realpath(path), LARGEST)[0]
    except OSError:
        return None


def _keep(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [data])
    except OSError as error:
        warnings.warn(f"'{path}' cannot be kept: {error}. It will be downloaded again.", RuntimeWarning, stacklevel=3)


def _intact(data: bytes, name: str, sha256: str, unpack: bool) -> bytes | str:
    """Return the content, or what is wrong with it."""
    if len(data) > LARGEST:
        return f"more than {LARGEST} bytes"
    try:
        content = unpacked(data, name, LARGEST) if unpack else data
    except RunnelError as error:
        return str(error)
    checksum = hashlib.sha256(content).hexdigest()
    return content if checksum == sha256 else f"checksum {checksum[:12]}… instead of {sha256[:12]}…"


def arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the named arrays of an npz file; RunnelError for arrays of Python objects, which need a pickle."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise RunnelError(f"'{path}' has no array {', '.join(missing)}; it has {', '.join(archive.files)}.")
            return {name: archive[name] for name in names}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise RunnelError(f"'{path}' is no npz file that can be read: {error}.") from None


_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(data: bytes, name: str) -> np.ndarray:
    """Return the array in the bytes of an idx file, compressed or not. ``name`` is for messages."""
    data = unpacked(data, name)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise RunnelError(f"[read_idx] '{name}' is no idx file.")
    dtype, rank = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise RunnelError(f"[read_idx] '{name}' has {len(data)} bytes; its header alone needs {start}.")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", rank, 4))
    size = start + math.prod(shape) * dtype.itemsize
    if len(data) != size:
        raise RunnelError(f"[read_idx] '{name}' has {len(data)} bytes; its header asks for {size}.")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
