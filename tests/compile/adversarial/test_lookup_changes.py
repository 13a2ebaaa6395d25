"""What decides how a name is found may change, too: descriptors gain and lose methods, functions get other code, hooks
hang on Runnel's own layers, and parts of slices, hashes and C objects count."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0)


def warm(*args: Any) -> list[Any]:
    return [call(*args)] * 3


# Descriptors ----------------------------------------------------------------------------------------------------------


@case
def a_descriptor_goes_first_and_no_more():
    class Found:
        def __get__(self, owner, kind):
            return 3.0

    class Owner:
        w = Found()

    owner = Owner()
    owner.__dict__["w"] = 4.0

    def first():
        Found.__set__ = lambda *_: None

    def no_more():
        del Found.__set__

    return (lambda x: x * owner.w), [*warm(x()), first, *warm(x()), no_more, *warm(x())]


@case
def a_property_comes_before_an_attribute():
    class Owner:
        w = 2.0

    owner = Owner()
    owner.w = 3.0

    def put():
        Owner.w = property(lambda self: 9.0)

    return (lambda x: x * owner.w), [*warm(x()), put, *warm(x())]


@case
def a_value_becomes_a_descriptor():
    class Value:
        k = 2.0

    class Owner:
        w = Value()

    owner = Owner()

    def become():
        Value.__get__ = lambda self, o, t: Other

    class Other:
        k = 5.0

    return (lambda x: x * owner.w.k), [*warm(x()), become, *warm(x())]


@case
def a_descriptor_of_the_metaclass():
    class Found:
        def __get__(self, owner, kind):
            return 3.0

    class Meta(type):
        w = Found()

    class Owner(metaclass=Meta):
        w = 4.0

    def first():
        Found.__set__ = lambda *_: None

    return (lambda x: x * Owner.w), [*warm(x()), first, *warm(x())]


# Code -----------------------------------------------------------------------------------------------------------------


@case
def its_own_code_is_another():
    def one(x):
        return x * 2

    def other(x):
        return x * 3

    def swap():
        one.__code__ = other.__code__

    return one, [*warm(x()), swap, *warm(x())]


# Parts ----------------------------------------------------------------------------------------------------------------


@case
def slices_as_arguments():
    return (lambda x, s: x[s]), [call(x(), s) for s in (slice(0, 2), slice(1, 3), slice(None), slice(0, 2), slice(2))]


@case
def slices_on_an_object():
    class Owner:
        window = slice(0, 2)
        keys = (slice(1, None), [slice(0, 1)])

    def change():
        Owner.window = slice(1, 3)

    def change_deeper():
        Owner.keys = (slice(1, None), [slice(1, 2)])

    def read(x):
        return x[Owner.window], x[Owner.keys[0]], x[Owner.keys[1][0]], x * (Owner.window.stop or 1)

    return read, [*warm(x()), change, *warm(x()), change_deeper, *warm(x())]


@case
def a_hash_of_its_own():
    class Key:
        name = "ab"

        def __hash__(self):
            return hash(self.name)

    key, least = Key(), type("Least", (), {"__hash__": lambda self: -1})()

    def rename():
        key.name = "abc"

    def read(x):
        return x * (hash(key) == hash("ab")) + (hash(least) == -2)

    return read, [*warm(x()), rename, *warm(x())]


@case(eager="cannot be watched")
def an_array_of_ctypes():
    array = (ctypes.c_float * 3)(1, 2, 3)

    def change():
        array[1] = 7

    return (lambda x: x * array[1]), [*warm(x()), change, *warm(x())]


@case(traces=4)
def defaults_are_read_item_by_item():
    def counted(x, kept=[0], unread=[0]):
        kept[0] += 1
        return x * kept[0]

    def change():
        counted.__defaults__[1].append(1)

    return (lambda x: counted(x)), [*[call(x())] * 8, change, call(x())], lambda: counted.__defaults__


# Hooks of Runnel's own layers -----------------------------------------------------------------------------------------


def hooked(register):
    """A layer alone, and one in a container of Runnel's, with a hook that counts, keeps and scales."""

    def make(inside: bool):
        rn.manual_seed(0)
        layer = nn.Linear(3, 3)
        model = nn.Sequential(layer, nn.ReLU()) if inside else layer
        state: dict[str, Any] = {"calls": 0, "scale": 2.0, "kept": []}
        handle = register(layer, state)

        def rescale():
            state["scale"] = 3.0

        def forward(x):
            return model(x)

        steps = [*[call(x())] * 4, rescale, call(x()), call(x()), handle.remove, call(x()), call(x())]
        return forward, steps, lambda: dict(state)

    return make


def _after(layer, state):
    def hook(module, args, result):
        state["calls"] += 1
        state["kept"].append(result.detach().sum())
        return result * state["scale"]

    return layer.register_forward_hook(hook)


def _before(layer, state):
    def hook(module, args):
        state["calls"] += 1
        module.seen = args[0].detach()
        return (args[0] * state["scale"],)

    return layer.register_forward_pre_hook(hook)


def _with_names(layer, state):
    def hook(module, args, kwargs, result):
        print("after", state["calls"], len(args))
        state["calls"] += 1

    return layer.register_forward_hook(hook, with_kwargs=True)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("register", [_after, _before, _with_names])
def test_hooks(register: Any, inside: bool) -> None:
    make = hooked(register)
    Case(lambda: make(inside), None, 9, None).run()


def test_functions_in_containers_that_runnel_reads() -> None:
    scale = [2.0]

    def doubled(t: Any) -> Any:
        return t * scale[0]

    f = rn.compile(lambda x: rn.vmap(doubled)(x))
    first = f(x())
    scale[0] = 3.0
    np.testing.assert_array_equal(f(x()).numpy(), first.numpy() * 1.5)


@pytest.mark.parametrize("one", CASES)
def test_lookup_changes(one: Case) -> None:
    one.run()
