"""Draw random programs of stateful Python, compare them in two worlds, and shrink the ones that differ."""

from __future__ import annotations

from typing import Any, Final

from tests.fuzz.language import (
    parts_chance,
    parts_core,
    parts_functions,
    parts_habits,
    parts_inplace,
    parts_library,
    parts_midway,
    parts_models,
    parts_moved,
    parts_objects,
    parts_passed,
    parts_python,
    parts_settings,
    parts_state,
    parts_stepping,
    parts_texts,
    parts_training,
)
from tests.fuzz.language.grammar import Program, Sections, Writer, parts_of

_MODULES: Final[tuple[Any, ...]] = (
    parts_core, parts_objects, parts_library, parts_habits, parts_state, parts_training,
    parts_python, parts_midway, parts_passed, parts_functions, parts_texts, parts_inplace, parts_chance,
    parts_models, parts_stepping, parts_settings, parts_moved,
)  # fmt: skip
PARTS: Final[dict[str, Sections]] = {name: part for module in _MODULES for name, part in parts_of(module.TEXT).items()}


def drawn(seed: int) -> Program:
    """The program of ``seed``."""
    return Writer(PARTS, seed).program()
