"""A plan bound to memory and machine code: what actually runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from runnel.codegen import build, target
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel
from runnel.lowering import stops
from runnel.lowering.partition import Block
from runnel.lowering.places import Call, Place, Space
from runnel.lowering.plan import Plan
from runnel.lowering.records import Arguments, records
from runnel.lowering.repeat import is_unbounded
from runnel.runtime import locks, memory
from runnel.runtime.interrupts import Interruptible
from runnel.runtime.launch import CANCELLED, Launch

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
        kernels = {call.kernel.name: call.kernel for call in plan.calls}
        self._address = dict(zip(kernels, kernel_addresses(list(kernels.values())), strict=True))
        self._arguments = Arguments(plan.calls, plan.spans)
        self.is_long = stops.is_long(plan.calls) or is_unbounded(plan.spans)
        self.records = records(plan, self._arguments, self.record, is_long=self.is_long)
        short = plan.threads == 1 and not self.is_long and sum(c.seconds * c.times for c in plan.calls) < 20e-6
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
        """The record that computes ``block`` of call ``index``, in loops of their first iterations."""
        arguments = self._arguments.address + 8 * self._arguments.starts[index]
        return (self._address[self.plan.calls[index].kernel.name], arguments, *block, 0, 0)


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
