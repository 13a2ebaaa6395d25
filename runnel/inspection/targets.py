"""The instruction sets that programs can be made for: the one in force, and those that run on this processor."""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu import target
from runnel.backends.target import Target

VARIABLE: Final = target.SWITCH.variable  # of the environment, which chooses one
NAMES: Final = tuple(row.name for row in target.TARGETS)


def in_force() -> Target:
    """The target of programs of this processor, by the switches."""
    return target.in_force()


def runnable() -> tuple[str, ...]:
    """The names of the targets that this processor can run, best first."""
    return tuple(row.name for row in target.TARGETS if row.runs_here)
