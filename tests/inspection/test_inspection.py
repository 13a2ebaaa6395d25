"""Reports say what the plan says, and what they measure is what was planned."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.backends.host import memory
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.schedule import partition
from runnel.core import switches
from runnel.core.errors import CaptureError
from runnel.graph import printer
from runnel.inspection.measure import Bench
from tests.compiler.harness import Traced
from tests.inspection.programs import inspect, network, values

PAGE = 4096


@pytest.fixture
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def test_graph_prints_every_node() -> None:
    inspection = network()
    assert str(inspection.graph) == printer.text(inspection.graph)
    assert len(str(inspection.graph).splitlines()) >= len(inspection.graph.values)
    assert inspection.graph.as_json()["nodes"][-1]["id"] == len(inspection.graph.values) - 1


def test_passes_are_listed_in_the_order_of_the_pipeline() -> None:
    inspection = network()
    assert tuple(name for name, _ in inspection.passes) == USUAL.names
    assert str(inspection.passes[-1][1]) == str(inspect_again(inspection))


def inspect_again(inspection):
    return type(inspection.graph)(USUAL.run(inspection.graph)[0])


def test_kernels_count_their_calls() -> None:
    inspection = network()
    assert sum(k.calls for k in inspection.kernels) == len(inspection.plan.calls)
    assert [k.name for k in inspection.kernels] == list(dict.fromkeys(c.kernel.name for c in inspection.plan.calls))
    for kernel in inspection.kernels:
        assert kernel.loops.startswith(f"kernel {kernel.name}(")
        assert f"@{kernel.name}(" in inspection.llvm(kernel.name)
        assert f"{kernel.name}:" in inspection.assembly(kernel.name)
        assert inspection.kernels.find(kernel.name[:-1]) is kernel


def test_missing_and_ambiguous_kernels() -> None:
    inspection = network()
    with pytest.raises(ValueError, match="No kernel is called 'nonsense'; there are contract_"):
        inspection.llvm("nonsense")
    with pytest.raises(ValueError, match="More than one kernel"):
        inspection.llvm("contract")


def test_schedule_says_who_does_what(split_everything: None) -> None:
    inspection = network(threads=3)
    assert len(inspection.schedule) == len(inspection.plan.calls)
    for step, call, blocks in zip(inspection.schedule, inspection.plan.calls, inspection.plan.blocks, strict=True):
        assert (step.rows, step.columns) == (call.rows, call.columns)
        assert step.blocks == tuple(blocks)
        assert (step.flops, step.bytes, step.seconds) == (call.flops, call.bytes_moved, call.seconds)
        assert "programs.py:" in step.where
    assert inspection.schedule.barriers == sum(inspection.plan.barriers) > 0
    assert "rows/3" in {s.split for s in inspection.schedule}
    text = str(inspection.schedule)
    assert text.count("wait") == inspection.schedule.barriers
    assert len(text.splitlines()) == len(inspection.schedule) + 1


def test_a_call_not_split_is_one_thread_s() -> None:
    assert {s.split for s in network(threads=1).schedule} == {"thread 0"}


def test_memory_names_who_is_alive_at_the_peak() -> None:
    inspection = network()
    report = inspection.memory
    at = report.peak_call
    assert sum(h.bytes for h in report.alive) == report.lower_bound
    assert all(h.first <= at <= h.last for h in report.alive)
    assert {(h.offset, h.bytes) for h in report.alive} <= {(h.offset, h.bytes) for h in report.holders}
    relu = next(h for h in report.holders if h.op in ("relu", "maximum"))
    assert relu.shape == (48, 32)
    assert "programs.py:" in relu.where
    assert report.variables == (20 * 32 + 32 * 10) * 4
    assert report.inputs == 48 * 20 * 4 + (40 if len(inspection.plan.inputs) == 2 else 0)
    assert report.outputs == 4
    assert report.total == report.peak + report.variables + report.inputs + report.outputs + report.constants


@pytest.mark.parametrize("threads", [1, 2])
def test_the_arena_is_used_as_planned(threads: int, split_everything: None) -> None:
    """The memory allocated, and the last byte that runs write, are the plan's peak, within a page."""
    inspection = network(threads, rows=500)
    assert inspection.memory.peak > 10 * PAGE
    assert 0 <= inspection.memory.measured - inspection.memory.peak < PAGE
    touched = inspection.measure(seconds=0.0).arena_touched
    assert 0 <= inspection.memory.peak - touched < PAGE


def test_a_program_allocates_what_its_plan_says() -> None:
    def step(x: rn.Tensor) -> rn.Tensor:
        return ops.softmax(ops.tanh(x @ x) @ x)

    x = values(300, 300)
    step(x)
    gc.collect()  # what earlier tests left in cycles must not be freed in between
    before = memory.statistics().live
    traced = Traced(step, (x,))
    pool = traced.program.pool
    pool.give(pool.make())  # what a first call would make
    report = inspect(traced).memory
    grown = memory.statistics().live - before
    assert report.peak >= 300 * 300 * 4
    assert abs(grown - report.peak - report.measured_constants) < PAGE
    memory.reset_peak()
    live = memory.statistics().live
    traced(x)
    assert abs(memory.statistics().peak - live - report.outputs) < PAGE


def test_measuring_leaves_variables_unchanged() -> None:
    inspection = network()
    frame = inspection.program.pool.take()
    traced_variables = list(frame.bases)
    result = inspection.measure(seconds=0.0)
    assert list(frame.bases) == traced_variables
    assert [c.kernel for c in result.calls] == [c.kernel.name for c in inspection.plan.calls]
    assert all(c.seconds > 0 and c.gflops >= 0 and c.gbytes > 0 for c in result.calls)
    assert len(str(result).splitlines()) == len(result.calls) + 2


@pytest.mark.parametrize("threads", [1, 2])
def test_measured_calls_compute_what_the_program_does(threads: int, split_everything: None) -> None:
    """A call run alone is the whole call: with every other call left out, its result is complete."""
    inspection = inspect(Traced(lambda x: ops.exp(x), (values(40, 50),), threads=threads))
    assert inspection.plan.threads == threads
    bench = Bench(inspection.program)
    bench.call(0, 1).run()
    source, result = (b.ndarray((40, 50), np.float32) for b in bench.blocks)
    np.testing.assert_allclose(result, np.exp(source), rtol=1e-6)


def test_json_is_json() -> None:
    inspection = network(threads=2)
    data = json.loads(json.dumps(inspection.as_json()))
    assert set(data) == {"name", "threads", "graph", "passes", "kernels", "schedule", "memory", "hoisted_constants"}
    assert len(data["schedule"]) == len(inspection.plan.calls)
    assert data["memory"]["peak"] == inspection.plan.arena.peak
    json.dumps(inspection.measure(seconds=0.0).as_json())


def test_the_overview_has_schedule_and_memory() -> None:
    inspection = network()
    text = str(inspection)
    assert text.startswith(f"program {inspection.name}: ")
    assert str(inspection.schedule) in text
    assert str(inspection.memory) in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_compiled_function_hands_it_out() -> None:
    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        return ops.softmax(x * 1.0)

    x = values(8, 8)
    inspection = step.program(x)
    assert [name for name, _ in inspection.passes] == list(USUAL.names)
    assert len(inspection.graph.values) > len(inspection.optimized.values)
    assert "test_inspection.py:" in str(inspection)
    assert step.lower(x).plan is inspection.plan


def test_a_program_of_no_calls() -> None:
    with switches.override(verify=True):
        inspection = inspect(Traced(lambda x: x + 1.0, (values(0, 3),)))
    assert len(inspection.schedule) == 0
    assert "0 calls" in str(inspection)
    assert inspection.measure(seconds=0.0).calls == ()


def test_a_call_without_a_program_says_so() -> None:
    twice = rn.uncompiled(lambda x: x * 2.0)

    @rn.compile
    def double(x: rn.Tensor) -> rn.Tensor:
        return twice(x)

    with pytest.raises(CaptureError, match="runs eagerly"):
        double.program(rn.tensor([1.0, 2.0]))
