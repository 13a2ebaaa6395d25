"""A plan loaded by a backend, and the private state of each of its runs.

Runs may be concurrent: in threads, in a signal handler that interrupts a call, in a finalizer that runs during one. A
call takes a frame from the program's pool, or creates one, and has exclusive use of it until it returns the frame. A
call that raises need not return its frame: the next one creates another.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

import numpy as np

from runnel.backends import base, context
from runnel.backends.base import Backend, Command, CommandBuffer, Launch, Loaded
from runnel.backends.host import calls as host, layout, memory
from runnel.backends.host.layout import CANCELLED
from runnel.compiler.command_buffer import command_buffer
from runnel.compiler.plan_ir.cost import Block
from runnel.compiler.plan_ir.plan import Plan
from runnel.core.devices import Device
from runnel.core.errors import RunnelError

FREE_BYTES: Final = 64 << 20  # most bytes of the arenas of free frames, if there are several


_LEAST: Final = 64  # bytes of a block


def block(backend: Backend, nbytes: int) -> memory.Storage:
    """Allocate memory of a program; programs that need none share one block of their backend."""
    return backend.allocate(max(nbytes, _LEAST)) if nbytes else _nothing(backend.device)


@functools.cache
def _nothing(device: Device) -> memory.Storage:
    return base.of(device).allocate(_LEAST)


class Framed(Protocol):
    """The program of a frame: the state shared by all runs."""

    @property
    def backend(self) -> Backend: ...
    @property
    def constants(self) -> memory.Storage: ...
    @property
    def hosts(self) -> object: ...
    @property
    def loaded(self) -> Loaded: ...
    @property
    def outputs(self) -> Sequence[object]: ...
    @property
    def variable_addresses(self) -> Sequence[int]: ...
    @property
    def inputs(self) -> int: ...
    @property
    def first_variable(self) -> int: ...
    @property
    def first_output(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def has_own_arena(self) -> bool: ...


class Frame:
    """The arena, the table of base pointers and the launch block of a run.

    ``bases`` is the table in words. ``start(*addresses)`` writes the addresses of inputs and outputs into it and runs
    the program; its result is the status, or LATER: then ``run()`` runs it and returns the status. ``numbers`` are the
    places of inputs whose addresses are not given, since they stay as they are.
    """

    __slots__ = ("__weakref__", "_keep", "arena", "bases", "launch", "run", "start")

    def __init__(self, program: Framed, numbers: Collection[int] = ()) -> None:
        # Not the program, which refers to this. A daemon thread may be in machine code after the interpreter has ended:
        # then this object, which its Python frame refers to, keeps the memory alive.
        self._keep: Any = (program.constants, program.hosts)
        self.arena: Final = block(program.backend, program.arena_bytes) if program.has_own_arena else None
        table = (ctypes.c_int64 * (program.first_output + len(program.outputs)))()
        self.bases: Final = memoryview(table).cast("B").cast("q")
        self.bases[0] = 0 if self.arena is None else self.arena.address
        self.bases[1] = program.constants.address
        for slot, address in enumerate(program.variable_addresses, program.first_variable):
            self.bases[slot] = address
        self.launch: Final[Launch] = program.loaded.launch(ctypes.addressof(table))
        inputs = [2 + i for i in range(program.inputs) if i not in numbers]
        outputs = range(program.first_output, program.first_output + len(program.outputs))
        self.start: Final[Callable[..., int]] = self.launch.starter([*inputs, *outputs])
        self.run: Final[Callable[[], int]] = self.launch.run_watched


class Pool:
    """The free frames of a program: ``frames``. ``pop`` and ``append`` of lists are atomic.

    ``maker`` creates a frame; it is a method of the owner of the pool, which it must not keep alive.
    """

    def __init__(self, maker: weakref.WeakMethod[Callable[[], Any]]) -> None:
        self.frames: list[Any] = []
        self.maker = maker
        self._alive: list[weakref.ref[Frame]] = []

    def make(self) -> Any:
        """Return a new frame."""
        make = self.maker()
        if make is None:
            raise ReferenceError("The program that these frames are for is gone.")
        frame = make()
        self._alive = [known for known in self._alive if known() is not None] + [weakref.ref(frame)]
        return frame

    def take(self) -> Any:
        """Return a frame for exclusive use."""
        try:
            return self.frames.pop()
        except IndexError:
            return self.make()

    def give(self, frame: Frame) -> None:
        """Give a frame back; it is dropped if there are enough free ones."""
        nbytes = 0 if frame.arena is None else frame.arena.nbytes
        if (len(self.frames) + 1) * nbytes <= FREE_BYTES or not self.frames:
            self.frames.append(frame)

    def cancel(self) -> None:
        """Stop the runs in progress, or else the next one: see :meth:`Launch.cancel`."""
        if not any(known() is not None for known in self._alive):
            self.give(self.make())
        for known in self._alive:
            frame = known()
            if frame is not None:
                frame.launch.cancel()


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
        """Return the arena for a run of a program that has none."""
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
        if status == layout.SINGULAR:
            return np.linalg.LinAlgError("[solve] Singular matrix")
        for bounded in self.plan.bounded if status != CANCELLED else ():
            if bounded.code == status:
                return bounded.error()
        reason = ": cancelled" if status == CANCELLED else ""
        return RunnelError(f"[program] the run ended with status {status}{reason}.")

    def command(self, index: int, block: Block) -> Command:
        """Return the command that computes ``block`` of call ``index``, in the first iterations of the loops
        around it."""
        return self.buffer.command(index, block)
