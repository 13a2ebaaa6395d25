"""Where a function writes to something outside itself: the line, found in its code by the name of what changed."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final

_STORES: Final = frozenset(
    {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF", "STORE_NAME"}
)
_CHANGES: Final = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR"})
_MUTATORS: Final = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "move_to_end", "pop", "popitem",
        "popleft", "remove", "reverse", "setdefault", "sort", "update",
    }
)  # fmt: skip


def written_at(codes: Iterable[CodeType], name: str) -> str:
    """``" at file:line"`` of the first line that writes to what a message calls ``name`` (``model.seen[0]``), or else
    changes what it names; "" where no line does."""
    words = re.findall(r"[A-Za-z_]\w*", name)
    lines = [line for code in codes for line in _lines(code)]
    for word in reversed(words):
        for is_write in (_stores, _changes):
            for place, instructions in lines:
                if is_write(instructions, word):
                    return f" at {place}"
    return ""


def _lines(code: CodeType) -> Iterator[tuple[str, list[dis.Instruction]]]:
    """The instructions of each line, those of nested functions included."""
    waiting = [code]
    while waiting:
        current = waiting.pop()
        line, found = current.co_firstlineno, list[dis.Instruction]()
        for instruction in dis.get_instructions(current):
            if instruction.starts_line and found:
                yield f"{current.co_filename}:{line}", found
                found = []
            line = instruction.positions.lineno if instruction.positions and instruction.positions.lineno else line
            found.append(instruction)
        yield f"{current.co_filename}:{line}", found
        waiting += [constant for constant in current.co_consts if isinstance(constant, CodeType)]


def _stores(instructions: list[dis.Instruction], word: str) -> bool:
    return any(i.opname in _STORES and i.argval == word for i in instructions)


def _changes(instructions: list[dis.Instruction], word: str) -> bool:
    if not any(i.opname.startswith("LOAD_") and i.argval == word for i in instructions):
        return False
    return any(i.opname in _CHANGES or i.argval in _MUTATORS for i in instructions)
