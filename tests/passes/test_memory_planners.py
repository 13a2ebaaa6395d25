"""Memory planners from outside, and allocators as planners: equal results, the bytes that each needs, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as tf
from runnel import memory, nn, optim
from runnel.backends.host import memory as host
from runnel.core.errors import VerifierError

from ..random_numbers import RNG
from .examples import ROOT, example

LEAST = 1.05  # times the lower bound, for the usual search


def normal(*shape: int) -> rn.Tensor:
    return rn.asarray(RNG.standard_normal(shape).astype(np.float32))


@pytest.fixture(scope="module")
def table() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "memory_planners"))
        return example("memory_planners/table")


@pytest.mark.suite
@pytest.mark.parametrize("program", ["mlp", "cnn", "encoder"])
def test_all_planners_give_the_same_loss_and_none_beats_the_search(table: Any, program: str) -> None:
    rows = {name: table.planned(program, planner) for name, planner in table.PLANNERS.items()}
    (loss,) = {loss for _, loss in rows.values()}
    assert np.isfinite(loss)
    least, peaks = rows["search"][0].least, {name: timed.peak for name, (timed, _) in rows.items()}
    assert least == min(timed.least for timed, _ in rows.values())
    assert least <= peaks["search"] <= LEAST * least
    assert min(peaks.values()) >= 0.999 * peaks["search"]
    assert max(peaks.values()) == peaks["separate"]
    if program != "mlp":  # MXNet: sharing saves roughly half of the memory of training
        assert peaks["search"] <= 0.5 * peaks["separate"]


def test_the_search_is_what_programs_use() -> None:
    def f(x: rn.Tensor) -> rn.Tensor:
        return rn.tanh(x @ x) @ (x @ x.mT) @ rn.exp(x @ x)

    x = normal(40, 40)
    plain, own = rn.compile(f).program(x).plan, rn.compile(f, memory_planner=memory.search).program(x).plan
    assert [life.allocation.offset for life in plain.arena.lives] == [
        life.allocation.offset for life in own.arena.lives
    ]
    assert (plain.arena.peak, plain.arena.lower_bound) == (own.arena.peak, own.arena.lower_bound)


def test_planners_may_return_arrays_and_are_not_asked_about_nothing() -> None:
    def arrays(lifetimes: Sequence[memory.Lifetime]) -> Any:
        return np.cumsum([0, *[x.nbytes for x in lifetimes[:-1]]])

    f, x = rn.compile(chain, memory_planner=arrays), normal(16, 16)
    np.testing.assert_array_equal(f(x).numpy(), chain(x).numpy())
    planner = Counting()
    rn.compile(lambda x: x + 1, memory_planner=planner)(x)
    assert planner.calls == 0


class Counting:
    """A planner that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, lifetimes: Sequence[memory.Lifetime]) -> Sequence[int]:
        self.calls += 1
        return memory.search(lifetimes)


def test_gradients_sessions_and_budgets_use_it() -> None:
    planner = Counting()
    w = rn.tensor(normal(30, 30).numpy(), requires_grad=True)
    rn.compile(lambda x: rn.tanh(rn.tanh(x @ w) @ w).sum(), memory_planner=planner)(normal(5, 30)).backward()
    assert planner.calls == 2
    with tf.Graph():
        x = tf.placeholder("float32", (20, 20), name="x")
        session = tf.Session(memory_planner=planner)
        session.run(x @ x @ x, {x: np.ones((20, 20), np.float32)})
    assert planner.calls == 3
    rn.compile(lambda x: x @ x @ x, memory_planner=planner, memory_budget="1MB")(normal(20, 20))
    assert planner.calls == 4


def chain(x: rn.Tensor) -> rn.Tensor:
    y = x @ x
    z = y @ x
    return (z @ y) @ z


@pytest.mark.parametrize(
    ("planner", "message"),
    [
        (lambda lifetimes: [0] * len(lifetimes), r"Plan of 'chain' by memory planner '<lambda>': 'matmul' at bytes 0 "
         r"to 1024 and 'matmul' at bytes 0 to 1024 are both alive at call 1\.$"),
        (lambda lifetimes: [0], r"'<lambda>' returned 1 offsets for 3 lifetimes"),
        (lambda lifetimes: None, r"'<lambda>' returned None; it returns an offset for each value"),
        (lambda lifetimes: [8, 2048, 4096], r"the offset 8 \(int\); offsets are multiples of 64 from 0 on"),
        (lambda lifetimes: [-64, 2048, 4096], r"the offset -64 \(int\)"),
        (lambda lifetimes: [0, 1 << 63, 1 << 64], r"the offset 9223372036854775808 \(int\); offsets are multiples"),
        (lambda lifetimes: [0.0, 2048.0, 4096.0], r"the offset 0\.0 \(float\)"),
    ],
)  # fmt: skip
def test_wrong_planners_are_refused_in_one_sentence(planner: Callable[..., Any], message: str) -> None:
    f, x = rn.compile(chain, memory_planner=planner), normal(16, 16)
    for _ in range(2):
        with pytest.raises(VerifierError, match=message):
            f(x)


def test_a_broken_allocator_is_named() -> None:
    class Forgetful(memory.BestFit):
        def take(self, nbytes: int) -> int:
            return 0

    with pytest.raises(VerifierError, match=r"by memory planner 'Forgetful'"):
        rn.compile(chain, memory_planner=memory.replay(Forgetful))(normal(16, 16))


def test_buddies_keep_their_invariants_and_merge_back() -> None:
    buddy = example("memory_planners/buddy").Buddy()
    held: list[tuple[int, int]] = []
    for step in range(20_000):
        if held and (len(held) > 60 or RNG.random() < 0.5):
            buddy.give_back(*held.pop(int(RNG.integers(len(held)))))
        else:
            nbytes = int(RNG.integers(1, 5000))
            held.append((buddy.take(nbytes), nbytes))
        if step % 500 == 0:
            parts = [(at, size) for size, offsets in buddy.free.items() for at in offsets]
            parts = sorted([*parts, *buddy.taken.items()])
            assert [at for at, _ in parts] == [0, *np.cumsum([size for _, size in parts])[:-1]]
            assert sum(size for _, size in parts) == buddy.size
            assert all(at % size == 0 for at, size in parts)
    for part in held:
        buddy.give_back(*part)
    assert not buddy.taken and {size: at for size, at in buddy.free.items() if at} == {buddy.size: {0}}


def test_nothing_is_allocated_in_the_steady_state() -> None:
    net = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))
    sgd = optim.SGD(net.parameters(), lr=0.1)

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        sgd.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        sgd.step()
        return loss

    x = normal(8, 20)
    for _ in range(5):
        step(x)
    before = host.statistics().system_allocations
    for _ in range(20):
        step(x)
    assert host.statistics().system_allocations == before
