"""Which functions of C code ask an iterable how many items there will be, before they go over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final


def _asks_length(function: Any) -> bool:
    """Whether a function asks an iterable how many items there will be, which depends on the version of Python."""
    asked: list[int] = []

    class Sized:
        def __iter__(self) -> Iterator[int]:
            return iter(())

        def __len__(self) -> int:
            asked.append(0)
            return 0

    function(Sized())
    return bool(asked)


ASK_LENGTH: Final = tuple(filter(_asks_length, (list, tuple, sorted)))
