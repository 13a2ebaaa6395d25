"""Python numbers that a compiled program reads anew at each run, such as learning rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar


class RunTimeNumbers:
    """A mapping whose numbers are data of programs: ``plain`` is the dict that holds them."""

    __slots__ = ()

    plain: dict[str, Any]


class Schedule:
    """What changes run-time numbers when its ``step()`` is called, by functions that may be the user's."""

    changed_by_step: ClassVar[tuple[str, ...]] = ()  # methods with which step() changes something

    def numbers(self) -> Sequence[RunTimeNumbers]:
        """Where the numbers are that it changes."""
        raise NotImplementedError

    def functions(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """What its next step computes with: functions, and arguments that they may be called with."""
        raise NotImplementedError
