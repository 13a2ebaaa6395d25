"""Files from the web, kept in the user's cache folder: several mirrors, a checksum, and never half a file."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from runnel.core.atomic_files import write_atomically
from runnel.core.errors import RunnelError
from runnel.data.gz import unpacked

_TIMEOUT = 30.0  # seconds without an answer


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path, *, unpack: bool = True) -> bytes:
    """The content of file ``name``: from ``folder``, or from the first mirror that has it intact.

    ``sha256`` is of the uncompressed content, so that it does not matter how a mirror has compressed it; with
    ``unpack=False`` both are as the file comes.
    """
    path = folder / name
    if path.exists():
        kept = _intact(path.read_bytes(), name, sha256, unpack)
        if isinstance(kept, bytes):
            return kept
    failures: list[str] = []
    for mirror in mirrors:
        url = mirror.rstrip("/") + "/" + name
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
                data = answer.read()
        except (OSError, ValueError) as error:
            failures.append(f"{url}: {error}")
            continue
        content = _intact(data, name, sha256, unpack)
        if isinstance(content, bytes):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, [data])
            return content
        failures.append(f"{url}: {content}")
    raise RunnelError(f"[download] {name} could not be had from any mirror:\n  " + "\n  ".join(failures))


def _intact(data: bytes, name: str, sha256: str, unpack: bool) -> bytes | str:
    """The content, or what is wrong with it."""
    try:
        content = unpacked(data, name) if unpack else data
    except RunnelError as error:
        return str(error)
    found = hashlib.sha256(content).hexdigest()
    return content if found == sha256 else f"checksum {found[:12]}… instead of {sha256[:12]}…"
