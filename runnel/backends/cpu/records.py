"""LLVM text of a thread's execution of its records: kernels, jumps, barriers and the commit point."""

from __future__ import annotations

from typing import Final

from runnel.backends.host.layout import (
    ARRIVED,
    BARRIER,
    BASES,
    CANCELLED,
    COMMITTED,
    COUNT,
    DELAY,
    FAULT,
    LAUNCH,
    NUMBER,
    RANDOM,
    REQUEST,
    SPINS,
    STOP,
    TEAM,
    WATCH,
)

_ALL: Final = 2**31 - 1  # sleepers to wake


def text() -> str:
    """Return the functions ``@rn_run``, ``@stretch``, ``@rn_jump``, ``@rn_barrier`` and ``@rn_commit``, for use inside
    a module that has the functions of ``waiting``."""
    return f"""; pause for a random while: xorshift64 (G. Marsaglia, "Xorshift RNGs", 2003)
define internal void @delay(ptr %thread, i64 %most) noinline {{
  %at = getelementptr i64, ptr %thread, i64 {RANDOM}
  %x0 = load i64, ptr %at
  %l13 = shl i64 %x0, 13
  %x1 = xor i64 %x0, %l13
  %r7 = lshr i64 %x1, 7
  %x2 = xor i64 %x1, %r7
  %l17 = shl i64 %x2, 17
  %x3 = xor i64 %x2, %l17
  store i64 %x3, ptr %at
  %n = urem i64 %x3, %most
  call void @pause(i64 %n)
  ret void
}}

{_walk(alone=False)}
{_walk(alone=True)}
; the kernel of records that say where to go on, never called: i0 records further if the byte that args name by slot and
; offset is 0, else i1 records. All threads read it behind a barrier, so all go the same way
define internal void @rn_jump(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1) {{
  ret void
}}

define internal void @rn_barrier(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1) {{
  %count.at = getelementptr i64, ptr %thread, i64 {COUNT}
  %count = load i64, ptr %count.at
  %threads = trunc i64 %count to i32
  %alone = icmp eq i32 %threads, 1
  br i1 %alone, label %done, label %arrive
arrive:
  %team.at = getelementptr i64, ptr %thread, i64 {TEAM}
  %team = load ptr, ptr %team.at
  %barrier = getelementptr i8, ptr %team, i64 {BARRIER}
  %arrived = getelementptr i8, ptr %team, i64 {ARRIVED}
  %generation = load atomic i32, ptr %barrier acquire, align 4
  %launch.at = getelementptr i64, ptr %thread, i64 {LAUNCH}
  %launch = load ptr, ptr %launch.at
  %stop.at = getelementptr i64, ptr %launch, i64 {STOP}
  %stop = load atomic i64, ptr %stop.at acquire, align 8
  %stopped = icmp ne i64 %stop, 0  ; then some thread may have left: nobody would open the barrier
  br i1 %stopped, label %done, label %count.me
count.me:
  %before = atomicrmw add ptr %arrived, i32 1 acq_rel
  %mine = add i32 %before, 1
  %last = icmp eq i32 %mine, %threads
  br i1 %last, label %open, label %stay
open:
  store atomic i32 0, ptr %arrived monotonic, align 4
  %later = add i32 %generation, 1
  call void @announce(ptr %barrier, i32 %later, i32 {_ALL})
  br label %done
stay:
  %spins.at = getelementptr i8, ptr %team, i64 {SPINS}
  %spins = load i64, ptr %spins.at
  call void @wait(ptr %barrier, i32 %generation, i64 %spins)
  br label %done
done:
  ret void
}}

; a barrier beyond which no request stops the run: the first thread, which alone turns requests into stops, promises
; before it arrives that it will not do so any more
define internal void @rn_commit(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1) {{
  %number.at = getelementptr i64, ptr %thread, i64 {NUMBER}
  %number = load i64, ptr %number.at
  %first = icmp eq i64 %number, 0
  br i1 %first, label %commit, label %meet
commit:
  %launch.at = getelementptr i64, ptr %thread, i64 {LAUNCH}
  %launch = load ptr, ptr %launch.at
  %committed.at = getelementptr i64, ptr %launch, i64 {COMMITTED}
  store i64 1, ptr %committed.at
  br label %meet
meet:
  call void @rn_barrier(ptr %thread, ptr null, i64 0, i64 0, i64 0, i64 0)
  ret void
}}
"""


def _walk(*, alone: bool) -> str:
    """Return ``@rn_run``, which runs a thread's records to their end; or, for one thread that does the work of all,
    ``@stretch``, which stops at the next barrier and returns the record after it, or null at the end."""
    head = f"define internal ptr @{'stretch' if alone else 'rn_run'}(ptr %thread, ptr %records)"
    onward = "meet" if alone else "call"
    meeting = _MEETING if alone else ""
    return f"""{head} {{
entry:
  %launch.at = getelementptr i64, ptr %thread, i64 {LAUNCH}
  %launch = load ptr, ptr %launch.at
  %watch.at = getelementptr i64, ptr %thread, i64 {WATCH}
  %watch = load ptr, ptr %watch.at
  %fault.at = getelementptr i64, ptr %thread, i64 {FAULT}
  %delay.at = getelementptr i64, ptr %thread, i64 {DELAY}
  %delay = load i64, ptr %delay.at
  %hurried = icmp eq i64 %delay, 0
  br label %head
head:
  %record = phi ptr [ %records, %entry ], [ %next, %well ], [ %target, %jump ]
  %k = load ptr, ptr %record
  %end = icmp eq ptr %k, null
  br i1 %end, label %done, label %check
check:
  %seen = load atomic i64, ptr %watch acquire, align 8
  %quiet = icmp eq i64 %seen, 0
  br i1 %quiet, label %ready, label %asked
asked:
  %stop.at = getelementptr i64, ptr %launch, i64 {STOP}
  %stop = load atomic i64, ptr %stop.at acquire, align 8
  %decided = icmp ne i64 %stop, 0
  br i1 %decided, label %leave, label %requested
requested:  ; only the first thread comes here
  %committed.at = getelementptr i64, ptr %launch, i64 {COMMITTED}
  %committed = load i64, ptr %committed.at
  %too.late = icmp ne i64 %committed, 0
  br i1 %too.late, label %ready, label %decide
decide:
  store atomic i64 1, ptr %stop.at release, align 8
  br label %leave
ready:
  br i1 %hurried, label %go, label %dawdle
dawdle:
  call void @delay(ptr %thread, i64 %delay)
  br label %go
go:
  %jumps = icmp eq ptr %k, @rn_jump
  br i1 %jumps, label %jump, label %{onward}
{meeting}jump:
  %flag.at = getelementptr i64, ptr %record, i64 1
  %flag.args = load ptr, ptr %flag.at
  %slot = load i64, ptr %flag.args
  %bases.at = getelementptr i64, ptr %thread, i64 {BASES}
  %bases = load ptr, ptr %bases.at
  %base.at = getelementptr i64, ptr %bases, i64 %slot
  %base = load ptr, ptr %base.at
  %byte.at = getelementptr i64, ptr %flag.args, i64 1
  %byte = load i64, ptr %byte.at
  %flag.address = getelementptr i8, ptr %base, i64 %byte
  %flag = load i8, ptr %flag.address
  %holds = icmp ne i8 %flag, 0
  %if.false.at = getelementptr i64, ptr %record, i64 2
  %if.false = load i64, ptr %if.false.at
  %if.true.at = getelementptr i64, ptr %record, i64 3
  %if.true = load i64, ptr %if.true.at
  %distance = select i1 %holds, i64 %if.true, i64 %if.false
  %words = mul i64 %distance, 8
  %target = getelementptr i64, ptr %record, i64 %words
  br label %head
call:
  %args.at = getelementptr i64, ptr %record, i64 1
  %args = load ptr, ptr %args.at
  %i0.at = getelementptr i64, ptr %record, i64 2
  %i0 = load i64, ptr %i0.at
  %i1.at = getelementptr i64, ptr %record, i64 3
  %i1 = load i64, ptr %i1.at
  %j0.at = getelementptr i64, ptr %record, i64 4
  %j0 = load i64, ptr %j0.at
  %j1.at = getelementptr i64, ptr %record, i64 5
  %j1 = load i64, ptr %j1.at
  call void %k(ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1)
  %fault = load i64, ptr %fault.at
  %faulty = icmp ne i64 %fault, 0
  br i1 %faulty, label %failed, label %well
well:
  %next = getelementptr i64, ptr %record, i64 8
  br label %head
failed:  ; a fault stops every thread of the program, the first one too
  %failed.stop = getelementptr i64, ptr %launch, i64 {STOP}
  store atomic i64 1, ptr %failed.stop release, align 8
  %failed.request = getelementptr i64, ptr %launch, i64 {REQUEST}
  store atomic i64 {CANCELLED}, ptr %failed.request release, align 8
  br label %leave
leave:  ; release those who wait at the barrier: they will see the word at their next record
  %count.at = getelementptr i64, ptr %thread, i64 {COUNT}
  %count = load i64, ptr %count.at
  %alone = icmp eq i64 %count, 1
  br i1 %alone, label %done, label %release
release:
  %team.at = getelementptr i64, ptr %thread, i64 {TEAM}
  %team = load ptr, ptr %team.at
  %barrier = getelementptr i8, ptr %team, i64 {BARRIER}
  %generation = load atomic i32, ptr %barrier monotonic, align 4
  %later = add i32 %generation, 1
  call void @announce(ptr %barrier, i32 %later, i32 {_ALL})
  br label %done
done:
  ret ptr null
}}
"""


_MEETING: Final = f"""meet:
  %barrier.here = icmp eq ptr %k, @rn_barrier
  %commit.here = icmp eq ptr %k, @rn_commit
  %met = or i1 %barrier.here, %commit.here
  br i1 %met, label %stop.here, label %call
stop.here:
  %behind = getelementptr i64, ptr %record, i64 8
  br i1 %commit.here, label %commit, label %rest
commit:
  %committing.at = getelementptr i64, ptr %launch, i64 {COMMITTED}
  store i64 1, ptr %committing.at
  br label %rest
rest:
  ret ptr %behind
"""
