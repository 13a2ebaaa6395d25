"""A plan bound to memory and machine code: what actually runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from runnel.codegen import build, context
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel
from runnel.lowering.image import Image, image as image_of
from runnel.lowering.partition import Block
from runnel.lowering.plan import Plan
from runnel.lowering.records import Record
from runnel.runtime import locks, memory
from runnel.runtime.interrupts import Interruptible
from runnel.runtime.launch import CANCELLED, Launch

_LINK = locks.lock()
_ADDRESSES: dict[tuple[str, str], int] = {}


def kernel_addresses(kernels: Sequence[Kernel]) -> list[int]:
    """Where the machine code of each kernel lies; new ones are compiled, or loaded from the cache, together."""
    wanted = {kernel.name: kernel for kernel in kernels}
    return _addresses(list(wanted), lambda new: build.kernels([wanted[name] for name in new]))


def filed_addresses(kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[int]:
    """The same for kernels of which only names and the symbols they call are known; LookupError if the cache lacks the
    machine code of one."""
    wanted = dict(kernels)
    return _addresses(list(wanted), lambda new: build.filed([(name, wanted[name]) for name in new]))


def _addresses(names: list[str], find: Callable[[list[str]], list[int]]) -> list[int]:
    goal = context.current().target.name
    with _LINK:
        new = [name for name in names if (name, goal) not in _ADDRESSES]
        if new:
            for name, address in zip(new, find(new), strict=True):
                _ADDRESSES[name, goal] = address
        return [_ADDRESSES[name, goal] for name in names]


class Program:
    """A plan with its arena, arguments and records. Run it from one thread at a time (``lock``).

    With an ``image`` that another process has made, the plan is made when somebody looks at it.
    """

    def __init__(
        self, plan: Plan | Callable[[], Plan], variable_addresses: Sequence[int] = (), image: Image | None = None
    ) -> None:
        self._plan = plan
        if image is None:
            image = image_of(self.plan)
        if isinstance(plan, Plan):
            kernels = kernel_addresses(list({call.kernel.name: call.kernel for call in plan.calls}.values()))
        else:
            kernels = filed_addresses(image.kernels)
        self.lock = locks.lock()
        self.arena = memory.allocate(max(image.arena, 64))
        self.constants = memory.allocate(max(image.constants.nbytes, 64))
        self.constants.ndarray(image.constants.shape, np.uint8, writeable=True)[:] = image.constants
        self.outputs, self.output_of = image.outputs, image.output_of
        self.first_variable = 2 + image.inputs
        self.first_output = self.first_variable + image.variables
        self.bases = (ctypes.c_int64 * (self.first_output + len(image.outputs)))()
        self.bases[0] = self.arena.address
        self.bases[1] = self.constants.address
        self.bind_variables(variable_addresses)
        self._words = image.words
        args: int = self._words.__array_interface__["data"][0]
        self._heads = image.bound(image.heads, kernels, args)
        self.records = [image.bound(rows, kernels, args) for rows in image.records]
        self.is_long = image.is_long
        self.scratch_bytes = image.scratch_bytes
        self.launch = Launch(self.records, ctypes.addressof(self.bases), self.scratch_bytes, image.is_short)
        self.run_bound: Callable[[], int] = (Interruptible(self.launch) if self.is_long else self.launch).run

    @property
    def plan(self) -> Plan:
        """What it was made from."""
        if not isinstance(self._plan, Plan):
            self._plan = self._plan()
        return self._plan

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
        for bounded in self.plan.bounded if status != CANCELLED else ():
            if bounded.code == status:
                return bounded.error()
        reason = ": cancelled" if status == CANCELLED else ""
        return RunnelError(f"[program] the run ended with status {status}{reason}.")

    def record(self, index: int, block: Block) -> Record:
        """The record that computes ``block`` of call ``index``, in loops of their first iterations."""
        return (*self._heads[index].tolist(), *block, 0, 0)
