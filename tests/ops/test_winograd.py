"""Winograd convolutions beside direct sums: exact algebra, the stated error bound, any sizes, any threads."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.core import switches
from runnel.core.errors import ShapeError
from runnel.ops.convolution.winograd import (
    FILTER,
    INPUT,
    KERNEL,
    OUTPUT,
    OUTPUTS,
    SPAN,
    padded,
    winograd,
    winograd_filters,
    winograd_gradient,
)

pytestmark = pytest.mark.suite


def direct(x: np.ndarray, w: np.ndarray, height: int, width: int) -> np.ndarray:
    wide = x.astype(np.float64)
    return sum(
        np.einsum("nhwc,ck->nhwk", wide[:, r : r + height, s : s + width], w[r, s].astype(np.float64))
        for r in range(KERNEL)
        for s in range(KERNEL)
    )


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def test_the_matrices_are_a_convolution_exactly() -> None:
    for filter_at in range(KERNEL):
        for input_at in range(SPAN):
            g = [row[filter_at] for row in FILTER]
            d = [row[input_at] for row in INPUT]
            y = [sum((a * b * c for a, b, c in zip(row, g, d, strict=True)), Fraction(0)) for row in OUTPUT]
            assert y == [Fraction(int(i + filter_at == input_at)) for i in range(OUTPUTS)]


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 3),
    st.integers(1, 11),
    st.integers(1, 11),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 99),
)
def test_any_sizes(n: int, height: int, width: int, channels: int, filters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = random(rng, n, padded(height), padded(width), channels), random(rng, 3, 3, channels, filters)
    y = winograd(rn.asarray(x), winograd_filters(rn.asarray(w)), height, width, filters).numpy()
    np.testing.assert_allclose(y, direct(x, w, height, width), atol=2e-5 * 3 * channels**0.5, rtol=0)
    dy = random(rng, n, height, width, filters)
    actual = winograd_gradient(rn.asarray(x), rn.asarray(dy)).numpy()
    for r in range(KERNEL):
        for s in range(KERNEL):
            part = x[:, r : r + height, s : s + width].astype(np.float64)
            want = np.einsum("nhwc,nhwk->ck", part, dy.astype(np.float64))
            np.testing.assert_allclose(actual[r, s], want, atol=2e-5 * (n * height * width) ** 0.5, rtol=0)


@pytest.mark.parametrize("channels", [64, 256])
def test_the_error_is_as_stated(channels: int) -> None:
    """docs/internals/winograd.md: rms 1.7e-6 and max 2e-5 of the results' standard deviation."""
    rng = np.random.default_rng(0)
    x, w = random(rng, 2, 18, 18, channels), random(rng, 3, 3, channels, 32)
    want = direct(x, w, 16, 16)
    error = winograd(rn.asarray(x), winograd_filters(rn.asarray(w)), 16, 16, 32).numpy() - want
    assert np.sqrt((error**2).mean()) < 1.7e-6 * want.std()
    assert np.abs(error).max() < 2e-5 * want.std()


def test_bits_do_not_depend_on_threads_or_batch() -> None:
    rng = np.random.default_rng(1)
    x, w = random(rng, 12, 10, 10, 48), random(rng, 3, 3, 48, 64)
    dy = random(rng, 12, 8, 8, 64)

    def both(a: rn.Tensor, b: rn.Tensor, g: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        return winograd(a, winograd_filters(b), 8, 8, 64), winograd_gradient(a, g)

    arguments = [rn.asarray(a) for a in (x, w, dy)]
    expected = [t.numpy().tobytes() for t in both(*arguments)]
    for threads in (1, 2, 3):
        with switches.override(num_threads=threads):
            actual = rn.compile(both)(*arguments)
        assert [t.numpy().tobytes() for t in actual] == expected
    one = winograd(rn.asarray(x[3:4]), winograd_filters(arguments[1]), 8, 8, 64).numpy()
    assert one.tobytes() == winograd(arguments[0], winograd_filters(arguments[1]), 8, 8, 64).numpy()[3:4].tobytes()


def test_wrong_shapes_are_told() -> None:
    x, u = rn.zeros((1, 6, 6, 2)), rn.zeros((36, 3, 4))
    with pytest.raises(ShapeError, match="filters are"):
        winograd(x, u, 4, 4, 4)
    with pytest.raises(ShapeError, match="need an x of 10×6"):
        winograd(x, rn.zeros((36, 2, 8)), 5, 4, 4)
    with pytest.raises(ShapeError, match="3, 3, C, K"):
        winograd_filters(rn.zeros((5, 5, 2, 2)))


@pytest.mark.parametrize(("height", "width", "filters"), [(8, 8, 32), (7, 9, 19), (5, 3, 5)])
def test_what_follows_runs_on_each_pixel_as_it_is_made(height: int, width: int, filters: int) -> None:
    rng = np.random.default_rng(2)
    x, w = random(rng, 3, padded(height), padded(width), 18), random(rng, 3, 3, 18, filters)
    bias, residual = random(rng, filters), random(rng, 3, height, width, filters)

    def block(x: rn.Tensor, u: rn.Tensor, bias: rn.Tensor, residual: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        y = winograd(x, u, height, width, filters) + bias
        return y, rn.relu(y + residual) * 2.0

    arguments = [rn.asarray(x), winograd_filters(rn.asarray(w)), rn.asarray(bias), rn.asarray(residual)]
    compiled = rn.compile(block)
    for actual, expected in zip(compiled(*arguments), block(*arguments), strict=True):
        assert actual.numpy().tobytes() == expected.numpy().tobytes()
    assert len(compiled.program(*arguments).plan.calls) == 1
