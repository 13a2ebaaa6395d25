"""A program as a backend gets it: commands as numbers without addresses, so that another process can run them too.

A command is a row of eight int64, ``kernel, args, i0, i1, j0, j1, extents, 0``: compute the block of rows [i0, i1) ×
columns [j0, j1) of the domain of kernel number ``kernel`` (from 1 on), whose args begin at byte ``args`` of the words:
(slot, byte offset) for each buffer of the kernel, then its params. Rows ``extents`` and following of the extents are,
for each buffer, the first byte of its place in its slot and the end of it, for backends that check indices. Memory is
named by slots: 0 is the arena, 1 the constants, then inputs, Variables and outputs. Each thread has its own commands,
ending with one of all zeros.

Negative numbers are control commands:

* BARRIER: all threads wait for one another; * COMMIT: a barrier after which a run cannot be stopped. No persistent
state is written before it; * JUMP: continue ``i0`` rows further if the bool that ``args`` name by slot and offset is
false, else ``i1`` rows further.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from runnel.backends.host import threads
from runnel.core.errors import VerifierError
from runnel.core.records import record

Words = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Command = tuple[int, ...]

COMMAND_WORDS: Final = 8
BARRIER: Final = -1
COMMIT: Final = -2
JUMP: Final = -3


@record(eq=False)
class CommandBuffer:
    """The commands of a program with the sizes of its memory, args, constants and names of kernels."""

    arena: int  # bytes
    inputs: int  # their number
    variables: int
    outputs: tuple[int, ...]  # bytes of each
    output_of: tuple[int, ...]  # which of them holds each result
    scratch_bytes: int
    is_long: bool
    is_short: bool
    kernels: tuple[tuple[str, tuple[str, ...]], ...]  # name, and the symbols that its code calls
    heads: Words  # of each call, for the first iterations of loops: kernel, args and extents of its commands
    words: Words  # the args
    extents: Words  # (begin, end) in bytes, for each buffer of each call
    commands: tuple[Words, ...]  # of each thread
    constants: Bytes

    def command(self, call: int, block: tuple[int, int, int, int]) -> Command:
        """Return the command that computes ``block`` of a call, in the first iterations of the loops around it."""
        kernel, args, extents = self.heads[call].tolist()
        return (kernel, args, *block, extents, 0)


def checked(buffer: CommandBuffer) -> CommandBuffer:
    """Validate a command buffer from another process; VerifierError if its numbers lead outside of it."""
    sizes = (buffer.arena, buffer.inputs, buffer.variables, buffer.scratch_bytes, *buffer.outputs)
    _require(_are_counts(*sizes), "sizes")
    _require(_are_counts(*buffer.output_of) and all(i < len(buffer.outputs) for i in buffer.output_of), "results")
    _require(type(buffer.is_long) is bool and type(buffer.is_short) is bool, "flags")
    for name, symbols in buffer.kernels:
        _require(isinstance(name, str) and all(isinstance(symbol, str) for symbol in symbols), "kernels")
    _require(buffer.words.dtype == np.int64 and buffer.words.ndim == 1, "args")
    _require(buffer.extents.dtype == np.int64 and buffer.extents.shape[1:] == (2,), "extents")
    _require(buffer.constants.dtype == np.uint8 and buffer.constants.ndim == 1, "constants")
    _require(_lead_inside(buffer, buffer.heads, 3), "heads")
    _require(1 <= len(buffer.commands) <= threads.LIMIT, "threads")
    for rows in buffer.commands:
        _require(_lead_inside(buffer, rows, COMMAND_WORDS) and len(rows) > 0 and not rows[-1].any(), "commands")
    return buffer


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise VerifierError(f"The {what} of a program from elsewhere are not such as programs have.")


def _are_counts(*numbers: int) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)


def _lead_inside(buffer: CommandBuffer, rows: Words, width: int) -> bool:
    """Return whether commands name kernels of the buffer, with args among its words, and jump among themselves."""
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != width:
        return False
    code, args = rows[:, 0], rows[:, 1][(rows[:, 0] > 0) | (rows[:, 0] == JUMP)]
    calls = (code >= JUMP) & (code <= len(buffer.kernels))
    return bool(calls.all() and (args >= 0).all() and (args < buffer.words.nbytes).all() and not (args % 8).any())
