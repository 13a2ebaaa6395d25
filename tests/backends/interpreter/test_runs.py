"""Runs on the interpreter as a user meets them: without LLVM, stopped by faults and signals, beside one another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.backends.interpreter import kernels as interpreter
from runnel.backends.interpreter.locking import attended, on_callers_thread
from runnel.core.errors import AxisError, StateError, VerifierError

ROOT = Path(__file__).resolve().parents[3]
DEVICE = "interpreter"

WITHOUT_LLVM = """
import sys
sys.modules["llvmlite"] = None  # importing it fails

import runnel as rn
from runnel import nn, optim

assert rn.device() is rn.device("interpreter")
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
optimizer = optim.Adam(model.parameters(), lr=0.1)

@rn.compile
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

x, y = rn.randn(6, 4), rn.tensor([0, 1, 2, 0, 1, 2])
losses = [float(step(x, y)) for _ in range(8)]
assert losses[-1] < losses[0], losses
assert step.statistics["programs"] == 1
print("trained")
"""


@pytest.mark.suite
def test_a_training_step_needs_no_llvm(tmp_path: Path) -> None:
    environment = {**os.environ, "RUNNEL_DEVICE": DEVICE, "RUNNEL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LLVM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("trained\n", 0), done.stderr


def test_a_fault_leaves_variables_as_they_were() -> None:
    table = rn.Variable(np.ones((5, 2), np.float32), device=DEVICE)

    @rn.compile
    def step(rows: Any) -> Any:
        table.assign(table + rn.take(table, rows, 0).sum())

    step(rn.tensor([1, 2], device=DEVICE))
    before = table.numpy().copy()
    with pytest.raises(AxisError, match="outside"):
        step(rn.tensor([1, 7], device=DEVICE))
    assert np.array_equal(table.numpy(), before)
    with pytest.raises(AxisError, match="index 9"):
        rn.take(table.value, rn.tensor([0, 9], device=DEVICE), 0)


def test_an_error_of_a_callback_comes_out_and_nothing_has_changed() -> None:
    v = rn.Variable(np.zeros(3, np.float32), device=DEVICE)
    threads: list[threading.Thread] = []

    def refuse(x: Any) -> None:
        threads.append(threading.current_thread())
        if x.sum() > 2:
            raise KeyError("too much")

    @rn.compile
    def step() -> None:
        rn.debug.callback(refuse, v + 0)
        v.assign(v + 1)

    step()
    with pytest.raises(KeyError, match="too much"):
        step()
    assert v.numpy().tolist() == [1.0, 1.0, 1.0]
    assert set(threads) == {threading.current_thread()}


def test_a_callback_that_runs_the_step_it_is_part_of_is_refused() -> None:
    v = rn.Variable(np.zeros(3, np.float32), device=DEVICE)

    @rn.compile
    def other() -> None:
        v.assign(v * 2)

    @rn.compile
    def step() -> None:
        rn.debug.callback(lambda x: other(), v + 0)
        v.assign(v + 1)

    other()
    with pytest.raises(StateError, match="callback"):
        step()
        step()


def test_indices_are_checked_against_the_place_of_a_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reaches beyond its place is found out, though the memory behind it is there."""
    original = interpreter.run

    def wider(kernel: Any, arrays: Any, params: Any, i0: int, i1: int, *block: Any, **more: Any) -> int:
        return original(kernel, arrays, params, i0, i1, block[0], block[1] + 1, **more)

    x = rn.ones((3, 5), device=DEVICE)
    (x * 2).exp()
    monkeypatch.setattr(interpreter, "run", wider)
    with pytest.raises(VerifierError, match="elements"):
        (x * 2).exp()


def test_threads_take_turns_at_the_same_variables() -> None:
    v = rn.Variable(np.zeros(2, np.float32), device=DEVICE)

    @rn.compile
    def step() -> Any:
        v.assign(v + 1)
        return v.sum()

    step()
    totals: list[float] = []

    def work() -> None:
        for _ in range(10):
            step()
            values = v.numpy()
            totals.append(float(values[0] - values[1]))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert v.numpy().tolist() == [31.0, 31.0]
    assert set(totals) == {0.0}


def test_the_main_thread_serves_and_hears_of_signals() -> None:
    """The error of a handler comes out when the work has ended, and the work is told."""
    requests: list[str] = []
    started, ended = threading.Event(), threading.Event()

    def work() -> int:
        assert on_callers_thread(threading.current_thread) is threading.main_thread()
        started.set()
        signal.raise_signal(signal.SIGINT)
        while not requests:
            pass
        ended.set()
        return 0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            attended(work, lambda: requests.append("stop"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert started.is_set() and ended.is_set()


def test_ctrl_c_stops_a_run_before_it_writes() -> None:
    v = rn.Variable(np.zeros(3, np.float32), device=DEVICE)
    layer, interrupts = nn.Linear(3, 3).to(DEVICE), [False]
    optimizer = optim.SGD(layer.parameters(), lr=0.1)

    def press(x: Any) -> None:
        if interrupts[0]:
            signal.raise_signal(signal.SIGINT)

    @rn.compile
    def step(x: Any) -> Any:
        rn.debug.callback(press, x)
        optimizer.zero_grad()
        loss = (layer(x + v) ** 2).sum()
        loss.backward()
        optimizer.step()
        v.assign(v + 1)
        return loss

    x = rn.ones((2, 3), device=DEVICE)
    for _ in range(3):
        step(x)
    state = [p.numpy().tobytes() for p in (*layer.parameters(), v)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupts[0] = True
        with pytest.raises(KeyboardInterrupt):
            step(x)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [p.numpy().tobytes() for p in (*layer.parameters(), v)] == state
    interrupts[0] = False
    step(x)
    assert v.numpy().tolist() == [4.0] * 3
