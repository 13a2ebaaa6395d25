"""Each condition under which a value may be stored over another one, or two blocks may run without a barrier between:
a program that is wrong without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.plan_ir.calls import Allocation, MemorySpace
from runnel.compiler.schedule.partition import TouchedBytes
from runnel.core.dtypes import float32
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced, same_bits

Update = Callable[[Variable, rn.Tensor], Any]


def both(v: Variable, new: rn.Tensor, result: rn.Tensor) -> rn.Tensor:
    v.assign(new)
    return result


N = 33
UPDATES: dict[str, tuple[tuple[int, ...], Update]] = {
    "transposed": ((N, N), lambda v, x: both(v, v.T + x, x)),
    "a row for all rows": ((N, N), lambda v, x: both(v, v[0:1] + x, x)),
    "a column for all columns": ((N, N), lambda v, x: both(v, v[:, 0:1] + x, x)),
    "the diagonal blocks": ((4, 8, 8), lambda v, x: both(v, v[0:1] * 2.0 + x, x)),
    "left factor": ((N, N), lambda v, x: both(v, v @ x, x)),
    "right factor": ((N, N), lambda v, x: both(v, x @ v + 1.0, x)),
    "factor and summand": ((N, N), lambda v, x: both(v, v - (v @ x) * 0.5, x)),
    "batched factor": ((3, 9, 9), lambda v, x: both(v, v @ x + v, x)),
    "batched result": ((3, 9, 9), lambda v, x: both(v, x @ x + v, v * 2.0)),
    "read again by a later pass": ((5, N), lambda v, x: both(v, v * 2.0 + 1.0, v.value / v.value.sum(-1, True))),
    "stored by the last pass": ((5, N), lambda v, x: both(v, ops.softmax(v.value * x, -1), v * 3.0)),
    "sum of itself": ((5, N), lambda v, x: both(v, v - v.value.sum(-1, True), v.value.sum(0))),
    "mean over columns": ((N, 5), lambda v, x: both(v, v - v.value.mean(0), v + x)),
    "reversed": ((N,), lambda v, x: both(v, v[::-1] + x, v * x)),
    "two steps": ((N, N), lambda v, x: both(v, (v.T @ v) * 0.1, v.T + x)),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", UPDATES)
def test_a_variable_is_overwritten_only_when_nobody_needs_it(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runnel.compiler.schedule.partition.WORTH_A_TEAM", 0.0)
    monkeypatch.setattr("runnel.compiler.schedule.partition.WORTH_SPLITTING", 0.0)
    shape, update = UPDATES[name]
    rng = np.random.default_rng(0)
    start, x = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    expected, actual = Variable(start), Variable(start)
    program = Traced(lambda t: update(actual, t), (rn.asarray(x),), threads=threads)
    for _ in range(2):
        result = update(expected, rn.asarray(x)).numpy()
        assert same_bits(program(rn.asarray(x))[0], result)
        assert same_bits(actual.numpy(), expected.numpy())


ROWS: dict[str, Callable[[Any], Any]] = {
    "two costly values": lambda x: (
        ops.exp(x) / ops.exp(x).sum(-1, True) + ops.tanh(x) / (ops.tanh(x) * ops.tanh(x)).sum(-1, True)
    ),
    "three for one place": lambda x: (
        ops.exp(x) * ops.exp(x).max(axis=-1, keepdims=True)
        + ops.sin(x) * ops.sin(x).sum(-1, True)
        - ops.tanh(x) * x.mean(-1, True)
    ),
    "two places": lambda x: (
        ops.exp(x) - ops.exp(x).sum(-1, True),
        ops.tanh(x) - ops.tanh(x).sum(-1, True),
    ),
    "nested": lambda x: ops.log(ops.exp(x) / ops.exp(x).sum(-1, True) + 1.0) - ops.sin(x).sum(-1, True),
}


@pytest.mark.parametrize("shape", [(3, 5), (4, 70), (2, 3, 130)])
@pytest.mark.parametrize("name", ROWS)
def test_values_kept_between_passes_have_memory_of_their_own(name: str, shape: tuple[int, ...]) -> None:
    x = rn.asarray(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    expected = ROWS[name](x)
    actual = Traced(ROWS[name], (x,))(x)
    for a, b in zip(actual, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert same_bits(a, b.numpy())


def rectangle(rows: int, columns: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    def part(n: int) -> st.SearchStrategy[list[int]]:
        return st.lists(st.integers(0, n), min_size=2, max_size=2, unique=True).map(sorted)

    return st.tuples(part(rows), part(columns)).map(lambda p: (*p[0], *p[1]))


@settings(deadline=None, max_examples=200)
@given(rectangle(6, 5), rectangle(6, 5), st.booleans(), st.booleans())
def test_blocks_of_one_grid_conflict_exactly_where_they_meet(
    a: tuple[int, int, int, int], b: tuple[int, int, int, int], a_writes: bool, b_writes: bool
) -> None:
    allocation = Allocation(MemorySpace.VARIABLE, float32, 30, "v", 0)
    grid = (allocation, 0, 5, 1, 6, 5)

    def region(block: tuple[int, int, int, int], writes: bool) -> TouchedBytes:
        i0, i1, j0, j1 = block
        return TouchedBytes(allocation, 4 * (5 * i0 + j0), 4 * (5 * (i1 - 1) + j1), grid, block, writes)

    def elements(block: tuple[int, int, int, int]) -> set[tuple[int, int]]:
        return {(i, j) for i in range(block[0], block[1]) for j in range(block[2], block[3])}

    first, second = region(a, a_writes), region(b, b_writes)
    meet = bool(elements(a) & elements(b)) and (a_writes or b_writes)
    assert first.conflicts(second) is second.conflicts(first) is meet
