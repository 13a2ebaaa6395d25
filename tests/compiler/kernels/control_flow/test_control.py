"""Loops in programs: scans, while loops and choices run as their graphs say, to the bit of the unrolled graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.backends.base import BARRIER
from runnel.backends.host import memory
from runnel.compiler.plan import plan_graph
from runnel.compiler.plan_ir.plan import Repeat
from runnel.compiler.program import Program
from runnel.compiler.schedule import partition
from runnel.compiler.verification import verifier
from runnel.core import switches
from runnel.core.avals import ShapedArray, aval, row_major
from runnel.core.dtypes import float32, float64, int64
from runnel.core.errors import AxisError, RunnelError
from runnel.graph import interpreter
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.node import Constant, Input, InputKind, Node, Value, results_of
from runnel.graph.rewriting import placeholder, substituted
from runnel.inspection.schedule import Schedule
from runnel.ops.control import cond_p, scan_p, stacked, while_p
from runnel.tensor import tensor as tensors, tracing
from tests.compiler.harness import same_bits

Fn = Callable[..., Any]


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    monkeypatch.setattr(switches.verify, "value", True)


def graph_of(fn: Fn, avals: Sequence[ShapedArray], name: str = "body") -> Graph:
    """The graph of a function of tensors."""
    trace = tracing.Trace(tensors.serial_now())
    with tracing.activate(trace):
        nodes = [trace.input(a, InputKind.ARGUMENT, f"x{i}") for i, a in enumerate(avals)]
        result = fn(*[tensors.symbolic(n) for n in nodes])
        outputs = [tensors.node_of(r, trace) for r in (result if isinstance(result, tuple) else (result,))]
    return Graph(nodes, outputs, {}, name)


def several(op: Any, inputs: Sequence[Value], results: Sequence[ShapedArray], **attrs: Any) -> list[Value]:
    """The results of a node."""
    return list(results_of(Node(op, tuple(inputs), attrs, tuple(results))))


def scanned(
    fn: Fn,
    constants: Sequence[Value],
    carries: Sequence[Value],
    xs: Sequence[Value],
    length: int,
    reverse: bool = False,
) -> list[Value]:
    """The results of a scan: final carries, then what is stacked."""
    each = [*(n.aval for n in (*constants, *carries)), *(aval(x.aval.shape[1:], x.aval.dtype) for x in xs)]
    body = graph_of(fn, each)
    avals = [o.aval for o in body.outputs]
    results = [*avals[: len(carries)], *(stacked(y, length) for y in avals[len(carries) :])]
    return several(
        scan_p, [*constants, *carries, *xs], results,
        body=Body(body), constants=len(constants), carries=len(carries), length=length, reverse=reverse,
    )  # fmt: skip


def inputs_for(arrays: Sequence[np.ndarray]) -> list[Value]:
    return [placeholder(rn.asarray(a).aval, f"in{i}") for i, a in enumerate(arrays)]


class Run:
    """A graph's program on dense arrays."""

    def __init__(self, graph: Graph, threads: int = 1, strides: dict[Value, tuple[int, ...]] | None = None) -> None:
        self.graph = graph
        self.plan = plan_graph(graph, threads, strides)
        self.program = Program(self.plan)

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        storages = [memory.allocate(max(p.nbytes, 1)) for p in self.plan.outputs]
        dense = [a if a.flags.c_contiguous or a.base is not None else np.ascontiguousarray(a) for a in arrays]
        self.program.run([a.__array_interface__["data"][0] for a in dense], [s.address for s in storages])
        return [
            storages[k].ndarray(o.aval.shape, o.aval.dtype.numpy, 0).copy()
            for o, k in zip(self.graph.outputs, self.plan.output_of, strict=True)
        ]


def check(
    inputs: Sequence[Value], outputs: Sequence[Value], arrays: Sequence[np.ndarray], tolerance: float = 1e-5
) -> list[np.ndarray]:
    """The program's results on 1 to 4 threads: the same bits, and near to what NumPy makes of the graph."""
    graph = Graph(inputs, outputs, {})
    expected, _ = interpreter.run(graph, arrays)
    first = Run(graph)(*arrays)
    for threads in (2, 3, 4):
        for a, b in zip(first, Run(graph, threads)(*arrays), strict=True):
            assert same_bits(a, b)
    for a, e in zip(first, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)
    return first


def grafted(fn: Fn, nodes: Sequence[Value]) -> list[Value]:
    """The nodes that a function of tensors makes of these nodes."""
    graph = graph_of(fn, [n.aval for n in nodes])
    return list(substituted(graph, dict(zip(graph.inputs, nodes, strict=True))).outputs)


def random(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def twice(x: Any) -> tuple[Any, Any]:
    """A carry that is also stacked."""
    return x, x


def gru(w: Any, b: Any, h: Any, gates: Any) -> tuple[Any, ...]:
    """One step, given the part of the gates that rests on the input."""
    n = h.shape[-1]
    mine = h @ w.T + b
    r = ops.sigmoid(gates[:, :n] + mine[:, :n])
    z = ops.sigmoid(gates[:, n : 2 * n] + mine[:, n : 2 * n])
    new = (gates[:, 2 * n :] + r * mine[:, 2 * n :]).tanh()
    after = new + z * (h - new)
    return twice(after)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("outputs", [(0,), (1,), (0, 1)])
def test_gru(length: int, reverse: bool, outputs: tuple[int, ...]) -> None:
    batch, hidden = 9, 6
    arrays = [random((3 * hidden, hidden), 1), random((3 * hidden,), 2), random((batch, hidden), 3),
              random((length, batch, 3 * hidden), 4)]  # fmt: skip
    ins = inputs_for(arrays)
    parts = scanned(gru, ins[:2], ins[2:3], ins[3:], length, reverse)
    actual = check(ins, [parts[i] for i in outputs], arrays)

    def unrolled(w: Any, b: Any, h: Any, xs: Any) -> tuple[Any, ...]:
        ys: list[Any] = []
        for t in reversed(range(length)) if reverse else range(length):
            h, y = gru(w, b, h, xs[t])
            ys.append(y)
        return h, ops.stack(ys[::-1] if reverse else ys)

    if length:
        straight = Run(graph_of(unrolled, [n.aval for n in ins]), 2)(*arrays)
        assert all(same_bits(f, straight[i]) for f, i in zip(actual, outputs, strict=True))


def test_a_step_waits_for_nobody_where_each_thread_has_its_rows() -> None:
    batch, hidden, length = 64, 100, 5
    arrays = [random((3 * hidden, hidden)), random((3 * hidden,)), random((batch, hidden)),
              random((length, batch, 3 * hidden))]  # fmt: skip
    ins = inputs_for(arrays)
    plan = Run(Graph(ins, scanned(gru, ins[:2], ins[2:3], ins[3:], length)[1:], {}), 4).plan
    (loop,) = plan.regions
    assert isinstance(loop, Repeat) and loop.count == length - 1 and loop.end - loop.begin == 2
    assert not any(plan.again[loop.begin : loop.end])


def test_barriers_stand_where_threads_need_one_another() -> None:
    """A product from the left mixes rows."""
    arrays = [random((40, 40)) * 0.1, random((40, 40), 1)]
    ins = inputs_for(arrays)
    parts = scanned(lambda w, h: (w @ h, h.sum(0)), ins[:1], ins[1:], [], 6)
    plan = Run(Graph(ins, parts, {}), 3).plan
    assert any(plan.again[plan.regions[0].begin : plan.regions[0].end])
    check(ins, parts, arrays)


@pytest.mark.parametrize("reverse", [False, True])
def test_operands_may_lie_anyhow(reverse: bool) -> None:
    arrays = [random((5, 7, 3)), random((3, 7), 1), random((3,), 2)]
    ins = inputs_for(arrays)
    xs, start, scale = grafted(lambda x, c, s: (x.permute((1, 0, 2))[::2], c.T[:5], s.expand((5, 3))), ins)
    parts = scanned(lambda s, c, x: (c * 0.5 + x, (c - x) * s), [scale], [start], [xs], 4, reverse)
    check(ins, [*parts, *grafted(lambda y: y.permute((1, 0, 2)) * 2.0, parts[1:])], arrays)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_sums_along_any_strides(data: st.DataObject) -> None:
    """An eager program: the steps themselves lie in a strided array."""
    length, n = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    step, gap = data.draw(st.integers(-2, 3)), data.draw(st.integers(0, 3))
    row = n + gap
    memory_ = random((40 + 3 * length * row,), length)
    first = (length - 1) * 2 * row if step < 0 else 0
    item = memory_.itemsize
    x = np.lib.stride_tricks.as_strided(memory_[first:], (length, n), (step * row * item, item))
    c = random((n,), n)
    xs, start = inputs_for([np.zeros((length, n), np.float32), c])
    parts = scanned(lambda c, x: (c + x, c + x), [], [start], [xs], length, data.draw(st.booleans()))
    graph = Graph([xs, start], parts, {})
    expected, _ = interpreter.run(graph, [np.ascontiguousarray(x), c])
    strides = {} if (step * row, 1) == row_major((length, n)) else {xs: (step * row, 1)}
    threads = data.draw(st.integers(1, 4))
    for actual, reference_result in zip(Run(graph, threads, strides)(x, c), expected, strict=True):
        assert same_bits(actual, reference_result)


def test_matrix_power_has_no_steps_to_read() -> None:
    arrays = [random((12, 12)) * 0.3, np.eye(12, dtype=np.float32)]
    ins = inputs_for(arrays)
    (power,) = scanned(lambda a, p: p @ a, ins[:1], ins[1:], [], 9)
    (actual,) = check(ins, [power], arrays)
    np.testing.assert_allclose(actual, np.linalg.matrix_power(arrays[0].astype(np.float64), 9), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_carries_of_several_dtypes_that_change_places(length: int) -> None:
    arrays = [random((8, 5)), random((8, 5), 1), np.arange(3), random((4,), 2, np.float64), random((length, 4), 3)]
    ins = inputs_for(arrays)

    def step(a: Any, b: Any, n: Any, s: Any, x: Any) -> tuple[Any, ...]:
        return b, a + b, n * 2 + 1, s + x.astype(float64), a, n, a + b, a + b

    ins = inputs_for(arrays)
    parts = scanned(step, [], ins[:4], ins[4:], length)
    check(ins, parts, arrays)
    check(ins, [parts[0], parts[7], parts[7]], arrays)


def test_what_nobody_wants_is_not_computed() -> None:
    arrays = [random((30, 30)) * 0.1, random((30, 30), 1), random((30,), 2)]
    ins = inputs_for(arrays)
    parts = scanned(lambda w, h, s: (h @ w, s * 2.0, h.exp().sum(0)), ins[:1], ins[1:], [], 6)
    graph = Graph(ins, parts[1:2], {})
    names = {node.op.name for call in Run(graph).plan.calls for node in call.nodes if node.op is not None}
    assert "matmul" not in names and "exp" not in names
    check(ins, parts[1:2], arrays)


def test_loops_in_loops() -> None:
    length, inner = 4, 5
    arrays = [random((6, 6)) * 0.3, random((7, 6), 1), random((length, inner, 7, 6), 2)]
    ins = inputs_for(arrays)

    def outer(w: Any, h: Any, x: Any) -> tuple[Any, ...]:
        nodes = [tensors.node_of(t, tracing.ACTIVE.trace) for t in (w, h, x)]
        last, every = scanned(
            lambda w, h, x: ((h @ w + x).tanh(), (h @ w + x).tanh()), nodes[:1], nodes[1:2], nodes[2:], inner
        )
        (total,) = scanned(lambda h, s: s + h, [nodes[1]], [last], [], 3)
        y, s, e = (tensors.symbolic(n) for n in (last, total, every))
        return y * 0.5 + s * 0.1, e, e.sum(0)

    parts = scanned(outer, ins[:1], ins[1:2], ins[2:], length)
    check(ins, parts, arrays)
    check(ins, parts[1:2], arrays)


def test_an_index_out_of_range_in_a_loop_is_reported_and_nothing_changed() -> None:
    table = rn.Variable(random((10, 3)))
    which = np.array([[1, 2], [3, 4], [5, 60]])
    ins = inputs_for([which])
    variable = Input(table.value.aval, InputKind.VARIABLE, "table")
    start = Constant(aval((2, 3), float32), np.zeros((2, 3), np.float32))
    start.value.flags.writeable = False
    parts = scanned(lambda t, c, i: c + ops.take(t, i, 0), [variable], [start], ins, 3)
    (new,) = grafted(lambda t: t + 1.0, [variable])
    graph = Graph([*ins, variable], parts, {variable: new})
    before = table.numpy().copy()
    for threads in (1, 3):
        program = Program(plan_graph(graph, threads), [table.private_address()])
        out = memory.allocate(24)
        with pytest.raises(AxisError, match="outside"):
            program.run([which.__array_interface__["data"][0]], [out.address])
        assert same_bits(table.numpy(), before)
    which[2, 1] = 6
    program.run([which.__array_interface__["data"][0]], [out.address])
    np.testing.assert_allclose(out.ndarray((2, 3), np.float32, 0), before[which].sum(0), rtol=1e-6)
    assert same_bits(table.numpy(), before + np.float32(1))


def test_long_loops_are_planned_at_once() -> None:
    """The plan has the calls of a body once (and once for the first iteration), however long the loop is."""
    ins = inputs_for([random((2, 3)), random((20000, 2, 3))])
    parts = scanned(lambda c, x: twice(c * 0.5 + x), [], ins[:1], ins[1:], 20000)
    run = Run(Graph(ins, parts[1:], {}), 2)
    assert len(run.plan.calls) == 2
    c, xs = random((2, 3)), random((20000, 2, 3))
    (actual,) = run(c, xs)
    for t in range(20000):
        c = c * np.float32(0.5) + xs[t]
        assert same_bits(actual[t], c)


OPERATIONS: dict[str, Fn] = {
    "add": lambda x, y: x + y,
    "turn": lambda x, y: x.T - y,
    "product": lambda x, y: (x @ y).tanh(),
    "turned product": lambda x, y: (x @ y.T).tanh(),
    "sum of rows": lambda x, y: (x.sum(0, True) * 0.1).expand(y.shape) + y,
    "sum of columns": lambda x, y: ((x * y).sum(1, True) * 0.1).tanh().expand(y.shape),
    "first row": lambda x, y: x[0:1].expand(y.shape) * y,
    "reversed": lambda x, y: ops.flip(x, 0) * 0.5 + y,
}


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_any_body(data: st.DataObject) -> None:
    """Bodies that mix rows and columns, with the verifier looking for races; each value is one of those before it."""
    n, length = data.draw(st.sampled_from([5, 16, 33])), data.draw(st.integers(1, 6))
    pick = st.integers(0, 100)
    recipe = data.draw(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), pick, pick), min_size=1, max_size=6))
    chosen_outputs = data.draw(st.lists(pick, min_size=4, max_size=4))

    def body(w: Any, a: Any, b: Any, x: Any) -> tuple[Any, ...]:
        values = [w, a, b, x]
        for name, i, j in recipe:
            values.append(OPERATIONS[name](values[i % len(values)], values[j % len(values)]))
        return tuple((values[i % len(values)] * 1.0) if i % 3 else values[i % len(values)] for i in chosen_outputs)

    arrays = [random((n, n), 1) * 0.3, random((n, n), 2), random((n, n), 3), random((length, n, n), 4)]
    ins = inputs_for(arrays)
    parts = scanned(body, ins[:1], ins[1:3], ins[3:], length, data.draw(st.booleans()))
    outputs = data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=4))
    graph = Graph(ins, outputs, {})
    expected, _ = interpreter.run(graph, arrays)
    actual = Run(graph)(*arrays)
    with switches.override(stress=3):
        assert all(map(same_bits, actual, Run(graph, data.draw(st.integers(2, 4)))(*arrays)))
    if all(np.abs(e).max() < 1e3 for e in expected):
        for f, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("which", ["first", "again", "before"])
def test_the_verifier_misses_no_barrier_of_a_loop(which: str) -> None:
    ins = inputs_for([random((40, 40)), random((40, 40), 1)])
    (power,) = scanned(lambda w, h: ((h @ w).T + 1.0).tanh(), ins[:1], ins[1:], [], 30)
    (start,) = grafted(lambda h: h @ h, [power])
    plan = Run(Graph(ins, [start], {}), 3).plan
    assert not list(verifier.faults(plan))
    if which == "before":
        plan.regions[0].barrier = False
        plan.barriers[plan.regions[0].begin] = False
    elif which == "first":
        plan.barriers[:] = [False] * len(plan.barriers)
    else:
        assert any(plan.again)
        plan.again[:] = [False] * len(plan.again)
    assert any("no barrier" in fault for fault in verifier.faults(plan))


def test_the_schedule_counts_what_a_run_does() -> None:
    ins = inputs_for([random((40, 40)), random((40, 40), 1)])

    def outer(w: Any, h: Any) -> Any:
        nodes = [tensors.node_of(t, tracing.ACTIVE.trace) for t in (w, h)]
        (power,) = scanned(lambda w, h: ((h @ w).T + 1.0).tanh(), nodes[:1], nodes[1:], [], 4)
        return tensors.symbolic(power).T

    run = Run(Graph(ins, scanned(outer, ins[:1], ins[1:], [], 7), {}), 3)
    schedule = Schedule(run.plan)
    assert {step.times for step in schedule} >= {7, 28}
    for commands in run.program.buffer.commands:
        assert np.count_nonzero(commands[:, 0] == BARRIER) == schedule.barriers > 28
    assert " 28 " in str(schedule)


def test_memory_does_not_grow_with_the_length_of_a_loop() -> None:
    def peak(length: int) -> int:
        arrays = [random((8, 8)), random((4, 8)), random((length, 4, 8))]
        ins = inputs_for(arrays)
        parts = scanned(lambda w, h, x: (h @ w + x).tanh() @ w, ins[:1], ins[1:2], ins[2:], length)
        return Run(Graph(ins, parts, {})).plan.arena.peak

    assert peak(3) == peak(50)


# While and cond -------------------------------------------------------------------------------------------------------


def looped(cond: Fn, body: Fn, constants: Sequence[Value], carries: Sequence[Value]) -> list[Value]:
    avals = [n.aval for n in (*constants, *carries)]
    return several(
        while_p, [*constants, *carries], [n.aval for n in carries],
        cond=Body(graph_of(cond, avals)), body=Body(graph_of(body, avals)),
        constants=len(constants), carries=len(carries),
    )  # fmt: skip


@pytest.mark.suite
@pytest.mark.parametrize("start", [0, 1, 7, 500])
def test_while(start: int) -> None:
    arrays = [random((9, 4)), np.asarray(start), random((9, 4), 1)]
    ins = inputs_for(arrays)
    parts = looped(lambda k, n, x: n > 2, lambda k, n, x: (n - 3, x * 0.5 + k), ins[:1], ins[1:])
    check(ins, parts, arrays)
    check(ins, [parts[1], *grafted(lambda x: x.sum(0), parts[1:])], arrays)


def test_while_stops_by_what_it_computes() -> None:
    """Newton's method for a matrix inverse (G. Schulz, 1933)."""
    a = (np.eye(16) + 0.05 * random((16, 16), 3)).astype(np.float32)
    arrays = [a, np.eye(16, dtype=np.float32)]
    ins = inputs_for(arrays)

    def far(a: Any, x: Any) -> Any:
        return abs(a @ x - rn.eye(16)).max() > 1e-5

    (actual,) = check(ins, looped(far, lambda a, x: x @ (rn.eye(16) * 2.0 - a @ x), ins[:1], ins[1:]), arrays)
    np.testing.assert_allclose(actual, np.linalg.inv(a.astype(np.float64)), atol=1e-4)


def chosen(then: Fn, otherwise: Fn, predicate: Value, operands: Sequence[Value]) -> list[Value]:
    avals = [n.aval for n in operands]
    graphs = graph_of(then, avals), graph_of(otherwise, avals)
    return several(
        cond_p, [predicate, *operands], [o.aval for o in graphs[0].outputs],
        then=Body(graphs[0]), otherwise=Body(graphs[1]),
    )  # fmt: skip


@pytest.mark.parametrize("holds", [False, True])
def test_cond(holds: bool) -> None:
    arrays = [np.asarray(holds), random((6, 8)), random((8, 6), 1)]
    ins = inputs_for(arrays)
    (turned,) = grafted(lambda b: b.T, ins[2:])
    parts = chosen(lambda a, b: (a + b, a + b, a), lambda a, b: (a @ b.T @ b, a * b, b.exp()), ins[0], [ins[1], turned])
    check(ins, parts, arrays)
    check(ins, grafted(lambda a, b: a * b, parts[1:]), arrays)


def test_choices_in_loops_and_loops_in_choices() -> None:
    arrays = [np.array([True, False, False, True, True]), random((5, 6), 1), random((6,), 2)]
    ins = inputs_for(arrays)

    def step(c: Any, p: Any, x: Any) -> tuple[Any, ...]:
        c, p, x = (tensors.node_of(t, tracing.ACTIVE.trace) for t in (c, p, x))
        (choice,) = chosen(lambda c, x: c + x, lambda c, x: long(c, x), p, [c, x])
        return tensors.symbolic(choice), tensors.symbolic(choice)

    def long(c: Any, x: Any) -> Any:
        c, x = (tensors.node_of(t, tracing.ACTIVE.trace) for t in (c, x))
        zero = Constant(aval((), int64), np.asarray(0))
        zero.value.flags.writeable = False
        _, choice = looped(lambda x, n, c: n < 4, lambda x, n, c: (n + 1, c * 0.5 + x), [x], [zero, c])
        return tensors.symbolic(choice)

    check(ins, scanned(step, [], ins[2:], ins[:2], 5), arrays)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_while_loop_without_end_can_be_cancelled(threads: int) -> None:
    ins = inputs_for([random((64, 64))])
    (part,) = looped(lambda x: x.sum() < np.inf, lambda x: x * 0.5, [], ins)
    run = Run(Graph(ins, [part], {}), threads)
    assert run.program.buffer.is_long
    timer = threading.Timer(0.05, run.program.pool.cancel)
    timer.start()
    with pytest.raises(RunnelError, match="cancelled"):
        run(random((64, 64)))
    timer.join()


def test_a_scan_may_be_stopped_between_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "LONG", 0.0)
    ins = inputs_for([random((8, 8))])
    parts = scanned(lambda h: (h * 0.5, h), [], ins, [], 50)
    run = Run(Graph(ins, parts, {}), 2)
    run.program.pool.cancel()
    with pytest.raises(RunnelError, match="cancelled"):
        run(random((8, 8)))
    assert len(run(random((8, 8)))) == 2
