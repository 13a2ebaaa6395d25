"""Test several Python threads that call and trace the same compiled functions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile
from runnel.compile.capture import RULES
from runnel.core import switches

pytestmark = pytest.mark.stress


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


def at_once(*works: Callable[[], None]) -> None:
    """Run all at the same time; the first error is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    team = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    if errors:
        raise errors[0]


def test_first_calls_at_once_trace_once() -> None:
    f = compile(lambda x: (x * 3).sum())
    at_once(*[lambda: [f(tensor(1, 2)) for _ in range(50)]] * 4)  # type: ignore[list-item]
    assert f.statistics["traces"] == 1


def test_different_signatures_at_once() -> None:
    f = compile(lambda x, n: x * n + 1)

    def work(size: int) -> Callable[[], None]:
        def run() -> None:
            for n in range(30):
                x = rn.ones((size + n % 3,))
                assert f(x, n % 4).tolist() == [n % 4 + 1.0] * (size + n % 3)

        return run

    at_once(work(1), work(2), work(5))


def test_two_functions_update_one_variable() -> None:
    v = rn.Variable([0.0])

    @compile
    def one():
        v.assign(v + 1)

    @compile
    def two():
        v.assign(v + 2)

    at_once(lambda: [one() for _ in range(300)], lambda: [two() for _ in range(300)])  # type: ignore[arg-type, return-value]
    assert v.item() == 900


def test_a_trace_is_of_its_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, done = threading.Event(), threading.Event()
    recorded: list[object] = []

    def wait() -> None:
        inside.set()
        done.wait(10)

    monkeypatch.setitem(RULES.rules, id(wait), lambda rec: wait())

    def slow(x):
        wait()
        return x + 1

    def other() -> None:
        inside.wait(10)
        recorded.append((tensor(1) * 2).item())
        done.set()

    f = compile(slow)
    at_once(lambda: recorded.append(f(tensor(1)).item()), other)
    assert sorted(recorded) == [2, 2]


def test_eager_switch_calls_the_function() -> None:
    f = compile(lambda x: x.sum().item() * 2)
    with switches.override(eager=True):
        assert f(tensor(1, 2)) == 6


def test_any_number_of_threads_gives_the_same_bits() -> None:
    x = rn.asarray(np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32))
    f = compile(lambda x: ((x @ x.T).exp().sum(0), (x * 2).sum()))
    results = []
    for count in (1, 2):
        with switches.override(num_threads=count):
            results.append([t.numpy().tobytes() for t in f(x)])
    assert results[0] == results[1]
