"""LLVM text for waiting and waking: spin, then yield, then sleep. Used by the driver's barrier and launch.

A word that threads wait for is an int32, followed by an int32 with the number of its sleepers. A thread that changes
the word makes a system call only if there are sleepers; a sleeper counts itself before it loads the word a last time,
so no wake-up is lost. On Linux sleeping is a futex (U. Drepper, "Futexes Are Tricky"); elsewhere it is a short sleep.
"""

from __future__ import annotations

import sys

_FUTEX_CALL = {"x86_64": 202, "aarch64": 98}  # Linux's numbers of the system call
_FUTEX_WAIT_PRIVATE = 128
_FUTEX_WAKE_PRIVATE = 129
YIELDS = 100  # between spinning and sleeping: on a quiet machine about 50 µs, twice what a wake-up costs


def architecture(triple: str) -> str:
    """``"x86_64"`` or ``"aarch64"``."""
    first = triple.split("-")[0].lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(first, first)


def _pause(machine: str) -> tuple[str, str]:
    """Return the instruction of a spinning loop, and its declaration."""
    if machine == "aarch64":
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"


def _sleeping(machine: str, system: str) -> tuple[str, str, str, str]:
    """How to yield, to sleep until ``%word`` is not ``%old``, and to wake ``%count`` sleepers; and the declarations."""
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


def text(triple: str, system: str = sys.platform) -> str:
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
