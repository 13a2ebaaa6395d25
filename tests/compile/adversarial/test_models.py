"""Modules in every state, changed between calls of a compiled function."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from functools import cached_property, partial, partialmethod
from typing import Any, ClassVar

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case
X = (1.0, -2.0, 3.0, 0.5)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


def x() -> rn.Tensor:
    return tensor(*X)


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


class Scaled(nn.Module):
    def __init__(self, scale: Any = 2.0) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.config = {"scale": scale, "deep": {"shift": [1.0, 2.0]}}
        self.scale = scale

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.config["scale"]


def story_of(model: Any, *changes: Any, arguments: Any = None, state: Any = None) -> Any:
    """Calls of a model, and each change with calls behind it."""
    arguments = rows() if arguments is None else arguments
    steps = warm(arguments)
    for change in changes:
        steps += [change, *warm(arguments)]
    return (lambda x: model(x)), steps, state or (lambda: model)


# Attributes -----------------------------------------------------------------------------------------------------------


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


# Submodules -----------------------------------------------------------------------------------------------------------


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


# forward and hooks ----------------------------------------------------------------------------------------------------


@case
def forward_patched_on_the_instance():
    m = Scaled()
    return story_of(m, lambda: setattr(m, "forward", lambda x: x * 3), lambda: delattr(m, "forward"))


@case
def forward_patched_on_the_class():
    class Own(Scaled):
        pass

    m = Own()
    return story_of(m, lambda: setattr(Own, "forward", lambda self, x: x * self.scale), lambda: delattr(Own, "forward"))


@case
def forward_patched_on_a_layer():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return story_of(m, lambda: setattr(m[1], "forward", lambda x: x * 3))


@case
def forward_of_a_runnel_class_patched():
    m = nn.Sequential(nn.Linear(4, 4), nn.Hardtanh() if hasattr(nn, "Hardtanh") else nn.Softplus())
    kind = type(m[1])
    original = kind.forward
    return story_of(
        m, lambda: setattr(kind, "forward", lambda self, x: x * 3), lambda: setattr(kind, "forward", original)
    )


@case
def function_of_runnel_patched():
    original = nn.functional.relu

    def f(x):
        return nn.functional.relu(x) * 2

    return f, [
        *warm(x()),
        lambda: setattr(nn.functional, "relu", lambda x: x),
        *warm(x()),
        lambda: setattr(nn.functional, "relu", original),
        *warm(x()),
    ]


@case
def call_overridden():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return super().__call__(x) + self.calls

        def forward(self, x):
            return x * 2

    m = Own()
    return (lambda x: m(x)), [*warm(x()), *warm(x())], lambda: m


@case
def class_of_the_instance_changed():
    class One(nn.Module):
        def forward(self, x):
            return x * 2

    class Two(nn.Module):
        def forward(self, x):
            return x * 3

    m = One()
    return story_of(m, lambda: setattr(m, "__class__", Two), arguments=x())


@case
def base_class_method_added():
    class Base(nn.Module):
        def scale(self):
            return 2.0

        def forward(self, x):
            return x * self.scale()

    class Own(Base):
        pass

    m = Own()
    return story_of(
        m, lambda: setattr(Own, "scale", lambda self: 3.0), lambda: setattr(m, "scale", lambda: 4.0), arguments=x()
    )


@case
def super_and_mixins():
    class Mixin:
        gain = 2.0

        def forward(self, x):
            return super().forward(x) * self.gain

    class Base(nn.Module):
        def forward(self, x):
            return x + 1

    class Own(Mixin, Base):
        pass

    m = Own()
    return story_of(
        m, lambda: setattr(Mixin, "gain", 3.0), lambda: setattr(Base, "forward", lambda self, x: x - 1), arguments=x()
    )


@case
def partial_method():
    class Own(nn.Module):
        def apply_scale(self, x, scale):
            return x * scale * self.extra

        extra = 1.0
        double = partialmethod(apply_scale, scale=2.0)

        def forward(self, x):
            return self.double(x)

    m = Own()
    return story_of(
        m,
        lambda: setattr(m, "extra", 5.0),
        lambda: setattr(Own, "double", partialmethod(Own.apply_scale, scale=3.0)),
        arguments=x(),
    )


@case
def bound_method_of_the_model():
    m = Scaled()
    return m.forward, [*warm(rows()), lambda: m.config.update(scale=4.0), *warm(rows())], lambda: m


@case
def model_itself():
    m = Scaled()
    return (
        m,
        [*warm(rows()), lambda: m.config.update(scale=4.0), *warm(rows()), lambda: m.eval(), *warm(rows())],
        lambda: m,
    )


@case
def user_hooks():
    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.hooks = []

        def forward(self, x):
            y = self.layer(x)
            for hook in self.hooks:
                y = hook(self, x, y)
            return y

    m = Hooked()
    return story_of(
        m,
        lambda: m.hooks.append(lambda m, x, y: y * 2),
        lambda: m.hooks.append(lambda m, x, y: y + x),
        lambda: m.hooks.clear(),
    )


@case
def model_as_argument():
    one, two = Scaled(2.0), Scaled(3.0)
    return (lambda m, x: m(x)), [
        *warm(one, rows()),
        *warm(two, rows()),
        lambda: two.config.update(scale=9.0),
        *warm(two, rows()),
        *warm(one, rows()),
    ]


@case
def models_in_a_list_swapped():
    models = [Scaled(2.0), Scaled(3.0)]
    return (lambda x: models[0](x) - models[1](x)), [
        *warm(rows()),
        models.reverse,
        *warm(rows()),
        lambda: models.__setitem__(1, models[0]),
        *warm(rows()),
    ]


@case
def the_same_model_twice():
    one, two = Scaled(2.0), Scaled(3.0)
    return (lambda a, b, x: a(x) + b(x) + (1 if a is b else 0)), [
        *warm(one, two, rows()),
        *warm(one, one, rows()),
        *warm(two, one, rows()),
    ]


# State of layers ------------------------------------------------------------------------------------------------------


@case
def train_and_eval_outside():
    m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    return story_of(m, lambda: m.eval(), lambda: m.train(), lambda: m[1].eval())


@case
def train_and_eval_inside():
    m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def f(x):
        m.train()
        a = m(x)
        m.eval()
        return a - m(x)

    return f, [*warm(rows()), lambda: m.train(), *warm(rows())], lambda: m


@case
def training_read():
    m = nn.Linear(4, 4)
    return (lambda x: m(x) * (2 if m.training else 3)), [
        *warm(rows()),
        lambda: m.eval(),
        *warm(rows()),
        lambda: setattr(m, "training", True),
        *warm(rows()),
    ]


@case
def option_of_a_layer():
    m = nn.Sequential(nn.LayerNorm(4), nn.Dropout(0.3), nn.LeakyReLU(0.1))
    return story_of(
        m,
        lambda: setattr(m[0], "eps", 0.5),
        lambda: setattr(m[1], "p", 0.9),
        lambda: setattr(m[2], "negative_slope", 0.7),
    )


@case
def weight_assigned():
    m = nn.Linear(4, 4)
    return story_of(m, lambda: m.weight.assign(np.ones((4, 4), np.float32)), lambda: m.weight.mul_(2))


@case
def weight_replaced():
    m = nn.Linear(4, 4)
    return story_of(
        m, lambda: setattr(m, "weight", nn.Parameter(np.ones((4, 4), np.float32))), lambda: setattr(m, "bias", None)
    )


@case
def weights_loaded():
    m, other = Scaled(), Scaled()
    return story_of(m, lambda: m.load_state_dict(other.state_dict()))


@case
def frozen_and_thawed():
    m = nn.Linear(4, 4)
    o = rn.optim.SGD(m.parameters(), lr=0.1)

    def f(x):
        o.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        o.step()
        return loss

    return (
        f,
        [
            *warm(rows()),
            lambda: m.weight.requires_grad_(False),
            *warm(rows()),
            lambda: m.requires_grad_(True),
            *warm(rows()),
        ],
        lambda: (m, o),
    )


@case
def requires_grad_read():
    m = nn.Linear(4, 4)

    def f(x):
        return x * sum(p.requires_grad for p in m.parameters())

    return f, [*warm(rows()), lambda: m.weight.requires_grad_(False), *warm(rows())]


@case
def parameters_counted():
    m = nn.Sequential(nn.Linear(4, 4))

    def f(x):
        return x * sum(p.size for p in m.parameters()) + len(list(m.modules())) + len(m.state_dict())

    return f, [
        *warm(x()),
        lambda: m.append(nn.Linear(4, 4)),
        *warm(x()),
        lambda: setattr(m[0], "bias", None),
        *warm(x()),
    ]


@case
def weight_decay_by_name():
    m = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    skip = {"1.weight"}

    def f(x):
        return sum((p * p).sum() for n, p in m.named_parameters() if n not in skip) + m(x).sum()

    return f, [*warm(rows()), lambda: skip.add("0.bias"), *warm(rows())]


@case
def buffer_updated_inside():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", np.zeros(4, np.float32))
            self.momentum = 0.5

        def forward(self, x):
            self.mean = self.mean * (1 - self.momentum) + x * self.momentum
            return x - self.mean

    m = Own()
    return story_of(
        m, lambda: setattr(m, "momentum", 0.25), lambda: setattr(m, "mean", np.ones(4, np.float32)), arguments=x()
    )


@case
def buffer_added_outside():
    class Own(nn.Module):
        def forward(self, x):
            return x * self.extra if "extra" in dict(self.named_buffers()) else x

    m = Own()
    return story_of(m, lambda: m.register_buffer("extra", np.full(4, 3, np.float32)), arguments=x())


@case
def running_statistics_as_floats():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0
            self.rate = 1.0

        def forward(self, x):
            self.steps += 1
            self.rate *= 0.5
            return x * self.rate + self.steps

    return story_of(Own(), arguments=x())


@case
def no_grad_inside():
    m = nn.Linear(4, 4)

    def f(x):
        with rn.no_grad():
            target = m(x) * 2
        return m(x) - target, target.requires_grad, rn.is_grad_enabled()

    return f, [*warm(rows()), lambda: setattr(m, "bias", None), *warm(rows())]


@case
def modules_iterated_and_typed():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def f(x):
        return x * sum(isinstance(k, nn.Linear) for k in m.modules()) + sum(type(k) is nn.ReLU for k in m.children())

    return f, [*warm(x()), lambda: m.__setitem__(1, nn.Tanh()), *warm(x())]


@case
def apply_over_modules():
    m = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    rates = {"p": 0.0}

    def f(x):
        def set_rate(k):
            if isinstance(k, nn.Dropout):
                k.p = rates["p"]

        m.apply(set_rate)
        return m(x)

    return f, [*warm(rows()), lambda: rates.update(p=0.9), *warm(rows())], lambda: m


@case
def exponential_average_model():
    m, average = nn.Linear(4, 4), nn.Linear(4, 4)

    def f(x, decay):
        for a, b in zip(average.parameters(), m.parameters(), strict=True):
            a.assign(a * decay + b.detach() * (1 - decay))
        return average(x)

    return f, [*warm(rows(), 0.9), *warm(rows(), 0.5)], lambda: average


@case
def get_submodule_by_path():
    m = nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.ReLU())
    path = ["0.0"]
    return (lambda x: m.get_submodule(path[0])(x)), [
        *warm(rows()),
        lambda: path.__setitem__(0, "1"),
        *warm(rows()),
        lambda: m.__setitem__(1, nn.Tanh()),
        *warm(rows()),
    ]


@case
def repr_of_a_model():
    m = nn.Sequential(nn.Linear(4, 4))
    return (lambda x: (x * 2, repr(m).count("\n"))), [*warm(x()), lambda: m.append(nn.ReLU()), *warm(x())]


@case
def user_subclass_of_a_layer():
    class Own(nn.Linear):
        gain = 2.0

        def forward(self, x):
            return super().forward(x) * self.gain

    m = nn.Sequential(Own(4, 4), nn.ReLU())
    return story_of(m, lambda: setattr(m[0], "gain", 3.0), lambda: setattr(m[0], "in_features", 5))


@case
def user_subclass_of_a_container():
    class Residual(nn.Sequential):
        factor = 1.0

        def forward(self, x):
            return x + super().forward(x) * self.factor

    m = Residual(nn.Linear(4, 4), nn.ReLU())
    return story_of(m, lambda: setattr(m, "factor", 2.0), lambda: m.append(nn.Tanh()))


@case
def subclass_of_parameter():
    class Own(nn.Parameter):
        factor = 2.0

        def scaled(self):
            return self * self.factor

    p = Own(np.ones(4, np.float32))
    return (lambda x: p.scaled() * x), [
        *warm(x()),
        lambda: setattr(Own, "factor", 3.0),
        *warm(x()),
        lambda: setattr(p, "factor", 4.0),
        *warm(x()),
    ]


@case
def attention_with_users_activation():
    factor = [1.0]
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=lambda x: rn.relu(x) * factor[0])
    arguments = rn.asarray(np.arange(24, dtype=np.float32).reshape(1, 6, 4) / 24)
    return (lambda x: layer(x)), [*warm(arguments), lambda: factor.__setitem__(0, 2.0), *warm(arguments)]


@case
def module_in_a_tuple_default():
    layer = nn.Linear(4, 4)

    def f(x, layers=(layer, rn.tanh)):
        for one in layers:
            x = one(x)
        return x

    return f, [
        *warm(rows()),
        lambda: setattr(f, "__defaults__", ((rn.relu,),)),
        *warm(rows()),
        lambda: setattr(layer, "bias", None),
        *warm(rows(), (layer,)),
    ]


@case
def modules_made_inside():
    return (lambda x: nn.Softmax(-1)(nn.LeakyReLU(0.1)(x))), [*warm(x())]


@case(eager="was made inside")
def layer_made_at_the_first_call():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = None

        def forward(self, x):
            if self.layer is None:
                self.layer = nn.Linear(x.shape[-1], 3)
            return self.layer(x)

    m = Lazy()
    return story_of(m, lambda: setattr(m, "layer", None))


@case
def mask_made_at_the_first_call():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.masks = {}

        def forward(self, x):
            n = x.shape[0]
            if n not in self.masks:
                self.masks[n] = rn.arange(n) % 2 == 0
            return rn.where(self.masks[n], x, 0.0)

    m = Masked()
    return (
        (lambda x: m(x)),
        [*warm(x()), *warm(tensor(1, 2, 3)), *warm(x()), lambda: m.masks.clear(), *warm(x())],
        lambda: m,
    )


@case
def weak_reference_to_a_model():
    import weakref

    models = [Scaled(2.0)]
    holder = [weakref.ref(models[0])]
    return (lambda x: holder[0]()(x) if holder[0]() is not None else x), [
        *warm(rows()),
        lambda: models.clear(),
        *warm(rows()),
    ]


@case
def proxy_of_config():
    m = Scaled()
    m.view = types.MappingProxyType(m.config)
    m.chain = collections.ChainMap({}, m.config)
    return (lambda x: x * m.view["scale"] + m.chain["scale"]), [
        *warm(x()),
        lambda: m.config.update(scale=4.0),
        *warm(x()),
        lambda: m.chain.maps[0].update(scale=8.0),
        *warm(x()),
    ]


@case
def single_dispatch_over_layers():
    @functools.singledispatch
    def gain(layer):
        return 1.0

    @gain.register
    def _(layer: nn.Linear):
        return 2.0

    layers = [nn.Linear(4, 4), nn.ReLU()]
    return (lambda x: x * sum(gain(k) for k in layers)), [
        *warm(x()),
        lambda: layers.append(nn.Linear(4, 4)),
        *warm(x()),
        lambda: gain.register(nn.ReLU, lambda k: 5.0),
        *warm(x()),
    ]


@pytest.mark.parametrize("one", CASES)
def test_models(one: Case) -> None:
    one.run()
