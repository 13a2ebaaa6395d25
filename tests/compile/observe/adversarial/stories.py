"""Files of functions, each called in a world that changes: what is collected, and how it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.compile.observe.observed import check

Build = Callable[[], Any]  # gives a function, its calls and changes in turn, and perhaps what shows the world's state
CALL: Any = ((), {})
MAY_BE = "?"  # refused on some versions of Python, the same on others


class Cases:
    """The functions of a file, by name: the same as Python's, or refused for a reason."""

    def __init__(self) -> None:
        self._cases: dict[str, tuple[Build, str | None]] = {}

    def add(self, build: Build, name: str = "") -> Build:
        """A decorator: the function is observed, under its own name unless another is given."""
        return self._kept(name or build.__name__, build, None)

    def refused(self, reason: str) -> Callable[[Build], Build]:
        """A decorator: the function is refused for ``reason``."""
        return lambda build: self._kept(build.__name__, build, reason)

    def names(self) -> list[str]:
        return list(self._cases)

    def check(self, name: str) -> None:
        """It does what Python does in an equal world, or is refused."""
        build, reason = self._cases[name]
        if reason != MAY_BE:
            check(build, reason)
            return
        try:
            check(build)
        except AssertionError as problem:
            assert str(problem).startswith("refused")

    def _kept(self, name: str, build: Build, reason: str | None) -> Build:
        assert name not in self._cases
        self._cases[name] = (build, reason)
        return build


def around(function: Any, *changes: Any, state: Any = None, args: tuple[Any, ...] = ()) -> Any:
    """Two calls before and after each change."""
    call = (args, {})
    steps: list[Any] = [call, call]
    for change in changes:
        steps += [change, call, call]
    return (function, steps) if state is None else (function, steps, state)


def story(function: Any, *changes: Any, state: Any = lambda: None, warm: int = 2) -> Any:
    """Calls, and after each change two more."""
    steps = [CALL] * warm
    for change in changes:
        steps += [change, CALL, CALL]
    return function, steps, state


class Box:
    """An object with attributes."""

    kind = "box"

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def double(self) -> Any:
        return self.x * 2
