"""einops on tensors: its results on NumPy's arrays, eagerly, compiled, with gradients, and as layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.random_numbers import RNG

pytest.importorskip("einops", reason="einops is not installed")

import einops

import runnel.compat.einops
from runnel.compat.einops.layers import EinMix, Rearrange, Reduce

PATTERNS: dict[str, Any] = {
    "rearrange": lambda x, w: einops.rearrange(x, "b (h k) c -> (b h) c k", h=3),
    "rearrange a list": lambda x, w: einops.rearrange([x, x], "n b s c -> b (n s) c"),
    "mean": lambda x, w: einops.reduce(x, "b (h k) c -> b h", "mean", k=2),
    "max": lambda x, w: einops.reduce(x, "b s c -> c", "max"),
    "any": lambda x, w: einops.reduce(x > 0, "b s c -> c", "any"),
    "repeat": lambda x, w: einops.repeat(x[0], "s c -> s n c", n=5),
    "einsum": lambda x, w: einops.einsum(x, w, "b s c, c d -> b s d"),
    "pack": lambda x, w: einops.pack([x, x[:, :2]], "b * c")[0],
    "unpack": lambda x, w: einops.unpack(x, [(2,), (4,)], "b * c")[1],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_values_eager_and_compiled(name: str) -> None:
    function = PATTERNS[name]
    arrays = [RNG.normal(size=shape).astype(np.float32) for shape in ((2, 6, 4), (4, 5))]
    expected, result = function(*arrays), function(*map(rn.asarray, arrays))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(rn.compile(function)(*map(rn.asarray, arrays)).numpy(), result.numpy())


def test_gradients() -> None:
    x = rn.tensor([[1.0, 5.0], [2.0, 3.0]], requires_grad=True)
    (einops.reduce(x, "a b -> a", "max") * rn.asarray([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [0.0, 2.0]]


def test_layers_train_in_a_compiled_step() -> None:
    model = rn.nn.Sequential(
        Rearrange("b (h k) c -> b h (k c)", h=3),
        EinMix("b h c -> b h d", weight_shape="c d", bias_shape="d", c=8, d=7),
        Reduce("b h d -> b d", "mean"),
        rn.nn.Linear(7, 2),
    )
    assert list(model.state_dict()) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    optimizer = rn.optim.SGD(model.parameters(), lr=0.1)
    x = rn.asarray(RNG.normal(size=(2, 6, 4)).astype(np.float32))

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(x)) for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_names_and_the_array_api_of_einops() -> None:
    x = rn.ones((2, 6, 4))
    assert runnel.compat.einops.rearrange is einops.rearrange
    assert einops.parse_shape(x, "a b _") == {"a": 2, "b": 6}
    assert einops.rearrange(rn.Variable(x), "a b c -> (a b) c").shape == (12, 4)
    from einops import array_api

    assert array_api.reduce(x, "a b c -> c", "mean").shape == (4,)
