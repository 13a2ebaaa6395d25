"""Modules as functions of their Parameters, and what visits all modules of a tree."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import ArgumentError


def test_a_call_with_other_parameters_leaves_the_module_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    x = rn.asarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    y = rn.functional_call(model, {"0.weight": rn.eye(2), "0.bias": rn.zeros(2)}, x)
    np.testing.assert_allclose(y.mean(0).numpy(), [0, 0], atol=1e-6)
    with pytest.raises(ArgumentError, match=r"has no '0\.wait'"):
        rn.functional_call(model, {"0.wait": rn.eye(2)}, x)
    with pytest.raises(ArgumentError, match=r"needs '0\.bias' as well"):
        rn.functional_call(model, {"0.weight": rn.eye(2)}, x, strict=True)
    own = {k: v for k, v in model.state_dict().items() if k.startswith("0.")}
    assert all(np.array_equal(own[k].numpy(), before[k]) for k in own)


def test_gradients_reach_what_was_passed() -> None:
    layer = nn.Linear(2, 1, bias=False)
    weight = rn.tensor([[1.0, 2.0]], requires_grad=True)
    rn.functional_call(layer, {"weight": weight}, rn.asarray([[3.0, 4.0]])).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[3.0, 4.0]] and layer.weight.grad is None


def test_one_parameter_under_two_names_is_replaced_under_both() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Linear(2, 2, bias=False)
            self.second = nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x: rn.Tensor) -> rn.Tensor:
            y: rn.Tensor = self.second(self.first(x))
            return y

    x = rn.ones(1, 2)
    assert rn.functional_call(Tied(), {"first.weight": rn.eye(2) * 2}, x).tolist() == [[4.0, 4.0]]
    with pytest.raises(ArgumentError, match="are one Parameter"):
        rn.functional_call(Tied(), {"first.weight": rn.eye(2), "second.weight": rn.eye(2)}, x)


def test_stacked_modules_are_one_map() -> None:
    models = [nn.Linear(3, 2) for _ in range(3)]
    parameters, buffers = rn.stack_module_state(models)
    x = rn.ones(4, 3)
    together = rn.vmap(lambda p, b: rn.functional_call(models[0], (p, b), x))(parameters, buffers)
    for out, model in zip(together, models, strict=True):
        np.testing.assert_allclose(out.numpy(), model(x).numpy(), rtol=1e-6)
    assert parameters["weight"].requires_grad and parameters["weight"].shape == (3, 2, 3)


def test_apply_visits_children_in_order_and_then_the_module() -> None:
    seen: list[str] = []
    nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Tanh())).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Tanh", "Sequential", "Sequential"]


def test_initial_values_go_into_tensors_and_data_too() -> None:
    layer, plain = nn.Linear(2, 2), rn.zeros(2, 2)
    assert nn.init.constant_(layer.weight.data, 3.0).tolist() == layer.weight.tolist() == [[3.0, 3.0]] * 2
    leaf = rn.zeros(2, 2).requires_grad_()
    nn.init.eye_(leaf)
    assert nn.init.ones_(plain) is plain and plain.tolist() == [[1.0, 1.0]] * 2
    assert leaf.tolist() == [[1.0, 0.0], [0.0, 1.0]] and leaf.is_leaf and leaf.requires_grad
