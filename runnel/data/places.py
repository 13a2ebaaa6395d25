"""The folder of a data set: one that the caller names, or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from runnel.backends.host.objects import user_cache_dir
from runnel.core.errors import RunnelError

Folder = str | os.PathLike[str]


def cache_folder(data_set: str, cache: Path | None) -> Path:
    """The folder where downloads of ``data_set`` are kept."""
    return user_cache_dir() / data_set if cache is None else cache


def file_in(folder: Folder, data_set: str, *names: str) -> Path:
    """The first of ``names`` that exists in ``folder``, or in its subfolder called as the data set."""
    tried = [place / name for name in names for place in (Path(folder), Path(folder) / data_set)]
    for path in tried:
        if path.is_file():
            return path
    raise RunnelError(f"[{data_set}] the folder '{os.fspath(folder)}' has no file {' or '.join(names)}.")
