"""Convolution and normalization layers beyond the cases recorded from PyTorch: layouts, statistics, folding, errors."""

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


def test_convolutions_of_one_image_and_of_other_layouts() -> None:
    layer = filled(nn.Conv2d(4, 6, 3, padding="same", dilation=2, groups=2, dtype="float64"))
    x = normal(2, 4, 7, 6)
    expected = layer(rn.asarray(x)).numpy()
    close(layer(rn.asarray(x[0])), expected[0])
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    close(layer(rn.asarray(last, copy=False)), expected)  # in channels-last memory
    close(rn.compile(lambda v: layer(v))(rn.asarray(x)), expected)


# --- normalization ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_keeps_statistics_for_evaluation(momentum: float | None) -> None:
    layer = nn.BatchNorm1d(3, momentum=momentum, dtype="float64")
    x = normal(7, 3)
    layer(rn.asarray(x))
    share = 1 if momentum is None else momentum
    close(layer.running_mean, share * x.mean(0))
    close(layer.running_var, 1 - share + share * x.var(0, ddof=1))
    assert layer.num_batches_tracked.item() == 1
    before = layer.running_mean.numpy().copy()
    expected = (x - before) / np.sqrt(layer.running_var.numpy() + layer.eps)
    close(layer.eval()(rn.asarray(x)), expected)
    close(layer.running_mean, before)
    plain = nn.InstanceNorm2d(6)
    assert not list(plain.state_dict()) and plain.eval()(rn.ones(2, 6, 3, 4)).shape == (2, 6, 3, 4)


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
