"""What users give to the classes of tensors, layers and others, before and after a function was compiled."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.distributions import Normal
from tests.compile.adversarial.inputs import x
from tests.compile.adversarial.test_patches import patched
from tests.compile.adversarial.worlds import Case

FACTOR = {"value": 3.0}


def scaled(self: Any, *_: Any, **__: Any) -> Any:
    return rn.abs(self) * FACTOR["value"]


def scaled_by_layer(self: Any, t: Any) -> Any:
    return t * self.weight.sum()


class Ratio:
    def __repr__(self) -> str:
        return "ratio"


USES: dict[str, tuple[type, Callable[[Any], Any], Any]] = {
    "relu": (rn.Tensor, lambda t: t.relu(), scaled),
    "sum": (rn.Tensor, lambda t: t.sum(), scaled),
    "reshape": (rn.Tensor, lambda t: t.reshape(3, 1), scaled),
    "shouted": (rn.Tensor, lambda t: t.shouted() if hasattr(t, "shouted") else t * 2, scaled),
    "whispered": (rn.Tensor, lambda t: getattr(t, "whispered", 5.0) * t, property(scaled)),
    "T": (rn.Tensor, lambda t: (t * 1.0).T, property(scaled)),
    "ratio": (rn.Tensor, lambda t: repr(getattr(t, "ratio", 1)), Ratio()),
    "__add__": (rn.Tensor, lambda t: t + 1, scaled),
    "__radd__": (rn.Tensor, lambda t: 1 + t, scaled),
    "__iadd__": (rn.Tensor, lambda t: _added(t * 1.0), scaled),
    "__rsub__": (rn.Tensor, lambda t: 1 - t, scaled),
    "__matmul__": (rn.Tensor, lambda t: t @ t, scaled),
    "__pow__": (rn.Tensor, lambda t: t**2, scaled),
    "__neg__": (rn.Tensor, lambda t: -t, scaled),
    "__invert__": (rn.Tensor, lambda t: ~(t > 0), scaled),
    "__gt__": (rn.Tensor, lambda t: t > 1, scaled),
    "__eq__": (rn.Tensor, lambda t: t == 1, scaled),
    "__getitem__": (rn.Tensor, lambda t: t[1:], scaled),
    "__len__": (rn.Tensor, lambda t: t * len(t), lambda self: 7),
    "__iter__": (rn.Tensor, lambda t: sum(v * 1.0 for v in t), lambda self: iter((self, self))),
    "__bool__": (rn.Tensor, lambda t: 1 if t.shape else 2, lambda self: True),
    "__repr__": (rn.Tensor, lambda t: f"{t!r}", lambda self: "tensor"),
    "clamp": (rn.Parameter, lambda t: WEIGHT.clamp(0, 1) + t, scaled),
    "__mul__": (rn.Parameter, lambda t: WEIGHT * t, scaled),
    "fresh": (rn.Parameter, lambda t: (WEIGHT.fresh() if hasattr(WEIGHT, "fresh") else 2.0) * t, scaled),
}
NAMES: dict[str, tuple[type, Callable[[Any], Any], Any]] = {
    "a class of layers": (nn.Linear, lambda t: t * getattr(LAYER, "scale", 2.0), 5.0),
    "a base of layers": (nn.Module, lambda t: t * getattr(LAYER, "scale", 2.0), 5.0),
    "a method of a layer": (nn.Module, lambda t: LAYER.scale(t) if hasattr(LAYER, "scale") else t, scaled_by_layer),
    "a property of a layer": (nn.Module, lambda t: t * getattr(LAYER, "scale", 2.0), property(lambda self: 7.0)),
    "a layer of the user's": (nn.Module, lambda t: t * getattr(OWN, "scale", 2.0), 5.0),
    "the class itself": (nn.Linear, lambda t: t * getattr(nn.Linear, "scale", 2.0), 5.0),
    "an optimizer": (rn.optim.Optimizer, lambda t: t * getattr(OPTIMIZER, "scale", 2.0), 5.0),
    "a distribution": (Normal, lambda t: t * getattr(Normal(0.0, 1.0), "scale_of_all", 2.0), 5.0),
    "a method of a distribution": (Normal, lambda t: Normal(0.0, 1.0).log_prob(t), lambda self, value: value * 3),
}
WEIGHT = rn.Parameter(rn.tensor([1.0, 2.0, -3.0]))


LAYER = nn.Linear(2, 2)
OPTIMIZER = rn.optim.SGD(LAYER.parameters(), lr=0.1)


class OwnLayer(nn.Module):
    def forward(self, t: Any) -> Any:
        return t


OWN = OwnLayer()


def _added(t: Any) -> Any:
    t += 1
    return t


@pytest.mark.parametrize("name", USES)
def test_a_class_of_tensors_is_patched(name: str) -> None:
    owner, use, new = USES[name]
    eager = "the text of a tensor is kept" if name == "__repr__" else None
    Case(lambda: patched(use, owner, name, new, x), eager, None, None).run()


@pytest.mark.parametrize("case", NAMES)
def test_a_class_is_given_a_name(case: str) -> None:
    owner, use, new = NAMES[case]
    name = "log_prob" if case == "a method of a distribution" else "scale"
    name = "scale_of_all" if case == "a distribution" else name
    Case(lambda: patched(use, owner, name, new, x), None, None, None).run()


def test_a_name_given_to_a_class_changes_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Module, "scale", 2.0, raising=False)
    step = rn.compile(lambda t: t * LAYER.scale)
    values = [step(rn.tensor(1.0)).item() for _ in range(3)]
    monkeypatch.setattr(nn.Module, "scale", 3.0)
    values.append(step(rn.tensor(1.0)).item())
    monkeypatch.setattr(nn.Linear, "scale", 4.0, raising=False)
    assert [*values, step(rn.tensor(1.0)).item()] == [2, 2, 2, 3, 4]


def test_what_a_patch_reads_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rn.Tensor, "__add__", scaled)
    step = rn.compile(lambda t: t + 1)
    values = []
    for factor in (3.0, 3.0, 4.0, 3.0):
        monkeypatch.setitem(FACTOR, "value", factor)
        values.append(step(rn.tensor([2.0])).item())
    assert values == [6, 6, 8, 6]


def test_what_a_patch_closes_over_is_checked_and_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    kinds: list[Any] = []

    def appended(self: Any, value: Any) -> Any:
        calls.append(1)
        return rn.multiply(self, factor)

    factor = 2.0
    monkeypatch.setattr(rn.Tensor, "__mul__", appended)
    monkeypatch.setattr(rn.Tensor, "seen", kinds, raising=False)
    monkeypatch.setattr(rn.Tensor, "closed", property(lambda self: (calls.append(2), self + factor)[1]), raising=False)
    monkeypatch.setattr(rn.Tensor, "apart", staticmethod(lambda v: (calls.append(3), v * factor)[1]), raising=False)

    def step(t: Any) -> Any:
        t.seen.append("seen")
        return (t * 1).sum() + t.closed.sum() + t.apart(1.0)

    fast = rn.compile(step)
    values = []
    for i in range(6):
        factor = 2.0 if i < 4 else 3.0
        values.append(fast(rn.tensor([1.0])).item())
    assert values == [7, 7, 7, 7, 10, 10]
    assert calls == [1, 2, 3] * 6 and kinds == ["seen"] * 6
    assert fast.statistics["traces"] <= 3


HELPERS: dict[str, Callable[[float], Any]] = {
    "static": lambda factor: staticmethod(lambda k: k * factor),
    "class": lambda factor: classmethod(lambda cls, k: k * factor),
    "property": lambda factor: property(lambda self: lambda k: k * factor),
    "partial": lambda factor: functools.partial(operator.mul, factor),
}


@pytest.mark.parametrize("kind", HELPERS)
def test_another_method_that_is_no_function_is_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = rn.compile(lambda t: t * t.helper(3.0) if hasattr(t, "helper") else t)
    values = [step(rn.tensor(1.0)).item()]
    for factor in (2.0, 2.0, 3.0):
        monkeypatch.setattr(rn.Tensor, "helper", HELPERS[kind](factor), raising=False)
        values += [step(rn.tensor(1.0)).item() for _ in range(3)]
    monkeypatch.delattr(rn.Tensor, "helper")
    assert [*values, step(rn.tensor(1.0)).item()] == [1.0] + [6.0] * 6 + [9.0] * 3 + [1.0]


DECLINED: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "__matmul__": (rn.Tensor, lambda t: t @ t),
    "__iadd__": (rn.Tensor, lambda t: _added(t * 1.0)),
    "__mul__": (rn.Tensor, lambda t: t * WEIGHT),
    "__rmul__": (rn.Tensor, lambda t: 2.0 * t),
    "__lt__": (rn.Tensor, lambda t: t < 2.0),
    "__eq__": (rn.Tensor, lambda t: t == 2.0),
}


@pytest.mark.parametrize("name", DECLINED)
def test_a_patch_declines_the_operands(name: str) -> None:
    owner, use = DECLINED[name]
    Case(lambda: patched(use, owner, name, lambda self, other: NotImplemented, x), None, None, None).run()
