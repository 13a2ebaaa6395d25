"""autocast: which functions it changes and how they round; the same bits in every mode; gradients stay float32."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn, ops, optim
from runnel.core import switches
from runnel.core.conversion import CASTING
from runnel.core.errors import DTypeError
from runnel.nn import functional as F
from tests.compiler.harness import same_bits

LOW = {rn.bfloat16: ml_dtypes.bfloat16, rn.float16: np.float16}


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rounded(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtype).astype(np.float64)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 20), st.integers(1, 40), st.integers(1, 20), st.sampled_from(list(LOW)))
def test_products_round_operands_and_result_only(m: int, k: int, n: int, dtype: Any) -> None:
    """Sums in float32 are off from those in float64 by less than a rounding of the result, nearly always by none."""
    x, w = values(m, k), values(n, k, seed=1)
    with rn.autocast(dtype):
        actual = F.linear(rn.asarray(x), rn.asarray(w))
    assert actual.dtype is dtype
    exact = rounded(x, LOW[dtype]) @ rounded(w, LOW[dtype]).T
    step = 2.0**-8 if dtype is rn.bfloat16 else 2.0**-11
    np.testing.assert_allclose(actual.numpy().astype(np.float64), exact, rtol=step, atol=1e-5)


@pytest.mark.parametrize(("dtype", "large"), [(rn.bfloat16, 256.0), (rn.float16, 2048.0)])
def test_a_bias_is_added_before_the_sum_is_rounded(dtype: Any, large: float) -> None:
    """The sum alone would be rounded down, and the bias lost with it."""
    for rows in ((2,), (3, 2)):
        x = rn.ones(rows, dtype=dtype)
        w, bias = rn.asarray(np.array([[large, 1.0]], LOW[dtype])), rn.ones((1,), dtype=dtype)
        actual = F.linear(x, w, bias)
        assert actual.dtype is dtype and actual.shape == (*rows[:-1], 1)
        assert (actual.numpy().astype(np.float64) == large + 2).all()
    assert F.linear(x, w, rn.ones((1,))).dtype is rn.float32


PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda x: x @ ops.transpose(x),
    "tensordot": lambda x: ops.tensordot(x, x, ([1], [1])),
    "linear": lambda x: ops.linear(x, x, x[:, 0]),
    "conv": lambda x: ops.conv(x[None], x[:, :, None][:, :, :1]),
    "conv_transpose": lambda x: ops.conv_transpose(x[None], x[:, :, None]),
    "attention": lambda x: ops.scaled_dot_product_attention(x, x, x, is_causal=True),
    "packed_attention": lambda x: ops.packed_attention(ops.reshape(x, (1, 2, 3, 2, 3))),
}
SUMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: ops.mean(x, 1),
    "softmax": lambda x: ops.softmax(x),
    "layer_norm": lambda x: ops.layer_norm(x, x.shape[-1]),
    "norm": lambda x: ops.norm(x),
    "mse_loss": lambda x: ops.mse_loss(x, ops.broadcast_to(x[:, :1], x.shape)),
    "cross_entropy": lambda x: nn.functional.cross_entropy(x, rn.asarray(np.zeros(x.shape[0], np.int64))),
}


def operand(name: str) -> np.ndarray:
    return values(6, 6) if name not in ("conv", "conv_transpose") else values(6, 6, seed=3)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_give_the_low_dtype_in_every_mode(name: str) -> None:
    function, x = PRODUCTS[name], rn.asarray(operand(name))
    compiled = rn.compile(lambda x: function(x))
    results = []
    with rn.autocast():
        results.append(function(x))
        for threads in (1, 2, 3):
            with switches.override(num_threads=threads):
                results.append(compiled(x))
    inside = rn.compile(rn.autocast()(lambda x: function(x)))
    results.append(inside(x))
    assert all(y.dtype is rn.bfloat16 for y in results)
    assert all(same_bits(y.numpy(), results[0].numpy()) for y in results)
    assert function(x).dtype is compiled(x).dtype is rn.float32


@pytest.mark.parametrize("name", SUMS)
def test_sums_stay_in_float32(name: str) -> None:
    function, x = SUMS[name], rn.cast(rn.asarray(values(6, 6)), rn.bfloat16)
    with rn.autocast():
        actual = function(x)
    assert actual.dtype is rn.float32
    assert same_bits(actual.numpy(), function(rn.cast(x, rn.float32)).numpy())


def test_what_is_not_float32_is_left_alone() -> None:
    with rn.autocast():
        assert (rn.ones((2, 2), dtype="float64") @ rn.ones((2, 2))).dtype is rn.float64
        assert (rn.ones((2, 2), dtype="int32") @ rn.ones((2, 2), dtype="int32")).dtype.is_integer
        assert (rn.ones(3) + 1.0).dtype is rn.float32
        assert (rn.ones((2, 2), dtype="float16") @ rn.ones((2, 2))).dtype is rn.bfloat16


def test_numpy_operands_are_rounded_too() -> None:
    x, w = values(4, 5), values(5, 3)
    with rn.autocast():
        assert same_bits((rn.asarray(x) @ w).numpy(), (rn.asarray(x) @ rn.asarray(w)).numpy())


def test_blocks_nest_and_end_with_errors() -> None:
    x = rn.ones((2, 2))
    with rn.autocast():
        with rn.autocast(rn.float16):
            assert (x @ x).dtype is rn.float16
            with rn.autocast(enabled=False):
                assert (x @ x).dtype is rn.float32
        assert (x @ x).dtype is rn.bfloat16
        with pytest.raises(ZeroDivisionError), rn.autocast(rn.float16):
            raise ZeroDivisionError
        assert (x @ x).dtype is rn.bfloat16
    assert (x @ x).dtype is rn.float32
    again = rn.autocast()
    with again, again:
        assert (x @ x).dtype is rn.bfloat16
    assert CASTING.dtype is None and CASTING.outer == []


def test_a_thread_begins_without() -> None:
    results = []
    with rn.autocast():
        thread = threading.Thread(target=lambda: results.append((rn.ones((2, 2)) @ rn.ones((2, 2))).dtype))
        thread.start()
        thread.join()
    assert results == [rn.float32]


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(DTypeError, match="bfloat16 or float16; got float32"):
        rn.autocast(rn.float32)


def test_a_compiled_function_has_a_program_for_each() -> None:
    @rn.compile
    def square(x: rn.Tensor) -> rn.Tensor:
        return x @ x

    x = rn.asarray(values(8, 8))
    for _ in range(4):
        assert square(x).dtype is rn.float32
        with rn.autocast():
            assert square(x).dtype is rn.bfloat16
        with rn.autocast(rn.float16):
            assert square(x).dtype is rn.float16
    assert square.statistics["traces"] == 3
    assert "autocast is float16, was bfloat16" in square.retraces[-1]


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_float32(compiled: bool) -> None:
    """And gradients of the products' operands, rounded as the operands are."""
    w = rn.nn.Parameter(values(5, 4))
    x = rn.asarray(values(7, 4, seed=1))

    def step(x: rn.Tensor) -> rn.Tensor:
        with rn.autocast():
            y = ops.linear(x, w)
        loss = (ops.cast(y, rn.float32) * 0.1).sum()
        loss.backward()
        return loss

    w.grad = None
    (rn.compile(step) if compiled else step)(x)
    assert w.grad is not None and w.grad.dtype is rn.float32
    g = rounded(np.full((7, 5), 0.1, np.float32), ml_dtypes.bfloat16)
    exact = g.T @ rounded(x.numpy(), ml_dtypes.bfloat16)
    np.testing.assert_allclose(w.grad.numpy(), exact, rtol=2.0**-8, atol=1e-6)
    assert same_bits(w.grad.numpy(), w.grad.numpy().astype(ml_dtypes.bfloat16).astype(np.float32))


def test_what_runs_again_for_backward_runs_as_it_did() -> None:
    """A compiled function's late tape and a checkpoint compute outside the block what was made inside."""
    x, w = rn.asarray(values(4, 6)), rn.nn.Parameter(values(5, 6, seed=1))

    def layer(x: rn.Tensor) -> rn.Tensor:
        return ops.cast(ops.tanh(ops.linear(x, w)), rn.float32)

    results = []
    for form in (layer, rn.compile(layer), rn.checkpoint(layer)):
        w.grad = None
        with rn.autocast():
            y = form(x)
        y.sum().backward()
        results.append(w.grad.numpy())
    assert all(same_bits(g, results[0]) for g in results)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_network_learns(compiled: bool) -> None:
    rn.manual_seed(0)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((256, 8)).astype(np.float32)
    labels = (data[:, 0] * data[:, 1] > 0).astype(np.int64)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    adam = optim.Adam(model.parameters(), lr=1e-2)

    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        adam.zero_grad()
        with rn.autocast():
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        adam.step()
        return loss

    run = rn.compile(step) if compiled else step
    x, y = rn.asarray(data), rn.asarray(labels)
    losses = [float(run(x, y)) for _ in range(120 if compiled else 60)]
    assert losses[0] > 0.6
    assert losses[-1] < (0.05 if compiled else 0.25)
    assert all(p.dtype is rn.float32 for p in model.parameters())
