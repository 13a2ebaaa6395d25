"""Parameters, buffers and modes of layers, changed between calls."""

from __future__ import annotations

import collections
import functools
import types

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
def test_as_python(one: Case) -> None:
    one.run()
