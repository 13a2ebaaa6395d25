"""``fn.explain(*args)``: the guards and effects of a call and the reasons of retraces, as text."""

from __future__ import annotations

from collections.abc import Sequence

from runnel.compile.executable import Executable
from runnel.core.records import record


@record(slots=False)
class Explanation:
    """What is known of one kind of call."""

    name: str
    runs: str  # how
    checked: tuple[str, ...]  # at each call
    checked_by_clock: tuple[str, ...]  # when an attribute of a Module or optimizer was set
    computed: tuple[str, ...]  # from what it reads, at each call; without what is only checked
    changes: tuple[str, ...]  # what each call changes outside
    traced_again: tuple[str, ...]

    def __str__(self) -> str:
        parts = (
            ("checks at each call", self.checked),
            ("checks when a Module or an optimizer was changed", self.checked_by_clock),
            ("computes at each call", self.computed),
            ("changes", self.changes),
            ("was traced again because", self.traced_again),
        )
        lines = [f"{self.name}() {self.runs}"]
        for title, items in parts:
            if items:
                lines += [f"{title}:", *(f"  {item}" for item in items)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def explained(name: str, retraces: Sequence[str], executable: Executable) -> Explanation:
    """The explanation of what ``executable`` does."""
    how = "runs as a program" if executable.native is not None else f"runs eagerly: {executable.reason}"
    always, by_version = executable.guard.labels()
    effects = () if executable.observation is None else executable.observation.effects
    changes = tuple(effect.label for effect in effects)
    again = tuple(line.partition(": ")[2] for line in retraces)
    computed = tuple(label for label in executable.guard.computed if label not in {*always, *by_version})
    return Explanation(name, how, always, by_version, computed, changes, again)
