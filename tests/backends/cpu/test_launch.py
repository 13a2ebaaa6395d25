"""Launching: records, barriers, workers, forks, faults, cancellation; more threads than CPUs on purpose."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from runnel.backends.cpu import driver, launch, locking, team
from runnel.backends.cpu.launch import Launch
from runnel.backends.host import layout
from runnel.core import switches

ARGUMENTS = "ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1"

# args[0] += i0, slowly if j0 is large: a plain, racy addition, so that a missing barrier loses some
ADD = f"""
define void @add({ARGUMENTS}) {{
entry:
  %before = load i64, ptr %args
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  call void asm sideeffect "", "~{{memory}}"()
  %more = icmp ult i64 %next, %j0
  br i1 %more, label %loop, label %done
done:
  %after = add i64 %before, %i0
  store i64 %after, ptr %args
  ret void
}}"""

# copies the words of the thread block, and what base i0 points to, to args
REPORT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @report({ARGUMENTS}) {{
  call void @llvm.memcpy.p0.p0.i64(ptr %args, ptr %thread, i64 64, i1 false)
  %bases = load ptr, ptr %thread
  %at = getelementptr ptr, ptr %bases, i64 %i0
  %base = load ptr, ptr %at
  %value = load i64, ptr %base
  %out = getelementptr i64, ptr %args, i64 8
  store i64 %value, ptr %out
  ret void
}}"""

# stores i0 as the fault of the thread
FAIL = f"""
define void @fail({ARGUMENTS}) {{
  %at = getelementptr i64, ptr %thread, i64 6
  store i64 %i0, ptr %at
  ret void
}}"""

# fills the first i0 words of the scratch memory with i1 and, j0 rounds long, counts in args those that changed
SCRATCH = f"""
define void @scratch({ARGUMENTS}) {{
entry:
  %at = getelementptr i64, ptr %thread, i64 1
  %scratch = load ptr, ptr %at
  br label %fill
fill:
  %f = phi i64 [ 0, %entry ], [ %f.next, %fill ]
  %f.at = getelementptr i64, ptr %scratch, i64 %f
  store volatile i64 %i1, ptr %f.at
  %f.next = add i64 %f, 1
  %f.more = icmp ult i64 %f.next, %i0
  br i1 %f.more, label %fill, label %round
round:
  %r = phi i64 [ 0, %fill ], [ %r.next, %round.end ]
  br label %check
check:
  %c = phi i64 [ 0, %round ], [ %c.next, %check ]
  %c.at = getelementptr i64, ptr %scratch, i64 %c
  %c.value = load volatile i64, ptr %c.at
  %wrong = icmp ne i64 %c.value, %i1
  %one = zext i1 %wrong to i64
  %old = load i64, ptr %args
  %new = add i64 %old, %one
  store i64 %new, ptr %args
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %i0
  br i1 %c.more, label %check, label %round.end
round.end:
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %j0
  br i1 %r.more, label %round, label %done
done:
  ret void
}}"""

Words = NDArray[np.int64]


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with switches.override(cache=True, cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture(scope="module")
def kernels(cache_folder: None) -> dict[str, int]:
    names = ["add", "report", "fail", "scratch"]
    texts = [ADD, REPORT, FAIL, SCRATCH]
    functions = driver.host_compiler().addresses(list(zip(names, texts, strict=True)), {})
    return {**dict(zip(names, functions, strict=True)), "barrier": launch.barrier_address()}


def address(array: Words) -> int:
    result: int = array.__array_interface__["data"][0]
    return result


def records(*rows: tuple[int, ...]) -> Words:
    rows_of_words = np.zeros((len(rows) + 1, 8), np.int64)
    for record, row in zip(rows_of_words, rows, strict=False):
        record[: len(row)] = row
    return rows_of_words


def turns(kernels: dict[str, int], counter: Words, threads: int, rounds: int, slow: int = 0) -> list[Words]:
    """Each thread in its turn adds to one counter without atomics, a barrier between turns."""
    add, barrier = (kernels["add"], address(counter), 1, 0, slow), (kernels["barrier"],)
    programs = []
    for me in range(threads):
        rows = [row for _ in range(rounds) for turn in range(threads) for row in ([add] * (turn == me) + [barrier])]
        programs.append(records(*rows))
    return programs


@pytest.mark.stress
@pytest.mark.parametrize("threads", [1, 2, 3, 4, 7])
def test_barriers_order_the_threads(kernels: dict[str, int], threads: int) -> None:
    counter = np.zeros(1, np.int64)
    run = Launch(turns(kernels, counter, threads, rounds=20, slow=20), 0)
    for repeat in range(1, 11):
        assert run.run() == 0 == run.status
        assert counter[0] == 20 * threads * repeat


def test_random_delays_change_no_result(kernels: dict[str, int]) -> None:
    counter = np.zeros(1, np.int64)
    with switches.override(stress=20):
        stressed = Launch(turns(kernels, counter, 3, rounds=10), 0)
    drawn = [stressed._thread_block(number)[layout.RANDOM] for number in range(3)]
    assert stressed.run() == 0
    assert counter[0] == 30
    assert all(stressed._thread_block(number)[layout.RANDOM] != before for number, before in enumerate(drawn))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("short", [False, True])
def test_kernels_see_their_thread_block(kernels: dict[str, int], threads: int, short: bool) -> None:
    target = np.array([42], np.int64)
    bases = np.array([0, address(target)], np.int64)
    reports = np.zeros((threads, 9), np.int64)
    run = Launch(
        [records((kernels["report"], address(reports[t]), 1)) for t in range(threads)],
        address(bases),
        scratch_bytes=3 << 20,
        short=short,
    )
    assert run.run() == 0
    for number, report in enumerate(reports):
        assert report[0] == address(bases) and report[8] == 42
        assert report[1] % 64 == 0 and report[2] >= 3 << 20
        assert list(report[3:5]) == [number, threads]
        assert report[5] == team.current().address and report[6] == 0
    assert len(set(reports[:, 1])) == threads
    target[0] = 43  # binding again writes a word
    run.run()
    assert set(reports[:, 8]) == {43}


def test_scratch_is_never_less_than_a_mebibyte_and_shared_by_programs(kernels: dict[str, int]) -> None:
    reports = np.zeros((2, 9), np.int64)
    bases = np.array([address(reports)], np.int64)
    for report in reports:
        Launch([records((kernels["report"], address(report)))], address(bases)).run()
    assert reports[0, 1] == reports[1, 1] and reports[0, 2] >= 1 << 20


def test_records_are_read_anew_by_every_run(kernels: dict[str, int]) -> None:
    counter = np.zeros(1, np.int64)
    program = records((kernels["add"], address(counter), 1))
    run = Launch([program], 0)
    run.run()
    program[0, 2] = 10
    run.run()
    assert counter[0] == 11


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_fault_is_the_status_and_is_forgotten(kernels: dict[str, int], threads: int) -> None:
    programs = [records() for _ in range(threads - 1)] + [records((kernels["fail"], 0, 77))]
    run = Launch(programs, 0)
    assert run.run() == 77 == run.status
    programs[-1][0, 0] = 0
    assert run.run() == 0 == run.status


def test_malformed_records_are_refused() -> None:
    good = records((1, 2))
    for bad in ([], [good[:1]], [good[:, :7]], [good.astype(np.int32)], [good[::-1]], [good[:0]], [good[0]]):
        with pytest.raises(ValueError):
            Launch(bad, 0)
    with pytest.raises(ValueError, match="1 to 256"):
        Launch([good[1:]] * 257, 0).run()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_cancelled_run_stops_and_the_next_one_is_whole(kernels: dict[str, int], threads: int) -> None:
    counter = np.zeros(1, np.int64)
    run = Launch(turns(kernels, counter, threads, rounds=4000 // threads, slow=2_000_000), 0)
    canceller = threading.Timer(0.02, run.cancel)
    canceller.start()
    assert run.run() == layout.CANCELLED == run.status
    canceller.join()
    assert counter[0] < 4000 // threads * threads
    short = Launch(turns(kernels, counter, threads, rounds=5), 0)
    counter[0] = 0
    assert short.run() == 0 and counter[0] == 5 * threads
    short.cancel()
    assert short.run() == layout.CANCELLED and counter[0] == 5 * threads
    assert short.run() == 0 and counter[0] == 10 * threads


@pytest.mark.stress
def test_cancelling_at_any_moment_leaves_nobody_behind(kernels: dict[str, int]) -> None:
    counter = np.zeros(1, np.int64)
    run = Launch(turns(kernels, counter, 3, rounds=50), 0)
    stop = threading.Event()

    def cancel() -> None:
        while not stop.is_set():
            run.cancel()
            time.sleep(0)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        statuses = {run.run() for _ in range(300)}
    finally:
        stop.set()
        canceller.join()
    assert statuses <= {0, layout.CANCELLED} and layout.CANCELLED in statuses
    run.run()
    counter[0] = 0
    assert run.run() == 0 and counter[0] == 150


@pytest.mark.stress
def test_many_python_threads_launch(kernels: dict[str, int]) -> None:
    wrong: list[int] = []

    def work(threads: int) -> None:
        counter = np.zeros(1, np.int64)
        run = Launch(turns(kernels, counter, threads, rounds=5), 0)
        for _ in range(40):
            run.run()
        if counter[0] != 40 * 5 * threads:
            wrong.append(threads)

    callers = [threading.Thread(target=work, args=(1 + n % 4,)) for n in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_python_threads_do_not_share_scratch(kernels: dict[str, int]) -> None:
    """Launches made by one thread and run by others at the same time."""
    changed = np.zeros(4, np.int64)
    runs = [
        Launch([records((kernels["scratch"], address(changed[n:]), 500, n + 1, 2000))], 0) for n in range(len(changed))
    ]
    for run in runs:
        run.run()  # the maker's scratch is theirs now
    callers = [threading.Thread(target=run.run) for run in runs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not changed.any()


def test_idle_workers_use_no_processor(kernels: dict[str, int]) -> None:
    counter = np.zeros(1, np.int64)
    Launch(turns(kernels, counter, 4, rounds=1), 0).run()
    here = team.current()
    words = here._control.ndarray((here._control.nbytes // 4,), np.int32)
    sleepers = [words[(layout.MAILBOXES + layout.LINE * worker) // 4 + 1 :][:1] for worker in range(1, here.size)]
    while not all(sleepers):  # each is counted at its mailbox before it sleeps
        time.sleep(0.001)


def test_the_team_restarts_after_a_stop(kernels: dict[str, int]) -> None:
    counter = np.zeros(1, np.int64)
    run = Launch(turns(kernels, counter, 3, rounds=4), 0)
    for repeat in range(1, 4):
        assert run.run() == 0 and counter[0] == 12 * repeat
        team.current().stop()
        assert team.current().size == 1
        assert not [t for t in threading.enumerate() if t.name.removeprefix("runnel-").isdigit()]


_FORK = """
import os, sys, threading, warnings
import numpy as np
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads: that is the test
sys.path.insert(0, sys.argv[1])
import test_launch as t
from runnel.core import switches
switches.cache_dir.set(sys.argv[2])
kernels = {"add": t.driver.host_compiler().addresses([("add", t.ADD)], {})[0], "barrier": t.launch.barrier_address()}
counter = np.zeros(1, np.int64)
run = t.Launch(t.turns(kernels, counter, 3, 10), 0)
run.run()
other = np.zeros(1, np.int64)
busy = t.Launch(t.turns(kernels, other, 2, 200, slow=200_000), 0)
background = threading.Thread(target=busy.run)
background.start()  # a launch is in progress, and holds the team's lock, at some of the forks
for repeat in range(5):
    child = os.fork()
    if child == 0:
        counter[0] = 0
        fresh = np.zeros(1, np.int64)
        made_after = t.Launch(t.turns(kernels, fresh, 4, 10), 0)
        fine = run.run() == 0 and counter[0] == 30 and made_after.run() == 0 and fresh[0] == 40
        os._exit(0 if fine else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        sys.exit(f"the child ended with {status}")
background.join()
if other[0] != 400 or run.run() != 0 or counter[0] != 60:
    sys.exit(f"the parent counted {other[0]} and {counter[0]}")
print("fine")
"""


@pytest.mark.stress
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_gets_a_team_of_its_own(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _FORK, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "fine"), done.stderr


_EXIT = """
import sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_launch as t
from runnel.core import switches
switches.cache_dir.set(sys.argv[2])
kernels = {"add": t.driver.host_compiler().addresses([("add", t.ADD)], {})[0], "barrier": t.launch.barrier_address()}
counter = np.zeros(1, np.int64)
run = t.Launch(t.turns(kernels, counter, 3, 3), 0)
run.run()
if sys.argv[3] == "busy":
    endless = t.Launch(t.turns(kernels, counter, 2, 4, slow=1 << 60), 0)
    threading.Thread(target=endless.run, daemon=True).start()
    time.sleep(0.05)
print("end of the script")
"""


@pytest.mark.stress
@pytest.mark.parametrize("state", ["idle", "busy"])
def test_workers_do_not_hold_up_the_end_of_the_process(tmp_path: Path, state: str) -> None:
    arguments = [sys.executable, "-c", _EXIT, str(Path(__file__).parent), str(tmp_path), state]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "end of the script", "")


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-darwin"])
def test_the_driver_compiles_for_every_system(system: str, triple: str) -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(driver.text(triple, "rn_driver", system))
    module.verify()
    assert len(machine.emit_object(module)) > 1000


@pytest.mark.skipif(sys.platform == "win32", reason="naps with POSIX calls")
def test_the_portable_way_of_waiting_works(kernels: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Yielding and napping, as on systems without a futex, run here."""
    import llvmlite.binding as llvm

    text = driver.text(llvm.get_process_triple(), "rn_portable", "darwin")
    assert "syscall" not in text and locking.architecture("arm64-apple-darwin") == "aarch64"
    entry = driver.linked("rn_portable", text, driver.ENTRY_POINTS)
    monkeypatch.setattr(driver, "entry_points", lambda: entry)
    portable = team.Team()
    monkeypatch.setattr(team, "current", lambda: portable)
    counter = np.zeros(1, np.int64)
    run = Launch(turns({**kernels, "barrier": launch.barrier_address()}, counter, 3, rounds=10), 0)
    for repeat in range(1, 6):
        time.sleep(0.002)
        assert run.run() == 0 and counter[0] == 30 * repeat
    portable.stop()
