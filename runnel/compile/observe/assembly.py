"""Disassembly and assembly of code objects, with their exception tables and position tables.

Jumps and exception handlers refer to instructions instead of offsets, so that one instruction can become several.
Formats: CPython's ``Objects/exception_handling_notes.txt`` and ``Objects/locations.md``. Offsets count code units.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from runnel.compile.observe.versions import BACKWARD, cache_entries

_NAMES: Final = opcode.opname
_CODES: Final = opcode.opmap
_JUMPS: Final = frozenset(opcode.hasjrel)
_EXTENDED: Final = _CODES["EXTENDED_ARG"]
_CACHE_SIZES: Final = [0 if name.startswith("<") else cache_entries(name) for name in _NAMES[:256]]
Position = tuple[int | None, int | None, int | None, int | None]  # line, end line, column, end column


class Handler(NamedTuple):
    """Exceptions raised between ``start`` and ``end`` go to ``target`` with the stack cut to ``depth``."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


class Instruction(NamedTuple):
    """One instruction. ``target`` is the number of the instruction that a jump goes to, -1 for others."""

    name: str
    arg: int
    target: int
    position: Position


class Listing(NamedTuple):
    """The instructions and handlers of a code object. Handlers count instructions."""

    instructions: list[Instruction]
    handlers: list[Handler]


def is_backward(name: str) -> bool:
    """Return whether a jump goes back."""
    return any(part in name for part in BACKWARD)


def disassemble(code: CodeType) -> Listing:
    """Return the instructions of ``code`` without caches and prefixes."""
    raw = code.co_code
    positions = list(code.co_positions())
    rows: list[tuple[str, int, int, int]] = []  # name, argument, first unit of what follows, own unit
    number_at: dict[int, int] = {}  # unit -> number of the instruction; prefixes count as part of it
    unit, count, arg = 0, len(raw) // 2, 0
    while unit < count:
        number_at[unit] = len(rows)
        op = raw[2 * unit]
        arg |= raw[2 * unit + 1]
        if op == _EXTENDED:
            arg <<= 8
            unit += 1
            continue
        after = unit + 1 + _CACHE_SIZES[op]
        rows.append((_NAMES[op], arg, after, unit))
        arg, unit = 0, after
    number_at[count] = len(rows)
    instructions: list[Instruction] = []
    for name, value, after, own in rows:
        target = -1
        if _CODES[name] in _JUMPS:
            target = number_at[after - value if is_backward(name) else after + value]
        instructions.append(Instruction(name, value, target, positions[own]))
    handlers = [
        Handler(number_at[h.start], number_at[h.end], number_at[h.target], h.depth, h.lasti)
        for h in read_handlers(code.co_exceptiontable)
    ]
    return Listing(instructions, handlers)


def assemble(
    code: CodeType,
    blocks: Sequence[Sequence[Instruction]],
    handlers: Sequence[Handler],
    consts: tuple[Any, ...],
    room: int,
) -> CodeType:
    """Return ``code`` with other instructions.

    Args:
        blocks: ``blocks[i]`` replaces instruction i; jumps and handlers that name i go to its first instruction.
        handlers: the exception handlers.
        consts: the constants.
        room: how much deeper the stack may be.
    """
    flat = [instruction for block in blocks for instruction in block]
    first = [0]  # number of the first instruction of each block among all
    for block in blocks:
        first.append(first[-1] + len(block))
    ops = [_CODES[x.name] for x in flat]
    caches = [_CACHE_SIZES[op] for op in ops]
    args = [x.arg for x in flat]
    jumps = [(i, first[x.target], is_backward(x.name)) for i, x in enumerate(flat) if x.target >= 0]
    prefixes = [_prefixes(x.arg) if x.target < 0 else 0 for x in flat]
    settled = False
    while not settled:  # a prefix moves what follows, which may make jumps longer; numbers of prefixes only grow
        at = [0]
        for prefix, cache in zip(prefixes, caches, strict=True):
            at.append(at[-1] + prefix + 1 + cache)
        settled = True
        for i, target, backward in jumps:
            args[i] = at[i + 1] - at[target] if backward else at[target] - at[i + 1]
            if _prefixes(args[i]) > prefixes[i]:
                prefixes[i] = _prefixes(args[i])
                settled = False
    out = bytearray()
    for op, arg, prefix, cache in zip(ops, args, prefixes, caches, strict=True):
        for shift in range(8 * prefix, 0, -8):
            out += bytes((_EXTENDED, arg >> shift & 0xFF))
        out += bytes((op, arg & 0xFF)) + bytes(2 * cache)
    spans: list[tuple[int, Position]] = []
    for i, instruction in enumerate(flat):
        size = at[i + 1] - at[i]
        if spans and spans[-1][1] == instruction.position:
            size += spans.pop()[0]
        spans.append((size, instruction.position))
    moved = [Handler(at[first[h.start]], at[first[h.end]], at[first[h.target]], h.depth, h.lasti) for h in handlers]
    return code.replace(
        co_code=bytes(out),
        co_consts=consts,
        co_stacksize=code.co_stacksize + room,
        co_linetable=write_positions(code.co_firstlineno, spans),
        co_exceptiontable=write_handlers(moved),
    )


def _prefixes(arg: int) -> int:
    return 0 if arg < 0x100 else 1 if arg < 0x10000 else 2 if arg < 0x1000000 else 3


def stack_effect(instruction: Instruction, jump: bool | None) -> int:
    """Return by how much an instruction makes the stack deeper."""
    op = _CODES[instruction.name]
    takes = op in opcode.hasarg if hasattr(opcode, "hasarg") else op >= opcode.HAVE_ARGUMENT
    return dis.stack_effect(op, instruction.arg if takes else None, jump=jump)


# Tables ---------------------------------------------------------------------------------------------------------------


def read_handlers(table: bytes) -> list[Handler]:
    """Return the entries of a ``co_exceptiontable``."""
    handlers: list[Handler] = []
    units = iter(table)
    for first in units:
        start = _big_endian(first, units)
        length = _big_endian(next(units), units)
        target = _big_endian(next(units), units)
        depth = _big_endian(next(units), units)
        handlers.append(Handler(start, start + length, target, depth >> 1, bool(depth & 1)))
    return handlers


def write_handlers(handlers: Iterable[Handler]) -> bytes:
    """Return a ``co_exceptiontable``. The entries are in order of their start."""
    out = bytearray()
    for start, end, target, depth, lasti in handlers:
        first = len(out)
        for value in (start, end - start, target, depth << 1 | lasti):
            _write_big_endian(out, value)
        out[first] |= 0x80
    return bytes(out)


def _big_endian(first: int, units: Iterator[int]) -> int:
    value = first & 0x3F
    while first & 0x40:
        first = next(units)
        value = value << 6 | first & 0x3F
    return value


def _write_big_endian(out: bytearray, value: int) -> None:
    chunks = [value & 0x3F]
    while value := value >> 6:
        chunks.append(value & 0x3F | 0x40)
    out.extend(reversed(chunks))


_NO_COLUMNS, _LONG, _NONE = 13, 14, 15


def write_positions(first_line: int, spans: Iterable[tuple[int, Position]]) -> bytes:
    """Return a ``co_linetable`` from pairs of a number of code units and their position."""
    out = bytearray()
    line = first_line
    for size, (start, end, column, end_column) in spans:
        while size > 0:
            length = min(size, 8)
            size -= length
            if start is None:
                out.append(0x80 | _NONE << 3 | length - 1)
                continue
            has_columns = end is not None and column is not None and end_column is not None
            out.append(0x80 | (_LONG if has_columns else _NO_COLUMNS) << 3 | length - 1)
            delta = start - line
            _write_little_endian(out, -delta << 1 | 1 if delta < 0 else delta << 1)
            if end is not None and column is not None and end_column is not None:
                _write_little_endian(out, end - start)
                _write_little_endian(out, column + 1)
                _write_little_endian(out, end_column + 1)
            line = start
    return bytes(out)


def _write_little_endian(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(value & 0x3F | 0x40)
        value >>= 6
    out.append(value)
