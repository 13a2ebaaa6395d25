"""The driver, in generated code: the launch, the workers' loop and the end of the team; and its compilation.

It is compiled for the baseline host, independent of the kernels' target. ``layout`` defines the structures it accesses.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.backends.cpu import locking, records
from runnel.backends.cpu.compiler import Compiler
from runnel.backends.cpu.link import Function
from runnel.backends.cpu.locking import announce, drop, enter, leave, lock, pause, try_lock, unlock, wait
from runnel.backends.cpu.routines import I64, Bit, Code, Ptr, Routine, table_text
from runnel.backends.host import layout
from runnel.backends.host.locks import LockKeeper

if TYPE_CHECKING:
    import llvmlite.binding as llvm


@Routine
def rn_pause(f: Code, n: I64) -> None:
    """Pause n times, to measure how long that takes."""
    pause(f, n)


@Routine
def part(f: Code, thread: Ptr) -> None:
    """Run one thread's part."""
    records.rn_run(f, thread, f.pointer(thread, layout.RECORDS))


@Routine
def fault_of(f: Code, block: Ptr, threads: I64) -> I64:
    """Return the first fault that a thread reported, or 0."""
    with f.count(threads) as t:
        fault = f.word(f.at(block, f.mul(f.add(t, 1), layout.LINE)), layout.FAULT)
        with f.when(f.test("ne", fault, 0)):
            f.ret(fault)
    return 0


@Routine
def settle(f: Code, block: Ptr, threads: I64) -> I64:
    """Store and return the run's status: the first fault that a thread reported, or the request that stopped it, or
    0."""
    request_at = f.beyond(block, layout.REQUEST)
    request = f.load(request_at, "acquire", "i64")
    f.store(request_at, 0, "release", "i64")  # one that comes just now came too late
    stopped = f.test("ne", f.word(block, layout.STOP), 0)
    f.put(block, layout.STOP, 0)
    f.put(block, layout.COMMITTED, 0)
    fault = fault_of(f, block, threads)
    status = f.select(f.test("ne", fault, 0), fault, f.select(stopped, request, 0))
    f.put(block, layout.STATUS, status)
    is_whole = f.value(f"zext i1 {f.test('eq', status, 0)} to i64")
    f.put(block, layout.COMPLETED, f.add(f.word(block, layout.COMPLETED), is_whole))
    return status


def _enter_or_return(f: Code, block: Ptr, patient: Bit) -> None:
    entered = enter(f, block, patient)
    with f.when(f.test("ne", entered, 0)):
        f.ret(entered)


def _thread(f: Code, block: Ptr, number: I64) -> str:
    """Return a thread block of a launch."""
    return f.at(block, f.mul(f.add(number, 1), layout.LINE))


@Routine
def solo(f: Code, block: Ptr, patient: Bit) -> I64:
    """Run a program of one thread, without the team."""
    _enter_or_return(f, block, patient)
    thread = f.at(block, layout.LINE)
    f.put(thread, layout.FAULT, 0)
    part(f, thread)
    status = settle(f, block, 1)
    leave(f, block)
    return status


@Routine
def rn_solo(f: Code, block: Ptr) -> I64:
    """Run a program of one thread."""
    return solo(f, block, "true")


@Routine
def rn_solo_at_once(f: Code, block: Ptr) -> I64:
    """Run a program of one thread; BUSY instead of waiting."""
    return solo(f, block, "false")


@Routine
def take_turns(f: Code, block: Ptr, threads: I64) -> None:
    """Run each thread's records up to its next barrier."""
    with f.count(threads) as t:
        thread = _thread(f, block, t)
        position = f.pointer(thread, layout.POSITION)
        with f.when(f.test("ne", position, "null", "ptr")):
            f.put(thread, layout.POSITION, records.stretch(f, thread, position), "ptr")


@Routine
def goes_on(f: Code, block: Ptr, threads: I64) -> Bit:
    """Return whether a thread has records left."""
    with f.count(threads) as t:
        position = f.pointer(_thread(f, block, t), layout.POSITION)
        with f.when(f.test("ne", position, "null", "ptr")):
            f.ret("true", "i1")
    return "false"


@Routine
def rn_alone(f: Code, block: Ptr) -> I64:
    """Run a program on the calling thread: each thread's records up to its next barrier in turn, until all have
    ended."""
    _enter_or_return(f, block, "true")
    threads, team = f.word(block), f.pointer(block, layout.CONTROL)
    lock(f, team, 1)  # the run uses the scratch memory of its workers
    with f.count(threads) as t:
        thread = _thread(f, block, t)
        f.put(thread, layout.FAULT, 0)
        f.put(thread, layout.POSITION, f.pointer(thread, layout.RECORDS), "ptr")
    with f.cycle("i64", 0) as cycle:
        take_turns(f, block, threads)
        with f.unless(goes_on(f, block, threads)):
            cycle.leave()
        cycle.again(0)
    status = settle(f, block, threads)
    unlock(f, team)
    leave(f, block)
    return status


@Routine
def post(f: Code, team: Ptr, worker: I64, thread: Ptr) -> None:
    """Put a thread block into the mailbox of a worker, and wake the worker."""
    mailbox = f.at(team, f.add(f.mul(worker, layout.LINE), layout.MAILBOXES))
    f.put(mailbox, layout.MAIL_THREAD // 8, thread, "ptr")
    announce(f, mailbox, f.add(f.load(mailbox, "monotonic"), 1, "i32"), 1)


@Routine
def rn_launch(f: Code, block: Ptr) -> I64:
    """Run a program with the team."""
    _enter_or_return(f, block, "true")
    threads, team = f.word(block), f.pointer(block, layout.CONTROL)
    spins = f.word(team, layout.SPINS // 8)
    lock(f, team, spins)
    with f.when(f.test("ult", f.word(team, layout.SIZE // 8), threads)):
        unlock(f, team)
        drop(f, f.pointer(block, layout.LOCKS), f.word(block, layout.LOCK_COUNT))
        f.ret(layout.TOO_FEW)
    f.store(f.at(team, layout.ARRIVED), 0, "monotonic")
    f.store(f.at(team, layout.PENDING), f.value(f"trunc i64 {f.sub(threads, 1)} to i32"), "monotonic")
    finished = f.at(team, layout.FINISHED)
    before = f.load(finished, "monotonic")
    own = f.at(block, layout.LINE)
    f.put(own, layout.FAULT, 0)
    with f.count(threads, 1) as worker:
        thread = _thread(f, block, worker)
        f.put(thread, layout.FAULT, 0)
        post(f, team, worker, thread)
    part(f, own)
    wait(f, finished, before, spins)
    status = settle(f, block, threads)
    unlock(f, team)
    leave(f, block)
    return status


@Routine
def rn_worker(f: Code, team: Ptr, mailbox: Ptr) -> None:
    """Do a worker's parts of programs until the team ends."""
    pending, finished = f.at(team, layout.PENDING), f.at(team, layout.FINISHED)
    with f.cycle("i32", 0) as idle:
        wait(f, mailbox, idle.value, f.word(team, layout.SPINS // 8))
        ticket = f.load(mailbox, "acquire")
        thread = f.pointer(mailbox, layout.MAIL_THREAD // 8)
        with f.when(f.test("eq", thread, "null", "ptr")):
            idle.leave()
        part(f, thread)
        left = f.fetch("sub", pending, 1, "acq_rel")
        with f.when(f.test("eq", left, 1, "i32")):
            announce(f, finished, f.add(f.load(finished, "monotonic"), 1, "i32"), 1)
        idle.again(ticket)


@Routine
def rn_stop(f: Code, team: Ptr, threads: I64) -> I64:
    """Tell the workers to end; 0, and then nothing is told, while a launch is in progress."""
    with f.unless(try_lock(f, team)):
        f.ret(0)
    with f.count(threads, 1) as worker:
        post(f, team, worker, "null")
    f.put(team, layout.SIZE // 8, 1)
    unlock(f, team)
    return 1


ENTRY_POINTS: Final = (
    records.rn_barrier, records.rn_commit, records.rn_jump, records.rn_window, rn_solo,
    rn_solo_at_once, rn_launch, rn_alone, rn_worker,
    rn_stop, rn_pause, locking.rn_is_written, locking.rn_settle, locking.rn_close, locking.rn_open, locking.rn_reopen,
)  # fmt: skip


def text(triple: str, symbol: str, system: str = sys.platform) -> str:
    """Return the driver as a module whose only global symbol ``symbol`` is the table of ``ENTRY_POINTS``."""
    return locking.GLOBALS + table_text(symbol, ENTRY_POINTS, triple, system)


def host_compiler() -> Compiler:
    """Return a compiler for the plain host."""
    import llvmlite.binding as llvm

    def machine() -> llvm.TargetMachine:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small")

    triple = llvm.get_process_triple()
    return Compiler(f"driver {triple}", machine)


_NEVER_FREED: Final[list[Function]] = []


class _LockKeeper(NamedTuple):
    """The driver's functions on state locks."""

    is_written: Callable[[int], int]
    settle: Callable[[int], int]
    close: Callable[[], None]
    open: Callable[[], None]
    reopen: Callable[[], None]


@functools.cache
def lock_keeper() -> LockKeeper:
    """Return the driver, as keeper of the state locks of Variables on the CPU."""
    import ctypes

    entry = entry_points()
    return _LockKeeper(
        ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry[locking.rn_is_written]),
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry[locking.rn_settle]),
        ctypes.PYFUNCTYPE(None)(entry[locking.rn_close]),
        ctypes.PYFUNCTYPE(None)(entry[locking.rn_open]),
        ctypes.PYFUNCTYPE(None)(entry[locking.rn_reopen]),
    )


@functools.cache
def entry_points() -> dict[Routine, int]:
    """Return the addresses of ``ENTRY_POINTS`` in this process."""
    import llvmlite.binding as llvm

    return linked("rn_driver", text(llvm.get_process_triple(), "rn_driver"), ENTRY_POINTS)


def linked(symbol: str, table: str, routines: Sequence[Routine]) -> dict[Routine, int]:
    """Return the addresses of ``routines``, whose module is ``table``. They are never freed: workers wait in them until
    the process ends."""
    import ctypes

    (function,) = host_compiler().addresses([(symbol, table)], {})
    _NEVER_FREED.append(function)
    words = (ctypes.c_uint64 * len(routines)).from_address(function)
    return dict(zip(routines, words, strict=True))
