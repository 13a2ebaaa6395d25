"""Names of Parameters and buffers go on holding them, whatever is assigned; Variables change in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import GradientError


class Counting(nn.Module):
    """A layer with a buffer of each kind."""

    def __init__(self) -> None:
        self.linear = nn.Linear(2, 3)
        self.register_buffer("mean", np.zeros(3, np.float32))
        self.register_buffer("steps", np.zeros((), np.int64))
        self.register_buffer("later", None)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        self.steps = self.steps + 1
        self.mean *= 0.5
        self.mean = self.mean + y.detach().mean(0) * 0.5
        return y - self.mean


def names(module: nn.Module) -> tuple[list[str], list[str]]:
    return [name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()]


def test_buffers_take_values() -> None:
    x = rn.asarray(np.arange(8, dtype=np.float32).reshape(4, 2))
    eager, compiled = Counting(), Counting()
    compiled.load_state_dict(eager.state_dict())
    run = rn.compile(lambda x: compiled(x))
    mean, steps = eager.mean, eager.steps
    for _ in range(3):
        expected, actual = eager(x), run(x)
        assert np.array_equal(expected.numpy(), actual.numpy())
    assert eager.mean is mean and eager.steps is steps and eager.steps.item() == 3 and compiled.steps.item() == 3
    assert np.array_equal(eager.mean.numpy(), compiled.mean.numpy())
    assert names(eager) == (["linear.weight", "linear.bias"], ["mean", "steps"])
    eager.steps = 7
    eager.mean = np.ones(3, np.float32)
    assert eager.steps.tolist() == 7 and eager.steps is steps and eager.mean.tolist() == [1, 1, 1]
    eager.mean = rn.zeros(5)  # of another shape: a new buffer
    assert eager.mean.shape == (5,) and "mean" in eager.state_dict()
    eager.later = rn.ones(2)
    assert "later" in eager.state_dict()
    eager.mean = None
    eager.mean = rn.ones(3)
    assert "mean" in eager.state_dict()
    with pytest.raises(TypeError, match=r"'mean' holds a buffer.*str"):
        eager.mean = "gone"
    del eager.mean
    eager.mean = "a plain attribute"
    assert "mean" not in eager.state_dict()


@pytest.mark.parametrize("value", [rn.ones((3, 2)), np.ones((3, 2)), 0.0, rn.Variable(np.ones((3, 2))), "text"])
def test_parameters_are_not_lost(value: Any) -> None:
    layer = nn.Linear(2, 3)
    weight = layer.weight
    with pytest.raises(TypeError, match=r"'weight' must stay a Parameter.*weight\.assign\(value\).*Parameter\(value\)"):
        layer.weight = value
    assert layer.weight is weight and list(layer.state_dict()) == ["weight", "bias"]
    layer.bias = None
    with pytest.raises(TypeError, match="'bias' must stay a Parameter"):
        layer.bias = value
    without = nn.Linear(2, 3, bias=False)
    with pytest.raises(TypeError, match="'bias' must stay a Parameter"):
        without.bias = value
    layer.bias = nn.Parameter(np.zeros(3, np.float32))
    layer.weight = nn.Parameter(np.zeros((3, 2), np.float32))
    assert layer.weight is not weight and sorted(layer.state_dict()) == ["bias", "weight"]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "-=": lambda p: p.__isub__(p.grad * 0.5), "sub_": lambda p: p.sub_(p.grad, alpha=0.5),
    "add_": lambda p: p.add_(p.grad, alpha=-0.5), "data": lambda p: p.data.sub_(p.grad * 0.5),
    "data -=": lambda p: p.data.__isub__(p.grad * 0.5), "copy_": lambda p: p.copy_(p - p.grad * 0.5),
    "item": lambda p: p.__setitem__(slice(None), p - p.grad * 0.5), "assign": lambda p: p.assign(p - p.grad * 0.5),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_updates_by_hand(change: str) -> None:
    """A step written with in-place operators trains, eagerly and compiled, to the same bits."""

    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        rn.manual_seed(0)
        layer = nn.Linear(2, 3)

        def step(x: Any) -> Any:
            layer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            with rn.no_grad():
                for p in layer.parameters():
                    CHANGES[change](p)
            return loss

        run = wrap(step)
        x = rn.asarray(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2))
        losses = [run(x).item() for _ in range(4)]
        assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
        return [*losses, *(p.tolist() for p in layer.parameters())]

    assert trained(lambda step: step) == trained(rn.compile)


def test_layers_change_in_place() -> None:
    layer = nn.Linear(2, 3)
    weight, before = layer.weight, layer.weight.numpy().copy()
    layer.weight -= rn.ones((3, 2))
    layer.weight[0] = 5.0
    before -= 1
    before[0] = 5.0
    assert layer.weight is weight and np.array_equal(weight.numpy(), before)
    other = nn.Linear(2, 3)
    with pytest.raises(GradientError, match=r"Parameter 'weight' leads to leaves.*no_grad"):
        layer.weight += other.weight
    assert np.array_equal(weight.numpy(), before)
    with rn.no_grad():
        layer.weight += other.weight
    assert np.array_equal(weight.numpy(), before + other.weight.numpy())


def test_gradients_change_in_place() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    (p * p).sum().backward()
    reference = p.grad
    p.grad.mul_(0.5)
    p.grad += 1.0
    p.grad[0] = 7.0
    assert p.grad.tolist() == [7.0, 2.0, 2.0]
    p.grad.zero_()
    (p * 3.0).sum().backward()
    assert p.grad.tolist() == [3.0] * 3 and reference is not None
    p.grad = None
    assert p.grad is None
    with pytest.raises(GradientError, match=r"\[grad\].*list"):
        p.grad = [1.0]


def test_lists_and_dicts_of_parameters() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            self.row = nn.ParameterList(nn.Parameter(np.full(2, i, np.float32)) for i in range(3))
            self.named = nn.ParameterDict({"a": nn.Parameter(np.ones(1, np.float32))})

        def forward(self, x: Any) -> Any:
            return sum((x * p).sum() for p in self.row) + self.named["a"].sum()

    holder = Holder()
    assert names(holder)[0] == ["row.0", "row.1", "row.2", "named.a"]
    assert holder(rn.ones(2)).item() == 7.0
    holder.row.append(nn.Parameter(np.zeros(2, np.float32)))
    del holder.row[0]
    assert names(holder)[0] == ["row.0", "row.1", "row.2", "named.a"] and len(holder.row[:2]) == 2
    holder(rn.ones(2)).backward()
    assert all(p.grad is not None for p in holder.parameters())
    for wrong in (lambda: holder.row.append([1.0]), lambda: holder.row.__setitem__(0, nn.Linear(1, 1))):
        with pytest.raises(TypeError, match=r"\[ParameterList\] items must be Parameters"):
            wrong()
    with pytest.raises(TypeError, match=r"\[ParameterDict\] items must be Parameters"):
        holder.named["b"] = [1.0]
    nested = nn.ParameterList([nn.ParameterDict({"a": nn.ParameterList([rn.ones(1)])}), rn.ones(2)])
    assert sorted(nested.state_dict()) == ["0.a.0", "1"] and [p.shape for p in nested[0]["a"]] == [(1,)]


def test_state_has_the_parameters_of_a_module_first() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)
            self.register_buffer("a", rn.ones(1))
            self.b = nn.Parameter(rn.ones(1))

    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(Mixed().state_dict()) == ["b", "a", *(f"norm.{name}" for name in norm)]
