"""Weights that are computed from others: parametrizations, weight and spectral norm, pruning."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn.utils import parametrizations, parametrize, prune
from tests.random_numbers import RNG

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Symmetric(nn.Module):
    """The upper triangle, and its mirror image below the diagonal."""

    def forward(self, x: Any) -> Any:
        rows, columns = ops.iota(x, x.shape, 0), ops.iota(x, x.shape, 1)
        return rn.where(columns >= rows, x, x.mT)

    def right_inverse(self, x: Any) -> Any:
        return x


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2

    def right_inverse(self, x: Any) -> Any:
        return x / 2


def trained(layer: nn.Module, compiled: bool) -> nn.Module:
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    x = rn.asarray(X)

    def step() -> None:
        optimizer.zero_grad()
        (layer(x) ** 2).sum().backward()
        optimizer.step()

    run = rn.compile(step) if compiled else step
    for _ in range(3):
        run()
    return layer


WAYS = {
    "weight_norm": nn.utils.weight_norm,
    "spectral_norm": nn.utils.spectral_norm,
    "parametrized weight norm": parametrizations.weight_norm,
    "parametrized spectral norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "cayley": lambda layer: parametrizations.orthogonal(layer, orthogonal_map="cayley"),
    "symmetric": lambda layer: parametrize.register_parametrization(layer, "weight", Symmetric()),
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
}


@pytest.mark.parametrize("way", WAYS)
def test_training_compiled_gives_the_bits_of_eager_training(way: str) -> None:
    layer = WAYS[way](nn.Linear(4, 4))
    twin = copy.deepcopy(layer)
    for a, b in zip(trained(layer, False).parameters(), trained(twin, True).parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=way)
    state = twin.state_dict()
    fresh = WAYS[way](nn.Linear(4, 4))
    fresh.load_state_dict(state)
    fresh.eval(), twin.eval()
    np.testing.assert_array_equal(fresh(rn.asarray(X)).numpy(), twin(rn.asarray(X)).numpy())


def test_parametrizations_follow_each_other_and_can_be_set() -> None:
    layer = nn.Linear(4, 4)
    before = layer.weight.numpy().copy()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert [n for n, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "Linear" and parametrize.is_parametrized(layer, "weight")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    np.testing.assert_array_equal(layer.weight.numpy(), np.triu(before) + np.triu(before, 1).T)
    expected = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = expected + expected.T
    layer.weight = rn.asarray(expected)
    np.testing.assert_array_equal(layer.weight.numpy(), expected)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    value = layer.weight.numpy()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    np.testing.assert_array_equal(layer.weight.numpy(), value)


def test_parametrizations_that_do_not_fit() -> None:
    class Shorter(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:1]

    layer = nn.Linear(4, 4)
    with pytest.raises(ShapeError, match=r"must return float32\[4, 4\] .*got float32\[1, 4\]\. Pass unsafe=True"):
        parametrize.register_parametrization(layer, "weight", Shorter())
    assert isinstance(layer.weight, nn.Parameter) and not parametrize.is_parametrized(layer)
    with pytest.raises(ArgumentError, match="has no Parameter 'weights'"):
        parametrize.register_parametrization(layer, "weights", Doubled())
    with pytest.raises(ArgumentError, match="has no parametrized 'weight'"):
        parametrize.remove_parametrizations(layer, "weight")


def test_norms_are_what_they_say_and_go_away() -> None:
    layer = nn.Linear(4, 3)
    weight = layer.weight.numpy().copy()
    nn.utils.weight_norm(layer)
    np.testing.assert_allclose(layer.weight.numpy(), weight, rtol=1e-6)
    layer.weight_g.assign(layer.weight_g * 2)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.numpy(), 2 * weight, rtol=1e-6)
    nn.utils.spectral_norm(layer, n_power_iterations=30)
    layer(rn.asarray(X))
    np.testing.assert_allclose(np.linalg.svd(layer.weight.numpy())[1][0], 1, rtol=1e-4)
    with pytest.raises(AttributeError, match="cannot be set"):
        layer.weight = nn.Parameter(weight)
    nn.utils.remove_spectral_norm(layer)
    assert type(layer) is nn.Linear and [n for n, _ in layer.named_parameters()] == ["bias", "weight"]
    with pytest.raises(ArgumentError, match="is not computed in this way"):
        nn.utils.remove_weight_norm(layer)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_weights_stay_orthogonal(shape: tuple[int, int]) -> None:
    layer = nn.Linear(*shape, bias=False).double()
    parametrizations.orthogonal(layer)
    original = layer.parametrizations.weight.original
    original.assign(original + rn.asarray(np.random.default_rng(1).standard_normal(original.shape)))
    weight = layer.weight.numpy()
    tall = weight if weight.shape[0] >= weight.shape[1] else weight.T
    np.testing.assert_allclose(tall.T @ tall, np.eye(tall.shape[1]), atol=1e-10)


def test_pruning() -> None:
    layer = nn.Linear(6, 4)
    layer.weight.assign(np.arange(24, dtype=np.float32).reshape(4, 6) + 1)
    prune.l1_unstructured(layer, "weight", 6)
    assert not layer.weight.numpy()[0].any() and layer.weight_mask.numpy()[1:].all()
    prune.ln_structured(layer, "weight", 0.5, n=2, dim=1)
    assert layer.weight_mask.numpy()[:, :3].sum() == 0 and prune.is_pruned(nn.Sequential(layer))
    prune.random_unstructured(layer, "bias", amount=0.25)
    assert layer.bias_mask.numpy().sum() == 3
    weight = layer.weight.numpy()
    prune.remove(layer, "weight")
    prune.remove(layer, "bias")
    np.testing.assert_array_equal(layer.weight.numpy(), weight)
    assert type(layer) is nn.Linear and not prune.is_pruned(layer)
    two = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    two[1].weight.assign(two[1].weight * 100)
    prune.global_unstructured([(m, "weight") for m in two], prune.L1Unstructured, amount=4)
    assert not two[0].weight.numpy().any() and two[1].weight.numpy().all()
    with pytest.raises(ValueError, match="amount must be a number of elements, or a share"):
        prune.l1_unstructured(layer, "weight", 1.5)


def test_a_recurrent_layer_by_length_and_direction() -> None:
    layer = nn.LSTM(3, 2)
    x = rn.asarray(np.ones((4, 1, 3), np.float32) * RNG.random())
    plain = layer(x)[0].numpy()
    nn.utils.weight_norm(layer, "weight_hh_l0")
    np.testing.assert_allclose(layer(x)[0].numpy(), plain, rtol=1e-5)
