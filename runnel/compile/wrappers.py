"""What compiled functions are to an observer: objects that call one Python function."""

from __future__ import annotations

from typing import Any


class Wrapper:
    """An object that calls one Python function, its ``function``: an observer looks through it."""

    __slots__ = ()

    function: Any
