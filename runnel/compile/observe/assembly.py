"""Disassembly and assembly of code objects.

Jumps and exception handlers refer to instructions instead of offsets, so that instructions can be replaced by several.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

from runnel.compile.observe.tables import Handler, Position, read_handlers, write_handlers, write_positions
from runnel.compile.observe.versions import BACKWARD, cache_entries

_NAMES: Final = opcode.opname
_CODES: Final = opcode.opmap
_JUMPS: Final = frozenset(opcode.hasjrel)
_EXTENDED: Final = _CODES["EXTENDED_ARG"]
_CACHE_SIZES: Final = [0 if name.startswith("<") else cache_entries(name) for name in _NAMES[:256]]


class Instruction(NamedTuple):
    """One instruction: ``target`` is the number of the instruction that a jump goes to, -1 for all others."""

    name: str
    arg: int
    target: int
    position: Position


class Listing(NamedTuple):
    """A code object's instructions and its handlers, whose numbers are those of instructions."""

    instructions: list[Instruction]
    handlers: list[Handler]


def is_backward(name: str) -> bool:
    """Whether a jump goes back."""
    return any(part in name for part in BACKWARD)


def disassemble(code: CodeType) -> Listing:
    """The instructions of ``code`` without caches and prefixes."""
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
    """``code`` with other instructions: ``blocks[i]`` stands where instruction i stood, and is what jumps and handlers
    that name i mean. ``room`` is by how much the stack is deeper."""
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
    """By how much an instruction makes the stack deeper."""
    op = _CODES[instruction.name]
    takes = op in opcode.hasarg if hasattr(opcode, "hasarg") else op >= opcode.HAVE_ARGUMENT
    return dis.stack_effect(op, instruction.arg if takes else None, jump=jump)
