"""LLVM text for waiting, waking and state locks.

Waiting spins, then yields, then sleeps. A word that threads wait for is an int32, followed by an int32 with the number
of its sleepers. A thread that changes the word makes a system call only if there are sleepers; a sleeper counts itself
before it loads the word a last time, so no wake-up is lost. On Linux sleeping is a futex (U. Drepper, "Futexes Are
Tricky"); elsewhere it is a short sleep.

A launch takes state locks before it accesses Variables, and readers of Variables wait for them.

A state lock is a reader-writer lock that only machine code holds, never across a line of Python. So no signal handler,
finalizer or other thread can block its holder, and waiting for it always ends. A launch takes all its locks in the
order of their addresses. A writer that waits for readers holds the gate, so that later launches queue.

Then it compares their versions with the versions it was bound at. Another version means that a Variable may have moved,
or that its memory is being read, and the launch is refused as STALE. Taking a lock is a read-modify-write before the
comparison; readers change the version first and load EPOCH after a fence. So either the launch sees the new version, or
the reader sees the launch and waits for its end (E. Dijkstra, "Cooperating sequential processes", 1965).
"""

from __future__ import annotations

import sys
from typing import Final

from runnel.backends.host.layout import (
    ADDRESS,
    ANY,
    BUSY,
    EPOCH,
    EXCLUSIVE,
    EXPECTED_VERSION,
    EXPECTED_WRITES,
    GATE,
    HOLDERS,
    LOCK_COUNT,
    LOCKS,
    STALE,
    VERSION,
    WRITES,
)

ENTRY_WORDS: Final = 4
_ALL: Final = 2**31 - 1  # sleepers to wake
_SPINS: Final = 200


def text() -> str:
    """Return the functions ``@enter``, ``@leave``, ``@rn_is_written``, ``@rn_settle``, ``@rn_close``, ``@rn_open`` and
    ``@rn_reopen``, for use inside a module that has the functions of ``waiting``."""
    return f"""; not 0 while a fork is under way: an int32 and its sleepers
@closed = internal global [2 x i32] zeroinitializer

; hold a lock, for writing or for reading; false if it is not free and the caller has no patience
define internal i1 @hold(ptr %lock, i1 %exclusive, i1 %patient) noinline {{
entry:
  %gate = getelementptr i8, ptr %lock, i64 {GATE}
  %holders = getelementptr i8, ptr %lock, i64 {HOLDERS}
  br i1 %patient, label %queue, label %hurry
hurry:
  %free = call i1 @try_lock(ptr %gate)
  br i1 %free, label %look, label %refused
queue:
  call void @lock(ptr %gate, i64 {_SPINS})
  br label %look
look:
  %now = load atomic i32, ptr %holders acquire, align 4
  %nobody = icmp eq i32 %now, 0
  %no.writer = icmp sge i32 %now, 0
  %welcome = select i1 %exclusive, i1 %nobody, i1 %no.writer
  br i1 %welcome, label %take, label %full
take:
  %one.more = add i32 %now, 1
  %then = select i1 %exclusive, i32 -1, i32 %one.more
  %pair = cmpxchg ptr %holders, i32 %now, i32 %then seq_cst seq_cst
  %taken = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %taken, label %tell, label %look
tell:
  br i1 %exclusive, label %odd, label %in
odd:
  %epoch = getelementptr i8, ptr %lock, i64 {EPOCH}
  atomicrmw add ptr %epoch, i32 1 seq_cst
  br label %in
full:
  br i1 %patient, label %stay, label %give.up
stay:
  call void @wait(ptr %holders, i32 %now, i64 {_SPINS})
  br label %look
in:
  call void @unlock(ptr %gate)
  ret i1 true
give.up:
  call void @unlock(ptr %gate)
  br label %refused
refused:
  ret i1 false
}}

define internal void @let_go(ptr %lock, i1 %exclusive) noinline {{
entry:
  %holders = getelementptr i8, ptr %lock, i64 {HOLDERS}
  br i1 %exclusive, label %writer, label %reader
writer:
  %epoch = getelementptr i8, ptr %lock, i64 {EPOCH}
  atomicrmw add ptr %epoch, i32 1 seq_cst
  call void @wake(ptr %epoch, i32 {_ALL})
  store atomic i32 0, ptr %holders seq_cst, align 4
  call void @wake(ptr %holders, i32 {_ALL})
  ret void
reader:
  %readers = atomicrmw sub ptr %holders, i32 1 seq_cst
  call void @wake(ptr %holders, i32 {_ALL})
  ret void
}}

; let go of the first %n locks of a launch
define internal void @drop(ptr %table, i64 %n) noinline {{
entry:
  br label %next
next:
  %i = phi i64 [ %n, %entry ], [ %left, %one ]
  %over = icmp eq i64 %i, 0
  br i1 %over, label %done, label %one
one:
  %left = sub i64 %i, 1
  %words = mul i64 %left, {ENTRY_WORDS}
  %row = getelementptr i64, ptr %table, i64 %words
  %lock.at = getelementptr i64, ptr %row, i64 {ADDRESS}
  %lock = load ptr, ptr %lock.at
  %exclusive.at = getelementptr i64, ptr %row, i64 {EXCLUSIVE}
  %exclusive.word = load i64, ptr %exclusive.at
  %exclusive = icmp ne i64 %exclusive.word, 0
  call void @let_go(ptr %lock, i1 %exclusive)
  br label %next
done:
  ret void
}}

; take the locks of a launch: 0, or STALE or BUSY, and then none is held
define internal i64 @enter(ptr %block, i1 %patient) noinline {{
entry:
  %count.at = getelementptr i64, ptr %block, i64 {LOCK_COUNT}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i64, ptr %block, i64 {LOCKS}
  %table = load ptr, ptr %table.at
  %none = icmp eq i64 %count, 0
  br i1 %none, label %in, label %start
start:
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %got ]
  %over = icmp eq i64 %i, %count
  br i1 %over, label %all, label %one
one:
  %words = mul i64 %i, {ENTRY_WORDS}
  %row = getelementptr i64, ptr %table, i64 %words
  %lock.at = getelementptr i64, ptr %row, i64 {ADDRESS}
  %lock = load ptr, ptr %lock.at
  %exclusive.at = getelementptr i64, ptr %row, i64 {EXCLUSIVE}
  %exclusive.word = load i64, ptr %exclusive.at
  %exclusive = icmp ne i64 %exclusive.word, 0
  %got.it = call i1 @hold(ptr %lock, i1 %exclusive, i1 %patient)
  br i1 %got.it, label %got, label %busy
busy:
  call void @drop(ptr %table, i64 %i)
  ret i64 {BUSY}
got:
  %i.next = add i64 %i, 1
  br label %next
all:
  %closed = load atomic i32, ptr @closed seq_cst, align 4
  %is.open = icmp eq i32 %closed, 0
  br i1 %is.open, label %compare, label %back
back:
  call void @drop(ptr %table, i64 %count)
  br i1 %patient, label %outside, label %shut
outside:
  call void @wait(ptr @closed, i32 %closed, i64 {_SPINS})
  br label %start
shut:
  ret i64 {BUSY}
compare:
  %c = phi i64 [ 0, %all ], [ %c.next, %same ]
  %c.over = icmp eq i64 %c, %count
  br i1 %c.over, label %in, label %check
check:
  %c.words = mul i64 %c, {ENTRY_WORDS}
  %c.row = getelementptr i64, ptr %table, i64 %c.words
  %c.lock = load ptr, ptr %c.row
  %version.at = getelementptr i8, ptr %c.lock, i64 {VERSION}
  %version = load atomic i64, ptr %version.at seq_cst, align 8
  %expected.at = getelementptr i64, ptr %c.row, i64 {EXPECTED_VERSION}
  %expected = load i64, ptr %expected.at
  %same.version = icmp eq i64 %version, %expected
  %writes.at = getelementptr i8, ptr %c.lock, i64 {WRITES}
  %writes = load i64, ptr %writes.at
  %wanted.at = getelementptr i64, ptr %c.row, i64 {EXPECTED_WRITES}
  %wanted = load i64, ptr %wanted.at
  %any.writes = icmp eq i64 %wanted, {ANY}
  %equal.writes = icmp eq i64 %writes, %wanted
  %same.writes = or i1 %any.writes, %equal.writes
  %fits = and i1 %same.version, %same.writes
  br i1 %fits, label %same, label %stale
same:
  %c.next = add i64 %c, 1
  br label %compare
stale:
  call void @drop(ptr %table, i64 %count)
  ret i64 {STALE}
in:
  ret i64 0
}}

; after the run: count what was written, and let go of the locks
define internal void @leave(ptr %block) noinline {{
entry:
  %count.at = getelementptr i64, ptr %block, i64 {LOCK_COUNT}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i64, ptr %block, i64 {LOCKS}
  %table = load ptr, ptr %table.at
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %on ]
  %over = icmp eq i64 %i, %count
  br i1 %over, label %done, label %one
one:
  %words = mul i64 %i, {ENTRY_WORDS}
  %row = getelementptr i64, ptr %table, i64 %words
  %exclusive.at = getelementptr i64, ptr %row, i64 {EXCLUSIVE}
  %exclusive.word = load i64, ptr %exclusive.at
  %exclusive = icmp ne i64 %exclusive.word, 0
  br i1 %exclusive, label %wrote, label %on
wrote:
  %lock = load ptr, ptr %row
  %writes.at = getelementptr i8, ptr %lock, i64 {WRITES}
  %writes = load i64, ptr %writes.at
  %more = add i64 %writes, 1
  store i64 %more, ptr %writes.at
  br label %on
on:
  %i.next = add i64 %i, 1
  br label %next
done:
  call void @drop(ptr %table, i64 %count)
  ret void
}}

; whether a run may be writing; those that begin later see whatever the caller has stored before
define internal i64 @rn_is_written(ptr %lock) {{
  fence seq_cst
  %epoch.at = getelementptr i8, ptr %lock, i64 {EPOCH}
  %epoch = load atomic i32, ptr %epoch.at seq_cst, align 4
  %odd = and i32 %epoch, 1
  %word = zext i32 %odd to i64
  ret i64 %word
}}

; wait for the end of the run that is writing, if there is one
define internal i64 @rn_settle(ptr %lock) {{
entry:
  fence seq_cst
  %epoch.at = getelementptr i8, ptr %lock, i64 {EPOCH}
  %epoch = load atomic i32, ptr %epoch.at seq_cst, align 4
  %odd = and i32 %epoch, 1
  %writing = icmp ne i32 %odd, 0
  br i1 %writing, label %stay, label %done
stay:
  call void @wait(ptr %epoch.at, i32 %epoch, i64 {_SPINS})
  br label %done
done:
  ret i64 0
}}

; from now on no launch that takes locks begins, until all who called this have opened again
define internal void @rn_close() {{
  atomicrmw add ptr @closed, i32 1 seq_cst
  ret void
}}

define internal void @rn_open() {{
  atomicrmw sub ptr @closed, i32 1 seq_cst
  call void @wake(ptr @closed, i32 {_ALL})
  ret void
}}

; in the child of a fork, where nobody else has closed
define internal void @rn_reopen() {{
  store atomic i32 0, ptr @closed seq_cst, align 4
  %sleepers = getelementptr i32, ptr @closed, i64 1
  store atomic i32 0, ptr %sleepers seq_cst, align 4
  ret void
}}
"""


_FUTEX_CALL = {"x86_64": 202, "aarch64": 98}  # Linux's numbers of the system call
_FUTEX_WAIT_PRIVATE = 128
_FUTEX_WAKE_PRIVATE = 129
YIELDS = 100  # between spinning and sleeping: on a quiet machine about 50 µs, twice what a wake-up costs


def architecture(triple: str) -> str:
    """Return ``"x86_64"`` or ``"aarch64"``."""
    first = triple.split("-")[0].lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(first, first)


def _pause(machine: str) -> tuple[str, str]:
    """Return the instruction of a spinning loop, and its declaration."""
    if machine == "aarch64":
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"


def _sleeping(machine: str, system: str) -> tuple[str, str, str, str]:
    """Return code that yields, sleeps until ``%word`` is not ``%old``, and wakes ``%count`` sleepers; and
    declarations."""
    if system == "linux":
        number = _FUTEX_CALL[machine]
        call = f"call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64"
        return (
            "call i32 @sched_yield()",
            f"{call} {_FUTEX_WAIT_PRIVATE}, i32 %old, ptr null, ptr null, i64 0)",
            f"{call} {_FUTEX_WAKE_PRIVATE}, i32 %count, ptr null, ptr null, i64 0)",
            "declare i32 @sched_yield()\ndeclare i64 @syscall(i64, ...)",
        )
    if system == "win32":
        return (
            "call i32 @SwitchToThread()",
            "call void @Sleep(i32 1)",
            "",
            "declare i32 @SwitchToThread()\ndeclare void @Sleep(i32)",
        )
    return (
        "call i32 @sched_yield()",
        "call i32 @usleep(i32 100)",
        "",
        "declare i32 @sched_yield()\ndeclare i32 @usleep(i32)",
    )


def waiting_text(triple: str, system: str = sys.platform) -> str:
    """Return the functions ``@pause``, ``@wait``, ``@announce``, ``@wake``, ``@try_lock``, ``@lock``, ``@unlock``, for
    use inside one module."""
    machine = architecture(triple)
    pause, pause_declaration = _pause(machine)
    give_way, sleep, wake, declarations = _sleeping(machine, system)
    return f"""{pause_declaration}
{declarations}

; pause %n times
define internal void @pause(i64 %n) noinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  {pause}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}

; return once the word is not %old any more
define internal void @wait(ptr %word, i32 %old, i64 %spins) noinline {{
entry:
  br label %spin
spin:
  %i = phi i64 [ 0, %entry ], [ %i.next, %spin.on ]
  %spun = load atomic i32, ptr %word acquire, align 4
  %spin.over = icmp ne i32 %spun, %old
  br i1 %spin.over, label %done, label %spin.on
spin.on:
  {pause}
  %i.next = add i64 %i, 1
  %spin.more = icmp ult i64 %i.next, %spins
  br i1 %spin.more, label %spin, label %yield
yield:
  %y = phi i64 [ 0, %spin.on ], [ %y.next, %yield.on ]
  {give_way}
  %yielded = load atomic i32, ptr %word acquire, align 4
  %yield.over = icmp ne i32 %yielded, %old
  br i1 %yield.over, label %done, label %yield.on
yield.on:
  %y.next = add i64 %y, 1
  %yield.more = icmp ult i64 %y.next, {YIELDS}
  br i1 %yield.more, label %yield, label %sleep
sleep:
  %sleepers = getelementptr i32, ptr %word, i64 1
  atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %look
look:
  %slept = load atomic i32, ptr %word seq_cst, align 4
  %sleep.over = icmp ne i32 %slept, %old
  br i1 %sleep.over, label %rise, label %nap
nap:
  {sleep}
  br label %look
rise:
  atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %done
done:
  ret void
}}

; set the word and wake up to %count of those who sleep for it
define internal void @announce(ptr %word, i32 %value, i32 %count) {{
  store atomic i32 %value, ptr %word seq_cst, align 4
  call void @wake(ptr %word, i32 %count)
  ret void
}}

; wake up to %count of those who sleep for a word that has changed
define internal void @wake(ptr %word, i32 %count) {{
entry:
  %sleepers = getelementptr i32, ptr %word, i64 1
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %none = icmp eq i32 %asleep, 0
  br i1 %none, label %done, label %rouse
rouse:
  {wake}
  br label %done
done:
  ret void
}}

define internal i1 @try_lock(ptr %word) {{
  %pair = cmpxchg ptr %word, i32 0, i32 1 acquire monotonic
  %taken = extractvalue {{ i32, i1 }} %pair, 1
  ret i1 %taken
}}

define internal void @lock(ptr %word, i64 %spins) {{
entry:
  br label %try
try:
  %taken = call i1 @try_lock(ptr %word)
  br i1 %taken, label %done, label %held
held:
  call void @wait(ptr %word, i32 1, i64 %spins)
  br label %try
done:
  ret void
}}

define internal void @unlock(ptr %word) {{
  call void @announce(ptr %word, i32 0, i32 1)
  ret void
}}
"""
