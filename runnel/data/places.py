"""The folder of a data set: one that the caller names, or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from runnel.backends.host.objects import user_cache_dir
from runnel.core import switches
from runnel.core.errors import RunnelError

Folder = str | os.PathLike[str]


def cache_folder(data_set: str, cache: Folder | None) -> Path:
    """The folder where downloads of ``data_set`` are kept: ``cache``, or a subfolder of what the switch ``data_dir``
    names, or of the user's cache folder."""
    if cache is not None:
        return Path(cache)
    return (Path(switches.data_dir.value) if switches.data_dir.value else user_cache_dir()) / data_set


def folder_of(data_set: str, folder: Folder | None, *names: str) -> Folder | None:
    """Where the files of a data set are: in ``folder``, if the caller names one; else in that of the switch
    ``data_dir``, if it has one of ``names``. None where they are to be downloaded."""
    if folder is None and switches.data_dir.value and _first(switches.data_dir.value, data_set, names) is not None:
        return switches.data_dir.value
    return folder


def file_in(folder: Folder, data_set: str, *names: str) -> Path:
    """The first of ``names`` that exists in ``folder``, or in its subfolder called as the data set."""
    path = _first(folder, data_set, names)
    if path is None:
        raise RunnelError(f"[{data_set}] the folder '{os.fspath(folder)}' has no file {' or '.join(names)}.")
    return path


def _first(folder: Folder, data_set: str, names: tuple[str, ...]) -> Path | None:
    places = (place / name for name in names for place in (Path(folder), Path(folder) / data_set))
    return next((path for path in places if path.is_file()), None)
