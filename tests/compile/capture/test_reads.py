"""What functions read from outside: globals, cells, attributes, arrays, switches."""

from __future__ import annotations

import types

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.compile import compile
from tests.compile.capture.agreeing import same, tensor

GLOBAL_SCALE = 1.0
GLOBAL_ARRAY = np.arange(3, dtype=np.float32)
GLOBAL_TENSOR: rn.Tensor | None = None


def test_closure_global_and_attribute() -> None:
    global GLOBAL_SCALE
    scale = 1.0

    class Model:
        def __init__(self) -> None:
            self.mult = 2.0

        @compile
        def __call__(self, x):
            return x * self.mult * scale + GLOBAL_SCALE

    model, x = Model(), tensor(1, 2)
    GLOBAL_SCALE = 1.0
    assert model(x).tolist() == [3, 5]
    model.mult = 3.0
    assert model(x).tolist() == [4, 7]
    scale = 2.0
    assert model(x).tolist() == [7, 13]
    GLOBAL_SCALE = 0.0
    assert model(x).tolist() == [6, 12]
    assert "GLOBAL_SCALE changed from 1.0 to 0.0" in Model.__call__.retraces[-1]
    model.mult, scale, GLOBAL_SCALE = 2.0, 1.0, 1.0
    traces = Model.__call__.statistics["traces"]
    assert model(x).tolist() == [3, 5]
    assert Model.__call__.statistics["traces"] == traces


def test_branches() -> None:
    flag = True

    @compile
    def f(x, negate):
        y = -x if negate else x
        return y * 2 if flag else y

    x = tensor(1)
    assert (f(x, True).item(), f(x, False).item()) == (-2, 2)
    flag = False
    assert (f(x, True).item(), f(x, False).item()) == (-1, 1)


def test_training_flag() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
    f = compile(lambda x: model(x).detach())
    x = tensor(1, 2, 3).reshape(1, 3)
    f(x)
    model.eval()
    for _ in range(3):
        same(f(x), model(x).detach())
    model.train()
    assert (f(x).numpy() == 0).any() or (f(x).numpy() == 0).any() or (f(x).numpy() == 0).any()


def test_methods_of_two_instances() -> None:
    class Scaler:
        def __init__(self, by: float, shift: rn.Tensor) -> None:
            self.by = by
            self.shift = shift

        @compile
        def apply(self, x):
            return x * self.by + self.shift

    class Affine(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(2, 2)

        @compile
        def forward(self, x):
            return self.linear(x).detach()

    a, b, x = Scaler(2.0, tensor(1)), Scaler(3.0, tensor(2)), tensor(1, 2)
    for _ in range(3):
        assert (a.apply(x).tolist(), b.apply(x).tolist()) == ([3, 5], [5, 8])
    a.shift = tensor(10)
    assert a.apply(x).tolist() == [12, 14]
    p, q, x = Affine(), Affine(), x.reshape(1, 2)
    for _ in range(3):
        same(p(x), p.linear(x).detach())
        same(q(x), q.linear(x).detach())


def test_captured_tensors_and_arrays_are_inputs() -> None:
    w, array = tensor(1, 2), np.array([1, 2], np.float32)
    f = compile(lambda x: x * w + rn.asarray(array) + GLOBAL_ARRAY[:2] * array[0])

    def eager(x):
        return x * w + rn.asarray(array) + GLOBAL_ARRAY[:2] * array[0]

    x = tensor(3, 4)
    same(f(x), eager(x))
    w = tensor(5, 6)
    same(f(x), eager(x))
    assert f.statistics["traces"] == 1
    array[1] = 7
    same(f(x), eager(x))
    array[0] = 5
    same(f(x), eager(x))
    GLOBAL_ARRAY[1] += 1
    same(f(x), eager(x))


def test_a_frozen_parameter_of_a_layer() -> None:
    layer = nn.Linear(2, 1)

    @compile
    def step(x):
        layer.zero_grad()
        layer(x).sum().backward()

    x = tensor(1, 2).reshape(1, 2)
    step(x)
    assert layer.weight.grad.tolist() == [[1, 2]]
    layer.weight.requires_grad = False
    step(x)
    assert layer.weight.grad is None and layer.bias.grad.tolist() == [1]


def test_what_is_written_past_setattr() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.mode, self.inner = "a", nn.Identity()

        def forward(self, x):
            return self.inner(x) * 2 if self.mode == "a" else x

    model = Model()
    f = compile(lambda x: model(x))
    assert f(tensor(1)).item() == 2
    model.__dict__["mode"] = "b"
    assert f(tensor(1)).item() == 1
    vars(model).update(mode="a", inner=nn.ReLU())
    assert f(tensor(-1)).item() == 0


@pytest.mark.parametrize("place", ["cell", "global", "item", "attribute"])
def test_a_view_is_exchanged_for_what_it_was_a_view_of(place: str) -> None:
    def states(way):
        global GLOBAL_TENSOR
        base = GLOBAL_TENSOR = rn.arange(9.0).reshape(3, 3) + 0.0
        held, inside = {"view": base}, types.SimpleNamespace(base=base)

        def from_cell(x):
            base[0] = x
            held["view"][0] += 1.0
            return held["view"] @ x

        def from_global(x):
            GLOBAL_TENSOR[0] = x
            held["view"][0] += 1.0
            return held["view"] @ x

        def from_item(x):
            held["base"][0] = x
            held["view"][0] += 1.0
            return held["view"] @ x

        def from_attribute(x):
            inside.base[0] = x
            held["view"][0] += 1.0
            return held["view"] @ x

        held["base"] = base
        function = way(
            {"cell": from_cell, "global": from_global, "item": from_item, "attribute": from_attribute}[place]
        )
        seen = []
        for k in range(6):
            held["view"] = base if k % 2 else base.T
            seen.append((function(tensor(1, 2, k)).tolist(), base.tolist()))
        return seen

    assert states(compile) == states(lambda function: function)
