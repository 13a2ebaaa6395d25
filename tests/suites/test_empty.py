"""Arrays without elements: they are read and printed, reduced as NumPy does, and refused in one sentence if at all."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn, ops
from runnel.core.errors import RunnelError, ShapeError
from runnel.nn import functional as F
from tests.suites.functions import FUNCTIONS

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0)]
CUTS = [slice(None, None, -1), slice(1, 1), slice(5, 9), slice(None), None, ..., slice(-1, None, -2)]
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "std", "any", "all", "argmax", "argmin")


@pytest.mark.parametrize("shape", [*SHAPES, (3,), (2, 3)])
def test_views_are_read(shape: tuple[int, ...]) -> None:
    source = np.zeros(shape, np.float32)
    x = rn.asarray(source)
    for key in itertools.chain(((a,) for a in CUTS), itertools.product(CUTS, CUTS)):
        try:
            expected = source[key]
        except IndexError:
            continue
        for view in (x[key], x[key] + 1, x[key].mT if expected.ndim > 1 else x[key], rn.flip(x[key])):
            assert np.array_equal(view.numpy().shape, np.shape(view)) and repr(view)
        assert x[key].shape == expected.shape and x[key].tolist() == expected.tolist()
        y = x.clone()
        y[key] = 2.0
        source[key] = 2.0
        assert y.tolist() == source.tolist()
        source[...] = 0.0


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_reductions(name: str, shape: tuple[int, ...]) -> None:
    source = np.zeros(shape, np.float32)
    for axis in (None, *range(len(shape))):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of the mean of nothing
                expected = getattr(np, name)(source, axis=axis)
        except ValueError:
            with pytest.raises(ShapeError, match=rf"\[{name}\]"):
                getattr(torch, name)(rn.asarray(source), axis=axis)
            continue
        actual = getattr(torch, name)(rn.asarray(source), axis=axis).numpy()
        assert actual.shape == np.shape(expected) and np.array_equal(actual, expected, equal_nan=True)


def is_told(error: Exception) -> bool:
    return isinstance(error, RunnelError) or (isinstance(error, (ValueError, TypeError)) and str(error).startswith("["))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "split"])  # of which that takes a piece
def test_functions(name: str) -> None:
    """Each function of the suite with each of its axes empty."""
    function, arrays = FUNCTIONS[name]
    sizes = sorted({n for a in arrays for n in a.shape})
    for gone in sizes:
        emptied = [np.zeros([0 if n == gone else n for n in a.shape], np.float32) for a in arrays]
        for attempt in (lambda args: function(*args), lambda args: rn.grad(lambda *v: function(*v).sum())(*args)):
            try:
                result = attempt([rn.asarray(a) for a in emptied])
            except Exception as error:
                assert is_told(error), f"{name} of {[a.shape for a in emptied]}: {error!r}"
            else:
                for x in result if isinstance(result, tuple) else (result,):
                    assert x.numpy().shape == x.shape and repr(x)


def test_softmax_and_its_kin() -> None:
    x = rn.zeros((2, 0))
    assert rn.softmax(x, 1).shape == (2, 0) == rn.log_softmax(x, 1).shape and rn.softmax(x, 0).shape == (2, 0)
    assert rn.logsumexp(x, 1).tolist() == [-np.inf] * 2 and rn.logsumexp(x, 0).shape == (0,)


def test_smoothed_labels_of_no_class() -> None:
    x, ignored = rn.zeros((2, 0)), rn.full((2,), -100)
    losses = [F.cross_entropy(x, y, label_smoothing=0.1, reduction="none").tolist() for y in (ignored, x)]
    assert np.isnan(losses[0]).all() and losses[1] == [0, 0], "as PyTorch's"
    with pytest.raises(IndexError, match=r"2 of 2 indices lie outside \[0, 0\)"):
        F.cross_entropy(x, rn.zeros((2,), dtype=rn.int64), label_smoothing=0.1)


def test_batch_norm() -> None:
    layer = nn.BatchNorm1d(3)
    x = rn.tensor(np.zeros((0, 3), np.float32), requires_grad=True)
    for run in (layer, rn.compile(lambda x: layer(x))):
        assert run(x.detach()).shape == (0, 3)
    layer(x).sum().backward()
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]
    assert x.grad is not None and x.grad.shape == (0, 3) and layer.weight.grad.tolist() == [0, 0, 0]
    counted = layer.num_batches_tracked.item()
    with pytest.raises(ShapeError, match=r"more than one element for each channel.*\(1, 3\)"):
        layer(rn.zeros((1, 3)))
    assert layer.num_batches_tracked.item() == counted, "an error changes nothing"
    statistics = rn.Variable(np.zeros(3, np.float32)), rn.Variable(np.ones(3, np.float32))
    for training in (False, True):
        with pytest.raises(ShapeError, match=r"\[batch_norm\].*\(3,\)"):
            F.batch_norm(rn.zeros(3), *statistics, training=training)


LAYERS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(3, 0), (2, 3), (2, 0)), "of nothing": (lambda: nn.Linear(0, 3), (2, 0), (2, 3)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3), (0, 3, 8, 8), (0, 4, 6, 6)),
    "transformer": (lambda: nn.TransformerEncoderLayer(4, 2), (3, 0, 4), (3, 0, 4)),
    "pooling": (lambda: nn.AvgPool2d(2), (0, 3, 8, 8), (0, 3, 4, 4)),
    "layer norm": (lambda: nn.LayerNorm(4), (0, 4), (0, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, shape, expected = LAYERS[name]
    layer = make()
    x = rn.tensor(np.zeros(shape, np.float32), requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == expected and x.grad is not None and x.grad.shape == shape
    assert all(np.isfinite(p.grad.numpy()).all() for p in layer.parameters() if p.grad is not None)


def test_losses_of_no_rows() -> None:
    x, labels = rn.zeros((0, 3)), rn.zeros((0,), "int64")
    assert np.isnan(rn.cross_entropy(x, labels).item()) and np.isnan(ops.mse_loss(x, x).item())
    assert rn.cross_entropy(x, labels, reduction="sum").item() == 0.0
