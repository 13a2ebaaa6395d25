"""Every place a value can be read from, times every way to use it, through a series of changes: the same as Python."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

from tests.compile.observe.observed import check

Set = Callable[[Any], None]
Place = Callable[[Callable[[Any], Any]], tuple[Callable[..., Any], Set]]
TOGETHER = 3  # uses of one place; which ones follows from its name


def _match(v):
    match v:
        case 1:
            return "one"
        case bool() | str():
            return "bool or text"
        case None:
            return "none"
        case _:
            return "other"


USES: dict[str, Callable[[Any], Any]] = {
    "value": lambda v: v,
    "sum": lambda v: v + 1,
    "truth": lambda v: "yes" if v else "no",
    "and_or": lambda v: (v and 5) or (not v),
    "equal": lambda v: (v == 1, v != 2),
    "none": lambda v: v is None,
    "not_none": lambda v: 3 if v is not None else 4,
    "text": lambda v: f"{v!r:>5}",
    "type": lambda v: type(v).__name__,
    "instance": lambda v: (isinstance(v, int), isinstance(v, (str, float))),
    "match": _match,
    "member": lambda v: v in (1, "1", 1.0),
    "key": lambda v: {v: 7}.get(1, "no"),
    "minus": lambda v: -v,
}


class Places:
    """The places of a file, by name."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}

    def add(self, build: Place) -> Place:
        """A decorator."""
        assert build.__name__ not in self._places
        self._places[build.__name__] = build
        return build

    def names(self) -> list[str]:
        return list(self._places)

    def check(self, name: str) -> None:
        """Some uses of the place do what Python does."""
        start = zlib.crc32(name.encode())
        uses = list(USES.values())
        for i in range(start, start + TOGETHER):
            _check_place(self._places[name], uses[i % len(uses)])


def _check_place(place: Place, use: Callable[[Any], Any]) -> None:
    def make() -> Any:
        function, assign = place(use)
        call: Any = ((), {})
        steps: list[Any] = [call, call]
        for value in (1, 2, True, 1.0, "1", None, 1):
            steps += [functools.partial(assign, value), call, call]
        return function, steps

    target = check(make)
    assert target is not None
    calls = 2 * (1 + 7)
    if not target.raised:
        assert target.runs <= calls // 2, "a call right after another ran again"
