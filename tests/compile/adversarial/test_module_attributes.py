"""Attributes of modules, changed between calls of a compiled function."""

from __future__ import annotations

import dataclasses
import types
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.models import Scaled, rows, story_of
from tests.compile.adversarial.worlds import Case, Cases, tensor

CASES = Cases()
case = CASES.case


@case
def config_item_of_a_user_module():
    m = Scaled()
    return story_of(m, lambda: m.config.__setitem__("scale", 3.0), lambda: m.config.update(scale=5.0))


@case
def config_replaced():
    m = Scaled()
    return story_of(m, lambda: setattr(m, "config", {"scale": 7.0}))


@case
def config_hung_on_a_layer_of_runnels():
    layer = nn.Linear(4, 4)
    layer.config = {"scale": 2.0}
    return (lambda x: layer(x) * layer.config["scale"]), [
        *warm(rows()),
        lambda: layer.config.update(scale=3.0),
        *warm(rows()),
    ]


@case
def list_on_a_layer():
    layer = nn.Linear(4, 4)
    layer.factors = [1.0, 2.0]
    return (lambda x: layer(x) * sum(layer.factors)), [*warm(rows()), lambda: layer.factors.append(3.0), *warm(rows())]


@case
def deep_config():
    m = Scaled()
    return (lambda x: m(x) + m.config["deep"]["shift"][1]), [
        *warm(rows()),
        lambda: m.config["deep"]["shift"].__setitem__(1, 9.0),
        *warm(rows()),
    ]


@case
def plain_attribute():
    m = Scaled()
    return (lambda x: x * m.scale), [*warm(x()), lambda: setattr(m, "scale", 4.0), *warm(x())], lambda: m


@case
def attribute_written_through_dict():
    m = Scaled()
    return (lambda x: x * m.scale), [*warm(x()), lambda: m.__dict__.__setitem__("scale", 4.0), *warm(x())], lambda: m


@case
def attribute_written_through_vars():
    m = Scaled()
    return (lambda x: x * m.scale), [*warm(x()), lambda: vars(m).update(scale=4.0), *warm(x())]


@case
def training_written_through_dict():
    m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    return story_of(m, lambda: m[1].__dict__.update(training=False))


@case
def layer_option_written_through_dict():
    m = nn.LayerNorm(4)
    return story_of(m, lambda: m.__dict__.update(eps=1.0))


@case
def weight_replaced_through_dict():
    m = nn.Linear(4, 4)
    return story_of(m, lambda: m.__dict__.update(weight=nn.Parameter(np.ones((4, 4), np.float32))))


@case
def attribute_absent_then_set():
    m = Scaled()
    return (lambda x: x * getattr(m, "extra", 1.0)), [
        *warm(x()),
        lambda: setattr(m, "extra", 4.0),
        *warm(x()),
        lambda: delattr(m, "extra"),
        *warm(x()),
    ]


@case
def attribute_absent_then_in_class():
    class Own(nn.Module):
        def forward(self, x):
            return x * getattr(self, "extra", 1.0)

    m = Own()
    return story_of(
        m, lambda: setattr(Own, "extra", 2.0), lambda: setattr(m, "extra", 3.0), lambda: delattr(m, "extra")
    )


@case
def hasattr_of_a_layer():
    m = nn.Linear(4, 4)
    return (lambda x: m(x) * 2 if hasattr(m, "mark") else m(x)), [
        *warm(rows()),
        lambda: setattr(m, "mark", None),
        *warm(rows()),
    ]


@case
def class_attribute():
    class Own(nn.Module):
        factor: ClassVar[float] = 2.0

        def forward(self, x):
            return x * self.factor

    m = Own()
    return story_of(m, lambda: setattr(Own, "factor", 3.0))


@case
def class_attribute_list():
    class Own(nn.Module):
        factors: ClassVar[list[float]] = [1.0, 2.0]

        def forward(self, x):
            return x * self.factors[-1]

    return story_of(Own(), lambda: Own.factors.append(3.0))


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    names: list[str] = dataclasses.field(default_factory=lambda: ["a"])

    @property
    def twice(self) -> float:
        return self.scale * 2


@case
def dataclass_on_a_module():
    m = Scaled()
    m.options = Config()
    return (lambda x: m.layer(x) * m.options.twice + len(m.options.names)), [
        *warm(rows()), lambda: setattr(m.options, "scale", 3.0), *warm(rows()), lambda: m.options.names.append("b"), *warm(rows())]  # fmt: skip


@case
def dataclass_on_a_layer():
    m = nn.ReLU()
    m.options = Config()
    return (lambda x: m(x) * m.options.scale), [*warm(x()), lambda: setattr(m.options, "scale", 3.0), *warm(x())]


@case
def namespace_on_a_layer():
    m = nn.ReLU()
    m.options = types.SimpleNamespace(scale=2.0)
    return (lambda x: m(x) * m.options.scale), [*warm(x()), lambda: setattr(m.options, "scale", 3.0), *warm(x())]


@case
def property_of_a_module():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self._scale = 1.0

        @property
        def scale(self):
            return self._scale * 2

        def forward(self, x):
            return x * self.scale

    m = Own()
    return story_of(m, lambda: setattr(m, "_scale", 3.0), lambda: setattr(Own, "scale", property(lambda self: 7.0)))


@case
def cached_property_of_a_module():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 4

        @cached_property
        def mask(self):
            return rn.arange(self.n) > 1

        def forward(self, x):
            return rn.where(self.mask, x, 0.0)

    m = Own()
    return story_of(m, lambda: delattr(m, "mask"), arguments=x())


@case
def getattr_of_a_module():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = {"gain": 2.0}

        def __getattr__(self, name):
            if name in ("gain", "bias"):
                return self.__dict__["table"].get(name, 0.0)
            raise AttributeError(name)

        def forward(self, x):
            return x * self.gain + self.bias

    m = Own()
    return story_of(m, lambda: m.table.update(gain=3.0), lambda: m.table.update(bias=1.0), arguments=x())


@case
def slots_of_a_helper():
    class Helper:
        __slots__ = ("scale",)

    m = Scaled()
    m.helper = Helper()
    m.helper.scale = 2.0
    return (lambda x: m.layer(x) * m.helper.scale), [
        *warm(rows()),
        lambda: setattr(m.helper, "scale", 3.0),
        *warm(rows()),
    ]


@case
def numpy_array_on_self():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = np.arange(4, dtype=np.float32)

        def forward(self, x):
            return x * self.weights

    m = Own()
    return story_of(
        m, lambda: m.weights.__setitem__(0, 9), lambda: setattr(m, "weights", np.ones(4, np.float32)), arguments=x()
    )


@case
def numpy_array_on_self_decides():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = np.arange(4, dtype=np.float32)

        def forward(self, x):
            return x * 2 if self.weights.sum() > 5 else x

    m = Own()
    return story_of(m, lambda: m.weights.fill(0), lambda: m.weights.fill(5), arguments=x())


@case
def tensor_on_self():
    m = Scaled()
    m.mask = tensor(1, 0, 1, 0)
    return (lambda x: m.layer(x) * m.mask), [
        *warm(rows()),
        lambda: setattr(m, "mask", tensor(0, 0, 2, 3)),
        *warm(rows()),
        lambda: m.mask.mul_(2),
        *warm(rows()),
    ]


@case
def tensor_in_a_dict_on_self():
    m = Scaled()
    m.masks = {"a": [tensor(1, 0, 1, 0)]}
    return (lambda x: m.layer(x) * m.masks["a"][0]), [
        *warm(rows()),
        lambda: m.masks["a"].__setitem__(0, tensor(0, 0, 2, 3)),
        *warm(rows()),
    ]


@case
def none_becomes_tensor():
    m = Scaled()
    m.mask = None
    return (lambda x: m.layer(x) if m.mask is None else m.layer(x) * m.mask), [
        *warm(rows()),
        lambda: setattr(m, "mask", tensor(0, 0, 2, 3)),
        *warm(rows()),
        lambda: setattr(m, "mask", None),
        *warm(rows()),
    ]


@case
def callable_on_self():
    class Own(nn.Module):
        def __init__(self, act):
            super().__init__()
            self.act = act

        def forward(self, x):
            return self.act(x)

    m = Own(rn.relu)
    return story_of(
        m,
        lambda: setattr(m, "act", rn.tanh),
        lambda: setattr(m, "act", lambda x: x * 3),
        lambda: setattr(m, "act", nn.Sigmoid()),
        lambda: setattr(m, "act", partial(rn.clip, min=0.0, max=1.0)),
    )


@case
def activation_by_name():
    table = {"relu": rn.relu, "tanh": rn.tanh}

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.name = "relu"

        def forward(self, x):
            return table[self.name](x)

    m = Own()
    return story_of(m, lambda: setattr(m, "name", "tanh"), lambda: table.update(tanh=rn.sigmoid))


@case
def activation_by_getattr():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.name = "relu"

        def forward(self, x):
            return getattr(rn, self.name)(x)

    m = Own()
    return story_of(m, lambda: setattr(m, "name", "tanh"))


@case
def lambdas_in_a_list():
    m = Scaled()
    m.stages = [lambda x: x * 2, lambda x: x + 1]

    def f(x):
        for stage in m.stages:
            x = stage(x)
        return x

    return f, [*warm(x()), lambda: m.stages.reverse(), *warm(x()), lambda: m.stages.append(rn.tanh), *warm(x())]


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
