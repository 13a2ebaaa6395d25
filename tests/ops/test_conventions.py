"""Values and gradients at kinks and ties, arrays without axes and bools, as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.core.errors import AxisError, ShapeError
from runnel.nn import functional

NAN = math.nan


def gradient(function: Callable[[rn.Tensor], rn.Tensor], *values: float) -> list[float]:
    x = rn.tensor(list(map(float, values)), requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


GRADIENTS: dict[str, tuple[Callable[[rn.Tensor], Any], list[float], list[float]]] = {
    "fmax goes to the first of equals": (lambda x: torch.fmax(x, rn.asarray([1.0, 3.0, NAN])), [1, 2, 3], [1, 0, 1]),
    "and to the second": (lambda x: torch.fmax(rn.asarray([1.0, 3.0, NAN]), x), [1, 2, 3], [0, 0, 1]),
    "fmin": (lambda x: torch.fmin(x, rn.asarray([1.0, 3.0, NAN])), [1, 2, 3], [1, 1, 1]),
    "atan2 at the origin": (lambda x: rn.atan2(x, rn.asarray([0.0, 1.0])), [0, 0], [0, 1]),
    "power 0": (lambda x: x**0, [0, 2], [0, 0]),
    "a norm of order ½ at 0": (lambda x: rn.linalg.vector_norm(x, 0.5), [0, 0], [0, 0]),
    "beside others": (lambda x: rn.linalg.vector_norm(x, 0.5), [0, 4, 0], [0, 1, 0]),
    "a norm of order -1 at 0": (lambda x: rn.linalg.vector_norm(x, -1), [0, 2], [0, 0]),
    "the number beside": (lambda x: rn.nextafter(x, rn.asarray([2.0, 1.0])), [1, 1], [1, 0]),
    "a ranking at its margin": (
        lambda x: functional.margin_ranking_loss(x, rn.zeros(2), rn.ones(2), 1.0, reduction="sum"), [1, 2], [-1, 0],
    ),
    "a triplet at its margin": (
        lambda x: functional.triplet_margin_loss(x[None], x[None] - 5, rn.asarray([[3.0]]), 6.0, eps=0.0), [4], [-1],
    ),
    "everything dropped": (lambda x: functional.dropout(x, 1.0), [1, 2], [0, 0]),
    "the hinge at its margin": (
        lambda x: functional.hinge_embedding_loss(x, rn.asarray([-1.0, -1.0]), reduction="sum"), [1, 2], [-1, 0],
    ),
}  # fmt: skip


def test_values_at_ends() -> None:
    far, near = rn.asarray([1e8]), rn.asarray([1.0])
    for weight in (1.0, rn.asarray([1.0])):
        assert rn.lerp(far, near, weight).item() == 1.0 and rn.lerp(near, far, 1 - weight).item() == 1.0
    bounded = rn.clip(rn.asarray([1.0, NAN]), rn.asarray([NAN, 0.0]), rn.asarray([2.0, 1.0]))
    assert np.isnan(bounded.numpy()).all()
    losses = functional.kl_div(rn.asarray([-1.0, -1.0]), rn.asarray([0.0, -1.0]), reduction="none").numpy()
    assert losses[0] == 0 and np.isnan(losses[1])
    labels = rn.asarray(np.array([1, 3], np.uint8))
    assert rn.bincount(labels).tolist() == [0, 1, 0, 1]
    assert rn.segment_sum(rn.ones(2), labels).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    function, values, expected = GRADIENTS[name]
    assert gradient(function, *values) == expected


def test_singular_values_of_a_singular_matrix_have_a_gradient() -> None:
    x = rn.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    rn.linalg.norm(x, "nuc").backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad[0, 0].item() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "logsumexp"])
def test_an_array_without_axes_has_the_axes_0_and_minus_1(name: str) -> None:
    x = rn.asarray(2.5)
    for axis in (0, -1):
        assert getattr(torch, name)(x, axis).item() == pytest.approx(2.5)
        assert getattr(torch, name)(x, axis, keepdims=True).shape == ()
    with pytest.raises(AxisError):
        getattr(torch, name)(x, 1)
    assert rn.argmax(x, 0).item() == 0 and rn.any(x > 0, -1).item() is True


def test_extremes_of_bools() -> None:
    x = rn.asarray([[True, False], [False, False]])
    assert rn.max(x, 1).tolist() == [True, False] and rn.min(x).item() is False
    assert x.max(1).values.tolist() == [True, False] and rn.argmax(x, 1).tolist() == [0, 0]
    assert rn.tril(x).dtype is rn.bool_


def test_one_sequence_serves_values_of_any_shape() -> None:
    values = rn.asarray([[0.5, -2.0, 1.0], [3.0, 0.0, -1.0]])
    expected = np.searchsorted([-1.0, 0.0, 1.0, 2.0], values.numpy())
    assert rn.searchsorted(rn.asarray([-1.0, 0.0, 1.0, 2.0]), values).tolist() == expected.tolist()
    assert rn.isin(values, rn.asarray([3.0, 0.0, 5.0, 6.0])).tolist() == np.isin(values.numpy(), [3, 0]).tolist()
    assert rn.einsum("ij,k->ijk", values, rn.ones(2)).shape == (2, 3, 2)


def test_norms_have_the_arguments_of_pytorch() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 4))
    norm = rn.linalg.matrix_norm(rn.asarray(x), 1, (0, 2), keepdims=True)
    np.testing.assert_allclose(norm.numpy(), np.linalg.norm(x, 1, (0, 2), keepdims=True), rtol=1e-12)
    vector = rn.linalg.vector_norm(rn.asarray(x), 3, 1)
    np.testing.assert_allclose(vector.numpy(), np.linalg.norm(x, 3, 1), rtol=1e-12)
    with pytest.raises(AxisError, match="two axes"):
        rn.linalg.matrix_norm(rn.asarray(x), axis=1)


def test_smaller_names() -> None:
    x = rn.asarray([[1.26, -0.0], [3.0, 4.0]])
    assert rn.round(x, decimals=1).tolist() == np.round(x.numpy(), 1).tolist()
    assert torch.angle(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert x.squeeze(0).shape == (2, 2) and x[:1].squeeze(0).shape == (2,)
    with pytest.raises(ShapeError):
        rn.squeeze(x, 0)
    assert x.select(1, 0).tolist() == x[:, 0].tolist() and x.mean(0, dtype="float64").dtype is rn.float64
    assert torch.fliplr(x).tolist() == np.fliplr(x.numpy()).tolist() and x.flipud().tolist() == x.numpy()[::-1].tolist()
    assert torch.rsub(rn.ones(2), 3, alpha=2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, 4, math.inf])
def test_norms_of_simple_vectors(order: float) -> None:
    """One and no elements that are not 0, sums of powers that are 1 among them."""
    for row in ([0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.25, 0.25], [3.0, -4.0]):
        x = np.array([row])
        expected = np.sum(np.abs(x) ** order) ** (1 / order) if order < math.inf else np.abs(x).max()
        np.testing.assert_allclose(rn.norm(rn.asarray(x), order).item(), expected, rtol=1e-14)
        np.testing.assert_allclose(rn.norm(rn.asarray(x), order, 1).numpy(), [expected], rtol=1e-14)


def test_distances_of_whole_arrays() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 3, 4))
    for order in (1, 2, 3, math.inf):
        expected = np.linalg.norm((x - y).ravel(), order)
        np.testing.assert_allclose(torch.dist(rn.asarray(x), rn.asarray(y), order).item(), expected, rtol=1e-14)


def test_ranks_are_counted_along_the_axis() -> None:
    x = rn.asarray(np.arange(10.0).reshape(2, 5))
    assert torch.kthvalue(x, 5).values.tolist() == [4, 9] and torch.kthvalue(x, 2, 0).values.tolist() == [5, 6, 7, 8, 9]
    for k, axis in ((6, 1), (3, 0), (0, 1)):
        with pytest.raises(ShapeError, match=f"k={k} of the {x.shape[axis]} elements along axis {axis}"):
            torch.kthvalue(x, k, axis)


def test_ranks_of_empty_matrices() -> None:
    assert rn.linalg.matrix_rank(rn.zeros((3, 0, 2))).tolist() == [0, 0, 0]
    assert rn.linalg.matrix_rank(rn.zeros((2, 3, 0, 2))).shape == (2, 3)
