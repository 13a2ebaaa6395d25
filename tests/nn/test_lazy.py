"""Layers whose sizes follow from the first input: values as of the layers they become, optimizers, states, errors."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import CaptureWarning, ShapeError


def test_a_lazy_layer_becomes_the_layer() -> None:
    net = nn.Sequential(nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    optimizer = optim.SGD(net.parameters(), lr=0.5)
    assert net[0].has_uninitialized_params() and all(p.is_uninitialized for p in (net[0].weight, net[3].weight))
    rn.manual_seed(3)
    x = rn.randn(2, 3, 5, 5)
    out = net(x)
    assert [type(m) for m in net] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear] and out.shape == (2, 2)
    assert (net[0].in_channels, net[1].num_features, net[3].in_features) == (3, 4, 100)
    assert np.abs(net[3].weight.numpy()).max() <= 0.1 and net[3].weight.numpy().std() > 0.03
    before = net[3].weight.numpy()
    out.sum().backward()
    optimizer.step()
    assert not np.array_equal(net[3].weight.numpy(), before)
    compiled = rn.compile(lambda x: net(x))
    net.eval()
    np.testing.assert_array_equal(compiled(x).numpy(), net(x).numpy())


def test_a_state_gives_the_sizes() -> None:
    for lazy, layer in (
        (nn.LazyLinear(3), nn.Linear(5, 3)),
        (nn.LazyConv1d(6, 3, groups=2), nn.Conv1d(4, 6, 3, groups=2)),
        (nn.LazyConvTranspose1d(6, 3), nn.ConvTranspose1d(4, 6, 3)),
        (nn.LazyInstanceNorm1d(), nn.InstanceNorm1d(4, affine=True, track_running_stats=True)),
    ):
        lazy.load_state_dict(layer.state_dict())
        shape = (2, 5) if isinstance(layer, nn.Linear) else (2, 4, 7)
        x = rn.asarray(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
        np.testing.assert_array_equal(lazy(x).numpy(), layer(x).numpy())
        assert type(lazy) is type(layer) and lazy.extra_repr() == layer.extra_repr()


def test_a_first_call_that_is_compiled_runs_eagerly() -> None:
    lazy = nn.LazyLinear(3)
    compiled = rn.compile(lambda x: lazy(x))
    with pytest.warns(CaptureWarning, match="in the middle of a compiled function"):
        first = compiled(rn.ones((2, 3)))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(rn.ones((2, 3))).numpy(), first.numpy())
    assert compiled.statistics["programs"] == 1


def test_refused() -> None:
    with pytest.raises(ShapeError, match="2 spatial ones"):
        nn.LazyConv2d(2, 3)(rn.ones((2, 3)))
    with pytest.raises(ShapeError, match="groups=2 must divide the channels; got 3"):
        nn.LazyConv1d(4, 3, groups=2)(rn.ones((1, 3, 5)))
