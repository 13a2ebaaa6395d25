"""Downloads into the user's cache folder, from several mirrors, verified by checksum and written atomically."""

from __future__ import annotations

import hashlib
import os
import urllib.request
import warnings
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

from runnel.core.atomic_files import write_atomically
from runnel.core.errors import RunnelError
from runnel.core.regular_files import read_regular
from runnel.data.gz import unpacked

LARGEST: Final = 1 << 30  # bytes of a file, from the web or the disk
_TIMEOUT: Final = 30.0  # seconds without an answer


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path, *, unpack: bool = True) -> bytes:
    """The content of file ``name``: from ``folder``, or from the first mirror that has it intact.

    ``sha256`` is of the uncompressed content, so that it does not matter how a mirror has compressed it; with
    ``unpack=False`` both are as the file comes. A file that cannot be kept is a warning.
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
    """What stands at ``path``, if it is a file that can be read."""
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
    """The content, or what is wrong with it."""
    if len(data) > LARGEST:
        return f"more than {LARGEST} bytes"
    try:
        content = unpacked(data, name, LARGEST) if unpack else data
    except RunnelError as error:
        return str(error)
    checksum = hashlib.sha256(content).hexdigest()
    return content if checksum == sha256 else f"checksum {checksum[:12]}… instead of {sha256[:12]}…"
