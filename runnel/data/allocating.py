"""Where batches are put together: in memory of their own, or in that which a worker shares with its parent."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]


class _Room(threading.local):
    """What gives this thread the memory of its batches."""

    allocate: Allocate | None = None


ROOM = _Room()


def new_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of undefined elements for a part of a batch."""
    return np.empty(shape, dtype) if ROOM.allocate is None else ROOM.allocate(shape, dtype)
