"""A digest of the package's own sources, part of the keys of everything kept on disk."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from pathlib import Path
from typing import Final

from runnel.backends.host import objects

_UNSETTLED: Final = 2 * 10**9  # nanoseconds in which a second change of a file may leave its time as it is
_FORM: Final = re.compile("[0-9a-f]{64}")
_PACKAGE: Final = str(Path(__file__).parents[2])


@functools.cache
def digest(*folders: str) -> str:
    """A digest of all Python files in these folders of the package; ``/`` separates names.

    Reading them takes longer than loading a program. So the digest is on disk as well, filed under the files' names,
    sizes and times: a file that these do not show as changed is the same to Python, too, which uses its bytecode.
    """
    files = sorted((path, state) for folder in folders for path, state in _files(os.path.join(_PACKAGE, folder)))
    newest = max((state.st_mtime_ns for _, state in files), default=0)
    cache = objects.current() if time.time_ns() - newest > _UNSETTLED else None
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
