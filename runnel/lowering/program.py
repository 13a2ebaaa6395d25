"""A plan bound to memory and machine code: what actually runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from runnel.codegen import build, target
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel
from runnel.lowering import stops
from runnel.lowering.partition import Block
from runnel.lowering.places import Call, Place, Space
from runnel.lowering.plan import Plan
from runnel.runtime import locks, memory
from runnel.runtime.interrupts import Interruptible
from runnel.runtime.launch import CANCELLED, RECORD_WORDS, Launch, barrier_address, seal_address

_LINK = locks.lock()
_ADDRESSES: dict[tuple[str, str], int] = {}


def kernel_addresses(kernels: Sequence[Kernel]) -> list[int]:
    """Where the machine code of each kernel lies; new ones are compiled, or loaded from the cache, together."""
    goal = target.current()
    with _LINK:
        new = {k.name: k for k in kernels if (k.name, goal.name) not in _ADDRESSES}
        if new:
            for name, address in zip(new, build.kernels(list(new.values())), strict=True):
                _ADDRESSES[name, goal.name] = address
        return [_ADDRESSES[k.name, goal.name] for k in kernels]


class Program:
    """A plan with its arena, arguments and records. Run it from one thread at a time (``lock``)."""

    def __init__(self, plan: Plan, variable_addresses: Sequence[int] = ()) -> None:
        self.plan = plan
        self.lock = locks.lock()
        self.arena = memory.allocate(max(plan.arena.peak, 64))
        self.constants = _constant_block(plan.constants)
        self.bases = (ctypes.c_int64 * plan.slots)()
        self.bases[0] = self.arena.address
        self.bases[1] = self.constants.address
        self.first_variable = 2 + len(plan.inputs)
        self.first_output = self.first_variable + len(plan.variables)
        self.bind_variables(variable_addresses)
        kernels = [call.kernel for call in plan.calls]
        addresses = kernel_addresses(list(dict.fromkeys(kernels)))
        self._address = dict(zip(dict.fromkeys(k.name for k in kernels), addresses, strict=True))
        self._arguments = _arguments(plan.calls)
        self.is_long = stops.is_long(plan.calls)
        self.records = self._records()
        short = plan.threads == 1 and sum(c.seconds for c in plan.calls) < 20e-6
        self.scratch_bytes = _scratch_bytes(plan.calls)
        self.launch = Launch(self.records, ctypes.addressof(self.bases), self.scratch_bytes, short)
        self.run_bound: Callable[[], int] = (Interruptible(self.launch) if self.is_long else self.launch).run

    def bind_variables(self, addresses: Sequence[int]) -> None:
        """Where the Variables lie, in the order of ``plan.variables``."""
        for i, address in enumerate(addresses):
            self.bases[self.first_variable + i] = address

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run with the addresses of dense inputs and outputs. The caller holds ``lock``."""
        bases = self.bases
        slot = 2
        for address in inputs:
            bases[slot] = address
            slot += 1
        slot = self.first_output
        for address in outputs:
            bases[slot] = address
            slot += 1
        status = self.run_bound()
        if status:
            raise self.error(status)

    def error(self, status: int) -> RunnelError:
        """What the status of a run, not 0, means."""
        for bounded in self.plan.bounded:
            if bounded.code == status:
                return bounded.error()
        reason = ": cancelled" if status == CANCELLED else ""
        return RunnelError(f"[program] the run ended with status {status}{reason}.")

    def record(self, index: int, block: Block) -> tuple[int, ...]:
        """The record that computes ``block`` of call ``index``."""
        arguments = self._arguments.words.__array_interface__["data"][0] + 8 * self._arguments.starts[index]
        return (self._address[self.plan.calls[index].kernel.name], arguments, *block, 0, 0)

    def _records(self) -> list[np.ndarray]:
        """The records of each thread: its block of each call, the barriers and, in a long program, the seal."""
        plan = self.plan
        barrier, seal = barrier_address(), seal_address()
        sealed = stops.seal(plan.calls) if self.is_long else -1
        records: list[np.ndarray] = []
        for thread in range(plan.threads):
            rows: list[tuple[int, ...]] = []
            for index, (blocks, wait) in enumerate(zip(plan.blocks, plan.barriers, strict=True)):
                if index == sealed:
                    rows.append((seal, 0, 0, 0, 0, 0, 0, 0))
                elif wait and plan.threads > 1:
                    rows.append((barrier, 0, 0, 0, 0, 0, 0, 0))
                block = blocks[thread]
                if block is not None:
                    cut = stops.pieces(plan.calls[index], block) if index < sealed else [block]
                    rows += [self.record(index, piece) for piece in cut]
            rows.append((0,) * RECORD_WORDS)
            records.append(np.array(rows, np.int64))
        return records


class _Arguments:
    """The args words of all calls in one array: for each, (slot, byte offset) of its buffers, then its params."""

    __slots__ = ("starts", "words")

    def __init__(self, words: np.ndarray, starts: list[int]) -> None:
        self.words = words
        self.starts = starts


def _arguments(calls: Sequence[Call]) -> _Arguments:
    words: list[int] = []
    starts: list[int] = []
    for call in calls:
        starts.append(len(words))
        for access in call.accesses:
            place = access.place
            words += [place.slot, place.offset + access.offset * place.dtype.itemsize]
        words += call.params
    return _Arguments(np.array(words or [0], np.int64), starts)


def _constant_block(places: Sequence[Place]) -> memory.Storage:
    total = max((p.offset + p.nbytes for p in places), default=0)
    block = memory.allocate(max(total, 64))
    for place in places:
        if place.value is not None and place.size:
            block.ndarray((place.size,), place.dtype.numpy, place.offset, writeable=True)[:] = place.value.reshape(-1)
    return block


def _scratch_bytes(calls: Sequence[Call]) -> int:
    """What tiles need, behind the panels of packing, for which every thread's scratch has room anyway."""
    return max(
        (a.place.offset + a.place.nbytes for c in calls for a in c.accesses if a.place.space is Space.SCRATCH),
        default=0,
    )
