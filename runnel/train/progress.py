"""A progress bar: by rich on a terminal where it is installed, otherwise a line of text now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

_EVERY = 5.0  # seconds between two plain lines
_NARROW = 60  # columns of a terminal in which the numbers take the place of the bar


class Progress:
    """``with Progress("Training", 100) as bar: bar.advance(note="loss 0.31")``. Writes to standard error. ``total`` is
    None where nobody knows it."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self._bar: Any = None
        self._task: Any = None
        self._last_report = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _rich_bar()
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, steps: int = 1, note: str = "") -> None:
        """``steps`` more are done."""
        self.done += steps
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, note=note)
            return
        now = time.monotonic()
        if now - self._last_report >= _EVERY:
            self._last_report = now
            of = "" if self.total is None else f" of {self.total}"
            print(f"{self.title}: {self.done}{of}  {note}", file=sys.stderr, flush=True)


def _rich_bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    console = Console(stderr=True)
    if console.is_dumb_terminal:  # rich would show nothing before the end
        return None
    place = [] if console.width < _NARROW else [BarColumn()]
    columns = (
        TextColumn("{task.description}"),
        *place,
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Bar(*columns, console=console, transient=False)
