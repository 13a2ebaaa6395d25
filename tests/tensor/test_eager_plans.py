"""Eager calls of single ops: plans are bounded in number, and results that share memory are separate values."""

import threading

import numpy as np
import pytest

import runnel as rn
from runnel.backends.host import memory, objects, recall
from runnel.core.caching import Recent
from runnel.tensor import bound, eager


def test_new_shapes_compile_nothing_and_plans_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shapes find the kernels; later ones plan, and the plans that were used longest ago go."""
    plans = 50
    monkeypatch.setattr(eager, "_PLANS", Recent(plans))
    shapes = [(1 + i % 50, 1 + i // 50) for i in range(400)]
    for shape in shapes[:200]:
        rn.negative(rn.ones(shape))
    before = objects.statistics.compiled + objects.statistics.loaded
    for shape in shapes[200:]:
        assert rn.negative(rn.ones(shape)).shape == shape
    assert objects.statistics.compiled + objects.statistics.loaded == before
    assert plans <= len(eager._PLANS) <= 2 * plans


def test_small_results_that_are_dropped_leave_no_memory_in_use() -> None:
    x = rn.asarray(np.arange(4, dtype=np.float32))
    for _ in range(3 * bound.CELLS):
        x + x
    before = memory.statistics().live
    for _ in range(20 * bound.CELLS):
        x + x
    assert memory.statistics().live <= before + bound.CELL * bound.CELLS


@pytest.mark.parametrize("size", [1, 15, 16, 17, 64])
def test_small_results_do_not_disturb_one_another(size: int) -> None:
    x = rn.asarray(np.arange(size, dtype=np.float32))
    results = [x + float(i) for i in range(3 * bound.CELLS)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), np.arange(size, dtype=np.float32) + i)


@pytest.mark.parametrize("compiled", [False, True])
def test_calls_that_run_while_a_slab_ends_get_memory_of_their_own(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of an object runs Python code, where other threads and signal handlers come in."""
    x, other = rn.asarray([1.0, 2.0]), rn.asarray([100.0, 200.0])
    function = rn.compile(rn.negative) if compiled else rn.negative
    give, others, ends = memory._POOL.give, [], [0]

    def interrupted(block: memory._Block, nbytes: int) -> None:
        give(block, nbytes)
        if nbytes in (bound.CELL * bound.CELLS, recall.SLAB_BYTES) and ends[0] < 10:
            ends[0] += 1
            others.append(function(other))

    monkeypatch.setattr(memory._POOL, "give", interrupted)
    for _ in range(20 * bound.CELLS):
        assert function(x).tolist() == [-1.0, -2.0]  # and is dropped, so that full slabs end when the next one comes
    assert ends[0] >= 5 and all(result.tolist() == [-100.0, -200.0] for result in others)


def test_threads_get_results_of_their_own() -> None:
    x = rn.asarray(np.arange(8, dtype=np.int32))
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            results = [x + number for _ in range(5)]
            wrong.extend(number for result in results if not np.array_equal(result.numpy(), np.arange(8) + number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_variables_can_be_given_small_results_of_one_slab() -> None:
    """They hold parts of one block, and are two values: each is updated by itself."""
    x = rn.asarray(np.arange(4, dtype=np.float32))
    v, w = rn.Variable(np.zeros(4, np.float32)), rn.Variable(np.zeros(4, np.float32))
    v.assign(x + 1.0)
    w.assign(x + 2.0)

    @rn.compile
    def step() -> None:
        v.assign(v * 2.0)

    for _ in range(3):
        step()
    w.add_(1.0)
    np.testing.assert_array_equal(v.numpy(), (np.arange(4) + 1.0) * 8)
    np.testing.assert_array_equal(w.numpy(), np.arange(4) + 3.0)


def test_an_update_that_was_overtaken_is_made_again() -> None:
    """Though the value that came in between lies in the same block as the one that was read."""
    eager.clear()  # so that the next results of the op share a new block
    v = rn.Variable(np.zeros(2, np.float32))
    one = rn.asarray(np.ones(2, np.float32))
    v.assign(one + 0.0)
    before = v.read()
    v.assign(one + 1.0)
    assert v.read()._storage is before._storage and not v.still_is(before)
    assert not v.replace(one, expected=before)
    np.testing.assert_array_equal(v.numpy(), [2.0, 2.0])
