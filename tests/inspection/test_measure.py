"""Measurements of programs with loops, of what must be prepared, and on several threads."""

from __future__ import annotations

import json

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler.plan_ir.plan import GUESSED
from runnel.compiler.schedule import partition
from runnel.inspection import measure
from runnel.inspection.measure import Bench
from runnel.ops.shapes.views import contiguous
from tests.compiler.harness import Traced
from tests.inspection.programs import inspect, network, values


def test_a_loop_counts_each_call_as_often_as_it_is_made() -> None:
    @rn.compile
    def powers(x: rn.Tensor) -> rn.Tensor:
        return rn.scan(lambda c, _: (ops.tanh(c @ c), c.sum()), x, length=9)[1]

    inspection = powers.program(values(8, 8))
    result = inspection.measure(seconds=0.0)
    assert {c.times for c in result.calls} >= {8} or {c.times for c in result.calls} >= {9}
    assert result.total == pytest.approx(sum(c.seconds * c.times for c in result.calls))
    assert result.seconds is not None


def test_a_loop_of_unknown_length_is_not_run() -> None:
    """On made-up numbers it might never end."""

    @rn.compile
    def halves(n: rn.Tensor) -> rn.Tensor:
        return rn.while_loop(lambda c: c < 100.0, lambda c: c * 1.0, n)

    result = halves.program(rn.asarray(np.float32(1.0))).measure(seconds=0.0)
    assert result.seconds is None and result.arena_touched is None
    assert GUESSED in {c.times for c in result.calls}
    assert "not run on synthetic data" in str(result)
    json.dumps(result.as_json())


def test_prepared_values_are_measured_first() -> None:
    weight = rn.Variable(np.random.default_rng(0).standard_normal((160, 160)).astype(np.float32))

    @rn.compile
    def serve(x: rn.Tensor) -> rn.Tensor:
        return x @ contiguous(rn.exp(weight).T)

    inspection = serve.program(values(4, 160))
    assert inspection.hoisted_constants is not None
    result = inspection.measure(seconds=0.0)
    assert result.hoisted_constants is not None
    assert len(result.hoisted_constants.calls) == len(inspection.hoisted_constants.plan.calls) > 0
    assert any("exp" in c.ops for c in result.hoisted_constants.calls)
    text = str(result)
    assert "before, when Variables have changed:" in text and text.count("all calls one after another") == 2
    assert len(result.as_json()["hoisted_constants"]["calls"]) == len(result.hoisted_constants.calls)
    assert str(inspection.hoisted_constants.schedule).splitlines()[-1] in str(inspection)
    assert inspection.as_json()["hoisted_constants"]["schedule"]


def test_calls_run_on_the_threads_they_are_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    inspection = network(threads=2)
    result = inspection.measure(seconds=0.0)
    busy = [sum(b is not None for b in blocks) for blocks in inspection.plan.blocks]
    assert [c.threads for c in result.calls] == busy
    assert max(busy) == 2


def test_numbers_that_a_call_changes_are_put_back() -> None:
    """A value multiplied by 0.5 in place again and again would fade to numbers that are slow to compute with."""
    weight = rn.Variable(np.full(100, 1.0, np.float32))

    def step(x: rn.Tensor) -> rn.Tensor:
        weight.assign(weight.read() * 0.5)
        return x + 1.0

    inspection = inspect(Traced(step, (values(1),)))
    bench = Bench(inspection.program)
    index = next(i for i, c in enumerate(inspection.plan.calls) if bench.restorer(c) is not None)
    restore = bench.restorer(inspection.plan.calls[index])
    assert restore is not None
    array = bench.variables[0].ndarray((100,), np.float32)
    before = array.copy()
    bench.call(index, 3).run()
    assert not np.array_equal(array, before)
    restore()
    np.testing.assert_array_equal(array, before)


def test_tables_show_the_slowest_first() -> None:
    result = network().measure(seconds=0.0)
    totals = [c.total for c in result.slowest().calls]
    assert totals == sorted(totals, reverse=True)
    assert len(result.slowest(2).calls) == 2
    assert len(result.table(2).splitlines()) == 3
    assert all(c.share > 0 and c.bound in ("flops", "memory") for c in result.calls)


def test_a_timeline_has_a_bar_for_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    inspection = network(threads=2)
    events = measure.events(inspection.plan, inspection.measure(seconds=0.0), process=3)
    bars = [e for e in events if e["ph"] == "X"]
    assert len(bars) == sum(b is not None for blocks in inspection.plan.blocks for b in blocks)
    assert {e["tid"] for e in bars} == {0, 1} and {e["pid"] for e in events} == {3}
    for thread in (0, 1):
        own = [e for e in bars if e["tid"] == thread]
        ends = [e["ts"] + e["dur"] for e in own]
        assert all(start["ts"] >= end - 1e-6 for end, start in zip(ends, own[1:], strict=False))
    json.dumps(events)
