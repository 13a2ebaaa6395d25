"""The cost model: what it counts follows from loops and shapes, and what plans see of it is the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.plan_ir.cost import PLANNED, Machine
from tests.compiler.harness import Traced


def values(*shape: int) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32))


def only(fn: Callable[..., Any], *args: rn.Tensor, kind: str = "") -> Call:
    """The one call of a function, or the one whose kernel's name begins so."""
    calls = [c for c in Traced(fn, args).plan.calls if c.kernel.name.startswith(kind)]
    assert len(calls) == 1
    return calls[0]


def test_work_grows_with_the_points_and_the_cost_of_an_op() -> None:
    small, large = only(ops.exp, values(1600)), only(ops.exp, values(16000))
    assert 9 < large.work().units / small.work().units < 10.1
    assert large.kernel.name == small.kernel.name
    added = only(lambda x: x + x, values(16000))
    assert large.work().units > 5 * added.work().units


def test_a_block_has_its_share() -> None:
    call = only(lambda x, y: ops.relu(x @ y), values(96, 50), values(50, 64))
    halves = [call.work((0, 48, 0, 64)), call.work((48, 96, 0, 64))]
    assert math.isclose(sum(w.flops for w in halves), call.work().flops)
    assert call.work().flops == 2 * 96 * 50 * 64
    read, written = call.traffic(call.work((0, 48, 0, 64)), (0, 48, 0, 64))
    assert written == 48 * 64 * 4
    assert read == (48 * 50 + 50 * 64) * 4


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70))
def test_products_count_no_less_than_their_multiply_adds(m: int, k: int, n: int) -> None:
    call = only(lambda x, y: x @ y, values(m, k), values(k, n))
    exact = 2.0 * m * k * n
    assert exact <= call.work().flops <= 2.0 * max(m, 6 * -(-m // 6)) * k * (n + 7)


def test_bytes_that_must_move() -> None:
    def bytes_of(fn: Callable[..., Any], *args: rn.Tensor, kind: str = "") -> tuple[int, int]:
        call = only(fn, *args, kind=kind)
        return call.traffic(call.work())

    labels = rn.asarray(np.zeros(20, np.int64))
    assert bytes_of(lambda x: x + x, values(1000)) == (4000, 4000)
    assert bytes_of(lambda x, b: x + b, values(100, 10), values(10)) == (4040, 4000)
    read, written = bytes_of(lambda t, i: ops.take(t, i, axis=0), values(5000, 64), labels, kind="gather")
    assert (read, written) == (20 * 64 * 4 + 20 * 8, 20 * 64 * 4)
    assert bytes_of(lambda x: x[:, :8] * 2.0, values(100, 80))[0] <= 100 * 80 * 4


def test_tables_tell_how_long_loops_are() -> None:
    """Of queries that see earlier keys only, about half of the products are counted."""
    heads = (values(1, 4, 512, 64),) * 3
    attend = ops.scaled_dot_product_attention
    whole = only(attend, *heads, kind="attention").work()
    causal = only(lambda q, k, v: attend(q, k, v, is_causal=True), *heads, kind="attention").work()
    assert whole.flops == 2 * 2 * 4 * 512 * 512 * 64
    assert 0.5 < causal.flops / whole.flops < 0.65
    assert not whole.guessed and not causal.guessed


def test_what_only_the_run_knows_is_guessed_and_bounded() -> None:
    labels = rn.asarray(np.zeros(64, np.int64))
    table = rn.nn.Parameter(np.zeros((1000, 32), np.float32))

    @rn.compile
    def gradient(x: rn.Tensor) -> None:
        (ops.embedding(table, labels) * x).sum().backward()

    (call,) = [c for c in gradient.program(values(64, 32)).plan.calls if c.work().guessed]
    assert call.work().units <= 3.0 * max(call.flops, call.rows * call.columns)


@given(st.floats(1, 1e12))
def test_rates_lie_between_those_of_the_levels(footprint: float) -> None:
    machine = Machine(1e11, ((1 << 14, 100.0, 50.0), (1 << 20, 40.0, 20.0), (1 << 26, 10.0, 5.0)))
    read, write = machine.rates(footprint)
    assert 10.0 <= read <= 100.0 and 5.0 <= write <= 50.0
    more = machine.rates(footprint * 2)
    assert more[0] <= read and more[1] <= write


def test_rates_at_the_levels_are_theirs() -> None:
    for size, read, write in PLANNED.levels:
        assert PLANNED.rates(size) == pytest.approx((read, write))
        assert PLANNED.rates(size * 1.5)[0] <= read


def test_plans_see_the_same_seconds_on_every_machine() -> None:
    call = only(lambda x, y: x @ y, values(64, 64), values(64, 64))
    assert call.seconds == call.predict(PLANNED).seconds > 0
    twice = Machine(PLANNED.flops * 2, PLANNED.levels)
    assert call.predict(twice).arithmetic == call.predict(PLANNED).arithmetic / 2
    assert call.predict(twice).memory == call.predict(PLANNED).memory


def test_threads_share_the_rates() -> None:
    call = only(lambda x: x + x, values(10_000))
    two = Machine(2 * PLANNED.flops, tuple((2 * n, 2 * r, 2 * w) for n, r, w in PLANNED.levels), threads=2)
    assert call.predict(two).seconds == pytest.approx(call.predict(PLANNED).seconds)
