"""Which names a function's code reads: the static half of guards. Nested functions count as part of the outer one.

Python's own disassembler says it; names in strings count as attributes too, for ``getattr``.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from types import CodeType
from typing import Final

from runnel.core.lifetime import ByIdentity

_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTES: Final = frozenset(
    {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM", "LOAD_SUPER_ATTR"}
)


@dataclass(frozen=True, slots=True)
class Names:
    """Global names, attribute names, and the modules imported, that a piece of code mentions."""

    globals: tuple[str, ...]
    attributes: frozenset[str]
    imports: tuple[str, ...]


_KNOWN: Final[ByIdentity[CodeType, Names]] = ByIdentity()


def names_in(code: CodeType) -> Names:
    """What ``code`` and the functions defined inside it mention."""
    return _KNOWN.setdefault(code, lambda: _names_in(code))


def _names_in(code: CodeType) -> Names:
    global_names: dict[str, None] = {}
    attributes: set[str] = set()
    imports: dict[str, None] = {}
    waiting = [code]
    while waiting:
        current = waiting.pop()
        for instruction in dis.get_instructions(current):
            if instruction.opname in _GLOBALS:
                global_names[instruction.argval] = None
            elif instruction.opname in _ATTRIBUTES:
                attributes.add(instruction.argval)
            elif instruction.opname == "IMPORT_NAME":
                imports[instruction.argval] = None
        for constant in current.co_consts:
            if isinstance(constant, CodeType):
                waiting.append(constant)
            elif isinstance(constant, str) and constant.isidentifier():
                attributes.add(constant)
    return Names(tuple(global_names), frozenset(attributes), tuple(imports))
