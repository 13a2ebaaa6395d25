"""Other ``forward`` functions, hooks and calls of modules."""

from __future__ import annotations

from functools import partialmethod

import pytest

from runnel import nn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.models import Scaled, rows, story_of
from tests.compile.adversarial.worlds import Case, Cases

CASES = Cases()
case = CASES.case


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


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
