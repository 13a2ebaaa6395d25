"""Independent branches of small calls run on several threads, with the bits of one; the verifier proves them apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler.memory import arena
from runnel.compiler.plan_ir.calls import MemorySpace
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.schedule import partition
from runnel.compiler.schedule.partition import Stretch
from runnel.compiler.verification import verifier
from runnel.core import switches
from runnel.core.errors import VerifierError
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced, same_bits

pytestmark = pytest.mark.suite
EDGE, LENGTH = 32, 10  # a product of such matrices is not worth splitting, two chains of so many are worth a team


def matrix(seed: int) -> rn.Tensor:
    drawn = np.random.default_rng(seed).standard_normal((EDGE, EDGE)) / EDGE**0.5
    return rn.asarray(drawn.astype(np.float32))


def chain(x: Any, w: Any, length: int = LENGTH) -> Any:
    for _ in range(length):
        x = ops.tanh(x @ w)
    return x


def diamond(x: Any, v: Any, w: Any) -> Any:
    """A common beginning, two branches, and a common end."""
    begin = chain(x, x, 3)
    return chain(chain(begin, v) - chain(begin, w), x, 3)


ARGUMENTS = (matrix(1), matrix(2), matrix(3))


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    with switches.override(verify=True):
        yield


def threads_of(plan: Plan) -> list[list[int]]:
    """For each call the threads that have a part in it."""
    return [[thread for thread, block in enumerate(of_call) if block is not None] for of_call in plan.blocks]


def refused(plan: Plan, message: str) -> None:
    with pytest.raises(VerifierError, match=message):
        verifier.verify(plan)


def test_two_chains_run_on_two_threads_without_a_barrier_in_between() -> None:
    traced = Traced(lambda x, v, w: (chain(x, v), chain(x, w)), ARGUMENTS, threads=4)
    assert traced.plan.threads == 2
    assert sorted(map(tuple, threads_of(traced.plan))) == [(0,)] * LENGTH + [(1,)] * LENGTH
    assert not any(traced.plan.barriers)
    alone = Traced(lambda x, v, w: (chain(x, v), chain(x, w)), ARGUMENTS)
    for a, b in zip(traced(*ARGUMENTS), alone(*ARGUMENTS), strict=True):
        assert same_bits(a, b)


@pytest.mark.parametrize("threads", [2, 3])
def test_branches_between_a_common_beginning_and_a_common_end(threads: int) -> None:
    traced = Traced(diamond, ARGUMENTS, threads=threads)
    parallel = [i for i, threads in enumerate(threads_of(traced.plan)) if threads == [1]]
    assert parallel == list(range(parallel[0], parallel[-1] + 1))
    assert len(parallel) in (LENGTH - 1, LENGTH)  # one branch's last product computes the difference, too
    first, *others = (i for i, stands in enumerate(traced.plan.barriers) if stands)
    assert first == 3 and len(others) == 1 and others[0] > parallel[-1]
    (actual,) = traced(*ARGUMENTS)
    assert same_bits(actual, diamond(*ARGUMENTS).numpy())


@pytest.mark.parametrize("longer", [0, 1])
def test_a_stretch_has_its_barrier_before_its_first_call_whichever_call_needs_it(longer: int) -> None:
    """The longer branch stays on the thread that computed the beginning, and needs no barrier; where its calls come
    first, one before the other branch's first call would make that wait for all of the longer one."""

    lengths = [LENGTH, LENGTH]
    lengths[longer] += 4

    def forked(x: Any, v: Any, w: Any) -> Any:
        begin = chain(x, x, 3)
        return chain(begin, v, lengths[0]), chain(begin, w, lengths[1])

    traced = Traced(forked, ARGUMENTS, threads=2)
    assert threads_of(traced.plan) == [[0]] * 3 + [[longer]] * lengths[0] + [[1 - longer]] * lengths[1]
    assert [i for i, stands in enumerate(traced.plan.barriers) if stands] == [3]
    for actual, expected in zip(traced(*ARGUMENTS), forked(*ARGUMENTS), strict=True):
        assert same_bits(actual, expected.numpy())


def test_the_verifier_refuses_calls_on_the_wrong_thread_and_missing_barriers() -> None:
    plan = Traced(diamond, ARGUMENTS, threads=2).plan
    for at in [i for i, stands in enumerate(plan.barriers) if stands]:
        plan.barriers[at] = False
        refused(plan, "no barrier between thread")
        plan.barriers[at] = True
    middle = next(i for i, threads in enumerate(threads_of(plan)) if threads == [1]) + LENGTH // 2
    plan.blocks[middle].reverse()
    refused(plan, "no barrier between thread")
    plan.blocks[middle].reverse()
    verifier.verify(plan)


def intermediates(plan: Plan, thread: int) -> list[tuple[int, int]]:
    """The bytes of the arena that calls of ``thread`` alone touch."""
    touched = {
        (a.allocation.offset, a.allocation.offset + a.allocation.nbytes)
        for call, threads in zip(plan.calls, threads_of(plan), strict=True)
        for a in call.accesses
        if a.allocation.space is MemorySpace.ARENA and threads == [thread]
    }
    return sorted(touched)


def test_threads_share_no_memory_and_each_uses_its_own_again() -> None:
    plan = Traced(lambda x, v, w: (chain(x, v), chain(x, w)), ARGUMENTS, threads=2).plan
    mine, others = intermediates(plan, 0), intermediates(plan, 1)
    assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in itertools.product(mine, others))
    assert len(mine) == len(others) == 2  # two buffers that take turns, however long the chain is
    assert plan.arena.peak == 4 * EDGE * EDGE * 4
    one, other = (next(a.allocation for a in plan.calls[i].accesses if a.writes) for i in (0, LENGTH))
    other.offset = one.offset
    refused(plan, "no barrier between thread|hold its value|both alive")


@pytest.mark.parametrize(
    "function",
    [
        lambda x, v, w: chain(x, v, 3 * LENGTH),  # one chain
        lambda x, v, w: (chain(x, v, 2), chain(x, w, 2)),  # too short
        lambda x, v, w: (chain(x, v, 3 * LENGTH), x + v),  # one branch is next to nothing
    ],
)
def test_programs_without_such_branches_stay_on_one_thread(function: Callable[..., Any]) -> None:
    plan = Traced(function, ARGUMENTS, threads=2).plan
    assert plan.threads == 1 and not any(plan.barriers)


def test_budgets_and_planners_of_users_keep_one_call_after_another() -> None:
    """Branches at the same time take more memory, and planners are told of lifetimes in one order of calls."""

    def both(x: Any, v: Any, w: Any) -> Any:
        return chain(x, v), chain(x, w)

    with switches.override(num_threads=2):
        usual = rn.compile(both).program(*ARGUMENTS).plan
        thrifty = rn.compile(both, memory_budget="1MB").program(*ARGUMENTS).plan
        planned = rn.compile(both, memory_planner=rn.memory.search).program(*ARGUMENTS).plan
    assert [plan.threads for plan in (usual, thrifty, planned)] == [2, 1, 1]
    assert thrifty.arena.peak == planned.arena.peak < usual.arena.peak


def test_branches_that_need_much_more_memory_stay_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(x: Any, v: Any, w: Any) -> Any:
        return chain(x, v), chain(x, w)

    serial = Traced(both, ARGUMENTS).plan
    monkeypatch.setattr(arena, "ROOM", serial.arena.peak - 1)
    refused = Traced(both, ARGUMENTS, threads=2).plan
    assert refused.threads == 1 and refused.arena.peak == serial.arena.peak
    monkeypatch.setattr(arena, "ROOM", serial.arena.peak)
    assert Traced(both, ARGUMENTS, threads=2).plan.arena.peak == 2 * serial.arena.peak


def test_variables_of_branches_are_updated() -> None:
    v, w = (Variable(matrix(seed).numpy(), requires_grad=True) for seed in (2, 3))

    def step(x: Any) -> Any:
        loss = (chain(x, v) ** 2).mean() + (chain(x, w) ** 2).mean()
        loss.backward()
        for p in (v, w):
            p.assign(p.detach() - 0.1 * p.grad)
            p.grad = None
        return loss

    results = []
    for threads in (1, 2):
        for p, seed in ((v, 2), (w, 3)):
            p.assign(matrix(seed))
        compiled = rn.compile(step)
        with switches.override(num_threads=threads):
            plan = compiled.program(ARGUMENTS[0]).plan
            losses = [compiled(ARGUMENTS[0]).numpy() for _ in range(3)]
        assert plan.threads == threads
        results.append([t.tobytes() for t in (*losses, v.numpy(), w.numpy())])
    assert results[0] == results[1]


def random_graph(seed: int) -> Callable[..., Any]:
    """Values that each read one or two of the last few: chains, forks, joins, results that are read late."""

    def function(*arguments: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = list(arguments)
        for _ in range(int(rng.integers(4, 40))):
            a, b = (values[-1 - int(rng.integers(0, min(len(values), 6)))] for _ in "ab")
            kind = int(rng.integers(0, 4))
            values.append(
                ops.tanh(a @ b) if kind < 2
                else ops.tanh(ops.concat([a[: EDGE // 2] @ b, a[EDGE // 2 :] @ arguments[0]], 0)) if kind == 2
                else a - b.sum(0)
            )  # fmt: skip
        return tuple(values[i] for i in sorted({len(values) - 1, int(rng.integers(3, len(values)))}))

    return function


@pytest.mark.parametrize("first", [0, 10, 20])
def test_random_graphs_have_one_threads_bits(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 1.0)
    monkeypatch.setattr(partition, "WORTH_DEALING", 0.0)
    monkeypatch.setattr(partition, "WORTH_MEMORY", 0.0)
    busy = 0
    for seed in range(first, first + 10):
        expected = Traced(random_graph(seed), ARGUMENTS)(*ARGUMENTS)
        for threads in (2, 4):
            traced = Traced(random_graph(seed), ARGUMENTS, threads=threads)
            busy += traced.plan.threads > 1
            for a, b in zip(expected, traced(*ARGUMENTS), strict=True):
                assert same_bits(a, b), (seed, threads)
    assert busy >= 10


def test_long_runs_of_small_calls_are_looked_through_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that alternate and are longer than a stretch: every stretch has the same number of calls of both."""
    monkeypatch.setattr(partition, "_LONGEST", 8)

    def alternating(x: Any, v: Any, w: Any) -> Any:
        a = b = x
        for _ in range(3 * LENGTH):
            a, b = ops.tanh(a @ v), ops.tanh(b @ w)
        return a, b

    calls = Traced(alternating, ARGUMENTS).plan.calls
    order = [i // 2 + (len(calls) // 2) * (i % 2) for i in range(len(calls))]
    monkeypatch.setattr(partition, "WORTH_DEALING", 3e-6)
    blocks: list[list[partition.Block | None]] = [[(0, EDGE, 0, EDGE)] for _ in calls]
    stretches = partition.find_stretches([calls[i] for i in order], blocks, 2, ())
    assert len(stretches) == -(-len(calls) // 8)
    assert all(sorted(s.threads).count(0) == len(s.threads) // 2 for s in stretches)
    assert [i for s in stretches for i in s.calls] == list(range(len(calls)))


def test_blocks_move_whole() -> None:
    whole: partition.Block = (0, 3, 0, 4)
    split: list[partition.Block | None] = [(0, 1, 0, 4), (1, 3, 0, 4)]
    threads, blocks = partition.dealt([[whole], split, [whole]], [Stretch(0, (0,), 0.0), Stretch(2, (2,), 0.0)])
    assert threads == 3
    assert blocks == [[whole, None, None], [*split, None], [None, None, whole]]
