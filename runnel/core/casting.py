"""The dtype of products that ``autocast`` sets for a thread.

Functions of ops look here when they are called (``ops/precision.py``); programs remember what they found.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from runnel.core.dtypes import DType


class _Casting(threading.local):
    """``dtype`` is None where nothing is cast; ``outer`` holds those of the blocks around."""

    def __init__(self) -> None:
        self.dtype: DType | None = None
        self.outer: list[DType | None] = []


CASTING: Final = _Casting()


@contextmanager
def casting(dtype: DType | None) -> Iterator[None]:
    """Set it on this thread for the block."""
    before = CASTING.dtype
    CASTING.dtype = dtype
    try:
        yield
    finally:
        CASTING.dtype = before
