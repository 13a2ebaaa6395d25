"""Traced programs, fused and unfused, on one thread and on several, give eager's bits: every record, every function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler.plan import plan_graph
from runnel.compiler.schedule import partition
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, bool_
from runnel.core.errors import AxisError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced, same_bits
from tests.ops.records import RECORDS, sample
from tests.suites.functions import FUNCTIONS
from tests.suites.inputs import NAMES, main_dtype, wide_case

WAYS = [(1, True), (1, False), (2, True), (3, False), (4, True)]  # threads, fused


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs are split among threads too."""
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def agrees(function: Callable[..., Any], args: Sequence[rn.Tensor], ways: Sequence[tuple[int, bool]] = WAYS) -> None:
    actual = function(*args)
    expected = [x.numpy() for x in (actual if isinstance(actual, tuple) else (actual,))]
    for threads, fuse in ways:
        program = Traced(function, args, threads=threads, fuse=fuse)
        for _ in range(2):  # a program must not leave anything behind
            for e, f in zip(expected, program(*args), strict=True):
                assert same_bits(e, f), (threads, fuse)


def same(x: rn.Tensor) -> rn.Tensor:
    """Return the values of ``x`` through a separate op, which fusion may join to its neighbors."""
    return ops.bitwise_xor(x, False) if x.dtype is bool_ else ops.multiply(x, 1)


def inputs(name: str, case: Any, dtype: DType) -> list[rn.Tensor]:
    return [rn.asarray(a) for a in sample(RECORDS[name], case, dtype, seed=31)]


@pytest.mark.parametrize("name", NAMES)
def test_ops_among_neighbors(name: str) -> None:
    """The op reads results of others and is read by others, beside being an output itself."""
    op, record = Op.registry[name], RECORDS[name]
    for case in (*record.cases[1:], wide_case(name)):

        def program(*xs: rn.Tensor, attrs: dict[str, Any] = case[1]) -> tuple[rn.Tensor, ...]:
            result = apply(op, *map(same, xs), **attrs)
            outs = result if op.multiple_results else (result,)
            return (*outs, *map(same, outs))

        agrees(program, inputs(name, case, main_dtype(record)), WAYS if case is record.cases[-1] else WAYS[2:4])


@pytest.mark.parametrize("name", [n for n in NAMES if len(RECORDS[n].dtypes) > 1])
def test_ops_in_other_dtypes(name: str) -> None:
    op, record = Op.registry[name], RECORDS[name]
    case = record.cases[min(2, len(record.cases) - 1)]
    for dtype in record.dtypes[:: max(1, len(record.dtypes) // 4)]:

        def program(*xs: rn.Tensor) -> tuple[rn.Tensor, ...]:
            result = apply(op, *map(same, xs), **case[1])
            return tuple(map(same, result if op.multiple_results else (result,)))

        agrees(program, inputs(name, case, dtype), WAYS[2:4])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name: str) -> None:
    function, arrays = FUNCTIONS[name]
    leaves = [Variable(a.astype(np.float32), requires_grad=True) for a in arrays]

    def program(*xs: rn.Tensor) -> tuple[rn.Tensor, ...]:
        out = function(*leaves)
        (out * out).sum().backward()
        gradients = tuple(v.grad for v in leaves)
        for v in leaves:
            v.grad = None
        return (out, *gradients)

    agrees(program, [rn.asarray(np.ones(1, np.float32))], WAYS[:1] + WAYS[3:])


def test_updates_that_wait_for_one_another() -> None:
    """Each Variable's old value is read by what needs the other's new value: one of the two must be copied at the end,
    whichever is looked at first."""
    rng = np.random.default_rng(2)
    start = [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(2)]
    x = rn.asarray(rng.standard_normal((4, 4)).astype(np.float32))

    def make() -> tuple[Callable[[rn.Tensor], tuple[rn.Tensor, ...]], list[Variable]]:
        a, b = Variable(start[0]), Variable(start[1])

        def step(x: rn.Tensor) -> tuple[rn.Tensor, ...]:
            old_a, old_b = a.read(), b.read()
            a.assign(x @ x)
            b.assign(x.T @ x)
            return old_a @ b.read(), a.read() @ old_b

        return step, [a, b]

    eager, expected = make()
    results = eager(x)
    for backwards in (False, True):

        def reorder(graph: Graph, backwards: bool = backwards) -> Graph:
            updates = sorted(graph.updates.items(), key=lambda pair: pair[0].name, reverse=backwards)
            return Graph(graph.inputs, graph.outputs, dict(updates), graph.name)

        compiled, actual = make()
        for e, f in zip(results, Traced(compiled, (x,), rewrite=reorder, threads=2)(x), strict=True):
            assert same_bits(e.numpy(), f)
        for v, w in zip(expected, actual, strict=True):
            assert same_bits(v.numpy(), w._tensor.numpy())


def test_plans_do_not_depend_on_where_nodes_lie() -> None:
    def program(x: rn.Tensor) -> rn.Tensor:
        return ops.softmax(x @ x.T).sum(0)

    x = rn.asarray(np.ones((5, 5), np.float32))
    names = {tuple(c.kernel.name for c in Traced(program, (x,), threads=2).plan.calls) for _ in range(5)}
    assert len(names) == 1


def test_indices_are_checked_before_a_program_goes_on() -> None:
    x = rn.asarray(np.arange(4, dtype=np.float32))
    program = Traced(lambda x, i: ops.embedding(x, i) * 2.0, (x, rn.asarray([0, 1])), threads=2)
    checks = [c.checks for c in program.plan.calls]
    assert checks == [True, False, False] and len(program.plan.bounded) == 1
    with pytest.raises(AxisError):
        program(x, rn.asarray([0, 4]))
    assert plan_graph(program.graph, 1).bounded[0].extent == 4
