"""A program on separate memory with synthetic data, so that timing it has no side effects."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np

from runnel.backends.base import Launch
from runnel.backends.commands import COMMAND_WORDS
from runnel.backends.host import memory
from runnel.compiler.plan_ir.calls import Allocation, Call, MemorySpace
from runnel.compiler.program import Program
from runnel.core.errors import ShapeError

_PATTERNS = (0xA5, 0x5A)


class Bench:
    """Memory for a program, and launches on it. ``last_inputs`` is the memory of the last inputs, if they are
    computed."""

    def __init__(self, program: Program, last_inputs: Sequence[memory.Storage] = ()) -> None:
        self.program = program
        plan = program.plan
        self.arena = program.backend.allocate(program.arena_bytes)
        self.arena.ndarray((self.arena.nbytes // 4,), np.float32, writeable=True)[:] = 1.0
        own = len(plan.inputs) - len(last_inputs)
        self.inputs = [*(filled(allocation) for allocation in plan.inputs[:own]), *last_inputs]
        self.variables = [filled(allocation) for allocation in plan.variables.values()]
        self.outputs = [filled(allocation) for allocation in plan.outputs]
        self.blocks = [*self.inputs, *self.variables, *self.outputs]
        self._block_of = dict(zip((*plan.inputs, *plan.variables.values(), *plan.outputs), self.blocks, strict=True))
        addresses = [self.arena.address, program.constants.address, *(block.address for block in self.blocks)]
        self._bases = (ctypes.c_int64 * plan.slots)(*addresses)
        self.whole = program.loaded.launch(ctypes.addressof(self._bases))

    def call(self, index: int, repeats: int) -> Launch:
        """One call on all threads of the program, ``repeats`` times; in a loop the first iteration."""
        blocks = list(self.program.plan.blocks[index])
        while len(blocks) > 1 and blocks[-1] is None:
            blocks.pop()
        commands = []
        for block in blocks:
            rows = [] if block is None else [self.program.command(index, block)] * repeats
            commands.append(np.array([*rows, (0,) * COMMAND_WORDS], np.int64))
        return self.program.loaded.launch(ctypes.addressof(self._bases), commands)

    def restorer(self, call: Call) -> Callable[[], None] | None:
        """A function that restores the values that ``call`` both reads and writes: repeated, they would grow or
        vanish."""
        written = {a.allocation for a in call.accesses if a.writes and a.allocation.space is not MemorySpace.SCRATCH}
        changing = written & {
            a.allocation for b, a in zip(call.kernel.buffers, call.accesses, strict=True) if b.mode in ("in", "inout")
        }
        if not changing:
            return None
        saved = [(address, allocation.nbytes, ctypes.string_at(address, allocation.nbytes)) for allocation in changing
                 for address in [self._address(allocation)]]  # fmt: skip

        def restore() -> None:
            for address, nbytes, content in saved:
                ctypes.memmove(address, content, nbytes)

        return restore

    def touched(self) -> int:
        """One past the last byte of the arena that a run writes to."""
        bytes_ = self.arena.ndarray((self.arena.nbytes,), np.uint8, writeable=True)
        changed = np.zeros(self.arena.nbytes, np.bool_)
        for pattern in _PATTERNS:
            bytes_[:] = pattern
            self.whole.run()
            changed |= bytes_ != pattern
        written = np.flatnonzero(changed)
        return int(written[-1]) + 1 if len(written) else 0

    def _address(self, allocation: Allocation) -> int:
        return (
            self.arena.address + allocation.offset
            if allocation.space is MemorySpace.ARENA
            else self._block_of[allocation].address
        )


def filled(allocation: Allocation) -> memory.Storage:
    """Memory for an input, Variable or output: floats of ordinary magnitude, integers 0, which are valid indices."""
    if allocation.strided:
        raise ShapeError(f"[measure] input '{allocation.label}' is not dense; a compiled function's inputs are.")
    block = memory.allocate(max(allocation.nbytes, 1))
    array = block.ndarray((allocation.size,), allocation.dtype.numpy, writeable=True)
    array[:] = 0
    if allocation.dtype.is_float:
        array[:] = (
            np.random.default_rng(allocation.size).uniform(0.5, 1.5, allocation.size).astype(allocation.dtype.numpy)
        )
    return block


def best(run: Callable[[], int], seconds: float, before: Callable[[], None] | None = None) -> float:
    """The time of the fastest run within ``seconds``, of at least three; ``before`` each, an untimed call."""
    shortest, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < seconds and runs < 100_000):
        if before is not None:
            before()
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        shortest, spent, runs = min(shortest, took), spent + took, runs + 1
    return shortest
