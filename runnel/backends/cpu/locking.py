"""Waiting, waking and state locks, in generated code.

Waiting spins, then yields, then sleeps. A word that threads wait for is an int32, followed by an int32 with the number
of its sleepers. A thread that changes the word makes a system call only if there are sleepers; a sleeper counts itself
before it loads the word a last time, so no wake-up is lost. On Linux sleeping is a futex (U. Drepper, "Futexes Are
Tricky"); elsewhere it is a short sleep.

A state lock is a reader-writer lock that only machine code holds, never across a line of Python. So no signal handler,
finalizer or other thread can block its holder, and waiting for it always ends. A launch takes all its locks in the
order of their addresses. A writer that waits for readers holds the gate, so that later launches queue.

Then the launch compares the versions of its locks with the versions it was bound at. Another version means that a
Variable may have moved, or that its memory is being read, and the launch is refused as STALE. Taking a lock is a
read-modify-write before the comparison; readers change the version first and load EPOCH after a fence. So either the
launch sees the new version, or the reader sees the launch and waits for its end (E. Dijkstra, "Cooperating sequential
processes", 1965).
"""

from __future__ import annotations

from typing import Final

from runnel.backends.cpu.routines import I32, I64, Bit, Code, Ptr, Routine, architecture
from runnel.backends.host import layout

ENTRY_WORDS: Final = 4
ALL: Final = 2**31 - 1  # sleepers to wake
_SPINS: Final = 200
_YIELDS: Final = 100  # between spinning and sleeping: on a quiet machine about 50 µs, twice what a wake-up costs
_CLOSED: Final = "@closed"
# not 0 while a fork is under way: an int32 and its sleepers
GLOBALS: Final = f"{_CLOSED} = internal global [2 x i32] zeroinitializer\n"

_FUTEX_CALL: Final = {"x86_64": 202, "aarch64": 98}  # Linux's numbers of the system call
_FUTEX_WAIT_PRIVATE: Final = 128
_FUTEX_WAKE_PRIVATE: Final = 129


def _pause(f: Code) -> None:
    """Emit the instruction of a spinning loop."""
    if architecture(f.platform.triple) == "aarch64":
        f.external("void", "llvm.aarch64.hint", ("i32", 1))
    else:
        f.external("void", "llvm.x86.sse2.pause")


def _yield(f: Code) -> None:
    """Let another thread run on this processor."""
    f.external("i32", "SwitchToThread" if f.platform.system == "win32" else "sched_yield")


def _futex(f: Code, word: Ptr, operation: int, argument: I32) -> None:
    number = _FUTEX_CALL[architecture(f.platform.triple)]
    f.declarations.add("declare i64 @syscall(i64, ...)")
    f.value(
        f"call i64 (i64, ...) @syscall(i64 {number}, ptr {word}, i64 {operation}, i32 {argument}, ptr null, ptr null, "
        "i64 0)"
    )


def _nap(f: Code, word: Ptr, old: I32) -> None:
    """Sleep until ``word`` is not ``old``, or a while."""
    if f.platform.system == "linux":
        _futex(f, word, _FUTEX_WAIT_PRIVATE, old)
    elif f.platform.system == "win32":
        f.external("void", "Sleep", ("i32", 1))
    else:
        f.external("i32", "usleep", ("i32", 100))


@Routine
def pause(f: Code, n: I64) -> None:
    """Pause n times."""
    with f.count(n):
        _pause(f)


@Routine
def wait(f: Code, word: Ptr, old: I32, spins: I64) -> None:
    """Return once the word is not ``old`` any more."""
    for times, rest in ((spins, _pause), (_YIELDS, _yield)):
        with f.count(times):
            with f.when(f.test("ne", f.load(word, "acquire"), old, "i32")):
                f.ret()
            rest(f)
    sleepers = f.at(word, 4)
    f.fetch("add", sleepers, 1)
    with f.cycle("i32", 0) as cycle:
        with f.when(f.test("ne", f.load(word, "seq_cst"), old, "i32")):
            cycle.leave()
        _nap(f, word, old)
        cycle.again(0)
    f.fetch("sub", sleepers, 1)


@Routine
def wake(f: Code, word: Ptr, count: I32) -> None:
    """Wake up to ``count`` of those who sleep for a word that has changed."""
    if f.platform.system == "linux":
        with f.when(f.test("ne", f.load(f.at(word, 4), "seq_cst"), 0, "i32")):
            _futex(f, word, _FUTEX_WAKE_PRIVATE, count)


@Routine
def announce(f: Code, word: Ptr, value: I32, count: I32) -> None:
    """Set the word and wake up to ``count`` of those who sleep for it."""
    f.store(word, value, "seq_cst")
    wake(f, word, count)


@Routine
def try_lock(f: Code, word: Ptr) -> Bit:
    return f.swapped(word, 0, 1, "acquire monotonic")


@Routine
def lock(f: Code, word: Ptr, spins: I64) -> None:
    with f.cycle("i32", 0) as cycle:
        with f.when(try_lock(f, word)):
            cycle.leave()
        wait(f, word, 1, spins)
        cycle.again(0)


@Routine
def unlock(f: Code, word: Ptr) -> None:
    announce(f, word, 0, 1)


@Routine
def hold(f: Code, state: Ptr, exclusive: Bit, patient: Bit) -> Bit:
    """Hold a state lock, for writing or for reading; false if it is not free and the caller is not patient."""
    gate, holders = f.at(state, layout.GATE), f.at(state, layout.HOLDERS)
    with f.cycle("i32", 0) as queue:
        with f.when(try_lock(f, gate)):
            queue.leave()
        with f.unless(patient):
            f.ret("false", "i1")
        wait(f, gate, 1, _SPINS)
        queue.again(0)
    with f.cycle("i32", 0) as look:
        now = f.load(holders, "acquire")
        is_free = f.select(exclusive, f.test("eq", now, 0, "i32"), f.test("sge", now, 0, "i32"), "i1")
        with f.when(is_free):
            then = f.select(exclusive, -1, f.add(now, 1, "i32"), "i32")
            with f.when(f.swapped(holders, now, then, "seq_cst seq_cst")):
                look.leave()
            look.again(0)
        with f.unless(patient):
            unlock(f, gate)
            f.ret("false", "i1")
        wait(f, holders, now, _SPINS)
        look.again(0)
    with f.when(exclusive):
        f.fetch("add", f.at(state, layout.EPOCH), 1)
    unlock(f, gate)
    return "true"


@Routine
def let_go(f: Code, state: Ptr, exclusive: Bit) -> None:
    holders, epoch = f.at(state, layout.HOLDERS), f.at(state, layout.EPOCH)
    with f.when(exclusive):
        f.fetch("add", epoch, 1)
        wake(f, epoch, ALL)
        f.store(holders, 0, "seq_cst")
        wake(f, holders, ALL)
        f.ret()
    f.fetch("sub", holders, 1)
    wake(f, holders, ALL)


def _entry(f: Code, table: Ptr, number: I64) -> str:
    return f.beyond(table, f.mul(number, ENTRY_WORDS))


def _is_exclusive(f: Code, entry: Ptr) -> str:
    return f.test("ne", f.word(entry, layout.EXCLUSIVE), 0)


@Routine
def drop(f: Code, table: Ptr, n: I64) -> None:
    """Let go of the first n locks of a launch, the last one first."""
    with f.cycle("i64", n) as cycle:
        with f.when(f.test("eq", cycle.value, 0)):
            cycle.leave()
        left = f.sub(cycle.value, 1)
        entry = _entry(f, table, left)
        let_go(f, f.pointer(entry, layout.ADDRESS), _is_exclusive(f, entry))
        cycle.again(left)


@Routine
def is_current(f: Code, row: Ptr) -> Bit:
    """Return whether a held lock has the version and the writes that its entry expects."""
    state = f.pointer(row, layout.ADDRESS)
    version = f.load(f.at(state, layout.VERSION), "seq_cst", "i64")
    wanted = f.word(row, layout.EXPECTED_WRITES)
    same_writes = f.either(f.test("eq", wanted, layout.ANY), f.test("eq", f.word(state, layout.WRITES // 8), wanted))
    return f.both(f.test("eq", version, f.word(row, layout.EXPECTED_VERSION)), same_writes)


@Routine
def enter(f: Code, block: Ptr, patient: Bit) -> I64:
    """Take the locks of a launch: 0, or STALE or BUSY, and then none is held."""
    count, table = f.word(block, layout.LOCK_COUNT), f.pointer(block, layout.LOCKS)
    with f.when(f.test("eq", count, 0)):
        f.ret(0)
    with f.cycle("i32", 0) as attempt:
        with f.count(count) as i:
            entry = _entry(f, table, i)
            with f.unless(hold(f, f.pointer(entry, layout.ADDRESS), _is_exclusive(f, entry), patient)):
                drop(f, table, i)
                f.ret(layout.BUSY)
        closed = f.load(_CLOSED, "seq_cst")
        with f.when(f.test("eq", closed, 0, "i32")):
            attempt.leave()
        drop(f, table, count)
        with f.unless(patient):
            f.ret(layout.BUSY)
        wait(f, _CLOSED, closed, _SPINS)
        attempt.again(0)
    with f.count(count) as i, f.unless(is_current(f, _entry(f, table, i))):
        drop(f, table, count)
        f.ret(layout.STALE)
    return 0


@Routine
def leave(f: Code, block: Ptr) -> None:
    """After the run: count what was written, and let go of the locks."""
    count, table = f.word(block, layout.LOCK_COUNT), f.pointer(block, layout.LOCKS)
    with f.count(count) as i:
        entry = _entry(f, table, i)
        with f.when(_is_exclusive(f, entry)):
            state = f.pointer(entry, layout.ADDRESS)
            f.put(state, layout.WRITES // 8, f.add(f.word(state, layout.WRITES // 8), 1))
    drop(f, table, count)


def _epoch_if_written(f: Code, state: Ptr) -> tuple[str, str]:
    """Return EPOCH, and whether a run is writing; runs that begin later see whatever the caller has stored before."""
    f.effect("fence seq_cst")
    epoch = f.load(f.at(state, layout.EPOCH), "seq_cst")
    return epoch, f.value(f"and i32 {epoch}, 1")


@Routine
def rn_is_written(f: Code, state: Ptr) -> I64:
    """Return 1 while a run may be writing, else 0."""
    return f.value(f"zext i32 {_epoch_if_written(f, state)[1]} to i64")


@Routine
def rn_settle(f: Code, state: Ptr) -> I64:
    """Wait for the end of the run that is writing, if there is one."""
    epoch, is_written = _epoch_if_written(f, state)
    with f.when(f.test("ne", is_written, 0, "i32")):
        wait(f, f.at(state, layout.EPOCH), epoch, _SPINS)
    return 0


@Routine
def rn_close(f: Code) -> None:
    """Keep launches that take locks from beginning, until all who called this have opened again."""
    f.fetch("add", _CLOSED, 1)


@Routine
def rn_open(f: Code) -> None:
    f.fetch("sub", _CLOSED, 1)
    wake(f, _CLOSED, ALL)


@Routine
def rn_reopen(f: Code) -> None:
    """Open in the child of a fork, in which no other thread has closed."""
    f.store(_CLOSED, 0, "seq_cst")
    f.store(f.at(_CLOSED, 4), 0, "seq_cst")
