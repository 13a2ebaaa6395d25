"""Modules and other objects that are called, given to functions of Runnel as functions, and layers in containers that
the function makes."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call

CASES = Cases()


class Scale(nn.Module):
    def __init__(self) -> None:
        self.k = 2.0

    def forward(self, x):
        return x * self.k


class Callable:
    def __init__(self) -> None:
        self.k = 2.0

    def __call__(self, x):
        return x * self.k


class Squares(nn.Module):
    def __init__(self) -> None:
        self.k = 2.0

    def forward(self, x):
        return (x * x * self.k).sum()


class Step(nn.Module):
    def __init__(self) -> None:
        self.k = 2.0

    def forward(self, carry, y):
        return carry * self.k + y, carry


def x() -> rn.Tensor:
    return rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) / 5)


MAPS: dict[str, Any] = {
    "checkpoint": lambda g, x: rn.checkpoint(g, x),
    "gradient_of_checkpoint": lambda g, x: rn.grad(lambda z: rn.checkpoint(g, z).sum())(x),
    "vmap": lambda g, x: rn.vmap(g)(x),
    "jvp": lambda g, x: rn.jvp(g, (x,), (x,)),
    "vjp": lambda g, x: rn.vjp(g, x)[1](x),
    "cond": lambda g, x: rn.cond(x.sum() > 0, g, g, x),
    "while_loop": lambda g, x: rn.while_loop(lambda c: c.sum() < 3.5, g, x),
    "jacfwd": lambda g, x: rn.jacfwd(g)(x),
    "no_grad": lambda g, x: rn.no_grad()(g)(x),
    "autocast": lambda g, x: rn.autocast()(g)(x),
    "compiled": lambda g, x: rn.compile(g)(x),
    "mapped": lambda g, x: next(map(g, [x])),
}
TO_NUMBERS: dict[str, Any] = {
    "grad": lambda g, x: rn.grad(g)(x),
    "hessian": lambda g, x: rn.hessian(g)(x),
    "vmap_of_grad": lambda g, x: rn.vmap(rn.grad(g))(x),
}
WAYS: dict[str, Any] = {
    "itself": lambda h: h,
    "partial": functools.partial,
    "method": lambda h: h.__call__,
    "sequential": lambda h: nn.Sequential(h, nn.Tanh()) if isinstance(h, nn.Module) else h,
}


def add(name: str, kind: Any, use: Any, way: str) -> None:
    def make() -> Any:
        h = kind()
        g = WAYS[way](h)
        change = [lambda: setattr(h, "k", 5.0), *[call(x())] * 2, lambda: setattr(h, "k", 7.0), call(x())]
        return (lambda x: use(g, x)), [*[call(x())] * 2, *change]

    make.__name__ = f"{name}_{kind.__name__}_{way}"
    CASES.case(make)


for name, use in MAPS.items():
    for way in WAYS:
        add(name, Scale, use, way)
    add(name, Callable, use, "itself")
for name, use in TO_NUMBERS.items():
    for way in ("itself", "partial"):
        add(name, Squares, use, way)
for way in ("itself", "partial"):
    add("scan", Step, lambda g, x: rn.scan(g, rn.zeros(3), x), way)


def layers() -> nn.Sequential:
    rn.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))


CONTAINERS: dict[str, Any] = {
    "slice": lambda m, x: m[:1](x),
    "sequential_of_children": lambda m, x: nn.Sequential(*m.children())(x),
    "sequential_of_items": lambda m, x: nn.Sequential(m[0], m[1])(x),
    "list": lambda m, x: next(layer(x) for layer in list(m)),
    "reversed": lambda m, x: functools.reduce(lambda y, layer: layer(y), reversed(list(m)), x),
    "dict": lambda m, x: {"a": m[0], "b": m[1]}["a"](x),
    "module_dict": lambda m, x: nn.ModuleDict({"a": m[0]})["a"](x),
    "module_list": lambda m, x: nn.ModuleList(list(m))[:1][0](x),
    "slice_of_slice": lambda m, x: m[:2][:1](x),
    "checkpointed_slice": lambda m, x: rn.checkpoint(m[:2], x),
    "copy": lambda m, x: copy.copy(m)(x),
    "nested": lambda m, x: nn.Sequential(nn.Sequential(m[0]), nn.Sequential(m[:1]))(x),
    "mapped_over": lambda m, x: next(iter(map(lambda layer: layer(x), m.children()))),
}
CHANGES: dict[str, Any] = {
    "forward": lambda m: setattr(m[0], "forward", lambda x: x * 100),
    "layer": lambda m: m.__setitem__(0, Scale()),
    "frozen": lambda m: m[0].weight.requires_grad_(False),
    "weight": lambda m: m[0].weight.assign(m[0].weight * 2),
}


def add_container(name: str, use: Any, change: str) -> None:
    def make() -> Any:
        m = layers()
        return (lambda x: use(m, x)), [*[call(x())] * 3, lambda: CHANGES[change](m), *[call(x())] * 2]

    make.__name__ = f"{name}_with_another_{change}"
    CASES.case(make)


for name, use in CONTAINERS.items():
    for change in CHANGES:
        add_container(name, use, change)


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    case.run()


@pytest.mark.parametrize("kind", [Scale, Callable])
def test_an_object_that_is_called_can_be_left_uncompiled(kind: Any) -> None:
    h = kind()
    f = rn.compile(lambda x: rn.uncompiled(h)(x))
    assert f(x()).tolist() == (x() * 2).tolist()
    h.k = 5.0
    assert f(x()).tolist() == (x() * 5).tolist()
    assert kind.__name__ in repr(rn.uncompiled(h))
