"""Files from the web, kept in the user's cache folder: several mirrors, a checksum, and never half a file."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from runnel.core.errors import RunnelError
from runnel.io.atomic import write_atomically

_TIMEOUT = 30.0  # seconds without an answer


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path) -> bytes:
    """The bytes of file ``name``: from ``folder``, or from the first mirror that has it, with this checksum."""
    path = folder / name
    if path.exists():
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
    failures: list[str] = []
    for mirror in mirrors:
        url = mirror.rstrip("/") + "/" + name
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
                data = answer.read()
        except (OSError, ValueError) as error:
            failures.append(f"{url}: {error}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if found == sha256:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
            return data
        failures.append(f"{url}: checksum {found[:12]}… instead of {sha256[:12]}…")
    raise RunnelError(f"[download] {name} could not be had from any mirror:\n  " + "\n  ".join(failures))
