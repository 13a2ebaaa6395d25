"""Submodules that are added, replaced and shared between calls of a compiled function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runnel import nn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.models import Scaled, rows, story_of
from tests.compile.adversarial.worlds import Case, Cases

CASES = Cases()
case = CASES.case


@case
def submodule_replaced():
    m = Scaled()
    return story_of(m, lambda: setattr(m, "layer", nn.Linear(4, 2)), lambda: setattr(m, "layer", nn.Identity()))


@case
def layer_of_a_sequential_replaced():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return story_of(m, lambda: m.__setitem__(1, nn.Tanh()), lambda: setattr(m, "0", nn.Identity()))


@case
def sequential_grows():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return story_of(m, lambda: m.append(nn.Tanh()))


class Stack(nn.Module):
    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers.values() if hasattr(self.layers, "values") else self.layers:
            x = layer(x)
        return x


@case
def module_list_changes():
    m = Stack(nn.ModuleList([nn.Linear(4, 4), nn.ReLU()]))

    def swap() -> None:
        a, b = m.layers[0], m.layers[1]
        m.layers[0], m.layers[1] = b, a

    return story_of(m, swap, lambda: m.layers.append(nn.Tanh()), lambda: m.layers.__setitem__(0, nn.Linear(4, 4)))


@case
def module_list_slices_and_enumerate():
    layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.Tanh()])

    def f(x):
        for i, layer in enumerate(layers[1:]):
            x = layer(x) * (i + 1)
        return x + len(layers)

    return f, [*warm(rows()), lambda: layers.append(nn.Sigmoid()), *warm(rows())]


@case
def module_dict_changes():
    m = Stack(nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()}))
    return story_of(m, lambda: m.layers.__setitem__("b", nn.Tanh()), lambda: m.layers.__setitem__("c", nn.ReLU()))


@case
def plain_list_of_layers():
    m = Scaled()
    m.branches = [nn.Linear(4, 4), nn.Linear(4, 4)]
    return (lambda x: sum(b(x) for b in m.branches)), [
        *warm(rows()),
        lambda: m.branches.pop(),
        *warm(rows()),
        lambda: m.branches.append(nn.ReLU()),
        *warm(rows()),
    ]


@case
def dict_of_layers_in_a_closure():
    heads = {"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)}
    return (lambda x, name: heads[name](x)), [
        *warm(rows(), "a"),
        *warm(rows(), "b"),
        lambda: heads.update(a=heads["b"]),
        *warm(rows(), "a"),
    ]


@case
def parameter_list_changes():
    ps = nn.ParameterList([nn.Parameter(np.ones(4, np.float32)), nn.Parameter(np.full(4, 2, np.float32))])
    return (lambda x: sum(p * x for p in ps)), [
        *warm(x()),
        lambda: ps.append(nn.Parameter(np.ones(4, np.float32))),
        *warm(x()),
    ]


@case
def shared_layer():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a

        def forward(self, x):
            return self.a(self.b(x)) if self.a is self.b else self.a(x)

    m = Own()
    return story_of(m, lambda: setattr(m, "b", nn.Linear(4, 4)), lambda: setattr(m, "a", m.b))


@case
def tied_weights():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.a(x) @ self.b.weight

    m = Own()
    return story_of(
        m,
        lambda: setattr(m.b, "weight", nn.Parameter(np.eye(4, dtype=np.float32))),
        lambda: m.a.weight.assign(np.ones((4, 4), np.float32)),
    )


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
