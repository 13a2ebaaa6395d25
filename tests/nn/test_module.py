"""Modules: the tree of attributes, names, modes, state, repr."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import DTypeError, RunnelError, ShapeError
from runnel.tensor.variable import STATE_VERSION


class Block(nn.Module):
    """A layer and a buffer."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.register_buffer("seen", np.zeros(n, np.float32))
        self.register_buffer("scratch", np.zeros(n, np.float32), persistent=False)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        return self.fc(x) + self.seen


class Net(nn.Module):
    """Two blocks, one of them in a list, and a shared weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Block(3)
        self.rest = nn.ModuleList([Block(3), nn.ReLU()])
        self.head = nn.Linear(3, 2, bias=False)
        self.scale = nn.Parameter(np.float32(2.0))

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        x = self.first(x)
        for module in self.rest:
            x = module(x)
        return self.head(x) * self.scale


PARAMETERS = ["scale", "first.fc.weight", "first.fc.bias", "rest.0.fc.weight", "rest.0.fc.bias", "head.weight"]


def test_names_follow_the_attributes() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == PARAMETERS
    assert [p.name for p in net.parameters()] == PARAMETERS
    assert [n for n, _ in net.named_buffers()] == ["first.seen", "first.scratch", "rest.0.seen", "rest.0.scratch"]
    assert [n for n, _ in net.named_modules()] == [
        "", "first", "first.fc", "rest", "rest.0", "rest.0.fc", "rest.1", "head",
    ]  # fmt: skip
    assert [n for n, _ in net.named_children()] == ["first", "rest", "head"]
    assert net.get_submodule("rest.0.fc") is net.rest[0].fc
    assert net.num_parameters() == 1 + 12 + 12 + 6


def test_a_module_without_super_init_is_complete() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(2, 2)

    assert len(list(Plain().parameters())) == 2
    assert Plain().training


def test_shared_parameters_count_once_but_are_saved_under_both_names() -> None:
    net = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    net[1].weight = net[0].weight
    assert net.num_parameters() == 16
    assert list(net.state_dict()) == ["0.weight", "1.weight"]
    shared = nn.Sequential(net[0], nn.Sequential(net[0]))
    assert list(shared.state_dict()) == ["0.weight", "1.0.weight"]
    assert shared.num_parameters() == 16 and not shared.load_state_dict(shared.state_dict()).missing_keys


def test_forward_computes_with_the_attributes() -> None:
    net = Net()
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    state = {k: v.numpy().astype(np.float64) for k, v in net.state_dict().items()}
    h = x @ state["first.fc.weight"].T + state["first.fc.bias"]
    h = np.maximum(h @ state["rest.0.fc.weight"].T + state["rest.0.fc.bias"], 0)
    expected = h @ state["head.weight"].T * state["scale"]
    np.testing.assert_allclose(net(rn.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_modes_reach_everything_below() -> None:
    net = Net()
    assert all(not m.training for m in net.eval().modules())
    assert all(m.training for m in net.train().modules())


def test_setting_and_deleting_attributes_ticks_the_clock() -> None:
    net = Net()
    for change in (lambda: setattr(net, "flag", 1), lambda: delattr(net, "flag"), net.eval, net.requires_grad_):
        before = STATE_VERSION.now
        change()
        assert STATE_VERSION.now > before


def test_requires_grad_and_zero_grad() -> None:
    net = Net()
    net(rn.ones((1, 3))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all((p.grad.numpy() == 0).all() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert not net(rn.ones((1, 3))).requires_grad
    assert net.num_parameters(trainable_only=True) == 0


def test_apply_visits_children_first() -> None:
    recorded: list[str] = []
    nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())).apply(lambda m: recorded.append(type(m).__name__))
    assert recorded[-1] == "Sequential"
    assert recorded.index("ReLU") < recorded.index("Sequential")


def test_repr_shows_the_tree_and_counts() -> None:
    text = repr(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1)))
    assert "(0): Linear(4, 3)  # 15 parameters" in text
    assert "(1): Dropout(p=0.1)" in text


# --- state ----------------------------------------------------------------------------------------------------------


def test_state_round_trip_and_what_is_left_out() -> None:
    one, two = Net(), Net()
    state = one.state_dict()
    assert "first.seen" in state and "first.scratch" not in state
    assert two.load_state_dict(state) == ([], [])
    for name, value in two.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())


def test_state_changes_with_training_and_its_copies_do_not() -> None:
    layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = layer.state_dict()
    kept, seen = copy.deepcopy(state), rn.snapshot(layer.state_dict)
    optimizer = rn.optim.SGD(layer.parameters(), 1.0)

    def step() -> None:
        optimizer.zero_grad()
        layer(rn.asarray([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]])).pow(3).sum().backward()
        optimizer.step()

    for train in (step, rn.compile(step)):
        train()
        for name, variable in layer.state_dict(keep_vars=True).items():
            np.testing.assert_array_equal(state[name].numpy(), variable.numpy())
    for name, value in kept.items():
        np.testing.assert_array_equal(value.numpy(), seen[name].numpy())
        assert (value != state[name]).any(), name
    layer.load_state_dict(kept)
    assert (state["0.weight"] == kept["0.weight"]).all() and state["1.num_batches_tracked"] == 0


def test_float64_values_are_converted() -> None:
    layer = nn.Linear(1, 1)
    layer.load_state_dict({"weight": np.array([[0.1]]), "bias": np.array([2.0])})
    assert layer.weight.dtype is rn.float32
    assert layer.weight.item() == np.float32(0.1)


def test_missing_and_unexpected_names_are_reported_with_the_nearest() -> None:
    layer = nn.Linear(2, 2)
    state = {"weights": np.ones((2, 2), np.float32), "bias": np.ones(2, np.float32)}
    before = layer.bias.numpy().copy()
    with pytest.raises(RunnelError, match=r"missing 'weight' \(is it 'weights'\?\).*unexpected 'weights'"):
        layer.load_state_dict(state)
    np.testing.assert_array_equal(layer.bias.numpy(), before)
    assert layer.load_state_dict(state, strict=False) == (["weight"], ["weights"])
    np.testing.assert_array_equal(layer.bias.numpy(), 1)


def test_nothing_is_loaded_when_a_shape_or_dtype_is_wrong() -> None:
    layer = nn.Linear(2, 2)
    before = layer.weight.numpy().copy()
    with pytest.raises(ShapeError, match=r"'bias' of Linear must have shape \(2,\); got \(3,\)"):
        layer.load_state_dict({"weight": np.ones((2, 2), np.float32), "bias": np.ones(3, np.float32)})
    with pytest.raises(DTypeError, match="'bias' of Linear must be float32; got int64"):
        layer.load_state_dict({"weight": np.ones((2, 2), np.float32), "bias": np.ones(2, np.int64)})
    np.testing.assert_array_equal(layer.weight.numpy(), before)


def test_register_buffer_refuses_nonsense() -> None:
    net = Net()
    with pytest.raises(ValueError, match="already has an attribute 'head'"):
        net.register_buffer("head", np.zeros(1))
    with pytest.raises(TypeError, match="must not be a Parameter"):
        net.register_buffer("other", nn.Parameter(np.zeros(1, np.float32)))


@pytest.mark.parametrize("name", ["", "a.b", "train", 1, None, [1]])
@pytest.mark.parametrize("value", [None, "a separate one"])
@pytest.mark.parametrize("what", ["buffer", "parameter", "module"])
def test_impossible_names_of_state_are_refused(what: str, value: str | None, name: Any) -> None:
    values: dict[str, Any] = {"buffer": np.zeros(1), "parameter": nn.Parameter([1.0]), "module": nn.ReLU()}
    net = Net()
    before = dict(net.__dict__)
    with pytest.raises((KeyError, TypeError), match=rf"\[register_{what}\] .*(must not be empty|must be a string)"):
        getattr(net, f"register_{what}")(name, None if value is None else values[what])
    assert dict(net.__dict__) == before


@pytest.mark.parametrize("target", [None, 0, [], b"head"])
@pytest.mark.parametrize("method", ["get_submodule", "get_parameter", "get_buffer", "set_submodule"])
def test_paths_are_strings(method: str, target: Any) -> None:
    further = (nn.ReLU(),) if method == "set_submodule" else ()
    with pytest.raises(TypeError, match=rf"\[{method}\] target must be a string; got"):
        getattr(Net(), method)(target, *further)


def test_apply_takes_functions() -> None:
    with pytest.raises(TypeError, match=r"\[apply\] fn must be a function of a Module; got 3 \(int\)"):
        Net().apply(3)  # type: ignore[arg-type]


def test_forward_must_be_defined() -> None:
    with pytest.raises(NotImplementedError, match=r"\[Empty\] must define forward\(\)"):
        type("Empty", (nn.Module,), {})()(1)
