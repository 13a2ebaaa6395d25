"""LLVM text of what a thread does with its records: run them one after another, and meet the others at a barrier."""

from __future__ import annotations

from typing import Final

from runnel.runtime.layout import ARRIVED, BARRIER, CANCEL, COUNT, DELAY, FAULT, LAUNCH, RANDOM, SPINS, TEAM

_ALL: Final = 2**31 - 1  # sleepers to wake


def text() -> str:
    """The functions ``@rn_run`` and ``@rn_barrier``, for use inside a module that has those of ``waiting``."""
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

define internal void @rn_run(ptr %thread, ptr %records) {{
entry:
  %launch.at = getelementptr i64, ptr %thread, i64 {LAUNCH}
  %launch = load ptr, ptr %launch.at
  %cancel = getelementptr i64, ptr %launch, i64 {CANCEL}
  %fault.at = getelementptr i64, ptr %thread, i64 {FAULT}
  %delay.at = getelementptr i64, ptr %thread, i64 {DELAY}
  %delay = load i64, ptr %delay.at
  %hurried = icmp eq i64 %delay, 0
  br label %head
head:
  %record = phi ptr [ %records, %entry ], [ %next, %well ]
  %k = load ptr, ptr %record
  %end = icmp eq ptr %k, null
  br i1 %end, label %done, label %check
check:
  %asked = load atomic i64, ptr %cancel acquire, align 8
  %cancelled = icmp ne i64 %asked, 0
  br i1 %cancelled, label %leave, label %ready
ready:
  br i1 %hurried, label %go, label %dawdle
dawdle:
  call void @delay(ptr %thread, i64 %delay)
  br label %go
go:
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
  br i1 %faulty, label %stop, label %well
well:
  %next = getelementptr i64, ptr %record, i64 8
  br label %head
stop:  ; a fault stops every thread of the program, like a cancellation
  store atomic i64 1, ptr %cancel release, align 8
  br label %leave
leave:  ; release those who wait at the barrier: they will see the cancellation at their next record
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
  %cancel = getelementptr i64, ptr %launch, i64 {CANCEL}
  %asked = load atomic i64, ptr %cancel acquire, align 8
  %cancelled = icmp ne i64 %asked, 0  ; then some thread may have left: nobody would open the barrier
  br i1 %cancelled, label %done, label %count.me
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
"""
