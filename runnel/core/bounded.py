"""Bounded dicts that threads and signal handlers share: each step on one is atomic."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def drop_oldest(items: dict[Any, Any], limit: int) -> None:
    """Remove what was put in first until ``items`` has at most ``limit`` items."""
    while len(items) > limit:
        with suppress(RuntimeError, StopIteration):  # somebody else was faster; the length says whether that was enough
            items.pop(next(iter(items)), None)
