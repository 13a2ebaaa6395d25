"""The interpreter backend: runs the programs of the CPU step by step in NumPy, without LLVM.

It is the reference for the other backends: it computes every element of every kernel by the semantics of ``loops.ir``,
checks every index against the place of its buffer, and its results equal the CPU's to the bit.

A run takes place on one thread, which runs each thread's commands up to its next barrier. If the main thread starts a
run that takes state locks, another thread executes it, so that no signal handler can interrupt it: Ctrl-C stops it
before its commit point, and afterwards waits for its end, as on the CPU.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.backends import context
from runnel.backends.base import BARRIER, COMMIT, JUMPS, WINDOW, CommandBuffer, ObjectFile, Target, Words
from runnel.backends.cpu import target as targets
from runnel.backends.cpu.backend import CpuPlanning
from runnel.backends.host import calls as host, layout, memory
from runnel.backends.host.layout import CANCELLED, INTERRUPTED, LATER
from runnel.backends.host.locks import LockKeeper
from runnel.backends.host.memory import HostMemory
from runnel.backends.interpreter import kernels as interpreter
from runnel.backends.interpreter.locking import KEEPER, attended
from runnel.core.devices import INTERPRETER
from runnel.core.errors import DeviceError
from runnel.loops.ir import Kernel

Array = np.ndarray[Any, Any]
_ANYWHERE: Final = ctypes.c_byte * (1 << 46)


class LoadedProgram:
    """A command buffer with its kernels in loop IR, and the rule for products of bfloat16."""

    def __init__(self, buffer: CommandBuffer, kernels: Sequence[Kernel], precision: str) -> None:
        by_name = {kernel.name: kernel for kernel in kernels}
        self.kernels: Final = [by_name[name] for name, _ in buffer.kernels]
        self.buffer: Final = buffer
        self.precision: Final = precision
        self.words: Final[list[int]] = buffer.words.tolist()
        self.extents: Final[list[list[int]]] = buffer.extents.tolist()

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        return Launch(self, bases, self.buffer.commands if commands is None else commands)


class Launch:
    """A loaded program bound to the table of base addresses at ``bases``."""

    def __init__(self, program: LoadedProgram, bases: int, commands: Sequence[Words]) -> None:
        self._program: Final = program
        self._bases: Final = bases
        self._commands: Final[list[list[list[int]]]] = [rows.tolist() for rows in commands]
        self._block: Final = memory.allocate(layout.LINE)
        self.address: Final = self._block.address
        ctypes.memset(self.address, 0, layout.LINE)
        self.words: Final = self._block.ndarray((layout.LINE // 8,), np.int64, writeable=True).data
        self.words[layout.THREADS] = len(commands)
        self._table: Words = np.zeros((0, 4), np.int64)
        self._entries: list[list[int]] = []
        self._committed = False

    def lock(self, entries: Sequence[tuple[int, bool, int, int]]) -> None:
        self._table = np.array(entries, np.int64).reshape(-1, 4)
        self._entries = self._table.tolist()
        self.words[layout.LOCK_COUNT] = 0
        self.words[layout.LOCKS] = self._table.__array_interface__["data"][0]
        self.words[layout.LOCK_COUNT] = len(self._entries)

    def starter(self, slots: Sequence[int]) -> Callable[..., int]:
        table = (ctypes.c_int64 * (1 + max(slots, default=0))).from_address(self._bases)

        def start(*addresses: int) -> int:
            for slot, address in zip(slots, addresses, strict=True):
                table[slot] = address
            return LATER

        return start

    @property
    def run_watched(self) -> Callable[[], int]:
        return self.run

    def run(self) -> int:
        host.require_free(self._entries)
        with host.running(self.address):
            while True:
                if self._entries and threading.current_thread() is threading.main_thread():
                    status = attended(self._locked, self.interrupt)
                else:
                    status = self._locked()
                if status != INTERRUPTED:  # else the request belongs to an earlier run
                    return status

    def cancel(self) -> None:
        self.words[layout.REQUEST] = CANCELLED

    def interrupt(self) -> None:
        """Stop the run in progress before its commit point, because of a signal."""
        self.words[layout.REQUEST] = INTERRUPTED

    def _locked(self) -> int:
        """Run with the state locks; return the status."""
        status = KEEPER.take(self._entries)
        if status:
            return status
        self._committed = False
        try:
            status = self._whole()
        except _Stopped as stopped:
            status = stopped.status
        finally:
            KEEPER.leave(self._entries)
        self.words[layout.REQUEST] = 0
        self.words[layout.STATUS] = status
        self.words[layout.COMPLETED] += not status
        return status

    def _whole(self) -> int:
        """Run all threads from one barrier to the next, until all have ended."""
        walks = [self._walk(rows) for rows in self._commands]
        while walks:
            reached = [(walk, next(walk, None)) for walk in walks]
            walks = [walk for walk, meeting in reached if meeting is not None]
            if any(meeting == COMMIT for _, meeting in reached):
                self._stop_if_requested()
                status = KEEPER.begin_writing(self._entries)
                if status:
                    return status
                self._committed = True
        return 0

    def _walk(self, rows: list[list[int]]) -> Iterator[int]:
        """Execute a thread's commands; stops at each BARRIER and COMMIT."""
        words = self._program.words
        at = begin = end = 0
        while True:
            kernel, args, i0, i1, j0, j1, extents, window = rows[at]
            if kernel == 0:
                return
            self._stop_if_requested()
            at += 1
            if kernel in JUMPS:
                slot, offset = words[args // 8 : args // 8 + 2]
                if kernel == WINDOW:
                    _, begin, end = (ctypes.c_int64 * 3).from_address(self._base(slot) + offset)
                at += (i1 if ctypes.c_byte.from_address(self._base(slot) + offset).value else i0) - 1
            elif kernel in (BARRIER, COMMIT):
                yield kernel
            else:
                if window > 0:
                    i0, i1 = part_of(begin, end, i0, i1, window)
                elif window < 0:
                    j0, j1 = part_of(begin, end, j0, j1, -window)
                if not window or (i0 < i1 and j0 < j1):
                    self._run_kernel(self._program.kernels[kernel - 1], args // 8, extents, (i0, i1, j0, j1))

    def _stop_if_requested(self) -> None:
        if self.words[layout.REQUEST] and not self._committed:
            raise _Stopped(self.words[layout.REQUEST])

    def _run_kernel(self, kernel: Kernel, args: int, extents: int, block: tuple[int, int, int, int]) -> None:
        arrays: dict[str, Array] = {}
        origins: dict[str, int] = {}
        words = self._program.words
        for number, buffer in enumerate(kernel.buffers):
            slot, offset = words[args + 2 * number : args + 2 * number + 2]
            begin, end = self._program.extents[extents + number]
            item = buffer.dtype.itemsize
            origins[buffer.name] = (begin - offset) // item
            if buffer.mode == "scratch":
                arrays[buffer.name] = np.full(end - begin, _UNDEFINED, np.uint8).view(buffer.dtype.numpy)
            elif end == begin:
                arrays[buffer.name] = np.empty(0, buffer.dtype.numpy)
            elif buffer.mode != "tile":
                allocation: Any = _ANYWHERE.from_address(self._base(slot) + begin)
                arrays[buffer.name] = np.frombuffer(allocation, buffer.dtype.numpy, (end - begin) // item)
        first = args + 2 * len(kernel.buffers)
        params = dict(zip((p.name for p in kernel.params), words[first:], strict=False))
        fault = interpreter.run(kernel, arrays, params, *block, origins=origins, precision=self._program.precision)
        if fault:
            raise _Stopped(fault)

    def _base(self, slot: int) -> int:
        return ctypes.c_int64.from_address(self._bases + 8 * slot).value


def part_of(begin: int, end: int, part: int, parts: int, scale: int) -> tuple[int, int]:
    """Return part number ``part`` of ``parts`` of a window, times ``scale``."""
    rows = end - begin
    return (begin + rows * part // parts) * scale, (begin + rows * (part + 1) // parts) * scale


_UNDEFINED: Final = 0xFF  # of scratch memory: floats are NaNs


class _Stopped(Exception):
    """A run was stopped."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status: Final = status


class InterpreterBackend(CpuPlanning, HostMemory):
    """Runs programs with the loop-IR interpreter."""

    device = INTERPRETER
    has_files = False
    always_commits = True

    def target(self) -> Target:
        return targets.described()

    def symbols(self, kernel: Kernel) -> frozenset[str]:
        return frozenset()  # there are no files

    def load(self, buffer: CommandBuffer, kernels: Sequence[Kernel] | None) -> LoadedProgram:
        if kernels is None:
            raise LookupError("The interpreter keeps no kernels on disk.")
        return LoadedProgram(buffer, kernels, context.current().precision)

    def object_file(self, programs: Mapping[str, CommandBuffer], kernels: Mapping[str, Kernel]) -> ObjectFile:
        raise DeviceError("[interpreter] the device has no machine code; export programs for cpu.")

    def clear(self) -> None:
        """Do nothing: there is no code to free."""

    @property
    def lock_keeper(self) -> LockKeeper:
        return KEEPER

    @property
    def recalling(self) -> None:
        return None
