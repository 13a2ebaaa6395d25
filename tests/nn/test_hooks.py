"""Hooks of modules: forwards, backwards, around states; eagerly, compiled, copied and taken away."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError, StateError

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 10


def doubled(module: nn.Module, args: Any, result: Any) -> Any:
    return result * 2


def shifted(module: nn.Module, args: Any) -> Any:
    return args[0] + 1


def test_arguments_and_results_are_replaced_in_order() -> None:
    layer, recorded = nn.Tanh(), []
    x = rn.asarray(X)
    plain = layer(x).numpy()
    handles = [
        layer.register_forward_hook(doubled),
        layer.register_forward_hook(lambda m, args, result: recorded.append((m, args, result)), prepend=True),
        layer.register_forward_pre_hook(shifted),
    ]
    np.testing.assert_array_equal(layer(x).numpy(), 2 * np.asarray(nn.Tanh()(x + 1)))
    assert recorded[0][0] is layer and np.array_equal(recorded[0][1][0].numpy(), X + 1)
    assert type(layer).__name__ == "Tanh" and isinstance(layer, nn.Tanh) and repr(layer) == "Tanh()"
    for handle in handles:
        handle.remove()
        handle.remove()
    assert type(layer) is nn.Tanh
    np.testing.assert_array_equal(layer(x).numpy(), plain)


def test_hooks_with_keywords_and_of_failed_calls() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any, *, by: float) -> Any:
            return x * by

    module, failed = Scaled(), []
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    with module.register_forward_hook(lambda m, args, kwargs, y: y + kwargs["by"], with_kwargs=True):
        assert module(rn.ones(2), by=2.0).tolist() == [6.0, 6.0]
    assert module(rn.ones(2), by=2.0).tolist() == [3.0, 3.0]
    module.register_forward_hook(lambda m, args, y: failed.append(y), always_call=True)
    with pytest.raises(TypeError):
        module(None, by=2.0)
    assert failed == [None]
    with pytest.raises(ArgumentError, match="hook must be a function; got int"):
        module.register_forward_hook(3)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_pass_by_hooks(compiled: bool) -> None:
    layer = nn.Linear(3, 2)
    x, y = rn.tensor(X, requires_grad=True), rn.tensor(X + 1, requires_grad=True)
    net = nn.Sequential(layer, nn.Tanh())
    expected = rn.grad(lambda x: net(x).sum())(x).numpy()
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] * 3,))
    layer.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))

    def gradient(x: Any) -> Any:
        return rn.grad(lambda x: net(x).sum())(x)

    actual = (rn.compile(gradient) if compiled else gradient)(x)
    np.testing.assert_allclose(actual.numpy(), expected * 6, rtol=1e-6)
    if compiled:
        return

    class Product(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x * y, x + y

    module, recorded = Product(), []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: recorded.append((grad_in, grad_out)))
    product, total = module(x, y)
    (product.sum() + 2 * total.sum()).backward()
    ((dx, dy), (dp, ds)) = recorded[0]
    assert len(recorded) == 1
    np.testing.assert_allclose(dx.numpy(), X + 3, rtol=1e-6)
    np.testing.assert_allclose(dy.numpy(), X + 2, rtol=1e-6)
    np.testing.assert_array_equal(x.grad.numpy(), dx.numpy())
    assert (dp.numpy() == 1).all() and (ds.numpy() == 2).all()


def test_compiled_functions_call_hooks_and_notice_changes() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    step, x = rn.compile(lambda x: net(x)), rn.asarray(X)
    plain = step(x).numpy()
    handle = net[0].register_forward_hook(doubled)
    np.testing.assert_array_equal(step(x).numpy(), net(x).numpy())
    np.testing.assert_allclose(step(x).numpy(), plain * 2, rtol=1e-6)
    handle.remove()
    np.testing.assert_array_equal(step(x).numpy(), plain)


def test_copies_keep_their_hooks() -> None:
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(doubled)
    x = rn.asarray(X)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(twin) is type(layer)
        np.testing.assert_array_equal(twin(x).numpy(), layer(x).numpy())


def test_errors_say_where_below_a_module_with_hooks() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 2))
    net[1].register_forward_hook(doubled)
    with pytest.raises(rn.core.errors.ShapeError) as caught:
        net(rn.asarray(X))
    assert any("1 (Linear) of Sequential" in note for note in caught.value.__notes__)


def test_states_pass_by_hooks() -> None:
    net, recorded = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: recorded.append(("saving", prefix, keep_vars)))
    net[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(f"{prefix}bias"))
    state = net.state_dict(prefix="net.")
    assert list(state) == ["net.0.weight"] and recorded == [("saving", "net.", False)]
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight

    def renamed(module: Any, state: Any, prefix: str, meta: Any, strict: bool, *reports: Any) -> None:
        state[f"{prefix}weight"] = state.pop(f"{prefix}old_weight")
        if strict and "bad" in state:
            reports[-1].append("it is bad.")

    def accepted(module: Any, report: Any) -> None:
        report.missing_keys.clear()

    net[0].register_load_state_dict_pre_hook(renamed)
    net.register_load_state_dict_post_hook(accepted)
    arguments = {"0.old_weight": np.full((2, 2), 3, np.float32)}
    assert net.load_state_dict(arguments, strict=False).missing_keys == []
    assert "0.old_weight" in arguments and net[0].weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(StateError, match=r"does not fit Sequential: it is bad\. Nothing was loaded"):
        net.load_state_dict({**arguments, "bad": 1})


def test_extra_state() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            self.count = 3
            self.layer = nn.Linear(1, 1)

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    first, second = (nn.ModuleDict({"a": Counting()}) for _ in range(2))
    first["a"].count = 7
    state = first.state_dict()
    assert state["a._extra_state"] == {"count": 7}
    second.load_state_dict(state)
    assert second["a"].count == 7
    del state["a._extra_state"]
    with pytest.raises(StateError, match=r"missing 'a\._extra_state'"):
        second.load_state_dict(state)
    assert second.load_state_dict(state, strict=False).missing_keys == ["a._extra_state"]
