"""What one run of a program has for itself, so that several may be under way: in threads, in a signal handler that
breaks into a call, in a finaliser that runs in the middle of one.

A call takes a frame from the program's pool, or makes one, and nobody else has it until it is given back. A call that
ends by an exception need not give its frame back: the next one makes another.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from runnel.backends import base
from runnel.backends.base import Backend, Launch, Loaded
from runnel.backends.host import memory
from runnel.core.devices import Device

KEPT_BYTES: Final = 64 << 20  # of arenas of frames that wait beside the first one


_LEAST: Final = 64  # bytes of a block


def block(backend: Backend, nbytes: int) -> memory.Storage:
    """Memory of a program; all that need none share one block of their backend."""
    return backend.allocate(max(nbytes, _LEAST)) if nbytes else _nothing(backend.device)


@functools.cache
def _nothing(device: Device) -> memory.Storage:
    return base.of(device).allocate(_LEAST)


class Framed(Protocol):
    """The program of a frame: what is the same in all its runs."""

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
    def first_variable(self) -> int: ...
    @property
    def first_output(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def has_own_arena(self) -> bool: ...


class Frame:
    """The arena, the table of base pointers and the launch block of a run.

    ``bases`` is the table in words, ``run()`` runs the program and gives its status.
    """

    __slots__ = ("__weakref__", "_keep", "arena", "bases", "launch", "run")

    def __init__(self, program: Framed) -> None:
        # Not the program, which holds this. A daemon thread may be in machine code when the interpreter has ended: then
        # this object, which its frame holds, is what keeps the memory.
        self._keep: Any = (program.constants, program.hosts)
        self.arena: Final = block(program.backend, program.arena_bytes) if program.has_own_arena else None
        table = (ctypes.c_int64 * (program.first_output + len(program.outputs)))()
        self.bases: Final = memoryview(table).cast("B").cast("q")
        self.bases[0] = 0 if self.arena is None else self.arena.address
        self.bases[1] = program.constants.address
        for slot, address in enumerate(program.variable_addresses, program.first_variable):
            self.bases[slot] = address
        self.launch: Final[Launch] = program.loaded.launch(ctypes.addressof(table))
        self.run: Final[Callable[[], int]] = self.launch.run_watched


class Pool:
    """The frames of a program that nobody is using: ``frames``. ``pop`` and ``append`` of lists are atomic.

    ``maker`` makes one; it is a method of who owns this, and must not keep the owner alive.
    """

    def __init__(self, maker: weakref.WeakMethod[Callable[[], Any]]) -> None:
        self.frames: list[Any] = []
        self.maker = maker
        self._made: list[weakref.ref[Frame]] = []

    def make(self) -> Any:
        """A frame more."""
        make = self.maker()
        if make is None:
            raise ReferenceError("The program that these frames are for is gone.")
        frame = make()
        self._made = [known for known in self._made if known() is not None] + [weakref.ref(frame)]
        return frame

    def take(self) -> Any:
        """A frame that nobody else uses."""
        try:
            return self.frames.pop()
        except IndexError:
            return self.make()

    def give(self, frame: Frame) -> None:
        """Put a frame back, if those that wait are not too many."""
        nbytes = 0 if frame.arena is None else frame.arena.nbytes
        if (len(self.frames) + 1) * nbytes <= KEPT_BYTES or not self.frames:
            self.frames.append(frame)

    def cancel(self) -> None:
        """Stop the runs in progress, or else the next one: see :meth:`Launch.cancel`."""
        if not any(known() is not None for known in self._made):
            self.give(self.make())
        for known in self._made:
            frame = known()
            if frame is not None:
                frame.launch.cancel()
