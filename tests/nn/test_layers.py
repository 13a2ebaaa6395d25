"""Layers beyond the cases recorded from PyTorch: initial values, dropout, errors of losses, gradient clipping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn
from runnel.core.errors import GradientError, ShapeError
from runnel.nn import functional as F, init
from runnel.tensor import random

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_linear_shapes(inputs: int, outputs: int, batch: int, bias: bool) -> None:
    layer = nn.Linear(inputs, outputs, bias=bias)
    x = np.random.default_rng(inputs).standard_normal((batch, inputs)).astype(np.float32)
    expected = x.astype(np.float64) @ layer.weight.numpy().T + (layer.bias.numpy() if layer.bias is not None else 0)
    np.testing.assert_allclose(layer(rn.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-5)
    bound = 1 / math.sqrt(inputs)
    assert np.abs(layer.weight.numpy()).max() <= bound


def test_initial_values_follow_the_seed() -> None:
    def weights() -> np.ndarray:
        random.manual_seed(5)
        return nn.Linear(30, 20).weight.numpy()

    first = weights()
    np.testing.assert_array_equal(first, weights())
    assert abs(first.std() * math.sqrt(3 * 30) - 1) < 0.1


def test_embedding_rows_and_gradient() -> None:
    table = nn.Embedding(5, 3)
    labels = rn.asarray(np.array([[1, 4], [1, 0]]))
    actual = table(labels)
    np.testing.assert_array_equal(actual.numpy(), table.weight.numpy()[labels.numpy()])
    actual.sum().backward()
    np.testing.assert_array_equal(table.weight.grad.numpy()[:, 0], [1, 2, 0, 0, 1])


def test_dropout_only_in_training() -> None:
    random.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = rn.ones((200, 50))
    one, two = layer(x).numpy(), layer(x).numpy()
    assert (one != two).any()
    assert set(np.unique(one)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((one == 0).mean() - 0.25) < 0.02
    np.testing.assert_array_equal(layer.eval()(x).numpy(), 1)
    with pytest.raises(ValueError, match="p must be a probability"):
        nn.Dropout(2)


# --- init -----------------------------------------------------------------------------------------------------------

SHAPE = (60, 80)


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda x: init.uniform_(x, -3, 3), 3 / math.sqrt(3)),
        (lambda x: init.normal_(x, 0, 0.5), 0.5),
        (lambda x: init.xavier_uniform_(x), math.sqrt(2 / 140)),
        (lambda x: init.xavier_normal_(x, 2.0), 2 * math.sqrt(2 / 140)),
        (lambda x: init.kaiming_uniform_(x, math.sqrt(5)), math.sqrt(1 / 3 / 80)),
        (lambda x: init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 60)),
        (lambda x: init.trunc_normal_(x, 0, 2.0, -2.0, 2.0), 2 * 0.53955),
    ],
)
def test_initial_deviation(fill: object, std: float) -> None:
    random.manual_seed(1)
    x = nn.Parameter(np.zeros(SHAPE, np.float32))
    assert fill(x) is x  # type: ignore[operator]
    assert abs(x.numpy().std() / std - 1) < 0.05
    assert abs(x.numpy().mean()) < 0.1 * std


def test_constants_bounds_and_orthogonality() -> None:
    x = nn.Parameter(np.zeros((5, 8), np.float32))
    assert (init.ones_(x).numpy() == 1).all() and (init.zeros_(x).numpy() == 0).all()
    assert (init.constant_(x, 2.5).numpy() == 2.5).all()
    assert np.abs(init.trunc_normal_(x, 0.0, 10.0, -1.0, 1.0).numpy()).max() <= 1
    q = init.orthogonal_(x, 2.0).numpy().astype(np.float64)
    np.testing.assert_allclose(q @ q.T, 4 * np.eye(5), atol=1e-5)
    with pytest.raises(ShapeError, match="two axes or more"):
        init.xavier_uniform_(nn.Parameter(np.zeros(3, np.float32)))
    with pytest.raises(ValueError, match=r"nonlinearity must be .*; got 'cube'"):
        init.gain_of("cube")


# --- losses and functions -------------------------------------------------------------------------------------------

LABELS = np.array([0, 5, 2, 2])


@pytest.mark.parametrize("wrap", [lambda f: f, rn.compile])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_target_that_broadcasts_is_a_warning_at_the_users_line(name: str, wrap: Any) -> None:
    x, target = rn.asarray([[1.0], [2.0], [4.0]]), rn.asarray([1.0, 2.0, 4.0])
    loss = wrap(lambda x, y: getattr(nn.functional, name)(x, y))
    with pytest.warns(UserWarning, match=rf"\[{name}\] x of shape \(3, 1\) and a target of shape \(3,\)") as caught:
        assert float(loss(x, target)) > 0
    assert caught[0].filename == __file__
    assert float(loss(x[:, 0], target)) == 0 and float(loss(x, rn.asarray(0.5))) > 0  # no warning


@pytest.mark.parametrize("wrap", [lambda f: f, rn.compile])
@pytest.mark.parametrize("loss", [nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.SoftMarginLoss()])
def test_targets_of_another_shape_are_refused(loss: nn.Module, wrap: Any) -> None:
    with pytest.raises(ShapeError, match=r"have the same shape; got \(3, 1\) and \(3,\)"):
        wrap(lambda x, y: loss(x, y))(rn.ones(3, 1), rn.ones(3))


def test_rankings_are_of_as_many_axes() -> None:
    with pytest.raises(ShapeError, match="as many axes"):
        nn.functional.margin_ranking_loss(rn.ones(3, 1), rn.ones(3), rn.ones(3))


def test_loss_weights_are_not_parameters() -> None:
    loss = nn.CrossEntropyLoss(np.ones(6, np.float32))
    assert list(loss.parameters()) == [] and list(loss.state_dict()) == ["weight"]
    with pytest.raises(ValueError, match="reduction must be 'mean', 'sum' or 'none'"):
        nn.MSELoss(reduction="average")


def test_functions_with_torch_argument_order() -> None:
    x = rn.asarray(X)
    np.testing.assert_array_equal(F.embedding(rn.asarray(LABELS), rn.asarray(X.T.copy())).numpy(), X.T[LABELS])
    assert F.softmax(x, 0, "float64").dtype is rn.float64
    assert F.dropout(x, 0.5, training=False) is x
    with pytest.raises(ShapeError, match="must have the normalized shape"):
        F.rms_norm(x, (4,))


# --- clipping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
def test_clip_grad_norm(order: float) -> None:
    p, q = nn.Parameter(np.zeros((2, 3), np.float32)), nn.Parameter(np.zeros(4, np.float32))
    p.grad, q.grad = rn.asarray(X[:2, :3]), rn.asarray(X[3, :4])
    everything = np.concatenate([X[:2, :3].ravel(), X[3, :4]]).astype(np.float64)
    before = np.linalg.norm(everything, order)
    assert nn.utils.clip_grad_norm_([p, q], 0.5, order).item() == pytest.approx(before, rel=1e-5)
    after = np.linalg.norm(np.concatenate([p.grad.numpy().ravel(), q.grad.numpy()]), order)
    assert after == pytest.approx(0.5, rel=1e-4)
    saved = p.grad.numpy().copy()
    nn.utils.clip_grad_norm_([p, q], 100.0, order)
    np.testing.assert_array_equal(p.grad.numpy(), saved)


def test_clip_grad_value() -> None:
    p = nn.Parameter(np.zeros((4, 6), np.float32))
    with pytest.raises(GradientError, match="at least one of the 1 Parameters must have a gradient"):
        nn.utils.clip_grad_value_(p, 0.5)
    p.grad = rn.asarray(X)
    nn.utils.clip_grad_value_(p, 0.5)
    np.testing.assert_array_equal(p.grad.numpy(), np.clip(X, -0.5, 0.5))
