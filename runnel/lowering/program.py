"""A plan bound to memory and machine code: what actually runs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from runnel.codegen import build, context
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel
from runnel.lowering.image import Image, image as image_of
from runnel.lowering.partition import Block
from runnel.lowering.plan import Plan
from runnel.lowering.records import Record
from runnel.runtime import locks, memory
from runnel.runtime.functions import Functions
from runnel.runtime.interrupts import Interruptible
from runnel.runtime.launch import CANCELLED, Launch
from runnel.runtime.link import Function

_LINK = locks.lock()
_LEAST: Final = 64  # bytes of a block
_NOTHING: Final = memory.allocate(_LEAST)
_FUNCTIONS: Final[Functions[tuple[str, str]]] = Functions()  # by name of kernel and target


def kernel_functions(kernels: Sequence[Kernel]) -> list[Function]:
    """The machine code of each kernel; what is new is compiled, or loaded from the cache, together."""
    wanted = {kernel.name: kernel for kernel in kernels}
    return _functions(list(wanted), lambda new: build.kernels([wanted[name] for name in new]))


def filed_functions(kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[Function]:
    """The same for kernels of which only names and the symbols they call are known; LookupError if the cache lacks the
    machine code of one."""
    wanted = dict(kernels)
    return _functions(list(wanted), lambda new: build.filed([(name, wanted[name]) for name in new]))


def _functions(names: list[str], find: Callable[[list[str]], list[Function]]) -> list[Function]:
    goal = context.current().target.name
    with _LINK:
        known = {name: function for name in names if (function := _FUNCTIONS.get((name, goal))) is not None}
        new = [name for name in names if name not in known]
        if new:
            found = dict(zip(new, find(new), strict=True))
            _FUNCTIONS.update(((name, goal), function) for name, function in found.items())
            known |= found
        return [known[name] for name in names]


def _block(nbytes: int) -> memory.Storage:
    """Memory of a program; all that need none share one block."""
    return memory.allocate(nbytes) if nbytes else _NOTHING


class Program:
    """A plan with its arena, arguments and records. Run it from one thread at a time (``lock``).

    ``plan`` may be a function that makes it. Then the program does not keep the plan, which is much larger than what
    runs, and has it made again when somebody looks at it. With an ``image`` that another process has made, it is not
    even made once.

    An arena of more than ``own_arena`` bytes is not the program's own: who runs it lends one (``lent_arena``), and has
    its address in ``bases[0]`` during the run.
    """

    def __init__(
        self,
        plan: Plan | Callable[[], Plan],
        variable_addresses: Sequence[int] = (),
        image: Image | None = None,
        own_arena: float = math.inf,
    ) -> None:
        self._plan = plan
        made = plan if isinstance(plan, Plan) else None
        if image is None:
            made = made or self.plan
            image = image_of(made)
        if made is None:
            kernels = filed_functions(image.kernels)
        else:
            kernels = kernel_functions(list({call.kernel.name: call.kernel for call in made.calls}.values()))
        self.lock = locks.lock()
        self.arena_bytes = max(image.arena, _LEAST)
        self.arena = _block(image.arena) if image.arena <= own_arena else None
        self.constants = _block(image.constants.nbytes)
        if image.constants.nbytes:
            self.constants.ndarray(image.constants.shape, np.uint8, writeable=True)[:] = image.constants
        self.outputs, self.output_of = image.outputs, image.output_of
        self.first_variable = 2 + image.inputs
        self.first_output = self.first_variable + image.variables
        self.bases = (ctypes.c_int64 * (self.first_output + len(image.outputs)))()
        self.bases[0] = 0 if self.arena is None else self.arena.address
        self.bases[1] = self.constants.address
        self.bind_variables(variable_addresses)
        self._functions = kernels  # whose addresses stand in the records
        self._words = image.words
        args: int = self._words.__array_interface__["data"][0]
        self._heads = image.bound(image.heads, kernels, args)
        self.records = [image.bound(rows, kernels, args) for rows in image.records]
        self.is_long = image.is_long
        self.scratch_bytes = image.scratch_bytes
        self.launch = Launch(self.records, ctypes.addressof(self.bases), self.scratch_bytes, image.is_short)
        self.run_bound: Callable[[], int] = (Interruptible(self.launch) if self.is_long else self.launch).run

    def lent_arena(self) -> memory.Storage | None:
        """The arena for a run of a program without one of its own."""
        return memory.allocate(self.arena_bytes) if self.arena is None else None

    @property
    def plan(self) -> Plan:
        """What it was made from."""
        return self._plan if isinstance(self._plan, Plan) else self._plan()

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
