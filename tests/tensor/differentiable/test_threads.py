"""Test compiled forwards and their backward passes on several threads and under signals."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import runnel as rn
from runnel import nn, ops
from tests.tensor.differentiable.programs import bits, gradients, leaf, numbers, parameter

pytestmark = pytest.mark.stress


ROUNDS = 12


def grown(w: rn.Parameter, x: rn.Tensor) -> rn.Tensor:
    return (ops.tanh(x @ w) * x).sum()


def test_forwards_at_once_and_backwards_on_other_threads() -> None:
    """Each thread differentiates what another one has computed, with regard to its leaves."""
    w = parameter(0, 6, 6)
    w.requires_grad = False  # so that threads add nothing to one gradient
    f = rn.compile(lambda x: grown(w, x))
    expected = []
    for i in range(4 * ROUNDS):
        x = leaf(i, 5, 6)
        grown(w, x).backward()
        expected.append(bits(x.grad))
    results: queue.Queue[tuple[int, rn.Tensor, rn.Tensor]] = queue.Queue()
    start = threading.Barrier(4)

    def forwards(thread: int) -> None:
        start.wait()
        for i in range(thread, 4 * ROUNDS, 4):
            x = leaf(i, 5, 6)
            results.put((i, x, f(x)))

    def backwards() -> None:
        for _ in range(2 * ROUNDS):
            i, x, value = results.get(timeout=60)
            value.backward()
            collected[i] = bits(x.grad)

    collected: dict[int, Any] = {}
    with ThreadPoolExecutor(6) as pool:
        for done in [*[pool.submit(forwards, k) for k in range(4)], pool.submit(backwards), pool.submit(backwards)]:
            done.result()
    assert [collected[i] for i in range(4 * ROUNDS)] == expected


def test_each_thread_trains_a_model_of_its_own() -> None:
    def trained(compiles: Callable[..., Any], seed: int) -> Any:
        model = nn.Linear(4, 2)
        for i, p in enumerate(model.parameters()):
            p.assign(numbers(seed + i, *p.shape))
        loss = compiles(lambda x: (model(x) ** 2).mean())
        optimizer = rn.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        for i in range(ROUNDS):
            optimizer.zero_grad()
            loss(numbers(i, 3, 4)).backward()
            optimizer.step()
        return bits([v.numpy() for v in model.parameters()])

    with ThreadPoolExecutor(4) as pool:
        actual = list(pool.map(lambda seed: trained(rn.compile, seed), range(4)))
    assert actual == [trained(lambda function: function, seed) for seed in range(4)]


def test_a_handler_that_differentiates_the_same_function() -> None:
    """A signal breaks into calls and backward passes, and does both itself."""
    w, inner = parameter(0, 6, 6), []
    f = rn.compile(lambda x: grown(w, x))
    x = numbers(1, 5, 6)
    f(x).backward()
    expected = bits(gradients([w]))

    def handler(*_: Any) -> None:
        at = leaf(2, 5, 6)
        (gradient,) = rn.vjp(f, at)[1](rn.asarray(1.0))
        inner.append(bits(gradient))

    handler()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for i in range(4 * ROUNDS):
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + i))
            while len(inner) < i + 2:
                w.grad = None
                f(x).backward()
                assert bits(gradients([w])) == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(one == inner[0] for one in inner)


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_backward_that_is_interrupted(retain: bool) -> None:
    """Ctrl-C during training: the next steps are what they would have been."""
    w = parameter(0, 6, 6)
    f = rn.compile(lambda x: grown(w, x))
    x = numbers(1, 5, 6)
    f(x).backward()
    expected, broken = bits(gradients([w])), 0

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for i in range(4 * ROUNDS):
            w.grad = None
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + i), 0.05)  # again, for a __del__ swallows the first
                while True:
                    f(x).backward(retain_graph=retain)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                broken += 1
            w.grad = None
            f(x).backward()
            assert bits(gradients([w])) == expected and rn.is_grad_enabled()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert broken == 4 * ROUNDS
