"""Programs in machine code, and their launches: a program's commands with addresses, bound to memory.

A launch starts as a built-in function of Python, machine code that follows CPython's calling convention, because a call
through ``ctypes`` takes three times as long as everything else that a short program needs. A start takes the addresses
of inputs and outputs, writes them into the program's table of base pointers, and runs the program if that is possible
at once: on the thread that ran it last, with the GIL held, and without waiting. The convention is ``METH_FASTCALL`` of
CPython's stable ABI (Python/C API Reference, "Common Object Structures").
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from runnel.backends.base import BARRIER, COMMAND_WORDS, COMMIT, JUMP, JUMPS, WINDOW, CommandBuffer, Words
from runnel.backends.cpu import driver, locking, team
from runnel.backends.cpu.link import Function
from runnel.backends.cpu.records import rn_barrier, rn_commit, rn_jump, rn_window
from runnel.backends.cpu.routines import I64, Code, Ptr, Routine, table_text
from runnel.backends.host import calls as host, layout, memory, threads
from runnel.backends.host.interrupts import Interruptible
from runnel.core import switches

_METH_FASTCALL: Final = 0x80


@Routine
def rn_start(f: Code, self: Ptr, args: Ptr, count: I64) -> Ptr:
    """Start a launch: the built-in function of Python. ``self`` is a Python int, the address of the launch block."""
    block = f.external("ptr", "PyLong_AsVoidPtr", ("ptr", self))
    start = f.pointer(block, layout.START)
    bases, slots = f.pointer(f.at(block, layout.LINE), layout.BASES), f.beyond(start, layout.SLOTS)
    with f.when(f.test("ne", count, f.word(start, layout.SLOT_COUNT))):
        f.external("i32", "PyErr_BadArgument")
        f.ret("null", "ptr")
    with f.count(count) as i:
        address = f.external("ptr", "PyLong_AsVoidPtr", ("ptr", f.pointer(args, i)))
        is_null = f.test("eq", address, "null", "ptr")  # the address of an empty array, or an error
        with f.when(is_null), f.when(f.test("ne", f.external("ptr", "PyErr_Occurred"), "null", "ptr")):
            f.ret("null", "ptr")
        f.put(bases, f.word(slots, i), address, "ptr")
    at_once = f.pointer(start, layout.AT_ONCE)
    with f.when(f.test("ne", at_once, "null", "ptr")):
        is_own = f.test("eq", f.word(block, layout.OWNER), f.external("i64", "PyThread_get_thread_ident"))
        calls = f.external("i64", "PyList_Size", ("ptr", f.pointer(start, layout.INSIDE)))
        with f.when(f.both(is_own, f.test("eq", calls, 0))):
            status = f.value(f"call i64 {at_once}(ptr {block})")
            with f.when(f.test("ne", status, layout.BUSY)):
                f.ret(f.external("ptr", "PyLong_FromLongLong", ("i64", status)), "ptr")
    return f.external("ptr", "PyLong_FromLongLong", ("i64", layout.LATER))


class Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def _method() -> Method:
    """Return the method definition that all starts share. Several threads that come first may each make one."""
    import llvmlite.binding as llvm

    table = table_text("rn_starts", [rn_start], llvm.get_process_triple())
    code = driver.linked("rn_starts", table, [rn_start])[rn_start]
    method = Method(b"start", code, _METH_FASTCALL, None)
    _NEVER_FREED.append(method)
    return method


_NEVER_FREED: Final[list[Method]] = []  # starts refer to them, and do not keep them alive
_NEW: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def start_table(slots: Sequence[int], is_at_once: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a start table (``host.layout``), which the launch block refers to."""
    words = np.zeros(layout.SLOTS + len(slots), np.int64)
    words[layout.INSIDE], words[layout.SLOT_COUNT] = id(host.INSIDE), len(slots)
    words[layout.AT_ONCE] = driver.entry_points()[driver.rn_solo_at_once] if is_at_once else 0
    words[layout.SLOTS :] = slots
    return words


def start_function(block: int) -> Callable[..., int]:
    """Return the built-in function ``start(*addresses) -> status`` of the launch block at ``block``, which it does not
    keep alive."""
    function: Callable[..., int] = _NEW(ctypes.addressof(_method()), block, None)
    return function


if TYPE_CHECKING:
    from numpy.typing import NDArray

_WITH_GIL = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_WITHOUT_GIL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class _CallerScratch(threading.local):
    """Scratch memory of a Python thread that runs programs, shared by all of them."""

    storage: memory.Storage | None = None

    def at_least(self, nbytes: int) -> memory.Storage:
        if self.storage is None or self.storage.nbytes < nbytes:
            self.storage = memory.allocate(max(nbytes, layout.THREAD_SCRATCH))
        return self.storage


_CALLER = _CallerScratch()


class Launch:
    """A program bound to its memory. ``run()`` may be called any number of times, one call at a time.

    ``records_per_thread`` holds for each thread an int64 array (n, 8) of records ending with one whose kernel is 0; the
    arrays are not copied, so later changes of them affect the next run. ``bases`` is the address of the table of base
    pointers. A ``short`` program of one thread runs with the GIL held, which saves its release; Ctrl-C stops a ``long``
    one. ``words`` is the launch block, in words of int64. ``keep`` lives as long as this.
    """

    __slots__ = (
        "_block",
        "_call",
        "_is_at_once",
        "_is_long",
        "_keep",
        "_owner",
        "_patient",
        "_scratch_bytes",
        "_team",
        "_words",
        "address",
        "threads",
        "words",
    )

    def __init__(
        self,
        records_per_thread: Sequence[NDArray[np.int64]],
        bases: int,
        scratch_bytes: int = 0,
        short: bool = False,
        long: bool = False,
        keep: Any = None,
    ) -> None:
        for records in records_per_thread:
            _check(records)
        self.threads: Final = len(records_per_thread)
        if not 1 <= self.threads <= threads.LIMIT:
            raise ValueError(f"A program has 1 to {threads.LIMIT} threads, not {self.threads}.")
        self._team: Final = team.current()
        self._scratch_bytes = scratch_bytes
        self._block: Final = memory.allocate(layout.LINE * (1 + self.threads))
        self.address: Final = self._block.address
        ctypes.memset(self.address, 0, self._block.nbytes)
        self._words: Final[NDArray[np.int64]] = self._block.ndarray(
            (self._block.nbytes // 8,), np.int64, writeable=True
        )
        self.words: Final = self._words.data
        self._words[layout.THREADS] = self.threads
        self._words[layout.CONTROL] = self._team.address
        workers = [self._team.scratch(slot, scratch_bytes) for slot in range(1, self.threads)]
        self._is_at_once: Final = short and self.threads == 1
        self._is_long: Final = long
        self._keep: list[Any] = [
            keep,
            *records_per_thread,
            *workers,
            None,
            None,
            None,
        ]  # the last: start table, lock entries, the caller's scratch
        for number, records in enumerate(records_per_thread):
            words = self._thread_block(number)
            words[layout.BASES] = bases
            words[layout.NUMBER] = number
            words[layout.COUNT] = self.threads
            words[layout.TEAM] = self._team.address
            words[layout.LAUNCH] = self.address
            words[layout.RECORDS] = records.__array_interface__["data"][0]
            words[layout.DELAY] = int(switches.stress.value * 1e-6 * self._team.pauses_per_second)
            words[layout.WATCH] = self.address + 8 * (layout.STOP if number else layout.REQUEST)
            words[layout.RANDOM] = (number + 1) * 0x9E3779B97F4A7  # xorshift starts anywhere but at 0
            if number:
                self._give_scratch(number, workers[number - 1])
        self._disown()
        entry = driver.entry_points()
        argument = ctypes.c_void_p(self.address)
        self._patient: Callable[[], int] = partial(_WITHOUT_GIL(entry[driver.rn_solo]), argument)
        if self.threads > 1:
            self._call: Callable[[], int] = partial(_WITHOUT_GIL(entry[driver.rn_launch]), argument)
            self._patient = partial(_WITHOUT_GIL(entry[driver.rn_alone]), argument)
        elif self._is_at_once:
            self._call = partial(_WITH_GIL(entry[driver.rn_solo_at_once]), argument)
        else:
            self._call = self._patient

    @property
    def at_once(self) -> int:
        """The address of the function that runs the program with the GIL held."""
        return driver.entry_points()[driver.rn_solo_at_once]

    def lend(self, scratch: memory.Storage) -> bool:
        """Use ``scratch`` in runs by machine code, which come one after another with the GIL held. False if the program
        cannot run so, or needs more."""
        if not self._is_at_once or self._scratch_bytes > scratch.nbytes:
            return False
        self._give_scratch(0, scratch)
        self._keep[-1] = scratch
        return True

    def lock(self, entries: Sequence[tuple[int, bool, int, int]]) -> None:
        """Take these state locks for each later run: the words of lock entries, in the order of their addresses."""
        table = np.array(entries, np.int64).reshape(-1, locking.ENTRY_WORDS)
        self._words[layout.LOCK_COUNT] = 0
        self._keep[-2] = table
        self._words[layout.LOCKS] = table.__array_interface__["data"][0]
        self._words[layout.LOCK_COUNT] = len(table)

    def starter(self, slots: Sequence[int]) -> Callable[..., int]:
        """Return ``start(*addresses)``, which writes them to these ``slots`` of the table of base pointers and runs the
        program; its status is a status of ``run``, or LATER where you must call ``run``. There is one at a time."""
        words = start_table(slots, self._is_at_once)
        self._words[layout.START] = words.__array_interface__["data"][0]
        self._keep[-3] = words
        return start_function(self.address)

    def run(self) -> int:
        """Run the program; its status is 0, a kernel's fault, the request that stopped it, or STALE: it did not run,
        because a state lock has another version, or other writes, than ``lock`` expects."""
        if get_ident() != self._owner:
            self._adopt()
        if host.INSIDE:
            self._require_locks()
        status = self._call()
        return self._run_otherwise(status) if status else status

    @property
    def run_watched(self) -> Callable[[], int]:
        """Return ``run``, or, for a long program, a variant of it that Ctrl-C stops before its commit point."""
        return Interruptible(self).run if self._is_long else self.run

    def _require_locks(self) -> None:
        if self._keep[-2] is not None:
            host.require_free(self._keep[-2].tolist())

    def _run_otherwise(self, status: int) -> int:
        """Run the program in another way if the first attempt did not begin; else return its ``status``."""
        while status == layout.TOO_FEW and self._team.grow(self.threads):
            status = self._call()
        return self._patient() if status == layout.BUSY or status == layout.TOO_FEW else status

    @property
    def status(self) -> int:
        """The status of the last run."""
        return int(self._words[layout.STATUS])

    def cancel(self) -> None:
        """Stop the run in progress, or else the next one, before its next kernel, unless it has passed its commit
        point. Any thread may call this."""
        self._words[layout.REQUEST] = layout.CANCELLED

    def interrupt(self) -> None:
        """Stop the run in progress, or else the next one, because of a signal."""
        self._words[layout.REQUEST] = layout.INTERRUPTED

    def _adopt(self) -> None:
        """Use the calling thread's scratch: another program may be using the last run's scratch."""
        self._disown()  # if this is interrupted, the next run adopts again
        scratch = _CALLER.at_least(self._scratch_bytes)
        self._give_scratch(0, scratch)
        self._keep[-1] = scratch
        self._owner = get_ident()
        self._words[layout.OWNER] = np.uint64(self._owner).astype(np.int64)

    def _disown(self) -> None:
        self._words[layout.OWNER] = self._owner = -1

    def _give_scratch(self, number: int, scratch: memory.Storage) -> None:
        block = self._thread_block(number)
        block[layout.SCRATCH] = scratch.address
        block[layout.SCRATCH_BYTES] = scratch.nbytes

    def _thread_block(self, number: int) -> NDArray[np.int64]:
        words = layout.LINE // 8
        return self._words[(1 + number) * words : (2 + number) * words]


def _check(records: NDArray[np.int64]) -> None:
    if records.dtype != np.int64 or records.ndim != 2 or records.shape[1] != COMMAND_WORDS:
        raise ValueError(
            f"Records are int64 of shape (n, {COMMAND_WORDS}), not {records.dtype} of shape {records.shape}."
        )
    if not records.flags.c_contiguous:
        raise ValueError("Records must be contiguous.")
    if not len(records) or records[-1, 0] != 0:
        raise ValueError("Records must end with one whose kernel is 0.")


def barrier_address() -> int:
    """Return the kernel of a record at which all threads of a program wait for one another."""
    return driver.entry_points()[rn_barrier]


def commit_address() -> int:
    """Return a barrier after which the run cannot be stopped: no persistent state may be written before it, so a run
    changes all of the state or none."""
    return driver.entry_points()[rn_commit]


def jump_address() -> int:
    """Return the kernel of a jump record: its args are slot and byte offset of a bool; the next record is i0 records
    further if that is false, i1 if it is true."""
    return driver.entry_points()[rn_jump]


class LoadedProgram:
    """The commands of ``buffer`` bound to the addresses of ``functions``, its kernels in machine code."""

    def __init__(self, buffer: CommandBuffer, functions: Sequence[Function]) -> None:
        self._keep: Final = (functions, buffer.words)  # the commands contain their addresses
        self._buffer: Final = buffer
        self._args: Final[int] = buffer.words.__array_interface__["data"][0]
        numbers = np.array([0, *functions, 0, 0, 0, 0], np.int64)  # negative numbers count from the end
        numbers[BARRIER], numbers[COMMIT], numbers[JUMP] = barrier_address(), commit_address(), jump_address()
        numbers[WINDOW] = driver.entry_points()[rn_window]
        self._functions: Final = numbers
        self._commands: Final = [self._bound(rows) for rows in buffer.commands]

    def launch(self, bases: int, commands: Sequence[Words] | None = None) -> Launch:
        bound = self._commands if commands is None else [self._bound(rows) for rows in commands]
        return Launch(bound, bases, self._buffer.scratch_bytes, self._buffer.is_short, self._buffer.is_long, self)

    def _bound(self, rows: Words) -> Words:
        """Return commands with the addresses of their kernels and args."""
        code = rows[:, 0]
        bound = rows.copy()
        bound[:, 0] = self._functions[code]
        bound[:, 1] += np.where((code > 0) | np.isin(code, JUMPS), self._args, 0)
        return bound
