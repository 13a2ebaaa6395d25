"""Test Ctrl-C in compiled functions: a long run stops, and state is from before or after the call."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import types
from collections import deque
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile

pytestmark = [
    pytest.mark.stress,
    pytest.mark.skipif(sys.platform == "win32", reason="signals one cannot send to oneself"),
]

# What the scripts share. ``long(first)``: a program of 0.4 seconds or more that updates one Variable as its last deed
# and, if ``first`` is set, another one as its first. ``Alarm``: KeyboardInterrupt after a random while, once and while
# ``on`` holds (Python drops one that falls into a destructor).
_COMMON = """
import io, os, random, signal, sys, threading, time
import numpy as np
import runnel as rn
from runnel.compile import compile
from runnel.core import switches
from runnel.tensor.variable import STATE_VERSION
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
switches.num_threads.set(int(sys.argv[1]))
rng = np.random.default_rng(0)
w = rn.asarray((rng.standard_normal((768, 768)) / 28).astype(np.float32))
x = rn.asarray(rng.standard_normal((768, 768)).astype(np.float32))
late = rn.Variable(np.zeros(768, np.float32))
early = rn.Variable(np.zeros(768, np.float32))

def deep(x, w, depth):
    for _ in range(depth):
        x = x @ w
    return x

def product_seconds():
    best = 9.0
    for _ in range(3):
        start = time.perf_counter()
        x @ w
        best = min(best, time.perf_counter() - start)
    return best

def long(first):
    x @ w
    depth = min(max(int(0.4 / product_seconds()), 20), 2000)
    def step(x, w):
        if first:
            early.assign(early + 1)
            x = x + early
        y = deep(x, w, depth)
        late.assign(late + y.mean(0) + 1)
        return y
    return compile(step), step

def interrupt_after(*seconds):
    def ring():
        for pause in seconds:
            time.sleep(pause)
            os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=ring, daemon=True).start()

class Alarm:
    def __init__(self):
        signal.signal(signal.SIGALRM, self.ring)
        self.on = False
        self.rung = 0

    def ring(self, number, frame):
        if self.on:
            self.on = False
            self.rung += 1
            raise KeyboardInterrupt

    def during(self, most, work):
        # A function: Python 3.13 takes signals at the jump back of a loop, which a try around the loop does not cover.
        self.on = True
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, most))
        while self.on:
            work()

def state():
    return early.numpy().tobytes() + late.numpy().tobytes()

def others_may_call(f):
    thread = threading.Thread(target=f, daemon=True)
    thread.start()
    thread.join(60)
    if thread.is_alive():
        sys.exit("a lock is still held")
"""


def script(body: str, threads: int = 1) -> str:
    """Return what a process that runs ``body`` prints."""
    command = [sys.executable, "-c", _COMMON + body, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


_STOPPED = """
f, step = long(first=False)
f(x, w)
for pauses in ([0.1], [0.1, 0.002]):
    before, writes = state(), STATE_VERSION.writes
    interrupt_after(*pauses)
    try:
        try:
            f(x, w)
        finally:
            time.sleep(0.1)  # for the second signal, if it was not a part of the first
        sys.exit("nothing was raised")
    except KeyboardInterrupt:
        pass
    if state() != before:
        sys.exit("a Variable has changed")
got = f(x, w).numpy()
compiled = state()
late.assign(np.frombuffer(before, np.float32)[768:])
same = step(x, w).numpy().tobytes() == got.tobytes() and state() == compiled != before
others_may_call(lambda: f(x, w))
print("fine" if same else "wrong")
"""


@pytest.mark.parametrize("threads", [1, 4])
def test_a_long_run_stops_and_changes_nothing(threads: int) -> None:
    assert script(_STOPPED, threads) == "fine"


_SEALED = """
f, step = long(first=True)
f(x, w)
before = state()
interrupt_after(0.1)
try:
    f(x, w)
    sys.exit("nothing was raised")
except KeyboardInterrupt:
    pass
after = state()
early.assign(np.frombuffer(before, np.float32)[:768])
late.assign(np.frombuffer(before, np.float32)[768:])
step(x, w)
print("fine" if state() == after != before else "wrong")
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_has_begun_to_change_variables_is_completed(threads: int) -> None:
    assert script(_SEALED, threads) == "fine"


_SHORT = """
random.seed(0)
a, b, p = (rn.Variable(np.zeros(5, np.float32)) for _ in range(3))
p.requires_grad = True

def step():
    p.grad = None
    (p * a).sum().backward()
    a.assign(a + 1)
    b.assign(b + 2)

compiled = compile(step)
compiled()
alarm = Alarm()
while alarm.rung < 200:
    writes = STATE_VERSION.writes
    start = a.numpy()[0]
    try:
        alarm.during(300e-6, compiled)
    except KeyboardInterrupt:
        pass
    n = a.numpy()[0]
    if (b.numpy() != 2 * n).any() or (p.grad.numpy() != n - 1).any() or STATE_VERSION.writes - writes < n - start:
        sys.exit(f"{a} {b} {p.grad} {STATE_VERSION.writes - writes}")
others_may_call(compiled)
print("fine")
"""


def test_ctrl_c_between_short_steps_finds_all_state_of_one_step() -> None:
    assert script(_SHORT) == "fine"


_COMPILING = """
random.seed(1)
switches.cache.set(False)
n = 0
alarm = Alarm()
while alarm.rung < 25:
    n += 1
    v = rn.Variable(np.zeros(n, np.float32))
    def step(x, s):
        y = (x * s).exp().sum() + n
        v.assign(v + y * 0 + 1)
        return y
    compiled = compile(step)
    y = rn.asarray(np.ones(n, np.float32))
    steps = []
    def once():
        compiled(y, 0.0)
        steps.append(True)
    try:
        alarm.during(60e-3, once)
    except KeyboardInterrupt:
        pass
    done = v.numpy()
    if len(set(done.tolist())) != 1 or done[0] - len(steps) not in (0, 1):
        sys.exit(f"{len(steps)} steps gave {v}")
    before = done.copy()
    if compiled(y, 0.0).item() != 2 * n or (v.numpy() != before + 1).any():
        sys.exit("the next call is wrong")
others_may_call(lambda: compiled(y, 0.0))
print("fine")
"""


def test_ctrl_c_while_tracing_and_compiling() -> None:
    assert script(_COMPILING, 2) == "fine"


def test_an_interrupt_inside_the_traced_function_leaves_everything_as_before() -> None:
    v = rn.Variable([1.0, 2.0])
    interrupting = [True]

    def step(x: rn.Tensor, flags: list[bool]) -> rn.Tensor:
        v.assign(v + x)
        v.grad = x * 2
        if flags[0]:
            raise KeyboardInterrupt
        return x * 2

    f = compile(step)
    x = rn.asarray(np.ones(2, np.float32))
    with pytest.raises(KeyboardInterrupt):
        f(x, interrupting)
    assert v.tolist() == [1, 2] and v.grad is None
    results: list[rn.Tensor] = []
    other = threading.Thread(target=lambda: results.append(f(x, [False])))
    other.start()
    other.join(30)
    assert results[0].tolist() == [2, 2] and v.tolist() == [2, 3] and v.grad.tolist() == [2, 2]


_OUTSIDE = """
import types
v = rn.Variable(np.zeros(4, np.float32))
counts, box, log, cells = {"n": 0}, types.SimpleNamespace(n=0), [], [7, 0]
told, buffer = io.StringIO(), rn.zeros(4)
class Model(rn.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
model, free = Model(), 0
def step():
    global free
    counts["n"] += 1
    v.assign(v + 1.0)
    box.n += 1
    log.append(counts["n"])
    cells[1] += 1
    model.calls += 1
    free += 1
    print("told", counts["n"], sep="", file=told)
    buffer.add_(1.0)
    return v.sum() * counts["n"]
f = compile(step)
for _ in range(4):
    f()
alarm = Alarm()
for attempt in range(400):
    try:
        alarm.during(60e-6, f)
    except KeyboardInterrupt:
        pass
    alarm.on = False
    seen = {int(v.numpy()[0]), counts["n"], box.n, len(log), log[-1], cells[1], model.calls, free}
    seen |= {told.getvalue().count("told"), int(buffer[3])}
    if len(seen) != 1:
        sys.exit(f"after attempt {attempt} there are {sorted(seen)}")
print("fine" if alarm.rung > 100 else f"only {alarm.rung} alarms")
"""


_EXPOSED = """
import warnings
warnings.simplefilter("error")  # one that says that the function runs eagerly
class Key:
    def __init__(self, value):
        self.value = value
    def __lt__(self, other):
        return self.value < other.value
    def __eq__(self, other):
        return self.value == other.value
    def __hash__(self):
        return hash(self.value)
methods = {name: getattr(Key, name) for name in ("__lt__", "__eq__", "__hash__")}
codes = {name: method.__code__ for name, method in methods.items()}
keys = [Key(i % 5) for i in range(10)]
x = rn.ones(3)
f = compile(lambda x: (x * sorted(keys)[-1].value, len(set(keys)), keys.index(Key(3))))
alarm = Alarm()
while alarm.rung < 150:
    f.clear_cache()
    try:
        alarm.during(20e-3, lambda: (f(x), f(x)))  # a trace, and an audit
    except KeyboardInterrupt:
        pass
    alarm.on = False
    if any(methods[name].__code__ is not code for name, code in codes.items()):
        sys.exit("a method is left rewritten")
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit("a listener is left")
if f(x)[1:] != (5, 3):
    sys.exit("the next call is wrong")
others_may_call(lambda: (f.clear_cache(), f(x)))
print("fine")
"""


def test_what_is_changed_outside_goes_with_the_run() -> None:
    assert script(_OUTSIDE) == "fine"


_STATE = """
model, w = rn.nn.Linear(2, 2), rn.ones(2, requires_grad=True)
model.calls = model.flag = 0
order = [0]
def step(x):
    model.calls += 1
    model.flag = model.calls
    order.append(-model.calls)
    order.sort()
    w.grad = x * model.calls
    return x * model.calls
x = rn.ones(2)
f = compile(step)
f(x)
alarm = Alarm()
for attempt in range(120):
    if attempt % 2:
        f = compile(step)  # so that it is traced, and what that did is taken back
    try:
        alarm.during(3e-3, lambda: f(x))
    except KeyboardInterrupt:
        pass
    alarm.on = False
    seen = model.calls, model.flag, len(order) - 1, -order[0], int(w.grad[0])
    if len(set(seen)) != 1:
        sys.exit(f"after attempt {attempt}: {seen}")
    if int(f(x)[0]) != model.calls:
        sys.exit("the guard missed a change")
print("fine" if alarm.rung > 80 else f"only {alarm.rung} alarms")
"""


def test_changes_outside_are_made_by_c_code_alone() -> None:
    """Python looks for signals in Python's code: while changes are made there is none of it to break into."""
    box, told, buffer, heap = types.SimpleNamespace(n=0), io.StringIO(), rn.zeros(4), [3, 1]

    def step(x: rn.Tensor) -> rn.Tensor:
        box.n += 1
        print("told", box.n, sep="-", file=told)
        print(box.n, file=told, end="")
        buffer.add_(1.0)
        buffer[1] = x.sum()
        heap.sort(reverse=True)
        heap.sort(key=lambda n: -n)
        return x * box.n

    f = compile(step)
    for _ in range(4):
        f(rn.ones(2))
    met: list[str] = []
    depth = 0

    def profile(frame: types.FrameType, event: str, called: Any) -> None:
        nonlocal depth
        if type(getattr(called, "__self__", None)) is deque and called.__name__ == "extend":
            depth += {"c_call": 1, "c_return": -1}[event]
            met.append(event)
        elif depth and event == "call":
            met.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        f(rn.ones(2))
    finally:
        sys.setprofile(None)
    assert met == ["c_call", "c_return"]
    assert told.getvalue().endswith("told-5\n5")
    assert buffer.tolist() == [5.0, 2.0, 5.0, 5.0]


def test_attributes_of_modules_go_with_the_run() -> None:
    assert script(_STATE) == "fine"
