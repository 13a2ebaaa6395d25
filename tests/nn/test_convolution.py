"""Convolution, pooling and normalization layers: PyTorch's names, defaults and rules, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.core.errors import ShapeError
from runnel.nn import functional as F
from tests.ops.spatial_records import SPATIAL
from tests.random_numbers import RNG

Array = np.ndarray[Any, Any]


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape)


def filled(layer: Any) -> Any:
    """The layer with random parameters and statistics, in float64."""
    state = {k: v.numpy() for k, v in layer.state_dict().items()}
    layer.load_state_dict({k: RNG.uniform(0.5, 1.5, v.shape) if v.dtype.kind == "f" else v for k, v in state.items()})
    return layer


def close(actual: Any, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, 1e-11, 1e-11)


def vector(v: Any, ndim: int) -> Array:
    array: Array = v.numpy().reshape(1, -1, *(1,) * (ndim - 2))
    return array


# --- convolutions -------------------------------------------------------------------------------------------------


def test_names_shapes_and_initial_values() -> None:
    conv = nn.Conv2d(6, 8, (3, 5), groups=2)
    assert {k: v.shape for k, v in conv.state_dict().items()} == {"weight": (8, 3, 3, 5), "bias": (8,)}
    bound = 1 / math.sqrt(3 * 3 * 5)
    for p in conv.parameters():
        assert 0.5 * bound < np.abs(p.numpy()).max() <= bound
    transposed = nn.ConvTranspose1d(4, 6, 3, groups=2, bias=False)
    assert {k: v.shape for k, v in transposed.state_dict().items()} == {"weight": (4, 3, 3)}
    assert repr(conv).startswith("Conv2d(6, 8, kernel_size=(3, 5), stride=(1, 1), groups=2)")
    assert "padding='same'" in repr(nn.Conv1d(1, 1, 3, padding="same"))


CONVOLUTIONS: list[tuple[Any, tuple[int, ...], tuple[Any, ...]]] = [
    (nn.Conv1d(4, 6, 3, stride=2, padding=1, dtype="float64"), (2, 4, 9), ((2,), ((1, 1),), (1,), 1)),
    (
        nn.Conv2d(4, 6, 3, padding="same", dilation=2, groups=2, dtype="float64"),
        (2, 4, 7, 6),
        ((1, 1), ((2, 2),) * 2, (2, 2), 2),
    ),
    (nn.Conv2d(4, 8, (2, 3), groups=4, bias=False, dtype="float64"), (2, 4, 5, 6), ((1, 1), ((0, 0),) * 2, (1, 1), 4)),
    (
        nn.Conv3d(2, 3, 2, padding=(0, 1, 0), dtype="float64"),
        (1, 2, 3, 4, 3),
        ((1,) * 3, ((0, 0), (1, 1), (0, 0)), (1,) * 3, 1),
    ),
]


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolutions(case: int) -> None:
    layer, shape, (stride, padding, dilation, groups) = CONVOLUTIONS[case]
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x = normal(*shape)
    expected = SPATIAL["convolution"]["oracle"](x, filled(layer).weight.numpy(), **attrs)
    expected = expected if layer.bias is None else expected + vector(layer.bias, x.ndim)
    close(layer(rn.asarray(x)), expected)
    close(layer(rn.asarray(x[0])), expected[0])  # one image alone
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    close(layer(rn.asarray(last, copy=False)), expected)  # in channels-last memory
    close(rn.compile(lambda v: layer(v))(rn.asarray(x)), expected)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders(mode: str) -> None:
    layer = filled(nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode, dtype="float64"))
    x = normal(2, 2, 5, 6)
    around = np.pad(
        x, ((0, 0), (0, 0), (1, 1), (2, 2)), {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    )
    attrs = {"stride": (1, 1), "padding": ((0, 0),) * 2, "dilation": (1, 1), "groups": 1}
    close(
        layer(rn.asarray(x)),
        SPATIAL["convolution"]["oracle"](around, layer.weight.numpy(), **attrs) + vector(layer.bias, 4),
    )


def test_transposed_convolutions() -> None:
    layer = filled(
        nn.ConvTranspose2d(4, 6, 3, stride=(2, 3), padding=1, output_padding=(1, 0), groups=2, dtype="float64")
    )
    g = normal(2, 4, 3, 4)
    attrs = {"stride": (2, 3), "padding": ((1, 1),) * 2, "dilation": (1, 1), "groups": 2}
    expected = SPATIAL["convolution_input_gradient"]["oracle"](g, layer.weight.numpy(), size=(6, 10), **attrs)
    close(layer(rn.asarray(g)), expected + vector(layer.bias, 4))


# --- pooling ------------------------------------------------------------------------------------------------------


def test_pools() -> None:
    x = normal(2, 3, 6, 8)
    blocks = x.reshape(2, 3, 3, 2, 4, 2)
    close(nn.MaxPool2d(2)(rn.asarray(x)), blocks.max((3, 5)))
    close(nn.AvgPool2d(2)(rn.asarray(x)), blocks.mean((3, 5)))
    close(nn.AdaptiveAvgPool2d(1)(rn.asarray(x)), x.mean((2, 3), keepdims=True))
    close(nn.AdaptiveMaxPool2d((None, 4))(rn.asarray(x)), x.reshape(2, 3, 6, 4, 2).max(4))
    close(
        nn.MaxPool1d(3, 1)(rn.asarray(x[0])), np.maximum(np.maximum(x[0, :, :, :-2], x[0, :, :, 1:-1]), x[0, :, :, 2:])
    )
    close(F.avg_pool3d(rn.asarray(x[None]), (3, 2, 1)), x[None].reshape(1, 2, 1, 3, 3, 2, 8).mean((3, 5)))
    assert nn.MaxPool2d(3, 2, padding=1)(rn.asarray(x)).shape == (2, 3, 3, 4)


# --- normalization ------------------------------------------------------------------------------------------------


def expected_norm(x: Array, mean: Array, var: Array, layer: Any) -> Array:
    y = (x - mean) / np.sqrt(var + layer.eps)
    return y if layer.weight is None else y * vector(layer.weight, x.ndim) + vector(layer.bias, x.ndim)


BATCHES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (nn.BatchNorm1d, (7, 3)),
    (nn.BatchNorm1d, (4, 3, 5)),
    (nn.BatchNorm2d, (2, 3, 4, 5)),
    (nn.BatchNorm3d, (2, 3, 2, 3, 2)),
]


@pytest.mark.parametrize("case", range(len(BATCHES)))
@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm(case: int, momentum: float | None) -> None:
    """Two steps of training, with the statistics they leave, then evaluation."""
    kind, shape = BATCHES[case]
    layer = filled(kind(3, momentum=momentum, dtype="float64"))
    axes = tuple(i for i in range(len(shape)) if i != 1)
    means, variances = layer.running_mean.numpy().copy(), layer.running_var.numpy().copy()
    for step in (1, 2):
        x = normal(*shape)
        close(layer(rn.asarray(x)), expected_norm(x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True), layer))
        share = 1 / step if momentum is None else momentum
        means = (1 - share) * means + share * x.mean(axes)
        variances = (1 - share) * variances + share * x.var(axes, ddof=1)
    close(layer.running_mean, means)
    close(layer.running_var, variances)
    assert layer.num_batches_tracked.item() == 2
    layer.eval()
    broad = (1, 3, *(1,) * (len(shape) - 2))
    close(layer(rn.asarray(x)), expected_norm(x, means.reshape(broad), variances.reshape(broad), layer))
    close(layer.running_mean, means)


def test_norms_of_groups_and_instances() -> None:
    x = normal(2, 6, 3, 4)
    group = filled(nn.GroupNorm(2, 6, dtype="float64"))
    split = x.reshape(2, 2, -1)
    mean, var = (np.repeat(m, 3, 1).reshape(2, 6, 1, 1) for m in (split.mean(2), split.var(2)))
    close(group(rn.asarray(x)), expected_norm(x, mean, var, group))
    instance = nn.InstanceNorm2d(6, affine=True, track_running_stats=True, dtype="float64")
    axes = (2, 3)
    own = expected_norm(x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True), instance)
    close(instance(rn.asarray(x)), own)
    close(instance.running_mean, 0.1 * x.mean((0, 2, 3)))
    close(instance.running_var, 0.9 + 0.1 * x.var(axes, ddof=1).mean(0))
    instance.eval()
    mean, var = (vector(v, 4) for v in (instance.running_mean, instance.running_var))
    close(instance(rn.asarray(x)), expected_norm(x, mean, var, instance))
    plain = nn.InstanceNorm2d(6)
    assert not list(plain.state_dict()) and plain.eval()(rn.asarray(x)).shape == x.shape


def test_means_of_many_elements_are_accurate() -> None:
    """Sums go over one image first, so the error does not grow with the whole batch."""
    x = (RNG.standard_normal((64, 2, 64, 64)) + 100).astype(np.float32)
    mean, variance = ops.channel_moments(rn.asarray(x))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), wide.mean((0, 2, 3)), rtol=3e-6)
    np.testing.assert_allclose(variance.numpy(), wide.var((0, 2, 3)), rtol=1e-4)


FOLDED: list[tuple[Any, Any, tuple[int, ...]]] = [
    (nn.Conv2d(3, 4, 3, dtype="float64"), nn.BatchNorm2d(4, dtype="float64"), (2, 3, 5, 5)),
    (
        nn.Conv1d(4, 4, 3, groups=2, bias=False, dtype="float64"),
        nn.BatchNorm1d(4, affine=False, dtype="float64"),
        (2, 4, 5),
    ),
    (
        nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2, dtype="float64"),
        nn.BatchNorm2d(6, dtype="float64"),
        (2, 4, 3, 3),
    ),
]


@pytest.mark.parametrize("case", range(len(FOLDED)))
def test_normalization_is_folded_for_inference(case: int) -> None:
    conv, norm, shape = FOLDED[case]
    filled(conv)
    filled(norm).eval()
    x = rn.asarray(normal(*shape))
    before = conv.weight.numpy().copy()
    fused = nn.utils.fuse_conv_bn(conv, norm)
    close(fused(x), norm(conv(x)).numpy())
    assert fused is not conv and (conv.weight.numpy() == before).all()


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.Conv2d(3, 4, 3)(rn.zeros((3, 8))), ShapeError, r"\[conv2d\].*2 spatial ones; got shape \(3, 8\)"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ShapeError, "in_channels=3.*groups=2"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), ValueError, "zeros, constant, reflect.*'mirror'"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ValueError, "padding_mode must be 'zeros'"),
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ShapeError, "kernel_size is an int or 2 ints"),
    (lambda: nn.BatchNorm2d(3)(rn.zeros((2, 3))), ShapeError, r"\[BatchNorm2d\].*4 axes.*got shape \(2, 3\)"),
    (lambda: nn.BatchNorm1d(3)(rn.zeros((2, 4))), ShapeError, "the second of size 3"),
    (lambda: nn.BatchNorm1d(3)(rn.zeros((1, 3))), ShapeError, "more than one element"),
    (lambda: nn.GroupNorm(2, 3), ShapeError, "must divide num_channels; got 2 and 3"),
    (lambda: nn.utils.fuse_conv_bn(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3)), ShapeError, "2 output channels.*got 3"),
    (lambda: F.batch_norm(rn.zeros((2, 3)), None, None), ValueError, "running_mean and running_var"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_errors(case: int) -> None:
    call, kind, says = WRONG[case]
    with pytest.raises(kind, match=says):
        call()
