"""A plan bound to memory and machine code: what actually runs."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from runnel.backends import context
from runnel.backends.cpu.codegen import build
from runnel.backends.cpu.functions import Functions
from runnel.backends.cpu.launch import CANCELLED
from runnel.backends.cpu.link import Function
from runnel.backends.cpu.target import Target
from runnel.backends.host import calls as host, layout, memory
from runnel.compiler.executable.frame import Frame, Pool, block
from runnel.compiler.executable.image import Image, image as image_of
from runnel.compiler.executable.records import Record
from runnel.compiler.plan import Plan
from runnel.compiler.schedule.partition import Block
from runnel.core.errors import RunnelError
from runnel.loops.ir import Kernel

_FUNCTIONS: Final[Functions[tuple[str, Target]]] = Functions()  # by name of kernel


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
    """Two threads that miss the same kernel both find it, and each has one that is right."""
    goal = context.current().target
    known = {name: function for name in names if (function := _FUNCTIONS.get((name, goal))) is not None}
    new = [name for name in names if name not in known]
    if new:
        found = dict(zip(new, find(new), strict=True))
        _FUNCTIONS.update(((name, goal), function) for name, function in found.items())
        known |= found
    return [known[name] for name in names]


class Program:
    """A plan with its constants, arguments and records, which all runs share; what a run has for itself is a
    :class:`Frame` of the ``pool``. Any number of runs may be under way.

    ``plan`` may be a function that makes it. Then the program does not keep the plan, which is much larger than what
    runs, and has it made again when somebody looks at it. With an ``image`` that another process has made, it is not
    even made once.

    An arena of more than ``own_arena`` bytes is not the frames' own: who runs one lends it (``lent_arena``), and has
    its address in ``bases[0]`` during the run. ``variable_addresses`` are where the Variables lie in frames that nobody
    binds to others, in the order of ``plan.variables``.
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
        self.arena_bytes = image.arena
        self.has_own_arena = image.arena <= own_arena
        self.constants = block(image.constants.nbytes)
        if image.constants.nbytes:
            self.constants.ndarray(image.constants.shape, np.uint8, writeable=True)[:] = image.constants
        self.outputs, self.output_of = image.outputs, image.output_of
        self.first_variable = 2 + image.inputs
        self.first_output = self.first_variable + image.variables
        self.variable_addresses = variable_addresses
        hosts = [] if made is None else [call.host for call in made.calls if call.host is not None]
        self.functions = [*kernels, *hosts]  # whose addresses stand in the records and in the args
        self.words = image.words
        args: int = self.words.__array_interface__["data"][0]
        self._heads = image.bound(image.heads, kernels, args)
        self.records = [image.bound(rows, kernels, args) for rows in image.records]
        self.is_long, self.is_short = image.is_long, image.is_short
        self.scratch_bytes = image.scratch_bytes
        self.pool = Pool(weakref.WeakMethod(self.frame))

    def lent_arena(self) -> memory.Storage | None:
        """The arena for a run of a program without one of its own."""
        return None if self.has_own_arena else memory.allocate(self.arena_bytes)

    @property
    def plan(self) -> Plan:
        """What it was made from."""
        return self._plan if isinstance(self._plan, Plan) else self._plan()

    def frame(self) -> Frame:
        """A frame that no Variables are bound in but those at ``variable_addresses``."""
        return Frame(self)

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run with the addresses of dense inputs and outputs."""
        frame = self.pool.take()
        bases = frame.bases
        arena = self.lent_arena()
        if arena is not None:
            bases[0] = arena.address
        for slot, address in enumerate(inputs, 2):
            bases[slot] = address
        for slot, address in enumerate(outputs, self.first_output):
            bases[slot] = address
        status = frame.run()
        self.pool.give(frame)
        if status:
            raise self.error(status)

    def error(self, status: int) -> BaseException:
        """What the status of a run, not 0, means."""
        if status == layout.HOST:
            return host.failure()
        for bounded in self.plan.bounded if status != CANCELLED else ():
            if bounded.code == status:
                return bounded.error()
        reason = ": cancelled" if status == CANCELLED else ""
        return RunnelError(f"[program] the run ended with status {status}{reason}.")

    def record(self, index: int, block: Block) -> Record:
        """The record that computes ``block`` of call ``index``, in loops of their first iterations."""
        return (*self._heads[index].tolist(), *block, 0, 0)
