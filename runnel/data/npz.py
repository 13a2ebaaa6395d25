"""NumPy's npz archives, read without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError


def arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The named arrays of an npz file. An array of Python objects, which only a pickle can hold, is refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise RunnelError(f"'{path}' has no array {', '.join(missing)}; it has {', '.join(archive.files)}.")
            return {name: archive[name] for name in names}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise RunnelError(f"'{path}' is no npz file that can be read: {error}.") from None
