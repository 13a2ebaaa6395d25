"""Readers and writers of Variables in other threads, and reads as of one point in time."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import RunnelError
from runnel.tensor.concurrency import TURN


def twins() -> tuple[rn.Variable, rn.Variable]:
    return rn.Variable(np.zeros(4, np.float32)), rn.Variable(np.zeros(4, np.float32))


def in_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_a_snapshot_is_read_again_when_somebody_changes_what_was_read() -> None:
    a, b = twins()
    step = rn.compile(lambda: (a.assign(a + 1), b.assign(b + 1), a + 0)[2])
    step()
    attempts = []

    def read() -> tuple[float, float]:
        first = a.numpy()[0]
        attempts.append(first)
        if len(attempts) == 1:
            in_thread(step)  # between the two readings
        return first, b.numpy()[0]

    assert rn.snapshot(read) == (2, 2) and attempts == [1, 2]


def test_a_snapshot_that_changes_what_it_reads_says_so() -> None:
    a, _ = twins()
    with pytest.raises(RunnelError, match=r"\[snapshot\] .* must not change one"):
        rn.snapshot(lambda: a.assign(a + 1))


def test_snapshots_nest_and_give_what_read_returns() -> None:
    a, b = twins()
    assert rn.snapshot(lambda: [rn.snapshot(lambda: a.tolist()), b.tolist()]) == [[0] * 4] * 2
    assert rn.compile(lambda x: rn.snapshot(lambda: a + x))(rn.ones((4,))).tolist() == [1] * 4


def test_handles_keep_their_value_whoever_steps() -> None:
    a, b = twins()
    step = rn.compile(lambda: (a.assign(a + 1), b.assign(b - 1)))
    step()
    handle, array = a.read(), np.asarray(b)
    in_thread(step)
    step()
    assert handle.tolist() == [1] * 4 and array.tolist() == [-1] * 4
    assert a.tolist() == [3] * 4 and b.tolist() == [-3] * 4


def test_assignments_between_steps_are_neither_lost_nor_kept_for_later() -> None:
    a, b = twins()
    step = rn.compile(lambda: (a.assign(a + 1), b.assign(b + 1)))
    for turn in range(5):
        step()
        in_thread(lambda turn=turn: a.assign(np.full(4, 100 * turn, np.float32)))
        step()
        assert a.tolist() == [100 * turn + 1] * 4 and b.tolist() == [2 * turn + 2] * 4


def test_replacing_needs_the_value_that_was_read() -> None:
    a, _ = twins()
    old = a.read()
    assert a.replace(old + 1, old) and a.tolist() == [1] * 4
    assert not a.replace(old + 5, old) and a.tolist() == [1] * 4


def test_in_place_operators_of_threads_lose_nothing() -> None:
    a, _ = twins()

    def work() -> None:
        for _ in range(200):
            a.add_(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert a.tolist() == [600] * 4


def test_code_that_runs_when_a_value_is_dropped_sees_all_of_a_step() -> None:
    """The callback of a weak reference to a gradient that a step replaces."""
    p = rn.Variable(np.ones(3, np.float32), requires_grad=True)
    q = rn.Variable(np.ones(3, np.float32), requires_grad=True)
    recorded: list[list[float]] = []

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        p.grad = q.grad = None
        loss = (p * x).sum() + (q * x).sum()
        loss.backward()
        return loss

    for n in range(4):
        step(rn.asarray(np.full(3, n, np.float32)))
        watch = weakref.ref(p.grad, lambda _: recorded.append([p.grad.tolist()[0], q.grad.tolist()[0]]))
        step(rn.asarray(np.full(3, n + 0.5, np.float32)))
        assert watch() is None and recorded[-1] == [n + 0.5] * 2


@pytest.mark.stress
def test_a_turn_that_is_never_given_back_delays_and_no_more() -> None:
    a, b = twins()
    step = rn.compile(lambda: (a.assign(a + 1), b.assign(b + 1)))
    step()
    is_reserved, over = threading.Event(), threading.Event()

    def hold() -> None:
        with TURN.reserved():
            is_reserved.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        is_reserved.wait(30)
        a.read()
        step()
        assert b.tolist() == [2] * 4
    finally:
        over.set()
        thread.join()


def test_a_state_is_loaded_as_a_whole() -> None:
    """For readers of all kinds that come while it is half loaded."""
    model = rn.nn.Module()
    model.a, model.b = (rn.nn.Parameter(np.zeros(4, np.float32)) for _ in range(2))
    step = rn.compile(lambda: (model.a - model.b).detach())
    step()
    results: list[float] = []

    def read() -> None:
        results.append(float(step()[0]))
        a, b = rn.snapshot(lambda: (model.a.numpy(), model.b.numpy()))
        results.append(float(a[0] - b[0]))
        results.append(float((model.state_dict()["a"] - model.state_dict()["b"])[0]))

    reader = threading.Thread(target=read, daemon=True)

    class Slow(rn.nn.Parameter):
        def _store(self, value: object, expected: object = None) -> bool:  # what comes between two assignments
            if not reader.ident:
                reader.start()
                reader.join(0.2)
            return super()._store(value, expected)

    model.b = Slow(np.zeros(4, np.float32))
    step()
    model.load_state_dict({"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)})
    reader.join(30)
    assert results == [0.0, 0.0, 0.0] and float(step()[0]) == 0


def test_an_interrupt_leaves_nothing_of_a_state_that_is_being_loaded() -> None:
    model = rn.nn.Module()
    model.a = rn.nn.Parameter(np.zeros(4, np.float32))

    class Interrupted(rn.nn.Parameter):
        def _store(self, value: rn.Tensor, expected: object = None) -> bool:
            if value.tolist() == [1] * 4:
                raise KeyboardInterrupt
            return super()._store(value, expected)

    model.b = Interrupted(np.zeros(4, np.float32))
    with pytest.raises(KeyboardInterrupt):
        model.load_state_dict({"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)})
    assert [v.tolist() for v in model.state_dict().values()] == [[0] * 4] * 2
