"""A digest of the package's own sources, part of the keys of everything kept on disk."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path


def digest(*folders: str) -> str:
    """A digest of all Python files in these folders of the package; ``/`` separates names."""
    return hashlib.sha256(b"".join(map(_of_folder, folders))).hexdigest()


@functools.cache
def _of_folder(folder: str) -> bytes:
    package = str(Path(__file__).parents[1])
    checksum = hashlib.sha256()
    for path in sorted(_files(os.path.join(package, folder))):
        with open(path, "rb") as file:
            content = file.read()
        place = path[len(package) :].replace(os.sep, "/")
        checksum.update(f"{place} {len(content)}\n".encode() + content)
    return checksum.digest()


def _files(folder: str) -> list[str]:
    listed: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                listed.append(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                listed += _files(entry.path)
    return listed
