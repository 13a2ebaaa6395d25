"""Test the cache of programs: shared by functions of equal code, bounded, without allocations in calls."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import runnel as rn
from runnel.backends.host import memory
from runnel.compile import cache, compile
from runnel.core.errors import CaptureWarning

pytestmark = pytest.mark.suite


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


def test_fresh_lambdas_share_programs_and_memory_does_not_grow() -> None:
    x, w = tensor(1, 2), tensor(3, 4)
    compile(lambda x: x)(x)

    def call(scale: float, shift: rn.Tensor) -> rn.Tensor:
        f = compile(lambda x: x * scale + shift)
        result = f(x)
        assert f.statistics["programs"] <= 2
        return result

    for _ in range(100):
        call(2.0, w)
    gc.collect()
    before, objects, live = cache.size(), len(gc.get_objects()), memory.statistics().live
    for i in range(10_000):
        call(2.0 + i % 2, tensor(i, i) if i % 100 == 0 else w)
    assert call(2.0, tensor(5, 6)).tolist() == [7, 10]
    gc.collect()
    functions, programs = cache.size()
    assert functions == before[0]
    assert programs <= before[1] + 1
    assert len(gc.get_objects()) < objects + 2000
    assert memory.statistics().live <= live + 100_000


def test_programs_are_bounded() -> None:
    f = compile(lambda x, n: x * len(range(n)))
    with pytest.warns(CaptureWarning, match="traced more than .* n changed from") as caught:
        for n in range(cache.PROGRAMS + 20):
            assert f(tensor(1), n).item() == n
    assert len(caught) == 1
    assert f.statistics["programs"] == cache.PROGRAMS
    assert f(tensor(1), 0).item() == 0


def test_advice_for_shapes() -> None:
    f = compile(lambda past, x: rn.concat([past, x]), dynamic=False)
    past = rn.zeros(1)
    with pytest.warns(
        CaptureWarning, match=r"traced more than .* past is float32\[\d+\], was .*; pad .* or write into"
    ):
        for _ in range(cache.VARYING + 2):
            past = f(past, tensor(1.0))


def test_programs_go_with_their_code_and_what_it_reads_with_them() -> None:
    x = tensor(1)
    gc.collect()
    before, gone = cache.size(), []
    for i in range(20):
        table = np.zeros(1000, np.float32)
        gone.append(weakref.ref(table))
        namespace: dict[str, object] = {"compile": compile, "table": table}
        exec(f"def f(x):\n    return x * {i} + table[:1]\nf = compile(f)", namespace)
        assert namespace["f"](x).item() == i  # type: ignore[operator]
    del namespace, table
    gc.collect()
    assert cache.size() == before
    assert [reference() for reference in gone] == [None] * 20


def test_few_programs_wait_for_the_next_twin() -> None:
    def twin():
        return compile(lambda x, n: x * len(range(n)))

    first = twin()
    for n in range(cache.WAITING + 5):
        first(tensor(1), n)
    assert first.statistics["programs"] == cache.WAITING + 5
    del first
    second = twin()
    assert second.statistics["programs"] == cache.WAITING
    second(tensor(1), cache.WAITING + 4)
    assert second.statistics["traces"] == 0


def test_alternating_signatures_trace_once_each() -> None:
    f = compile(lambda x: x + 1)
    for _ in range(10):
        for n in (1, 2, 3):
            f(rn.zeros((n,)))
    assert f.statistics["traces"] == 3


def test_steady_state_allocates_results_only() -> None:
    v = rn.Variable(np.zeros((64, 64), np.float32))

    @compile
    def step(x):
        v.assign(v + x)
        return (x * 2 + 1).exp(), (v * x).sum()

    x = rn.ones((64, 64))
    for _ in range(40):
        step(x)
    before = memory.statistics()
    for _ in range(20):
        step(x)
    after = memory.statistics()
    assert after.allocations - before.allocations <= 20 + 1  # one large result each; small ones share a slab
    assert after.system_allocations == before.system_allocations
    assert after.live <= before.live + 4096


def test_results_free_their_memory() -> None:
    f = compile(lambda x: x * 2)
    x = rn.ones((1000,))
    f(x)
    gc.collect()  # what earlier tests left in cycles must not go in between
    live = memory.statistics().live
    saved = [f(x) for _ in range(10)]
    assert memory.statistics().live >= live + 10 * 4000
    del saved
    assert memory.statistics().live <= live


def test_arguments_are_not_kept() -> None:
    f = compile(lambda x, s: x * s)
    x = rn.ones((10,))
    gone = weakref.ref(x)
    f(x, 2.0)
    f(x, 2.0)
    del x
    gc.collect()
    assert gone() is None


def test_equal_traces_share_their_program() -> None:
    array = np.array([1.0, 2.0], np.float32)
    f = compile(lambda: rn.asarray(array) * 2)
    first = f.program().program
    array[0] = 5
    assert f().tolist() == [10, 4]
    assert f.program().program is first
