"""Stopping a run: requests before and after the commit; Ctrl-C while the main thread is in machine code."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from test_launch import ADD, ARGUMENTS, FAIL, Words, address, records

from runnel.backends.cpu import driver, launch
from runnel.backends.cpu.launch import Launch
from runnel.backends.host import interrupts, layout
from runnel.backends.host.interrupts import Interruptible
from runnel.backends.host.layout import CANCELLED, INTERRUPTED
from runnel.core import switches

# requests i0
ASK = f"""
define void @ask({ARGUMENTS}) {{
  %at = getelementptr i64, ptr %thread, i64 {layout.LAUNCH}
  %launch = load ptr, ptr %at
  %request = getelementptr i64, ptr %launch, i64 {layout.REQUEST}
  store atomic i64 %i0, ptr %request release, align 8
  ret void
}}"""

# waits until args[0] is set or there is a request (or for j0 rounds), then adds one to args[1]
WAIT = f"""
define void @wait_for({ARGUMENTS}) {{
entry:
  %at = getelementptr i64, ptr %thread, i64 {layout.LAUNCH}
  %launch = load ptr, ptr %at
  %request = getelementptr i64, ptr %launch, i64 {layout.REQUEST}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %asked = load atomic i64, ptr %request acquire, align 8
  %set = load atomic i64, ptr %args acquire, align 8
  %either = or i64 %asked, %set
  %neither = icmp eq i64 %either, 0
  %early = icmp ult i64 %next, %j0
  %on = and i1 %neither, %early
  br i1 %on, label %loop, label %done
done:
  %count.at = getelementptr i64, ptr %args, i64 1
  %count = load i64, ptr %count.at
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at
  ret void
}}"""

TEXTS = {"add": ADD, "fail": FAIL, "ask": ASK, "wait_for": WAIT}
LONG = 1 << 34  # rounds of waiting, so that a broken test ends

Rows = list[tuple[int, ...]]


def compiled() -> dict[str, int]:
    functions = driver.host_compiler().addresses(list(TEXTS.items()), {})
    return {
        **dict(zip(TEXTS, functions, strict=True)),
        "barrier": launch.barrier_address(),
        "commit": launch.commit_address(),
    }


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    with switches.override(cache=True, cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield compiled()


class Steps:
    """A program in which each thread works, passes the commit and changes its own word, with barriers around."""

    def __init__(self, kernels: dict[str, int], threads: int, slow: int = 0) -> None:
        self.state = np.zeros((threads, 16), np.int64)
        self.worked = np.zeros((threads, 16), np.int64)
        barrier, commit = (kernels["barrier"],), (kernels["commit"],)
        self.before: list[Rows] = []
        self.after: list[Rows] = []
        for t in range(threads):
            work = (kernels["add"], address(self.worked[t]), 1, 0, slow)
            change = (kernels["add"], address(self.state[t]), 1, 0, slow)
            self.before.append([work, barrier, work, work, commit])
            self.after.append([change, barrier, change])

    def launch(self) -> Launch:
        return Launch([records(*a, *b) for a, b in zip(self.before, self.after, strict=True)], 0)

    def changes(self) -> int:
        """How often all threads have changed their words; None of them may have done so alone."""
        (count,) = set(self.state[:, 0].tolist())
        return int(count)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_request_from_before_the_run_stops_it_before_the_commit_point(kernels: dict[str, int], threads: int) -> None:
    steps = Steps(kernels, threads)
    run = steps.launch()
    run.cancel()
    assert run.run() == CANCELLED and steps.changes() == 0
    assert run.run() == 0 and steps.changes() == 2
    run.interrupt()
    assert run.run() == INTERRUPTED == run.status and steps.changes() == 2


@pytest.mark.parametrize(("threads", "who"), [(1, 0), (2, 0), (2, 1), (4, 0), (4, 3)])
@pytest.mark.parametrize("place", range(4))
def test_a_request_before_the_commit_point_stops_all_or_none(
    kernels: dict[str, int], threads: int, who: int, place: int
) -> None:
    steps = Steps(kernels, threads)
    steps.before[who].insert(place, (kernels["ask"], 0, INTERRUPTED))
    run = steps.launch()
    changed = 0
    for _ in range(20):
        status = run.run()
        changed += 2 * (status == 0)
        assert status in (0, INTERRUPTED) and steps.changes() == changed
        if who == 0:  # who decides has seen its own request before it comes to the commit
            assert status == INTERRUPTED
    assert run.words[layout.COMPLETED] == changed // 2


@pytest.mark.parametrize(("threads", "who"), [(1, 0), (2, 0), (2, 1), (4, 0), (4, 3)])
@pytest.mark.parametrize("place", range(3))
def test_a_request_after_the_seal_is_too_late(kernels: dict[str, int], threads: int, who: int, place: int) -> None:
    steps = Steps(kernels, threads)
    steps.after[who].insert(place, (kernels["ask"], 0, INTERRUPTED))
    run = steps.launch()
    for repeat in range(1, 6):
        assert run.run() == 0 and steps.changes() == 2 * repeat
    assert run.words[layout.COMPLETED] == 5


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_fault_before_the_commit_point_changes_nothing(kernels: dict[str, int], threads: int) -> None:
    steps = Steps(kernels, threads)
    steps.before[-1].insert(3, (kernels["fail"], 0, 7))
    run = steps.launch()
    for _ in range(10):
        assert run.run() == 7 and steps.changes() == 0
    assert run.words[layout.COMPLETED] == 0


@pytest.mark.stress
@pytest.mark.parametrize("threads", [1, 3])
def test_requests_at_any_moment(kernels: dict[str, int], threads: int) -> None:
    steps = Steps(kernels, threads, slow=300)
    run = steps.launch()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            run.interrupt()
            time.sleep(0)

    asking = threading.Thread(target=ask)
    asking.start()
    changed = 0
    try:
        for _ in range(500):
            status = run.run()
            changed += 2 * (status == 0)
            assert status in (0, INTERRUPTED) and steps.changes() == changed
    finally:
        over.set()
        asking.join()
    run.run()
    assert run.run() == 0


def test_a_stale_interruption_does_not_show(kernels: dict[str, int]) -> None:
    steps = Steps(kernels, 2)
    run = steps.launch()
    for repeat in range(1, 4):
        run.interrupt()
        assert Interruptible(run).run() == 0 and steps.changes() == 2 * repeat
    run.cancel()
    assert Interruptible(run).run() == CANCELLED
    elsewhere: list[int] = []
    run.interrupt()
    thread = threading.Thread(target=lambda: elsewhere.append(Interruptible(run).run()))
    thread.start()
    thread.join()
    assert elsewhere == [0]


class Bell:
    """Rings SIGINT at this process while a program is running, with a handler that only counts."""

    def __init__(self) -> None:
        self.heard = 0
        self.flag = np.zeros(2, np.int64)

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.heard += 1
        self.flag[0] = 1

    def ring(self, words_seen: Words) -> None:
        deadline = time.monotonic() + 30
        while not words_seen[0] and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals one cannot send to oneself")


@needs_signals
@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_that_does_not_raise_gets_its_turn_and_the_run_its_result(
    kernels: dict[str, int], threads: int
) -> None:
    steps = Steps(kernels, threads)
    bell = Bell()
    steps.before[0][1:1] = [(kernels["wait_for"], address(bell.flag), 0, 0, LONG)]
    run = steps.launch()
    before = signal.signal(signal.SIGINT, bell.handle)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    previous_fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)  # as an event loop does
    try:
        ringing = threading.Thread(target=bell.ring, args=(steps.worked[0],))
        ringing.start()
        assert Interruptible(run).run() == 0 and steps.changes() == 2
        ringing.join()
        assert bell.heard == 1
        assert steps.worked[0, 0] == 1 + 3  # it was stopped and ran again
        ours.settimeout(10)
        assert ours.recv(1) == bytes([signal.SIGINT])
    finally:
        ended_with = signal.set_wakeup_fd(previous_fd)
        signal.signal(signal.SIGINT, before)
        descriptor = theirs.fileno()
        ours.close()
        theirs.close()
    assert ended_with == descriptor


def _fail() -> None:
    raise ZeroDivisionError


def test_uninterrupted_work_is_done_on_another_thread_and_its_errors_come_here() -> None:
    where: list[threading.Thread] = []
    interrupts.uninterrupted(lambda: where.append(threading.current_thread()))
    assert where[0] is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        interrupts.uninterrupted(_fail)
    inner: list[threading.Thread] = []
    outer = threading.Thread(
        target=lambda: interrupts.uninterrupted(lambda: inner.append(threading.current_thread())), name="outer"
    )
    outer.start()
    outer.join()
    assert inner == [outer]


_FORK = """
import os, signal, sys, threading, time, warnings
import numpy as np
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads: that is the test
sys.path.insert(0, sys.argv[1])
import test_interrupt as t
from runnel.core import switches
switches.cache_dir.set(sys.argv[2])
kernels = t.compiled()
steps = t.Steps(kernels, 2)
forked = np.zeros(2, np.int64)
steps.before[0][1:1] = [(kernels["wait_for"], t.address(forked), 0, 0, t.LONG)]
status = []
def fork():
    while not steps.worked[0, 0]:
        time.sleep(0.001)
    child = os.fork()  # the main thread is in machine code
    if child == 0:
        held = signal.set_wakeup_fd(-1)
        fresh = t.Steps(kernels, 2)
        ok = held == -1 and t.Interruptible(fresh.launch()).run() == 0 and fresh.changes() == 2
        os._exit(0 if ok else 3)
    forked[0] = 1
    status.append(os.waitpid(child, 0)[1])
forking = threading.Thread(target=fork)
forking.start()
result = t.Interruptible(steps.launch()).run()
forking.join()
print(result, steps.changes(), status)
"""


@pytest.mark.stress
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_watches_for_itself(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _FORK, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "0 2 [0]"), done.stderr
