"""The driver in LLVM text: the launch, the workers' loop and the end of the team; and its compilation.

It is compiled for the baseline host, independent of the kernels' target. ``layout`` defines the structures it accesses.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from runnel.backends.cpu import locking, records
from runnel.backends.cpu.compiler import Compiler
from runnel.backends.cpu.link import Function
from runnel.backends.host.layout import (
    ARRIVED,
    COMMITTED,
    COMPLETED,
    CONTROL,
    FAULT,
    FINISHED,
    LINE,
    LOCK_COUNT,
    LOCKS,
    MAIL_THREAD,
    MAILBOXES,
    PENDING,
    POSITION,
    RECORDS,
    REQUEST,
    SIZE,
    SPINS,
    STATUS,
    STOP,
    TOO_FEW,
)
from runnel.backends.host.locks import LockKeeper

if TYPE_CHECKING:
    import llvmlite.binding as llvm


class EntryPoints(NamedTuple):
    """Addresses of the driver's functions."""

    rn_barrier: int  # a kernel
    rn_commit: int  # a kernel
    rn_jump: int  # the kernel of jump records
    rn_solo: int  # (launch block) -> status: one thread, without the team
    rn_solo_at_once: int  # the same, or BUSY instead of waiting
    rn_launch: int  # (launch block) -> status: with the team
    rn_alone: int  # (launch block) -> status: the caller does the work of all threads
    rn_worker: int  # (control block, mailbox)
    rn_stop: int  # (control block, threads) -> 1 if the workers will end, 0 if a launch is in progress
    rn_pause: int  # (n)
    rn_is_written: int  # (state lock) -> 1 while a run may be writing, else 0
    rn_settle: int  # (state lock): wait for the end of a run that is writing
    rn_close: int  # (): keep launches that take locks from beginning
    rn_open: int  # (): let them begin again
    rn_reopen: int  # (): the same in the child of a fork


def text(triple: str, symbol: str, system: str = sys.platform) -> str:
    """Return the driver as a module whose one global symbol ``symbol`` is the table of :class:`EntryPoints`."""
    table = ", ".join(f"ptr @{name}" for name in EntryPoints._fields)
    return f"""{locking.waiting_text(triple, system)}
{locking.text()}
{records.text()}
@{symbol} = constant [{len(EntryPoints._fields)} x ptr] [{table}]

define internal void @rn_pause(i64 %n) {{
  call void @pause(i64 %n)
  ret void
}}

; run one thread's part
define internal void @part(ptr %thread) {{
  %records.at = getelementptr i64, ptr %thread, i64 {RECORDS}
  %records = load ptr, ptr %records.at
  %end = call ptr @rn_run(ptr %thread, ptr %records)
  ret void
}}

; the run's status: the first fault that a thread reported, or the request that stopped it, or 0
define internal i64 @settle(ptr %block, i64 %threads) {{
entry:
  %request.at = getelementptr i64, ptr %block, i64 {REQUEST}
  %request = load atomic i64, ptr %request.at acquire, align 8
  store atomic i64 0, ptr %request.at release, align 8  ; one that comes just now came too late
  %stop.at = getelementptr i64, ptr %block, i64 {STOP}
  %stop = load i64, ptr %stop.at
  store i64 0, ptr %stop.at
  %committed.at = getelementptr i64, ptr %block, i64 {COMMITTED}
  store i64 0, ptr %committed.at
  %stopped = icmp ne i64 %stop, 0
  %without.fault = select i1 %stopped, i64 %request, i64 0
  br label %look
look:
  %t = phi i64 [ 0, %entry ], [ %t.next, %on ]
  %offset = mul i64 %t, {LINE}
  %line = getelementptr i8, ptr %block, i64 %offset
  %fault.at = getelementptr i8, ptr %line, i64 {LINE + 8 * FAULT}
  %fault = load i64, ptr %fault.at
  %faulty = icmp ne i64 %fault, 0
  br i1 %faulty, label %done, label %on
on:
  %t.next = add i64 %t, 1
  %more = icmp ult i64 %t.next, %threads
  br i1 %more, label %look, label %done
done:
  %status = phi i64 [ %fault, %look ], [ %without.fault, %on ]
  %status.at = getelementptr i64, ptr %block, i64 {STATUS}
  store i64 %status, ptr %status.at
  %whole = icmp eq i64 %status, 0
  %one = zext i1 %whole to i64
  %completed.at = getelementptr i64, ptr %block, i64 {COMPLETED}
  %completed = load i64, ptr %completed.at
  %completed.now = add i64 %completed, %one
  store i64 %completed.now, ptr %completed.at
  ret i64 %status
}}

define internal i64 @solo(ptr %block, i1 %patient) {{
entry:
  %entered = call i64 @enter(ptr %block, i1 %patient)
  %inside = icmp eq i64 %entered, 0
  br i1 %inside, label %run, label %refused
run:
  %thread = getelementptr i8, ptr %block, i64 {LINE}
  %fault.at = getelementptr i64, ptr %thread, i64 {FAULT}
  store i64 0, ptr %fault.at
  call void @part(ptr %thread)
  %status = call i64 @settle(ptr %block, i64 1)
  call void @leave(ptr %block)
  ret i64 %status
refused:
  ret i64 %entered
}}

define internal i64 @rn_solo(ptr %block) {{
  %status = call i64 @solo(ptr %block, i1 true)
  ret i64 %status
}}

define internal i64 @rn_solo_at_once(ptr %block) {{
  %status = call i64 @solo(ptr %block, i1 false)
  ret i64 %status
}}

; the caller runs each thread's records up to its next barrier in turn, until all have come to their ends
define internal i64 @rn_alone(ptr %block) {{
entry:
  %entered = call i64 @enter(ptr %block, i1 true)
  %inside = icmp eq i64 %entered, 0
  br i1 %inside, label %begin, label %refused
refused:
  ret i64 %entered
begin:
  %threads = load i64, ptr %block
  %team.at = getelementptr i64, ptr %block, i64 {CONTROL}
  %team = load ptr, ptr %team.at
  call void @lock(ptr %team, i64 1)  ; whose workers' scratch it uses
  %own = getelementptr i8, ptr %block, i64 {LINE}
  br label %prepare
prepare:
  %p = phi i64 [ 0, %begin ], [ %p.next, %prepare ]
  %p.offset = mul i64 %p, {LINE}
  %p.thread = getelementptr i8, ptr %own, i64 %p.offset
  %fault.at = getelementptr i64, ptr %p.thread, i64 {FAULT}
  store i64 0, ptr %fault.at
  %records.at = getelementptr i64, ptr %p.thread, i64 {RECORDS}
  %records = load ptr, ptr %records.at
  %first.at = getelementptr i64, ptr %p.thread, i64 {POSITION}
  store ptr %records, ptr %first.at
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %threads
  br i1 %p.more, label %prepare, label %round
round:
  br label %turn
turn:
  %t = phi i64 [ 0, %round ], [ %t.next, %on ]
  %left = phi i64 [ 0, %round ], [ %left.now, %on ]
  %offset = mul i64 %t, {LINE}
  %thread = getelementptr i8, ptr %own, i64 %offset
  %at = getelementptr i64, ptr %thread, i64 {POSITION}
  %position = load ptr, ptr %at
  %ended = icmp eq ptr %position, null
  br i1 %ended, label %on, label %go
go:
  %next = call ptr @stretch(ptr %thread, ptr %position)
  store ptr %next, ptr %at
  %goes.on = icmp ne ptr %next, null
  %one = zext i1 %goes.on to i64
  br label %on
on:
  %counted = phi i64 [ 0, %turn ], [ %one, %go ]
  %left.now = add i64 %left, %counted
  %t.next = add i64 %t, 1
  %more = icmp ult i64 %t.next, %threads
  br i1 %more, label %turn, label %after
after:
  %again = icmp ne i64 %left.now, 0
  br i1 %again, label %round, label %done
done:
  %status = call i64 @settle(ptr %block, i64 %threads)
  call void @unlock(ptr %team)
  call void @leave(ptr %block)
  ret i64 %status
}}

define internal i64 @rn_launch(ptr %block) {{
entry:
  %entered = call i64 @enter(ptr %block, i1 true)
  %inside = icmp eq i64 %entered, 0
  br i1 %inside, label %gather, label %refused
refused:
  ret i64 %entered
gather:
  %threads = load i64, ptr %block
  %team.at = getelementptr i64, ptr %block, i64 {CONTROL}
  %team = load ptr, ptr %team.at
  %spins.at = getelementptr i8, ptr %team, i64 {SPINS}
  %spins = load i64, ptr %spins.at
  call void @lock(ptr %team, i64 %spins)
  %size.at = getelementptr i8, ptr %team, i64 {SIZE}
  %size = load i64, ptr %size.at
  %enough = icmp uge i64 %size, %threads
  br i1 %enough, label %begin, label %too.few
too.few:
  call void @unlock(ptr %team)
  %count.at = getelementptr i64, ptr %block, i64 {LOCK_COUNT}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i64, ptr %block, i64 {LOCKS}
  %table = load ptr, ptr %table.at
  call void @drop(ptr %table, i64 %count)
  ret i64 {TOO_FEW}
begin:
  %arrived = getelementptr i8, ptr %team, i64 {ARRIVED}
  store atomic i32 0, ptr %arrived monotonic, align 4
  %pending = getelementptr i8, ptr %team, i64 {PENDING}
  %workers = sub i64 %threads, 1
  %workers.32 = trunc i64 %workers to i32
  store atomic i32 %workers.32, ptr %pending monotonic, align 4
  %finished = getelementptr i8, ptr %team, i64 {FINISHED}
  %before = load atomic i32, ptr %finished monotonic, align 4
  %own = getelementptr i8, ptr %block, i64 {LINE}
  %own.fault = getelementptr i64, ptr %own, i64 {FAULT}
  store i64 0, ptr %own.fault
  br label %publish
publish:
  %w = phi i64 [ 1, %begin ], [ %w.next, %publish ]
  %offset = mul i64 %w, {LINE}
  %thread = getelementptr i8, ptr %own, i64 %offset
  %fault.at = getelementptr i64, ptr %thread, i64 {FAULT}
  store i64 0, ptr %fault.at
  %boxes = getelementptr i8, ptr %team, i64 {MAILBOXES}
  %mailbox = getelementptr i8, ptr %boxes, i64 %offset
  %mail = getelementptr i8, ptr %mailbox, i64 {MAIL_THREAD}
  store ptr %thread, ptr %mail
  %ticket = load atomic i32, ptr %mailbox monotonic, align 4
  %ticket.next = add i32 %ticket, 1
  call void @announce(ptr %mailbox, i32 %ticket.next, i32 1)
  %w.next = add i64 %w, 1
  %more = icmp ult i64 %w.next, %threads
  br i1 %more, label %publish, label %work
work:
  call void @part(ptr %own)
  call void @wait(ptr %finished, i32 %before, i64 %spins)
  %status = call i64 @settle(ptr %block, i64 %threads)
  call void @unlock(ptr %team)
  call void @leave(ptr %block)
  ret i64 %status
}}

define internal void @rn_worker(ptr %team, ptr %mailbox) {{
entry:
  %pending = getelementptr i8, ptr %team, i64 {PENDING}
  %finished = getelementptr i8, ptr %team, i64 {FINISHED}
  %spins.at = getelementptr i8, ptr %team, i64 {SPINS}
  %mail = getelementptr i8, ptr %mailbox, i64 {MAIL_THREAD}
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %ticket, %work ], [ %ticket, %last ]
  %spins = load i64, ptr %spins.at
  call void @wait(ptr %mailbox, i32 %seen, i64 %spins)
  %ticket = load atomic i32, ptr %mailbox acquire, align 4
  %thread = load ptr, ptr %mail
  %end = icmp eq ptr %thread, null
  br i1 %end, label %done, label %work
work:
  call void @part(ptr %thread)
  %left = atomicrmw sub ptr %pending, i32 1 acq_rel
  %is.last = icmp eq i32 %left, 1
  br i1 %is.last, label %last, label %idle
last:
  %before = load atomic i32, ptr %finished monotonic, align 4
  %later = add i32 %before, 1
  call void @announce(ptr %finished, i32 %later, i32 1)
  br label %idle
done:
  ret void
}}

define internal i64 @rn_stop(ptr %team, i64 %threads) {{
entry:
  %taken = call i1 @try_lock(ptr %team)
  br i1 %taken, label %tell, label %busy
tell:
  %w = phi i64 [ 1, %entry ], [ %w.next, %tell ]
  %offset = mul i64 %w, {LINE}
  %boxes = getelementptr i8, ptr %team, i64 {MAILBOXES}
  %mailbox = getelementptr i8, ptr %boxes, i64 %offset
  %mail = getelementptr i8, ptr %mailbox, i64 {MAIL_THREAD}
  store ptr null, ptr %mail
  %ticket = load atomic i32, ptr %mailbox monotonic, align 4
  %ticket.next = add i32 %ticket, 1
  call void @announce(ptr %mailbox, i32 %ticket.next, i32 1)
  %w.next = add i64 %w, 1
  %more = icmp ult i64 %w.next, %threads
  br i1 %more, label %tell, label %told
told:
  %size.at = getelementptr i8, ptr %team, i64 {SIZE}
  store i64 1, ptr %size.at
  call void @unlock(ptr %team)
  ret i64 1
busy:
  ret i64 0
}}
"""


def host_compiler() -> Compiler:
    """Return a compiler for the plain host."""
    import llvmlite.binding as llvm

    def machine() -> llvm.TargetMachine:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small")

    triple = llvm.get_process_triple()
    return Compiler(f"driver {triple}", machine)


_DRIVER: Final[list[Function]] = []  # never freed: workers wait in it until the process ends


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
        ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry.rn_is_written),
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(entry.rn_settle),
        ctypes.PYFUNCTYPE(None)(entry.rn_close),
        ctypes.PYFUNCTYPE(None)(entry.rn_open),
        ctypes.PYFUNCTYPE(None)(entry.rn_reopen),
    )


@functools.cache
def entry_points() -> EntryPoints:
    """Return the driver, linked into this process."""
    import ctypes

    import llvmlite.binding as llvm

    symbol = "rn_driver"
    (table,) = host_compiler().addresses([(symbol, text(llvm.get_process_triple(), symbol))], {})
    _DRIVER.append(table)
    words = (ctypes.c_uint64 * len(EntryPoints._fields)).from_address(table)
    return EntryPoints(*words)
