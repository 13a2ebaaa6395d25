"""Threads, signal handlers, finalizers, forks and the end of the process against one another, for as long as one likes.

python -m tests.stress.concurrency SCENARIO SECONDS [THREADS]

Each scenario prints one line of counts and exits with 0, or says what was wrong and exits with 1.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import runnel as rn
from runnel import nn, optim
from runnel.core import switches

SIZES = (5, 70_000)
_WAIT = 60.0  # seconds for which nothing takes: beyond it something hangs


def until(seconds: float) -> Iterator[int]:
    """Counts while the time lasts."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        n += 1
        yield n


def require(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"wrong: {what}")


class Twins:
    """Variables that every step changes alike, so that any mixture of two steps shows."""

    def __init__(self, size: int, count: int = 4) -> None:
        self.variables = [rn.Variable(np.zeros(size, np.float32), name=f"v{i}") for i in range(count)]
        variables = self.variables

        @rn.compile
        def step(x: rn.Tensor) -> rn.Tensor:
            for v in variables:
                v.assign(v + x)
            return variables[0] + 0

        self._step = step
        self.one = rn.ones(())

    def step(self) -> float:
        return float(self._step(self.one)[0])

    def check(self) -> float:
        """All hold one number; which."""
        arrays = rn.snapshot(lambda: [v.numpy() for v in self.variables])
        found = {float(x) for a in arrays for x in (a.min(), a.max())}
        require(len(found) == 1, f"a reader sees {sorted(found)}")
        return found.pop()


@contextmanager
def meanwhile(*works: Callable[[], object]) -> Iterator[None]:
    """Other threads do ``works`` again and again during the block; what they raise is raised here."""
    going = True
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            while going:
                work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        going = False
        for thread in threads:
            thread.join(_WAIT)
    require(not any(thread.is_alive() for thread in threads), "a thread hangs")
    if errors:
        raise errors[0]


def new_function(n: int) -> Callable[[rn.Tensor], rn.Tensor]:
    """A function that was not compiled before, of x to n·x + tanh(x)."""
    f: Callable[[rn.Tensor], rn.Tensor] = rn.compile(eval(f"lambda x: x * {n} + rn.tanh(x)", {"rn": rn}))
    return f


def check_new_function(n: int) -> None:
    x = rn.ones((n % 37 + 1,))
    require(abs(float(new_function(n)(x)[0]) - n - np.tanh(1.0)) < 1e-4 * n + 1e-4, "a new function")


def readers(seconds: float) -> str:
    """Readers of all kinds while steps run."""
    kept: list[tuple[np.ndarray, float]] = []
    reads = steps = 0
    for size in SIZES:
        twins = Twins(size)
        made = [0]

        def step(twins: Twins = twins, made: list[int] = made) -> None:
            twins.step()
            made[0] += 1

        with meanwhile(step):
            for _ in until(seconds / len(SIZES)):
                v = random.choice(twins.variables)
                array = random.choice([v.numpy, lambda v=v: np.asarray(v), lambda v=v: (v + 0).numpy()])()
                first = float(array[0])
                require(bool((array == first).all()), "a torn read")
                kept.append((array, first))
                twins.check()
                reads += 1
                if len(kept) > 50:
                    require(all(bool((a == x).all()) for a, x in kept), "an array that changed later")
                    kept.clear()
        require(twins.check() == made[0], f"{twins.check()} after {made[0]} steps")
        steps += made[0]
    return f"{reads} reads, {steps} steps"


def steps(seconds: float) -> str:
    """Several threads step the same model and optimizer; one saves meanwhile, one assigns to a separate Variable."""
    rn.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    counter, gauge = rn.Variable([0.0]), rn.Variable(np.zeros(1000, np.float32))
    x = rn.ones((4, 3))

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        counter.assign(counter + 1)
        return gauge + counter

    made = [0, 0, 0]

    def stepper(i: int) -> Callable[[], None]:
        def run() -> None:
            result = step(x).numpy()
            require(bool((result == result[0]).all()), "a torn input")
            made[i] += 1

        return run

    def assign() -> None:
        gauge.assign(np.full(1000, random.randrange(100), np.float32))

    saved = 0
    with meanwhile(stepper(0), stepper(1), stepper(2), assign):
        for _ in until(seconds):
            state = rn.snapshot(lambda: (optimizer.state_dict(), counter.value))
            counts = {float(s["step"]) for s in state[0]["state"].values()} | {float(state[1][0])}
            require(len(counts) == 1, f"a checkpoint with the counts {sorted(counts)}")
            saved += 1
    require(float(counter) == sum(made), f"{float(counter)} counted of {sum(made)} steps")
    return f"{sum(made)} steps, {saved} checkpoints"


def draws(seconds: float) -> str:
    """Eager and compiled draws from one generator: no key comes twice."""
    generator = rn.Generator(3)
    keys: list[bytes] = []
    compiled = rn.compile(lambda: generator.next_key() + 0)

    def eager() -> None:
        keys.append(generator.next_key().numpy().tobytes())

    with meanwhile(eager, eager, lambda: keys.append(compiled().numpy().tobytes())):
        time.sleep(seconds)
    require(len(set(keys)) == len(keys), f"{len(keys) - len(set(keys))} keys of {len(keys)} came twice")
    require(int(generator.state.numpy()[2]) == len(keys), "a draw was lost")
    return f"{len(keys)} draws"


class Disturbance:
    """Do in a handler or finalizer all that the interrupted code does."""

    def __init__(self) -> None:
        self.twins = Twins(64)
        self.times3 = rn.compile(lambda x, s: x * s + 1)
        self.x, self.y = rn.ones((64,)), rn.ones((64,)) * 7
        self.steps = self.count = 0
        self.wrong: list[str] = []

    def inner(self) -> None:
        self.count += 1
        if (self.times3(self.y, 3.0).numpy() != 22).any() or ((self.y + self.y).numpy() != 14).any():
            self.wrong.append("in the disturbance")
        self.twins.step()
        self.steps += 1
        if self.count % 50 == 0:
            check_new_function(100 + self.count % 30)

    def outer(self, n: int) -> None:
        require((self.times3(self.x, float(n)).numpy() == n + 1).all(), "a compiled call")
        require(((self.x + self.y).numpy() == 8).all(), "an eager op")
        self.twins.step()
        self.steps += 1
        if n % 50 == 0:
            check_new_function(n)

    def end(self) -> str:
        require(not self.wrong, f"{self.wrong[:3]}")
        require(self.twins.check() == self.steps, f"{self.twins.check()} after {self.steps} steps")
        require(self.count > 0, "nothing disturbed")
        return f"{self.steps} steps, {self.count} disturbances"


def handlers(seconds: float) -> str:
    """A signal handler that calls what it breaks into."""
    disturbance = Disturbance()
    on = True

    def handle(*_: object) -> None:
        disturbance.inner()
        if on:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 1e-3)
    for n in until(seconds):
        disturbance.outer(n)
    on = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    return disturbance.end()


def finalizers(seconds: float) -> str:
    """Finalizers of cycles and callbacks of weak references into them, which the garbage collector runs wherever it is
    called."""
    disturbance = Disturbance()
    references: list[weakref.ref[Cycle]] = []

    def gone(reference: weakref.ref[Cycle]) -> None:
        references.remove(reference)
        disturbance.inner()

    class Cycle:
        def __init__(self) -> None:
            self.self = self

        def __del__(self) -> None:
            disturbance.inner()

    before = gc.get_threshold()
    gc.set_threshold(random.randint(20, 90))
    for n in until(seconds):
        references.append(weakref.ref(Cycle(), gone))
        disturbance.outer(n)
    gc.set_threshold(*before)
    gc.collect()
    return disturbance.end()


def forks(seconds: float) -> str:
    """Forks, by several threads, while others step and compile; each child steps, computes and compiles, too."""
    twins = Twins(20_000)
    forked = [0, 0]
    number = [0]

    def compiling() -> None:
        number[0] += 1
        check_new_function(number[0] % 200)

    def fork(who: int) -> None:
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(_WAIT, exit=True)
            code = 3
            try:
                before = twins.check()
                require(twins.step() == before + 1 == twins.check(), "a step in the child")
                require(float((rn.ones((40, 50)) @ rn.ones((50, 3))).sum()) == 6000, "an eager op in the child")
                check_new_function(forked[who] % 300 + 1)
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        require(status == 0, f"a child of thread {who} ended with {status}")
        forked[who] += 1

    twins.step()
    with meanwhile(twins.step, compiling, lambda: fork(1)):
        for _ in until(seconds):
            fork(0)
    return f"{forked[0]} forks, {forked[1]} of another thread"


_EXITS = """
import os, signal, sys, threading, time
import numpy as np
import runnel as rn
from runnel.core import switches
switches.num_threads.set(int(sys.argv[2]))
x = rn.ones((300, 300))
v = rn.Variable(np.zeros((300, 300), np.float32))
@rn.compile
def step(x):
    v.assign(v * 0.5 + x @ x)
    return v.sum()
step(x)
kind, pause = sys.argv[1], float(sys.argv[3])
signals = {}
if os.name == "posix":
    signals |= {"sys.exit": signal.SIGALRM, "os._exit": signal.SIGALRM}
    signals |= {"interrupt": signal.SIGINT, "killed": signal.SIGKILL}
def new(numbers=iter(range(10**9))):
    rn.compile(eval(f"lambda x: x * {next(numbers)} + 1", {}))(x)
def forever(*works):
    while True:
        for work in works:
            work()
def end(*_):
    print("end", flush=True)
    os._exit(0) if kind == "os._exit" else sys.exit(0)
if kind == "daemon" or kind in signals:
    for work in (lambda: step(x), lambda: x @ x, new):
        threading.Thread(target=forever, args=(work,), daemon=True).start()
if kind == "daemon":
    time.sleep(pause)
if kind in signals:
    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
    try:
        threading.Timer(pause, os.kill, (os.getpid(), signals[kind])).start()
        forever(lambda: step(x), new)
    except KeyboardInterrupt:
        v.assign(x)
if kind in ("cycle", "first"):
    class Late:
        def __init__(self):
            self.self = self
            self.step, self.x = step, x
            self.ready = lambda: float(self.step(self.x))
        def __del__(self):
            self.ready()
            (self.x @ self.x).sum()
    kept = Late()
    if kind == "first":
        from runnel.backends.cpu import team
        team.current().stop()
print("end")
"""


_ENDS = dict.fromkeys(("daemon", "cycle", "first"), (0, "end\n"))
if os.name == "posix":
    _ENDS |= dict.fromkeys(("sys.exit", "os._exit", "interrupt"), (0, "end\n")) | {"killed": (-9, "")}


def exits(seconds: float) -> str:
    """Ends of processes of all kinds while threads step and compile, and with finalizers that step when all else has
    ended."""
    ended = 0
    for _ in until(seconds):
        kind = random.choice(list(_ENDS))
        arguments = [sys.executable, "-c", _EXITS, kind, random.choice("12"), str(random.uniform(0, 0.05))]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=_WAIT)
        # A finalizer that runs when modules are already gone may be unable to compile again, and gets an error.
        told = done.stderr == "" or done.stderr.startswith("Exception ignored in: <function Late.__del__")
        require((done.returncode, done.stdout, told) == (*_ENDS[kind], True), f"{kind}: {done}")
        ended += 1
    return f"{ended} processes"


SCENARIOS: dict[str, Callable[[float], str]] = {
    f.__name__: f for f in (readers, steps, draws, handlers, finalizers, forks, exits)
}


def main(name: str, seconds: str, threads: str = "0") -> None:
    switches.num_threads.set(int(threads))
    print(f"{name}: {SCENARIOS[name](float(seconds))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
