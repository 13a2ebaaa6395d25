"""The private state of one run of a program, so that runs may be concurrent: in threads, in a signal handler that
interrupts a call, in a finalizer that runs during one.

A call takes a frame from the program's pool, or creates one, and has exclusive use of it until it is given back. A call
that raises need not give its frame back: the next one creates another.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

from runnel.backends import base
from runnel.backends.base import Backend, Launch, Loaded
from runnel.backends.host import memory
from runnel.core.devices import Device

FREE_BYTES: Final = 64 << 20  # most bytes of the arenas of free frames, if there are several


_LEAST: Final = 64  # bytes of a block


def block(backend: Backend, nbytes: int) -> memory.Storage:
    """Memory of a program; programs that need none share one block of their backend."""
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
