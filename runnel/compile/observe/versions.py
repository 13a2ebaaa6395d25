"""Bytecode differences between the supported CPython versions, in one table.

Sources: ``Lib/opcode.py``, ``Python/bytecodes.c`` and ``Objects/exception_handling_notes.txt`` of each version. A
version that has not been run through the test suite is not supported.
"""

from __future__ import annotations

import opcode
import platform
import sys
from typing import Final

VERSION: Final = sys.version_info[:2]
OLDEST: Final = (3, 11)
NEWEST: Final = (3, 14)
SUPPORTED: Final = platform.python_implementation() == "CPython" and OLDEST <= VERSION <= NEWEST

CACHED: Final = getattr(opcode, "_inline_cache_entries", ())  # by opcode, from 3.13 on by name


def cache_entries(name: str) -> int:
    """Return the number of code units of inline cache after an instruction."""
    if isinstance(CACHED, dict):
        return int(CACHED.get(name, 0))
    return int(CACHED[opcode.opmap[name]]) if CACHED else 0


# The layout of calls. Up to 3.12 the empty self lies below the function, later above it.
EMPTY_SELF_ABOVE: Final = VERSION >= (3, 13)
HAS_PRECALL: Final = VERSION == (3, 11)
# Instructions whose argument holds a flag in its low bits, and the number of these bits.
METHOD_FLAG_IN_LOAD_ATTR: Final = VERSION >= (3, 12)
COMPARISON_SHIFT: Final = {(3, 11): 0, (3, 12): 4}.get(VERSION, 5)
COMPARISON_GIVES_BOOL: Final = 16 if VERSION >= (3, 13) else 0  # the flag: the result is made a bool
# How a cell itself is pushed.
LOAD_CELL: Final = "LOAD_CLOSURE" if VERSION < (3, 13) else "LOAD_FAST"
UNARY_POSITIVE: Final = 5  # the intrinsic that replaces the instruction from 3.12 on
NEEDS_TO_BOOL: Final = VERSION >= (3, 13)  # a separate instruction tests truth
# An unpacked call always has a place for keywords, a NULL where there are none; before, a flag says whether it has one.
KEYWORDS_MAY_BE_NULL: Final = VERSION >= (3, 14)
BACKWARD: Final = ("BACKWARD", "END_ASYNC_FOR")  # parts of the names of instructions that count jumps backward
SPECIAL_METHODS: Final = tuple(getattr(opcode, "_special_method_names", ()))  # what LOAD_SPECIAL loads, from 3.14 on
SHORT_CIRCUIT: Final = {
    "JUMP_IF_TRUE_OR_POP": "POP_JUMP_FORWARD_IF_TRUE",
    "JUMP_IF_FALSE_OR_POP": "POP_JUMP_FORWARD_IF_FALSE",
}  # 3.11 only: jump and keep the value, or drop it
BINARY_OPERATORS: Final = tuple(symbol for _, symbol in opcode._nb_ops)  # type: ignore[attr-defined]
