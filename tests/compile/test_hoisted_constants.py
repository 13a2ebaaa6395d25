"""Test values that depend on Variables only: computed once, and again after a Variable has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.compile.calling import CompiledProgram
from runnel.core import switches
from runnel.ops.shapes.views import contiguous

SIZE = 160


def serving(weight: rn.Variable) -> Callable[[rn.Tensor], rn.Tensor]:
    def serve(x: rn.Tensor) -> rn.Tensor:
        return x @ contiguous(rn.exp(weight).T)

    return rn.compile(serve)


def native_of(compiled: Any, *args: rn.Tensor) -> CompiledProgram:
    native = compiled._executable_for(args, {}).native
    assert native is not None
    return native


def assign(weight: rn.Variable) -> None:
    weight.assign(weight.read() + 0.5)


def train(weight: rn.Variable) -> None:
    optimizer = rn.optim.SGD([weight], lr=0.1)

    @rn.compile
    def step() -> None:
        (weight * weight).sum().backward()
        optimizer.step()

    step()


def train_eagerly(weight: rn.Variable) -> None:
    (weight * weight).sum().backward()
    rn.optim.Adam([weight], lr=0.1).step()


@pytest.mark.parametrize("change", [assign, train, train_eagerly])
def test_results_follow_the_variables(change: Callable[[rn.Variable], None]) -> None:
    rng = np.random.default_rng(0)
    weight = rn.Variable(rng.normal(size=(SIZE, SIZE)).astype("float32"), requires_grad=True)
    x = rn.asarray(rng.normal(size=(3, SIZE)).astype("float32"))
    serve = serving(weight)

    def check() -> None:
        want = x @ contiguous(rn.exp(weight.read()).T)
        with rn.no_grad():
            assert serve(x).numpy().tobytes() == want.numpy().tobytes()

    for _ in range(4):
        check()
    with rn.no_grad():
        native = native_of(serve, x)
    assert native.compiled.hoisted_constants is not None
    (frame,) = native.binding.pool.frames
    before = frame.prepared_at
    check()
    assert frame.prepared_at == before
    change(weight)
    for _ in range(3):
        check()
    assert frame.prepared_at > before


def test_small_values_are_not_prepared() -> None:
    weight = rn.Variable(np.ones((4, 4), "float32"))
    serve, x = serving(weight), rn.ones((2, 4))
    serve(x)
    assert native_of(serve, x).compiled.hoisted_constants is None


def test_what_the_program_changes_is_not_prepared() -> None:
    weight = rn.Variable(np.ones((SIZE, SIZE), "float32"))
    x = rn.ones((2, SIZE))

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        result = x @ contiguous(rn.exp(weight).T)
        weight.assign(weight * 0.5)
        return result

    sums = [float(step(x).sum()) for _ in range(3)]
    assert native_of(step, x).compiled.hoisted_constants is None
    assert sums[0] > sums[1] > sums[2]


def test_a_written_cache_leaves_the_weights_prepared() -> None:
    weight, cache = rn.Variable(np.ones((SIZE, SIZE), "float32")), rn.Variable(np.zeros((2, SIZE), "float32"))

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        cache.assign(cache + x)
        return (x + cache) @ contiguous(rn.exp(weight).T)

    prepared = []
    for _ in range(3):
        step(rn.ones((2, SIZE)))
        (frame,) = native_of(step, rn.ones((2, SIZE))).binding.pool.frames
        prepared.append(frame.prepared[0])
    assert prepared[0] is prepared[1] is prepared[2]
    weight.assign(weight * 0)
    assert step(rn.ones((2, SIZE))).max().item() == 5 * SIZE
    assert frame.prepared[0] is not prepared[0]


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    rows=st.integers(1, 70), inner=st.integers(130, 300), columns=st.integers(127, 300), threads=st.integers(1, 3),
    transposed=st.booleans(),
)  # fmt: skip
def test_weights_of_products_lie_in_panels(rows: int, inner: int, columns: int, threads: int, transposed: bool) -> None:
    rng = np.random.default_rng(columns)
    shape = (columns, inner) if transposed else (inner, columns)
    weight = rn.Variable(rng.normal(size=shape).astype("float32"))
    x = rn.asarray(rng.normal(size=(rows, inner)).astype("float32"))

    def serve(x: rn.Tensor) -> rn.Tensor:
        return rn.tanh(x @ (weight.T if transposed else weight) + 1)

    with switches.override(num_threads=threads):
        compiled = rn.compile(serve)
        for _ in range(2):
            assert compiled(x).numpy().tobytes() == serve(x).numpy().tobytes()
            weight.assign(weight.read() * 0.5)
    assert native_of(compiled, x).compiled.hoisted_constants is not None
    assert str(compiled.program(x).schedule).count("panel_product") == 1


def test_what_many_rows_share_is_read_where_it_lies() -> None:
    weight = rn.Variable(np.ones((SIZE, SIZE), "float32"))
    serve = rn.compile(lambda x: x @ weight)
    x = rn.ones((2000, SIZE))
    serve(x)
    assert native_of(serve, x).compiled.hoisted_constants is None
