"""Bind programs to Variables: to their current memory, and to the state locks that a run takes.

A frame is bound at some version of its locks. A launch that finds another version is refused before anything happens,
and the frame is bound again: Variables that the program writes get memory that nobody reads
(``Variable.private_address``).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from typing import Any, Final

from runnel.backends.host import layout, memory
from runnel.backends.host.layout import STALE
from runnel.backends.host.locks import VERSION, WRITES, StateLock
from runnel.compiler.entry import CompiledGraph
from runnel.compiler.program import Frame, Pool, Program
from runnel.graph.node import InputKind
from runnel.tensor.concurrency import MARKS, TURN
from runnel.tensor.kept_values import HOLDS, protect
from runnel.tensor.variable import STATE_VERSION, Pin, Variable, locks_of
from runnel.tensor.views import VIEWED, follow

_PATIENCE: Final = 3  # refusals after which the others are asked to wait


class BoundFrame(Frame):
    """A frame with the memory of Variables, and with run-time numbers in ``floats``."""

    __slots__ = ("_numbers", "floats", "pins", "prepared", "prepared_at", "versions")

    def __init__(self, program: Program, inputs: int, numbers: Collection[int]) -> None:
        """Take a frame whose run-time numbers are the inputs ``numbers`` among the first ``inputs``."""
        super().__init__(program, {*numbers, *range(inputs, program.inputs)})
        self._numbers = (ctypes.c_double * max(inputs, 1))()
        self.floats: Final = memoryview(self._numbers).cast("B").cast("d")
        self.pins: list[Pin] = []  # keep the memory alive that the program may read until it is bound again
        self.versions: list[int] = []  # of the locks, when it was bound
        self.prepared: list[memory.Storage] = []
        self.prepared_at: list[tuple[int, int]] = []

    def number_address(self, i: int) -> int:
        return ctypes.addressof(self._numbers) + 8 * i


class Prepared:
    """The hoisted constants that were computed last, with the writes of the locks at that time. The programs of a graph
    with lengths share them."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: tuple[list[tuple[int, int]], list[memory.Storage]] | None = None


class Binding:
    """A program bound to Variables, with its frames, a :class:`BoundFrame` each, in a ``pool``.

    Args:
        compiled: the program. Its first inputs are the inputs of the graph that are not Variables, followed by the
            outputs of its ``hoisted_constants``, which depend only on Variables and are computed when these change.
        variables: returns the Variables of the graph, in its order. The binding does not keep them alive.
        prepared: the hoisted constants of another binding of the same graph, to share.
    """

    def __init__(
        self,
        compiled: CompiledGraph,
        variables: Callable[[], Sequence[Variable]],
        prepared: Prepared | None = None,
    ) -> None:
        graph = compiled.recipe.graph
        slots = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        others = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        self.program: Final = compiled.program
        self._hoisted_constants = compiled.hoisted_constants
        self.prepared: Final = Prepared() if prepared is None else prepared
        self._variables = variables
        self._written = frozenset(i for i, x in enumerate(slots) if x in graph.updates)
        self._inputs = len(others)
        self._numbers = tuple(i for i, x in enumerate(others) if x.kind is InputKind.SCALAR)
        bound = variables()
        changed = self._changed(bound)
        self.locks: list[StateLock] = locks_of(bound, changed)
        owned = {v.state_lock for v in changed}
        self.written_ids: Final = frozenset(map(id, changed))
        read = {v.state_lock for i, v in enumerate(bound) if i not in self._written}
        self._read: Final = [lock in read for lock in self.locks]  # hoisted constants read no Variable that is written
        self._modes = [(lock.address, lock in owned) for lock in self.locks]
        self.pool = Pool(weakref.WeakMethod(self.frame))

    @property
    def names(self) -> dict[str, Any]:
        """The names that the code of a run reads (:mod:`runnel.tensor.bound`)."""
        return {
            "HOLDS": HOLDS, "STATE": STATE_VERSION, "VIEWED": VIEWED, "WRITTEN": self.written_ids, "follow": follow,
            "protect": protect, "resume": self.resume,
        }  # fmt: skip

    def _changed(self, variables: Sequence[Variable]) -> list[Variable]:
        return [v for i, v in enumerate(variables) if i in self._written]

    def frame(self) -> BoundFrame:
        """Create a frame; its first launch will find it unbound."""
        frame = BoundFrame(self.program, self._inputs, self._numbers)
        for i in self._numbers:
            frame.bases[2 + i] = frame.number_address(i)
        frame.launch.lock([(address, owned, -1, layout.ANY) for address, owned in self._modes])
        return frame

    def resume(self, frame: BoundFrame) -> int:
        """Bind ``frame`` and run it, after a launch that was STALE; return the status of the run."""
        refusals = 0
        while True:
            with TURN.reserved() if refusals >= _PATIENCE else nullcontext():
                if refusals >= _PATIENCE:
                    self._disturb()
                else:
                    TURN.give_way()
                status: int = frame.run() if self._bind(frame) else STALE
            if status != STALE:
                return status
            refusals += 1

    def _disturb(self) -> None:
        """Make other programs find these locks changed, so that they wait for their turn."""
        for lock in self.locks:
            lock.words[VERSION] += 1

    def _versions(self) -> list[int]:
        return [lock.words[VERSION] for lock in self.locks]

    def _bind(self, frame: BoundFrame) -> bool:
        """Bind the frame; return False if something changed meanwhile."""
        versions = self._versions()
        if frame.versions != versions:
            mark = MARKS.take()
            variables = self._variables()
            changed = self._changed(variables)
            if changed and HOLDS.now:
                protect(self.written_ids)
            for variable in changed:
                variable.private_address()
            versions = self._versions()
            pins = [variable.pin() for variable in variables]
            if self._versions() != versions or any(v.is_shared for v in changed) or not MARKS.holds(mark):
                return False
            for slot, pin in enumerate(pins, self.program.first_variable):
                frame.bases[slot] = pin.address
            frame.pins, frame.versions = pins, versions
        counts = [layout.ANY] * len(self.locks)
        if self._hoisted_constants is not None:
            states = [
                (lock.words[WRITES], lock.assigned) if is_read else (layout.ANY, 0)
                for lock, is_read in zip(self.locks, self._read, strict=True)
            ]
            counts = [writes for writes, _ in states]
            if frame.prepared_at != states:
                latest = self.prepared.latest
                if latest is not None and latest[0] == states:
                    self._use(frame, self._hoisted_constants, latest[1])
                elif not self._prepare(frame, self._hoisted_constants, counts):
                    return False
                self.prepared.latest = states, frame.prepared
            frame.prepared_at = states
        frame.launch.lock([(*mode, v, w) for mode, v, w in zip(self._modes, frame.versions, counts, strict=True)])
        return True

    def _prepare(self, frame: BoundFrame, hoisted_constants: Program, counts: list[int]) -> bool:
        """Compute the hoisted constants again; return False if Variables have changed meanwhile."""
        frame.prepared, frame.prepared_at, self.prepared.latest = [], [], None  # first, so that the memory serves again
        storages = [hoisted_constants.backend.allocate(nbytes) for nbytes in hoisted_constants.outputs]
        inner: Any = hoisted_constants.pool.take()
        for slot, pin in enumerate(frame.pins, hoisted_constants.first_variable):
            inner.bases[slot] = pin.address
        for slot, storage in enumerate(storages, hoisted_constants.first_output):
            inner.bases[slot] = storage.address
        modes = zip(self._modes, frame.versions, counts, strict=True)
        inner.launch.lock([(address, False, v, w) for (address, _), v, w in modes])
        status = inner.run()
        hoisted_constants.pool.give(inner)
        if status == STALE:
            return False
        if status:
            raise hoisted_constants.error(status)
        self._use(frame, hoisted_constants, storages)
        return True

    def _use(self, frame: BoundFrame, hoisted_constants: Program, storages: list[memory.Storage]) -> None:
        """Let a frame read hoisted constants."""
        frame.prepared = storages
        for i, output in enumerate(hoisted_constants.output_of):
            frame.bases[2 + self._inputs + i] = storages[output].address
