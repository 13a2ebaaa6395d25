"""A program whose kernels are machine code: its commands with addresses in place of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from runnel.backends.commands import BARRIER, COMMIT, JUMP, CommandBuffer, Words
from runnel.backends.cpu.launch import Launch, barrier_address, commit_address, jump_address
from runnel.backends.cpu.link import Function


class LoadedProgram:
    """The commands of ``buffer`` bound to the addresses of ``functions``, its kernels in machine code."""

    def __init__(self, buffer: CommandBuffer, functions: Sequence[Function]) -> None:
        self._keep: Final = (functions, buffer.words)  # the commands contain their addresses
        self._buffer: Final = buffer
        self._args: Final[int] = buffer.words.__array_interface__["data"][0]
        numbers = np.array([0, *functions, 0, 0, 0], np.int64)  # negative numbers count from the end
        numbers[BARRIER], numbers[COMMIT], numbers[JUMP] = barrier_address(), commit_address(), jump_address()
        self._functions: Final = numbers
        self._commands: Final = [self._bound(rows) for rows in buffer.commands]

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        bound = self._commands if commands is None else [self._bound(rows) for rows in commands]
        return Launch(bound, bases, self._buffer.scratch_bytes, self._buffer.is_short, self._buffer.is_long, self)

    def _bound(self, rows: Words) -> Words:
        """Commands with the addresses of their kernels and args."""
        code = rows[:, 0]
        bound = rows.copy()
        bound[:, 0] = self._functions[code]
        bound[:, 1] += np.where((code > 0) | (code == JUMP), self._args, 0)
        return bound
