"""Long sums and products stay within the bounds of docs/internals/numerics.md, whatever is built on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.nn import functional as F
from tests.loops.summation import bound

N = 1_000_000
U = 2.0**-24
KINDS = ["alike", "signs", "far apart", "cancelling"]


def terms(kind: str, *shape: int) -> Any:
    rng = np.random.default_rng(3)
    x = {
        "alike": lambda: np.full(shape, 0.1),
        "signs": lambda: rng.choice([-0.1, 0.1], shape),
        "far apart": lambda: rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape),
        "cancelling": lambda: np.cumsum(np.ones(shape), axis=0) * rng.choice([-1, 1], shape),
    }[kind]()
    return x.astype(np.float32)


def assert_sum(actual: Any, x: Any, axes: Any = None) -> None:
    wide = x.astype(np.float64)
    count = x.size // max(np.size(actual.numpy()), 1)
    slack = bound(count, np.float32) * np.abs(wide).sum(axes) + U * np.abs(wide.sum(axes))
    assert (np.abs(actual.numpy() - wide.sum(axes)) <= slack).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((N,), 0),
        ((N, 2), 0),
        ((2, N), 1),
        ((N // 100, 100), (0, 1)),
        ((30, 50, 7, 90), (0, 2)),
        ((40, 50, 7, 90), (1, 3)),
    ],
)
def test_sums_along_every_axis(kind: str, shape: tuple[int, ...], axes: Any) -> None:
    x = terms(kind, *shape)
    assert_sum(ops.sum(rn.asarray(x), axes), x, axes)


@pytest.mark.parametrize("dtype", [rn.float32, rn.float64], ids=str)
def test_a_hundred_million_terms(dtype: Any) -> None:
    n = 10**8
    tenth = rn.asarray([0.1], dtype)
    value = float(tenth.numpy()[0])
    actual = float(ops.sum(ops.broadcast_to(tenth, (n,))))
    assert abs(actual / (value * n) - 1) <= bound(n, dtype.numpy)
    if dtype is rn.float32:
        assert abs(actual / (value * n) - 1) < 1e-6
        assert float(rn.compile(lambda t: ops.sum(ops.broadcast_to(t, (n,))))(tenth)) == actual


@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str) -> None:
    x, y = terms(kind, N), terms(kind, N)[::-1].copy()
    exact, size = float(x.astype(np.float64) @ y), float(np.abs(x).astype(np.float64) @ np.abs(y))
    for actual in (ops.matmul(rn.asarray(x), rn.asarray(y)), ops.vecdot(rn.asarray(x), rn.asarray(y))):
        assert abs(float(actual) - exact) <= (bound(N, np.float32, products=True) + U) * size
    a, b = x.reshape(4, -1), y.reshape(-1, 4)
    exact, sizes = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
    actual = (rn.asarray(a) @ rn.asarray(b)).numpy()
    assert (np.abs(actual - exact) <= (bound(N // 4, np.float32, products=True) + U) * sizes).all()


def test_all_terms_a_tenth() -> None:
    """Measured: what one chain of additions would miss by 1e-3 and more."""
    x = rn.asarray(terms("alike", N))
    value = float(np.float32(0.1))
    rows = ops.reshape(x, (N // 4, 4))
    two = {
        "mean": (ops.mean(x), value), "norm": (ops.norm(x), value * N**0.5), "std": (ops.std(x) + 1, 1.0),
        "columns": (ops.mean(rows, 0), value), "logsumexp": (ops.logsumexp(x), value + np.log(N)),
        "mse": (ops.mse_loss(x, x * 0), value**2), "l1": (ops.l1_loss(x, x * 0, reduction="sum"), value * N),
        "softmax": (ops.sum(ops.softmax(x)), 1.0), "half": (ops.mean(x.astype(rn.float16)), float(np.float16(0.1))),
        "bfloat16": (ops.mean(x.astype(rn.bfloat16)), float(rn.asarray(0.1, rn.bfloat16))),
    }  # fmt: skip
    for name, (actual, exact) in two.items():
        np.testing.assert_allclose(actual.numpy().astype(np.float64), exact, 2e-6, err_msg=name)
    labels = rn.asarray(np.zeros(N // 4, np.int64))
    sums = {
        "index_add": ops.index_add(rn.zeros((2, 4)), 0, labels, rows)[0],
        "column": ops.scatter_add(labels, rows[:, 0], 2)[0],
        "broadcast": rn.grad(lambda b: ops.sum(rows + b) * 0.1)(rn.zeros((4,))),
        "embedding": rn.grad(lambda w: ops.sum(ops.embedding(w, labels)) * 0.1)(rn.zeros((2, 4)))[0],
    }  # fmt: skip
    for name, actual in sums.items():
        np.testing.assert_allclose(actual.numpy(), value * N / 4, 3e-6, err_msg=name)
    dot = float(ops.matmul(x, x))
    assert abs(dot / (value**2 * N) - 1) < 3e-5


def test_gradients_of_convolution_weights() -> None:
    """A sum over all pixels of all images, by Winograd's algorithm and by a product."""
    x = rn.asarray(np.full((40, 16, 64, 64), 0.1, np.float32))
    for taps, tolerance in ((3, 2e-5), (1, 3e-5)):
        w = rn.zeros((16, 16, taps, taps))
        grad = rn.grad(lambda w: ops.sum(F.conv2d(x, w) * 0.1))(w)
        pixels = 40 * (64 - taps + 1) ** 2
        np.testing.assert_allclose(grad.numpy(), float(np.float32(0.1)) ** 2 * pixels, tolerance)


@pytest.mark.parametrize("keys", [1000, 100_000])
def test_attention_over_many_keys(keys: int) -> None:
    q = rn.zeros((1, 1, 1, 8))
    k = rn.asarray(np.random.default_rng(0).standard_normal((1, 1, keys, 8)).astype(np.float32))
    v = rn.asarray(np.full((1, 1, keys, 8), 0.1, np.float32))
    actual = ops.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(actual.numpy(), np.float32(0.1), 5e-6)


@pytest.mark.parametrize("queries", [1000, 20_000])
def test_gradients_of_attention_over_many_queries(queries: int) -> None:
    q = rn.asarray(np.zeros((1, 1, queries, 4), np.float32))
    k, v = rn.zeros((1, 1, 3, 4)), rn.zeros((1, 1, 3, 4))
    grad = rn.grad(lambda v: ops.sum(ops.scaled_dot_product_attention(q, k, v)) * 0.1)(v)
    np.testing.assert_allclose(grad.numpy(), float(np.float32(0.1)) * queries / 3, 1e-5)
