"""Modules in other dtypes, the tree by path, and names registered by hand."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import ArgumentError, DTypeError, MissingNameError


def test_every_float_dtype_and_back() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    weight, reference = net[0].weight.numpy(), net[0].weight
    for method, dtype in (("half", "float16"), ("bfloat16", "bfloat16"), ("double", "float64"), ("float", "float32")):
        assert getattr(net, method)() is net
        assert {p.dtype.name for p in (*net.parameters(), net[1].running_mean)} == {dtype}
        assert net[1].num_batches_tracked.dtype is rn.int64
        assert net(rn.ones((2, 3), dtype=dtype)).dtype.name == dtype
    assert net[0].weight is reference
    np.testing.assert_allclose(net[0].weight.numpy(), weight, rtol=1e-2)
    assert net.to(rn.ones(1, dtype="float64"))[0].weight.dtype is rn.float64
    assert net.to("cpu", "float32").to(dtype=None)[0].weight.dtype is rn.float32
    assert net.type("float64")[1].num_batches_tracked.dtype is rn.float64
    with pytest.raises(DTypeError, match="dtype must be floating-point; got int32"):
        net.to(rn.int32)
    with pytest.raises(ArgumentError, match="must get one dtype"):
        net.to("float32", "float64")


def test_compiled_steps_and_optimizers_follow_a_conversion() -> None:
    net = nn.Linear(3, 2)
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = (net(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    first = float(step(rn.ones((2, 3))))
    net.double()
    second = step(rn.ones((2, 3), dtype="float64"))
    assert second.dtype is rn.float64 and float(second) < first
    assert net.weight.dtype is rn.float64


def test_paths_name_modules_and_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert net.get_submodule("1") is net[1] and net.get_submodule("") is net
    assert net.get_parameter("0.weight") is net[0].weight and net.get_buffer("1.running_mean") is net[1].running_mean
    net.set_submodule("0", nn.Linear(2, 3))
    assert net[0].out_features == 3
    for wrong in (
        lambda: net.get_submodule("0.weight"),
        lambda: net.get_parameter("1.running_mean"),
        lambda: net.get_buffer("0.weight"),
        lambda: net.get_submodule("2"),
        lambda: net.set_submodule("7", nn.ReLU(), strict=True),
    ):
        with pytest.raises(MissingNameError, match="Sequential has no"):
            wrong()


def test_names_registered_by_hand() -> None:
    net = nn.Module()
    net.register_module("first layer", nn.Linear(1, 1))
    net.add_module("again", net.get_submodule("first layer"))
    net.register_parameter("scale", nn.Parameter(np.ones(1, np.float32)))
    assert [n for n, _ in net.named_parameters()] == ["scale", "first layer.weight", "first layer.bias"]
    assert [n for n, _ in net.named_parameters(recurse=False)] == ["scale"]
    twice = [n for n, _ in net.named_modules(remove_duplicate=False)]
    assert twice == ["", "first layer", "again"] and len(list(net.named_modules())) == 2
    assert len(list(net.named_parameters(remove_duplicate=False))) == 5
    for name in ("", "a.b", "forward"):
        with pytest.raises(KeyError, match="name must not be empty"):
            net.register_module(name, nn.ReLU())
    with pytest.raises(TypeError, match="got str"):
        net.register_module("b", "ReLU")


def test_a_sequence_with_names() -> None:
    net = nn.Sequential({"conv": nn.Linear(2, 3), "act": nn.ReLU()})
    assert list(net.state_dict()) == ["conv.weight", "conv.bias"] and net[0] is net.conv and len(net) == 2
    net.append(nn.Linear(3, 1))
    assert [n for n, _ in net.named_children()] == ["conv", "act", "2"]
    del net[1]
    assert [n for n, _ in net.named_children()] == ["conv", "1"] and net(rn.ones((1, 2))).shape == (1, 1)
    assert net.pop(0).out_features == 3 and len(net) == 1
    assert len(nn.Sequential(nn.ReLU()) * 3) == 3 and len(nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())) == 2
