"""Watches turned into checks: generated Python functions that read everything again and compare.

Generated, because a check of a dozen globals must cost well under a microsecond. A guard is two functions: one for what
can change at any time, run at every call, and one for the state that ticks the clock, run when it has ticked.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

from runnel.compile import checks, telling
from runnel.compile.watch import Watch
from runnel.core.lifetime import Weak
from runnel.tensor.tensor import Tensor

Check = Callable[[Any, Sequence[Any]], tuple[Any, ...] | None]

_NAMESPACE: Final[dict[str, Any]] = {
    "FunctionType": FunctionType,
    "MISSING": checks.MISSING,
    "array_differs": checks.array_differs,
    "cell_contents": checks.cell_contents,
    "differs": checks.differs,
    "items_differ": checks.items_differ,
    "keys_differ": checks.keys_differ,
    "members_differ": checks.members_differ,
    "Tensor": Tensor,
    "sys": sys,
}


class Guard:
    """The checks of one set of watches. ``owners`` are the objects, by name, without which they cannot hold again.

    ``always(fn, objects)`` and ``by_clock(fn, objects)`` give the captured arrays they read (``captured`` and
    ``captured_by_clock``, numbers of watches), or None when something has changed.
    """

    def __init__(
        self, watches: Sequence[Watch], captured: Iterable[int], changed_by_program: Iterable[int] = ()
    ) -> None:
        self.watches = watches
        for index in changed_by_program:
            watches[index].changed = ""
        wanted = list(captured)
        self.captured = [i for i in wanted if not watches[i].by_clock]
        self.captured_by_clock = [i for i in wanted if watches[i].by_clock]
        self.always: Check = _generate(watches, False, self.captured)
        self.by_clock: Check = _generate(watches, True, self.captured_by_clock)

    @property
    def owners(self) -> list[tuple[str, Any]]:
        found = [(watch.name, watch.expected()) for watch in self.watches if watch.belongs]
        return [(name, owner) for name, owner in found if owner is not None]

    def holds(self, function: Any, objects: Sequence[Any]) -> bool:
        """Whether nothing has changed."""
        return self.always(function, objects) is not None and self.by_clock(function, objects) is not None

    def change(self, function: Any, objects: Sequence[Any]) -> str | None:
        """The first thing that changed, as a sentence; None when nothing has."""
        found = self.changed(function, objects)
        return None if found is None else found[1]

    def changed(self, function: Any, objects: Sequence[Any]) -> tuple[str, str] | None:
        """The name of the first thing that changed, and the sentence; None when nothing has."""
        values: dict[str, Any] = {"fn": function, "objects": objects, **_NAMESPACE}
        for index, watch in enumerate(self.watches):
            values.update(_constants(index, watch))
            try:
                values[f"v{index}"] = eval(_read(index, watch), values)
                if watch.changed and eval(_condition(index, watch), values):
                    return watch.name, _change(watch, values[f"v{index}"])
            except Exception as error:  # whatever a changed object does when it is read the old way
                return watch.name, f"{watch.name} could not be read any more ({type(error).__name__}: {error})"
        return None


def _change(watch: Watch, value: Any) -> str:
    """What of a watched thing is different, where it was compared by its class and its items."""
    name, expected = watch.name, watch.expected
    if watch.was:
        return f"{name} changed from {watch.was} to {telling.told(value)}"
    kind = watch.constants.get("kind")
    if kind is not None and type(value) is not kind:
        return telling.changed(name, kind, type(value))
    if "keys_differ" in watch.changed:
        return telling.keys_changed(name, expected, tuple(value))
    if "items_differ" in watch.changed:
        return telling.changed(name, expected, tuple(value))
    if "type(" in watch.changed and isinstance(expected, type) and not isinstance(value, type):
        if type(value) is expected:
            return f"{name} has {len(value)} items now"  # type: ignore[arg-type]
        value = type(value)
    return telling.changed(name, expected, value)


def _generate(watches: Sequence[Watch], by_clock: bool, captured: Sequence[int]) -> Check:
    checked = {i for i, w in enumerate(watches) if w.changed and w.by_clock is by_clock}
    needed = set(checked) | set(captured)
    needed |= {int(w.changed.rpartition(" v")[2]) for i in checked for w in (watches[i],) if "is not v" in w.changed}
    for i in range(len(watches) - 1, -1, -1):
        if i in needed and watches[i].parent >= 0:
            needed.add(watches[i].parent)
    namespace = dict(_NAMESPACE)  # of the function, which is not in it: that would keep both
    lines: list[str] = []
    for i in sorted(needed):
        watch = watches[i]
        namespace.update(_constants(i, watch))
        lines.append(f"v{i} = {_read(i, watch)}")
        if i in checked:
            lines.append(f"if {_condition(i, watch)}: return None")
    values = "".join(f"v{i}, " for i in captured)
    body = "\n        ".join([*lines, f"return ({values})"])
    source = f"def check(fn, objects):\n    try:\n        {body}\n    except Exception:\n        return None\n"
    exec(_code(source), namespace)
    check: Check = namespace.pop("check")
    return check


@functools.lru_cache(maxsize=512)
def _code(source: str) -> CodeType:
    """Functions that are traced again for other shapes are guarded by the same checks."""
    return compile(source, "<guard of a compiled function>", "exec")


def _constants(index: int, watch: Watch) -> dict[str, Any]:
    return {f"k{index}": watch.expected, **{f"{name}{index}": value for name, value in watch.constants.items()}}


def _read(index: int, watch: Watch) -> str:
    return watch.read.format(p=f"v{watch.parent}", **_names(index, watch))


def _condition(index: int, watch: Watch) -> str:
    changed = watch.changed.format(v=f"v{index}", k=_name("k", index, watch.expected), **_names(index, watch))
    return f"{changed} or v{index} is None" if watch.belongs else changed  # None is what a Weak of the dead gives


def _names(index: int, watch: Watch) -> dict[str, str]:
    return {name: _name(name, index, value) for name, value in watch.constants.items()}


def _name(name: str, index: int, value: Any) -> str:
    """How code names a constant."""
    return f"{name}{index}()" if type(value) is Weak else f"{name}{index}"
