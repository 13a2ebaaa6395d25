"""A thread's execution of its records, in generated code: kernels, jumps, barriers and the commit point."""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.locking import ALL, announce, pause, wait
from runnel.backends.cpu.routines import I64, Code, Ptr, Routine
from runnel.backends.host import layout

_WORDS: Final = 8  # of a record: kernel, args, i0, i1, j0, j1, extents, window


@Routine
def delay(f: Code, thread: Ptr, most: I64) -> None:
    """Pause for a random while: xorshift64 (G. Marsaglia, "Xorshift RNGs", 2003)."""
    x = f.word(thread, layout.RANDOM)
    for shift, bits in (("shl", 13), ("lshr", 7), ("shl", 17)):
        shifted = f.value(f"{shift} i64 {x}, {bits}")
        x = f.value(f"xor i64 {x}, {shifted}")
    f.put(thread, layout.RANDOM, x)
    pause(f, f.value(f"urem i64 {x}, {most}"))


@Routine
def rn_jump(f: Code, thread: Ptr, args: Ptr, i0: I64, i1: I64, j0: I64, j1: I64) -> None:
    """Mark a jump record. It is never called: the walk continues i0 records further if the byte that args name by slot
    and offset is 0, else i1 records. All threads read the byte after a barrier, so all go the same way."""


@Routine
def rn_window(f: Code, thread: Ptr, args: Ptr, i0: I64, i1: I64, j0: I64, j1: I64) -> None:
    """Mark a jump record whose flag is an int64, followed by the first row and the end of the window of later
    records."""


@Routine
def in_window(f: Code, thread: Ptr, record: Ptr) -> None:
    """Run a record's kernel on its part of the window (``backends.base``)."""
    window = f.word(record, 7)
    of_rows = f.test("sgt", window, 0)
    scale = f.select(of_rows, window, f.value(f"sub i64 0, {window}"))
    i0, i1, j0, j1 = (f.word(record, n) for n in range(2, 6))
    part, parts = f.select(of_rows, i0, j0), f.select(of_rows, i1, j1)
    begin = f.word(thread, layout.BEGIN)
    rows = f.value(f"sub i64 {f.word(thread, layout.END)}, {begin}")
    edges = [f.value(f"udiv i64 {f.mul(rows, n)}, {parts}") for n in (part, f.add(part, 1))]
    low, high = (f.mul(f.add(begin, edge), scale) for edge in edges)
    with f.when(f.test("eq", low, high)):
        f.ret()
    pairs = ((low, i0), (high, i1), (j0, low), (j1, high))
    bounds = ", ".join(f"i64 {f.select(of_rows, x, y)}" for x, y in pairs)
    f.effect(f"call void {f.pointer(record)}(ptr {thread}, ptr {f.pointer(record, 1)}, {bounds})")


@Routine
def rn_barrier(f: Code, thread: Ptr, args: Ptr, i0: I64, i1: I64, j0: I64, j1: I64) -> None:
    """Wait until all threads of the run are here."""
    threads = f.value(f"trunc i64 {f.word(thread, layout.COUNT)} to i32")
    with f.when(f.test("eq", threads, 1, "i32")):
        f.ret()
    team = f.pointer(thread, layout.TEAM)
    barrier, arrived = f.at(team, layout.BARRIER), f.at(team, layout.ARRIVED)
    generation = f.load(barrier, "acquire")
    stop = f.load(f.beyond(f.pointer(thread, layout.LAUNCH), layout.STOP), "acquire", "i64")
    with f.when(f.test("ne", stop, 0)):  # then some thread may have left: none would open the barrier
        f.ret()
    before = f.fetch("add", arrived, 1, "acq_rel")
    with f.when(f.test("eq", f.add(before, 1, "i32"), threads, "i32")):
        f.store(arrived, 0, "monotonic")
        announce(f, barrier, f.add(generation, 1, "i32"), ALL)
        f.ret()
    wait(f, barrier, generation, f.word(team, layout.SPINS // 8))


@Routine
def rn_commit(f: Code, thread: Ptr, args: Ptr, i0: I64, i1: I64, j0: I64, j1: I64) -> None:
    """Wait as at a barrier; after it no request stops the run: only the first thread turns requests into stops, and
    before it arrives it promises to stop doing so."""
    with f.when(f.test("eq", f.word(thread, layout.NUMBER), 0)):
        f.put(f.pointer(thread, layout.LAUNCH), layout.COMMITTED, 1)
    rn_barrier(f, thread, "null", 0, 0, 0, 0)


@Routine
def open_barrier(f: Code, thread: Ptr) -> None:
    """Release those who wait at the barrier: they see STOP at their next record."""
    with f.when(f.test("ne", f.word(thread, layout.COUNT), 1)):
        barrier = f.at(f.pointer(thread, layout.TEAM), layout.BARRIER)
        announce(f, barrier, f.add(f.load(barrier, "monotonic"), 1, "i32"), ALL)


def _stop(f: Code, thread: Ptr) -> None:
    open_barrier(f, thread)
    f.ret("null", "ptr")


def _walk(f: Code, thread: Ptr, records: Ptr, *, to_barrier: bool) -> None:
    launch, watch, late = (
        f.pointer(thread, layout.LAUNCH),
        f.pointer(thread, layout.WATCH),
        f.word(thread, layout.DELAY),
    )
    stop, request = f.beyond(launch, layout.STOP), f.beyond(launch, layout.REQUEST)
    with f.cycle("ptr", records) as cycle:
        record = cycle.value
        kernel = f.pointer(record)
        with f.when(f.test("eq", kernel, "null", "ptr")):
            f.ret("null", "ptr")
        with f.when(f.test("ne", f.load(watch, "acquire", "i64"), 0)):
            with f.when(f.test("ne", f.load(stop, "acquire", "i64"), 0)):
                _stop(f, thread)
            with f.when(f.test("eq", f.word(launch, layout.COMMITTED), 0)):  # only the first thread comes here
                f.store(stop, 1, "release", "i64")
                _stop(f, thread)
        with f.when(f.test("ne", late, 0)):
            delay(f, thread, late)
        opens = f.test("eq", kernel, f.address(rn_window), "ptr")
        with f.when(f.either(opens, f.test("eq", kernel, f.address(rn_jump), "ptr"))):
            args = f.pointer(record, 1)
            flag = f.at(f.pointer(f.pointer(thread, layout.BASES), f.word(args)), f.word(args, 1))
            with f.when(opens):
                f.put(thread, layout.BEGIN, f.word(flag, 1))
                f.put(thread, layout.END, f.word(flag, 2))
            holds = f.test("ne", f.value(f"load i8, ptr {flag}"), 0, "i8")
            distance = f.select(holds, f.word(record, 3), f.word(record, 2))
            cycle.again(f.beyond(record, f.mul(distance, _WORDS)))
        if to_barrier:
            commits = f.test("eq", kernel, f.address(rn_commit), "ptr")
            meets = f.test("eq", kernel, f.address(rn_barrier), "ptr")
            with f.when(commits):
                f.put(launch, layout.COMMITTED, 1)
            with f.when(f.either(commits, meets)):
                f.ret(f.beyond(record, _WORDS), "ptr")
        windowed = f.test("ne", f.word(record, 7), 0)
        with f.when(windowed):
            in_window(f, thread, record)
        with f.unless(windowed):
            bounds = ", ".join(f"i64 {f.word(record, n)}" for n in range(2, 6))
            args = f.pointer(record, 1)
            f.effect(f"call void {kernel}(ptr {thread}, ptr {args}, {bounds})")
        with f.when(f.test("ne", f.word(thread, layout.FAULT), 0)):  # a fault stops every thread, the first one too
            f.store(stop, 1, "release", "i64")
            f.store(request, layout.CANCELLED, "release", "i64")
            _stop(f, thread)
        cycle.again(f.beyond(record, _WORDS))


@Routine
def rn_run(f: Code, thread: Ptr, records: Ptr) -> Ptr:
    """Run a thread's records to their end."""
    _walk(f, thread, records, to_barrier=False)
    return "null"


@Routine
def stretch(f: Code, thread: Ptr, records: Ptr) -> Ptr:
    """Run a thread's records to the next barrier, for one thread that does the work of all; returns the record after
    it, or null at the end."""
    _walk(f, thread, records, to_barrier=True)
    return "null"
