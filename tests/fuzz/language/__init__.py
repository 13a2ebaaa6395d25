"""Random programs of stateful Python: a grammar in parts, two worlds that are compared, programs made smaller."""

from __future__ import annotations

from typing import Final

from tests.fuzz.language import parts_core, parts_library, parts_objects, parts_training
from tests.fuzz.language.grammar import Program, Sections, Writer, parts_of

PARTS: Final[dict[str, Sections]] = {
    name: part
    for text in (parts_core.TEXT, parts_objects.TEXT, parts_library.TEXT, parts_training.TEXT)
    for name, part in parts_of(text).items()
}


def drawn(seed: int) -> Program:
    """The program of ``seed``."""
    return Writer(PARTS, seed).program()
