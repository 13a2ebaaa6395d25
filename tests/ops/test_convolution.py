"""Convolutions and pooling over random geometries against NumPy, and what their errors say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.core import switches
from runnel.core.dispatch import apply
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, reference
from runnel.ops.convolution.decompositions import Algorithm, sum_form
from tests.ops.spatial_records import SPATIAL
from tests.random_numbers import RNG

pytestmark = pytest.mark.suite


Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def tensor(*shape: int, dtype: Any = np.float64) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


@st.composite
def geometries(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Shapes of x and w, and a convolution's attributes."""
    axes = draw(st.integers(1, 3))
    each = st.lists(st.integers(1, 3), min_size=axes, max_size=axes).map(tuple)
    kernel, stride, dilation = draw(each), draw(each), draw(st.sampled_from([(1,) * axes, (2,) * axes]))
    padding = tuple(tuple(draw(st.lists(st.integers(0, 3), min_size=2, max_size=2))) for _ in range(axes))
    size = tuple(
        max(1, d * (k - 1) + 1 - sum(p)) + draw(st.integers(0, 4))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    groups, inputs, results = (draw(st.integers(1, n)) for n in (3, 3, 4))
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x, w = (draw(st.integers(1, 2)), groups * inputs, *size), (groups * results, inputs, *kernel)
    return x, w, attrs


@settings(deadline=None, max_examples=40)
@given(geometry=geometries(), layout=st.sampled_from(["dense", "channels_last", "backwards"]))
def test_random_convolutions(geometry: Any, layout: str) -> None:
    """The three primitives against their meaning place by place, in any layout, their plans verified."""
    x_shape, w_shape, attrs = geometry
    x, w = tensor(*x_shape), tensor(*w_shape)
    oracle = SPATIAL["convolution"]["oracle"](x, w, **attrs)
    g = tensor(*oracle.shape)
    cases: list[tuple[str, tuple[Array, Array], dict[str, Any]]] = [
        ("convolution", (x, w), {}),
        ("convolution_input_gradient", (g, w), {"size": x.shape[2:]}),
        ("convolution_weight_gradient", (x, g), {"kernel": w.shape[2:]}),
    ]
    with switches.override(verify=True):
        for name, arrays, more in cases:
            arranged = [rn.asarray(_laid(a, layout), copy=False) for a in arrays]
            actual = apply(Op.registry[name], *arranged, **more, **attrs).numpy()
            np.testing.assert_allclose(actual, SPATIAL[name]["oracle"](*arrays, **more, **attrs), 1e-11, 1e-11)


def _laid(x: Array, layout: str) -> Array:
    if layout == "channels_last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    return x[..., ::-1].copy()[..., ::-1] if layout == "backwards" else x


@settings(deadline=None, max_examples=40)
@given(geometry=geometries(), data=st.data())
def test_random_pools_and_their_gradients(geometry: Any, data: Any) -> None:
    """Greatest elements to the bit; each window's cotangent goes to its first greatest element."""
    (_, channels, *size), (_, _, *kernel), attrs = geometry
    stride = tuple(kernel) if data.draw(st.booleans()) else attrs["stride"]
    padding = tuple((min(a, k // 2), min(b, k // 2)) for (a, b), k in zip(attrs["padding"], kernel, strict=True))
    size = [max(n, d * (k - 1) + 1) for n, k, d in zip(size, kernel, attrs["dilation"], strict=True)]
    x = RNG.integers(-2, 3, (2, channels, *size)).astype(np.float64)
    inputs = {"kernel": tuple(kernel), "stride": stride, "padding": padding, "dilation": attrs["dilation"]}
    leaf = rn.tensor(x, requires_grad=True)
    with switches.override(verify=True):
        out = apply(Op.registry["max_pool"], leaf, **inputs)
        np.testing.assert_array_equal(out.numpy(), SPATIAL["max_pool"]["oracle"](x, **inputs))
        g = RNG.integers(1, 9, out.shape).astype(np.float64)
        (out * rn.asarray(g)).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), _first_wins(x, g, **inputs))


def _first_wins(x: Array, g: Array, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=-np.inf)
    result = np.zeros_like(padded)
    for n, c, *place in np.ndindex(*g.shape):
        where = [
            tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True))
            for tap in np.ndindex(*kernel)
        ]
        result[(n, c, *max(where, key=lambda at: padded[(n, c, *at)]))] += g[(n, c, *place)]
    return result[(..., *(slice(a, a + m) for (a, _), m in zip(padding, x.shape[2:], strict=True)))]


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(1, 3))
def test_adaptive_pools(size: list[int], count: int) -> None:
    x = tensor(2, 3, *size)
    counts = tuple(min(count, n) for n in size)
    expected: dict[str, Array] = {"mean": np.empty((2, 3, *counts)), "max": np.empty((2, 3, *counts))}
    for at in np.ndindex(*counts):
        bins = (slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, size, counts, strict=True))
        part = x[(..., *bins)].reshape(2, 3, -1)
        for name, values in expected.items():
            values[(..., *at)] = getattr(part, name)(-1)
    np.testing.assert_allclose(ops.adaptive_avg_pool(rn.asarray(x), counts).numpy(), expected["mean"], 1e-12, 1e-12)
    np.testing.assert_array_equal(ops.adaptive_max_pool(rn.asarray(x), counts).numpy(), expected["max"])


def test_means_count_what_lies_inside() -> None:
    x = rn.asarray(np.ones((1, 1, 5)))
    count = lambda **more: ops.avg_pool(x, 3, 2, 1, **more).numpy().reshape(-1).tolist()  # noqa: E731
    assert count() == [2 / 3, 1.0, 2 / 3]
    assert count(count_include_pad=False) == [1.0, 1.0, 1.0]
    assert count(divisor_override=2) == [1.0, 1.5, 1.0]
    assert ops.avg_pool(rn.asarray(np.ones((1, 1, 6))), 3, 2, 1, ceil_mode=True).shape == (1, 1, 4)
    assert ops.avg_pool(rn.asarray(np.ones((1, 1, 6))), 3, 2, 1, ceil_mode=True).numpy()[0, 0, 3] == 0.5


def test_the_last_window_of_ceil_mode_begins_inside() -> None:
    x = rn.asarray(np.arange(5.0).reshape(1, 1, 5))
    assert ops.max_pool(x, 2, 2).numpy().tolist() == [[[1.0, 3.0]]]
    assert ops.max_pool(x, 2, 2, ceil_mode=True).numpy().tolist() == [[[1.0, 3.0, 4.0]]]
    assert ops.max_pool(x, 1, 3, ceil_mode=True).numpy().tolist() == [[[0.0, 3.0]]]
    assert ops.max_pool(x, 9, ceil_mode=True).numpy().tolist() == [[[4.0]]]
    assert ops.avg_pool(x, 9, ceil_mode=True).numpy().tolist() == [[[2.0]]]


def test_not_a_number_wins_and_padding_never_does() -> None:
    x = np.full((1, 1, 2, 2), -np.inf, np.float32)
    assert ops.max_pool(rn.asarray(x), 2, 1, 1).numpy().max() == -np.inf
    x[0, 0, 1, 0] = np.nan
    assert np.isnan(ops.max_pool(rn.asarray(x), 2).numpy()).all()


def test_half_precision_is_summed_in_float32() -> None:
    x, w = tensor(2, 30, 6, 6, dtype=np.float16), tensor(4, 30, 3, 3, dtype=np.float16)
    wide = reference[Op.registry["convolution"]](
        x.astype(np.float32), w.astype(np.float32), stride=(1, 1), padding=((1, 1),) * 2, dilation=(1, 1), groups=1
    )
    actual = ops.conv(rn.asarray(x), rn.asarray(w), padding="same")
    assert actual.dtype is rn.float16
    np.testing.assert_allclose(actual.numpy().astype(np.float32), wide, rtol=2e-3, atol=2e-3)


def test_transposes_undo_shapes() -> None:
    x, w = rn.asarray(tensor(2, 4, 5, 6)), rn.asarray(tensor(4, 3, 3, 2))
    y = ops.conv_transpose(x, w, stride=(2, 3), padding=1, output_padding=(1, 2))
    assert y.shape == (2, 3, 10, 17)
    assert ops.conv(y, w, stride=(2, 3), padding=1).shape == x.shape
    # ⟨conv(y), x⟩ = ⟨y, conv_transpose(x)⟩
    z = rn.asarray(tensor(*y.shape))
    left = (ops.conv(z, w, stride=(2, 3), padding=1) * x).sum().item()
    assert left == pytest.approx((z * y).sum().item(), rel=1e-12)


def test_the_algorithm_depends_on_shapes() -> None:
    assert sum_form(64, 64, (3, 3), 1) is Algorithm.WINDOWS
    assert sum_form(64, 64, (3, 3), 64) is Algorithm.TAPS
    assert sum_form(64, 128, (3, 3), 64) is Algorithm.TAPS
    assert sum_form(64, 64, (31, 31), 64) is Algorithm.WINDOWS
    assert sum_form(64, 64, (3, 3), 2) is Algorithm.WINDOWS


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders(mode: str) -> None:
    x = tensor(2, 3, 4)
    numpy_mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    widths = ((0, 0), (2, 1), (0, 3))
    np.testing.assert_array_equal(ops.pad(rn.asarray(x), widths, mode=mode).numpy(), np.pad(x, widths, numpy_mode))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ops.conv(_zeros(1, 3, 8, 8), _zeros(4, 2, 3, 3)), r"3 channels in 1 group.*takes 2 channels"),
    (lambda: ops.conv(_zeros(1, 3, 8, 8), _zeros(4, 3, 3)), r"\(1, 3, 8, 8\).*\(4, 3, 3\)"),
    (lambda: ops.conv(_zeros(1, 3, 2, 8), _zeros(4, 3, 3, 3)), r"reaches over \(3, 3\).*\(2, 8\)"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 1, 3), groups=2), r"must both be multiples of groups=2"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 3, 3), stride=2, padding="same"), "needs stride 1"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 3, 3), padding="full"), "'same' or 'valid'"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 3, 3), stride=(1, 2)), r"stride is an int or 1 ints.*\(1, 2\)"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 3, 3), _zeros(3)), r"bias of shape \(4,\)"),
    (lambda: ops.conv(_zeros(1, 3, 8), _zeros(4, 3, 3), stride=0), "at least 1"),
    (lambda: ops.conv_transpose(_zeros(1, 3, 8), _zeros(3, 3, 3), output_padding=1), "smaller than the stride"),
    (lambda: ops.max_pool(_zeros(1, 3, 8), 3, padding=2), "at most half the kernel"),
    (lambda: ops.max_pool(_zeros(1, 3, 2), 3), r"does not fit an input of shape \(1, 3, 2\)"),
    (lambda: ops.adaptive_avg_pool(_zeros(1, 3, 8), (2, 2)), "output_size"),
    (lambda: ops.pad(_zeros(1, 3), ((0, 0), (3, 0)), mode="reflect"), "at most 2 to axis 1"),
]


def _zeros(*shape: int) -> rn.Tensor:
    return rn.zeros(shape)


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_errors_name_shapes_and_the_rule(case: int) -> None:
    call, says = WRONG[case]
    with pytest.raises(ShapeError, match=says):
        call()
