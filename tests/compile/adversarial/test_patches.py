"""Classes, modules and objects changed from behind: patched methods, rewritten ``__dict__``, other classes and bases."""

from __future__ import annotations

import abc
import importlib
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def rows() -> rn.Tensor:
    return rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 7)


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


def patched(function: Any, owner: Any, name: str, value: Any, argument: Any = rows, state: Any = None) -> Any:
    """Calls before, with and without ``owner.name = value``."""
    had = name in vars(owner)
    original = vars(owner).get(name)
    undo = (lambda: setattr(owner, name, original)) if had else (lambda: delattr(owner, name))
    steps = [*warm(argument()), lambda: setattr(owner, name, value), *warm(argument()), undo, *warm(argument())]
    return (function, steps) if state is None else (function, steps, state)


def network() -> nn.Module:
    rn.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))


SCALE = 2.0


@case
def call_of_all_modules_patched():
    m, original = network(), nn.Module.__call__
    return patched(lambda x: m(x), nn.Module, "__call__", lambda self, *a: original(self, *a) * SCALE)


@case
def call_given_to_a_layer_class():
    m = network()
    return patched(lambda x: m(x), nn.ReLU, "__call__", lambda self, x: x * 5)


@case
def forward_of_a_layer_of_a_user_module():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.inner(x) + 1

    rn.manual_seed(0)
    m = Net()
    return patched(lambda x: m(x), nn.Linear, "forward", lambda self, x: x @ self.weight.T * 3)


@case
def patch_that_reads_a_global():
    def forward(self: Any, x: Any) -> Any:
        return x * SCALE

    def change(value: float) -> None:
        global SCALE
        SCALE = value

    m, original = network(), nn.ReLU.forward
    return (lambda x: m(x)), [
        *warm(rows()),
        lambda: setattr(nn.ReLU, "forward", forward),
        *warm(rows()),
        lambda: change(7.0),
        *warm(rows()),
        lambda: change(2.0),
        lambda: setattr(nn.ReLU, "forward", original),
        *warm(rows()),
    ]


@case
def patch_that_counts():
    counts: list[int] = []

    def forward(self: Any, x: Any) -> Any:
        counts.append(len(x.shape))
        return x

    m = network()
    return patched(lambda x: m(x), nn.ReLU, "forward", forward, state=lambda: list(counts))


@case
def forward_inherited_by_the_users_class():
    class Twice(nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2

    rn.manual_seed(0)
    m = Twice(4, 4)
    return patched(lambda x: m(x), nn.Linear, "forward", lambda self, x: x - 1)


@case
def step_of_an_optimizer_patched():
    rn.manual_seed(0)
    m = nn.Linear(4, 2)
    optimizer = optim.SGD(m.parameters(), lr=0.1)
    original = optim.Optimizer.step

    def step(self: Any, closure: Any = None) -> Any:
        for p in m.parameters():
            p.grad = p.grad * 0.5
        return original(self)

    def train(x: Any) -> Any:
        with rn.enable_grad():
            optimizer.zero_grad()
            loss = (m(x) ** 2).mean()
            loss.backward()
        optimizer.step()
        return loss.detach()

    return patched(train, optim.Optimizer, "step", step, state=lambda: [p.numpy() for p in m.parameters()])


@case
def update_of_an_optimizer_patched():
    rn.manual_seed(0)
    m = nn.Linear(4, 2)
    optimizer = optim.SGD(m.parameters(), lr=0.1)

    def update(self: Any, group: Any, active: Any, steps: Any) -> None:
        for _, p, g in active:
            p.assign(p.value - g)

    def train(x: Any) -> Any:
        with rn.enable_grad():
            optimizer.zero_grad()
            loss = (m(x) ** 2).mean()
            loss.backward()
        optimizer.step()
        return loss.detach()

    return patched(train, optim.SGD, "update", update, state=lambda: [p.numpy() for p in m.parameters()])


@case
def whole_dict_replaced():
    m = nn.LayerNorm(4)
    return (lambda x: m(x)), [
        *warm(rows()),
        lambda: setattr(m, "__dict__", {**m.__dict__, "eps": 1.0}),
        *warm(rows()),
        lambda: m.__dict__.update(eps=2.0),
        *warm(rows()),
    ]


@case
def dict_kept_and_written_later():
    m = nn.LayerNorm(4)
    reference = vars(m)
    return (lambda x: m(x)), [
        *warm(rows()),
        lambda: reference.__setitem__("eps", 1.0),
        *warm(rows()),
        lambda: reference.pop("eps"),
        lambda: reference.setdefault("eps", 0.5),
        *warm(rows()),
    ]


@case
def dict_of_an_optimizer():
    rn.manual_seed(0)
    m = nn.Linear(4, 2)
    optimizer = optim.SGD(m.parameters(), lr=0.1)
    optimizer.flag = 1

    def f(x: Any) -> Any:
        return m(x) * (2 if optimizer.flag else 3)

    return f, [*warm(rows()), lambda: optimizer.__dict__.update(flag=0), *warm(rows())]


@case
def dict_written_inside():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.count = 0

        def forward(self, x: Any) -> Any:
            self.__dict__["count"] = self.count + 1
            return x * self.count

    m = Net()
    return (lambda x: m(x)), warm(rows()) * 2, lambda: m.count


@case
def set_past_the_class_inside():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.count = 0

        def forward(self, x: Any) -> Any:
            object.__setattr__(self, "count", self.count + 1)
            return x * self.count

    m = Net()
    return (lambda x: m(x)), warm(rows()) * 2, lambda: m.count


@case
def another_class_for_a_module():
    class A(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    class B(A):
        def forward(self, x: Any) -> Any:
            return super().forward(x) + 1

    m = A()
    return (lambda x: m(x)), [*warm(x()), lambda: setattr(m, "__class__", B), *warm(x())]


@case
def another_class_for_an_object():
    class A:
        k = 2

    class B:
        k = 3

    o = A()
    return (lambda x: x * o.k), [*warm(x()), lambda: setattr(o, "__class__", B), *warm(x())]


@case
def other_bases():
    class A:
        def gain(self) -> float:
            return 2.0

    class B:
        def gain(self) -> float:
            return 5.0

    class Own(A):
        pass

    o = Own()
    return (lambda x: x * o.gain()), [*warm(x()), lambda: setattr(Own, "__bases__", (B,)), *warm(x())]


@case
def attribute_of_a_metaclass():
    class Meta(type):
        gain = 2.0

        @property
        def double(cls) -> float:
            return cls.gain * 2

    class Own(metaclass=Meta):
        pass

    return (lambda x: x * Own.gain + Own.double), [
        *warm(x()),
        lambda: setattr(Meta, "gain", 3.0),
        *warm(x()),
        lambda: setattr(Own, "gain", 5.0),
        *warm(x()),
    ]


@case
def registered_later():
    class Kind(abc.ABC):
        pass

    class Own:
        pass

    o = Own()
    return (lambda x: x * (2 if isinstance(o, Kind) else 3)), [*warm(x()), lambda: Kind.register(Own), *warm(x())]


@case
def getattr_on_a_module():
    class Net(nn.Module):
        def __init__(self) -> None:
            self.table = {"gain": 2.0}

        def __getattr__(self, name: str) -> Any:
            table = self.__dict__.get("table", {})
            if name in table:
                return table[name]
            raise AttributeError(name)

        def forward(self, x: Any) -> Any:
            return x * self.gain

    m = Net()
    return (lambda x: m(x)), [
        *warm(x()),
        lambda: m.table.update(gain=4.0),
        *warm(x()),
        lambda: setattr(m, "gain", 8.0),
        *warm(x()),
    ]


@case
def descriptor_with_state():
    class Gain:
        def __init__(self) -> None:
            self.value = 2.0

        def __get__(self, owner: Any, kind: Any) -> float:
            return self.value * (1 if owner is None else owner.factor)

    class Own:
        gain = Gain()
        factor = 3.0

    o = Own()
    return (lambda x: x * o.gain), [
        *warm(x()),
        lambda: setattr(vars(Own)["gain"], "value", 5.0),
        *warm(x()),
        lambda: setattr(o, "factor", 1.0),
        *warm(x()),
    ]


@case
def module_exchanged_in_sys_modules():
    name = "a_module_of_the_tests"
    first, second = types.ModuleType(name), types.ModuleType(name)
    first.gain, second.gain = 2.0, 3.0
    sys.modules[name] = first

    def f(x: Any) -> Any:
        import a_module_of_the_tests

        return x * a_module_of_the_tests.gain

    return f, [
        *warm(x()),
        lambda: sys.modules.__setitem__(name, second),
        *warm(x()),
        lambda: setattr(second, "gain", 7.0),
        *warm(x()),
    ]


@case
def module_run_again():
    source = types.ModuleType("another_module_of_the_tests")
    exec("gain = 2.0\ndef scaled(x): return x * gain", source.__dict__)
    sys.modules[source.__name__] = source
    return (lambda x: source.scaled(x)), [
        *warm(x()),
        lambda: exec("gain = 3.0\ndef scaled(x): return x * gain + 1", source.__dict__),
        *warm(x()),
    ]


@case
def relative_to_importlib():
    def f(x: Any) -> Any:
        return x * len(importlib.import_module("math").__name__)

    return f, warm(x())


@case
def code_exchanged():
    def gain() -> float:
        return 2.0

    def other() -> float:
        return 9.0

    return (lambda x: x * gain()), [*warm(x()), lambda: setattr(gain, "__code__", other.__code__), *warm(x())]


@case
def default_arguments_changed():
    def gain(factor: float = 2.0, *, offset: float = 1.0) -> float:
        return factor + offset

    return (lambda x: x * gain()), [
        *warm(x()),
        lambda: setattr(gain, "__defaults__", (5.0,)),
        *warm(x()),
        lambda: gain.__kwdefaults__.update(offset=3.0),
        *warm(x()),
    ]


@case
def a_mutable_default():
    def f(x: Any, calls: list[int] = []) -> Any:
        calls.append(len(calls))
        return x * len(calls)

    return f, warm(x()) * 2


@case
def global_deleted_and_made_again():
    space: dict[str, Any] = {"gain": 2.0}
    exec("def f(x):\n try: return x * gain\n except NameError: return x - 1", space)
    return space["f"], [
        *warm(x()),
        lambda: space.pop("gain"),
        *warm(x()),
        lambda: space.update(gain=6.0),
        *warm(x()),
    ]


@case
def builtins_shadowed():
    space: dict[str, Any] = {}
    exec("def f(x): return x * abs(-2)", space)
    return space["f"], [*warm(x()), lambda: space.update(abs=lambda v: 10), *warm(x())]


@case
def weak_reference_that_dies():
    class Own:
        gain = 2.0

    holder = [Own()]
    reference = weakref.ref(holder[0])

    def f(x: Any) -> Any:
        actual = reference()
        return x * (actual.gain if actual is not None else 0.5)

    return f, [*warm(x()), holder.clear, *warm(x())]


@case(eager="has a ReferenceType as a key")
def weak_dictionary():
    class Key:
        pass

    keys = [Key(), Key()]
    gains = weakref.WeakKeyDictionary({keys[0]: 2.0, keys[1]: 3.0})
    return (lambda x: x * sum(gains.values())), [*warm(x()), lambda: keys.pop(), *warm(x())]


@case
def instance_method_given_to_an_object():
    class Own:
        def gain(self) -> float:
            return 2.0

    o = Own()
    return (lambda x: x * o.gain()), [
        *warm(x()),
        lambda: setattr(o, "gain", types.MethodType(lambda self: 4.0, o)),
        *warm(x()),
        lambda: delattr(o, "gain"),
        *warm(x()),
    ]


@case
def slots_written():
    class Own:
        __slots__ = ("gain",)

    o = Own()
    o.gain = 2.0
    return (lambda x: x * getattr(o, "gain", 9.0)), [
        *warm(x()),
        lambda: setattr(o, "gain", 3.0),
        *warm(x()),
        lambda: delattr(o, "gain"),
        *warm(x()),
    ]


@case
def hooks_of_the_users():
    """A module with a list of hooks, as users write it."""

    class Net(nn.Module):
        def __init__(self) -> None:
            self.hooks: list[Any] = []

        def forward(self, x: Any) -> Any:
            for hook in self.hooks:
                x = hook(x)
            return x

    m, gain = Net(), [2.0]
    return (lambda x: m(x)), [
        *warm(x()),
        lambda: m.hooks.append(lambda x: x * gain[0]),
        *warm(x()),
        lambda: gain.__setitem__(0, 5.0),
        *warm(x()),
        m.hooks.clear,
        *warm(x()),
    ]


def sgd() -> Any:
    return optim.SGD([rn.Parameter(np.ones(2, np.float32))], lr=0.1)


METHODS_CALLED = {
    "parameters": (nn.Module, network, lambda m: len(list(m.parameters())), lambda self, *a: iter([1])),
    "state_dict": (nn.Module, network, lambda m: sorted(m.state_dict()), lambda self: {"z": 1}),
    "__len__": (nn.Sequential, network, lambda m: len(m), lambda self: 77),
    "__getitem__": (nn.Sequential, network, lambda m: type(m[0]).__name__, lambda self, i: 7),
    "__iter__": (nn.Sequential, network, lambda m: [type(one).__name__ for one in m], lambda self: iter([1])),
    "__repr__": (nn.Module, network, lambda m: repr(m), lambda self: "m"),
    "extra_repr": (nn.Linear, network, lambda m: repr(m), lambda self: "m"),
    "state_dict ": (optim.Optimizer, sgd, lambda o: len(o.state_dict()), lambda self: {1: 2, 3: 4, 5: 6}),
}


@pytest.mark.parametrize("name", METHODS_CALLED)
def test_methods_that_the_function_calls(name: str) -> None:
    owner, make, read, new = METHODS_CALLED[name]

    def world() -> Any:
        result = make()
        return patched(lambda x: (x * 1.0, read(result)), owner, name.strip(), new)

    Case(world, None, None, None).run()


@pytest.mark.parametrize("one", CASES)
def test_patches(one: Case) -> None:
    one.run()
