"""A plan loaded by a backend: the program that runs."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from runnel.backends import context
from runnel.backends.commands import Command, CommandBuffer
from runnel.backends.host import calls as host, layout, memory
from runnel.backends.host.layout import CANCELLED
from runnel.compiler.command_buffer import command_buffer
from runnel.compiler.frame import Frame, Pool, block
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.plan_ir.work import Block
from runnel.core.errors import RunnelError


class Program:
    """A plan with its constants, arguments and commands, which all runs share; the private state of a run is a
    :class:`Frame` of the ``pool``. Runs may be concurrent.

    ``plan`` may be a function that builds it. Then the program does not keep the plan, which is much larger than the
    program, and builds it again for reports; ``built_plan`` is the function's first result. With a ``buffer`` from
    another process no plan is built. The program runs on the device of the context in force.

    An arena of more than ``own_arena`` bytes is not part of a frame: the caller of a run provides it (``lent_arena``),
    with its address in ``bases[0]`` during the run. ``variable_addresses`` are the default addresses of the Variables,
    in the order of ``plan.variables``.
    """

    def __init__(
        self,
        plan: Plan | Callable[[], Plan],
        variable_addresses: Sequence[int] = (),
        buffer: CommandBuffer | None = None,
        built_plan: Plan | None = None,
        own_arena: float = math.inf,
    ) -> None:
        self._plan = plan
        self.backend = context.current().backend
        if buffer is None:
            built_plan = self.plan if built_plan is None else built_plan
            buffer = command_buffer(built_plan, self.backend)
        calls = () if built_plan is None else built_plan.calls
        kernels = None if built_plan is None else list({call.kernel.name: call.kernel for call in calls}.values())
        self.buffer = buffer
        self.loaded = self.backend.load(buffer, kernels)
        self.arena_bytes = buffer.arena
        self.has_own_arena = buffer.arena <= own_arena
        self.constants = block(self.backend, buffer.constants.nbytes)
        if buffer.constants.nbytes:
            self.constants.ndarray(buffer.constants.shape, np.uint8, writeable=True)[:] = buffer.constants
        self.outputs, self.output_of = buffer.outputs, buffer.output_of
        self.inputs = buffer.inputs
        self.first_variable = 2 + buffer.inputs
        self.first_output = self.first_variable + buffer.variables
        self.variable_addresses = variable_addresses
        self.hosts = [call.host for call in calls if call.host is not None]  # the args contain their addresses
        self.pool = Pool(weakref.WeakMethod(self.frame))

    def lent_arena(self) -> memory.Storage | None:
        """Return the arena for a run of a program without one of its own."""
        return None if self.has_own_arena else self.backend.allocate(self.arena_bytes)

    @property
    def plan(self) -> Plan:
        """The plan of the program."""
        return self._plan if isinstance(self._plan, Plan) else self._plan()

    def frame(self) -> Frame:
        """Return a frame bound to the Variables at ``variable_addresses``."""
        return Frame(self)

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run with the addresses of dense inputs and outputs."""
        frame = self.pool.take()
        arena = self.lent_arena()
        if arena is not None:
            frame.bases[0] = arena.address
        status = frame.start(*inputs, *outputs)
        if status == layout.LATER:
            status = frame.run()
        self.pool.give(frame)
        if status:
            raise self.error(status)

    def error(self, status: int) -> BaseException:
        """Return the error of a run's status other than 0."""
        if status == layout.HOST:
            return host.failure()
        for bounded in self.plan.bounded if status != CANCELLED else ():
            if bounded.code == status:
                return bounded.error()
        reason = ": cancelled" if status == CANCELLED else ""
        return RunnelError(f"[program] the run ended with status {status}{reason}.")

    def command(self, index: int, block: Block) -> Command:
        """Return the command that computes ``block`` of call ``index``, in the first iterations of the loops
        around it."""
        return self.buffer.command(index, block)
