"""Transforms, inside and outside of compiled functions, over functions that read what changes."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0, 0.5)


def changing(function: Any, *changes: Any, state: Any = None) -> Any:
    steps = warm(x())
    for change in changes:
        steps += [change, *warm(x())]
    return function, steps, state or (lambda: None)


@case
def grad_of_a_closure():
    o = {"scale": 2.0}

    def loss(t):
        return (t * t * o["scale"]).sum()

    return changing(lambda t: rn.grad(loss)(t), lambda: o.update(scale=3.0))


@case
def grad_made_outside():
    o = {"scale": 2.0}
    g = rn.grad(lambda t: (t * t * o["scale"]).sum())
    return changing(lambda t: g(t) * 2, lambda: o.update(scale=3.0))


@case
def grad_compiled_itself():
    o = [2.0]
    return changing(rn.grad(lambda t: (t * t * o[0]).sum()), lambda: o.__setitem__(0, 3.0))


@case
def grad_function_replaced():
    o = {"f": rn.grad(lambda t: (t * t).sum())}
    return changing(lambda t: o["f"](t), lambda: o.update(f=rn.grad(lambda t: (t * t * t).sum())))


@case
def value_and_grad_of_a_method():
    class Loss:
        def __init__(self):
            self.weight = 2.0

        def __call__(self, t):
            return (t * t * self.weight).sum()

        def method(self, t):
            return (t * self.weight).sum()

    loss = Loss()
    return changing(
        lambda t: (rn.value_and_grad(loss.method)(t), rn.value_and_grad(loss)(t)),
        lambda: setattr(loss, "weight", 3.0),
        lambda: setattr(Loss, "method", lambda self, t: (t * 7).sum()),
    )


@case
def value_and_grad_of_a_partial():
    o = {"p": functools.partial(lambda k, t: (t * t * k).sum(), 2.0)}
    return changing(
        lambda t: rn.value_and_grad(o["p"])(t),
        lambda: o.update(p=functools.partial(lambda k, t: (t * t * k).sum(), 5.0)),
    )


@case
def partial_of_a_transform():
    o = [2.0]
    p = functools.partial(rn.value_and_grad(lambda k, t: (t * t * k * o[0]).sum(), argnums=1), 2.0)
    return changing(lambda t: p(t), lambda: o.__setitem__(0, 4.0))


@case
def lambdas_of_transforms_in_a_list():
    fs = [rn.grad(lambda t: (t * t).sum()), lambda t: t * 3]
    return changing(lambda t: sum(f(t) for f in fs), fs.reverse, lambda: fs.append(rn.grad(lambda t: rn.sin(t).sum())))


@case
def vjp_with_state():
    o = {"n": 2}

    def f(t):
        y, back = rn.vjp(lambda t: t ** o["n"], t)
        return y, back(y)[0]

    return changing(f, lambda: o.update(n=3))


@case
def nested_grads():
    o = [3]
    return changing(
        lambda t: rn.grad(lambda t: rn.grad(lambda u: (u ** o[0]).sum())(t).sum())(t), lambda: o.__setitem__(0, 4)
    )


@case
def scan_with_state():
    o = {"decay": 0.5, "w": tensor(1, 2, 3, 4)}

    def f(t):
        def body(carry, row):
            return carry * o["decay"] + row * o["w"], carry

        return rn.scan(body, t, rn.stack([t, t * 2, t * 3]))

    return changing(f, lambda: o.update(decay=0.25), lambda: o.update(w=tensor(0, 0, 1, 1)), lambda: o["w"].add_(1))


@case
def scan_of_a_cell():
    cell = nn.GRUCell(4, 4)
    o = [1.0]

    def f(t):
        return rn.scan(lambda h, row: (cell(row, h) * o[0],) * 2, t[None] * 0, rn.stack([t[None], t[None]]))[0]

    return changing(
        f, lambda: o.__setitem__(0, 2.0), lambda: cell.weight_hh.mul_(2) if hasattr(cell, "weight_hh") else None
    )


@case
def cond_with_state():
    o = {"true": lambda t: t * 2, "k": 3.0}

    def f(t):
        return rn.cond(t.sum() > 0, o["true"], lambda t: t * o["k"], t)

    return changing(f, lambda: o.update(true=lambda t: t * 9), lambda: o.update(k=5.0))


@case
def while_loop_with_state():
    o = {"limit": 5.0}

    def f(t):
        return rn.while_loop(lambda c: c[0] < o["limit"], lambda c: (c[0] + 1, c[1] * 2), (rn.asarray(0.0), t))[1]

    return changing(f, lambda: o.update(limit=2.0))


@case
def checkpoint_with_state():
    m = nn.Linear(4, 4)
    o = {"scale": 2.0}

    def f(t):
        def loss(t):
            return (rn.checkpoint(lambda u: rn.tanh(m(u)) * o["scale"], t) ** 2).sum()

        return rn.value_and_grad(loss)(t)

    return changing(f, lambda: o.update(scale=3.0), lambda: setattr(m, "bias", None))


@case
def checkpointed_layers():
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])

    def f(t):
        for layer in layers:
            t = rn.checkpoint(layer, t)
        return t

    return changing(f, lambda: layers.append(nn.ReLU()), lambda: setattr(layers[0], "forward", lambda t: t * 2))


@case
def custom_derivative_with_state():
    o = {"k": 2.0, "slope": 5.0}

    @rn.custom_vjp
    def f(t):
        return t * o["k"]

    f.defvjp(lambda t: (t * o["k"], None), lambda saved, g: (g * o["slope"],))
    return changing(
        lambda t: (f(t), rn.grad(lambda t: f(t).sum())(t)), lambda: o.update(k=3.0), lambda: o.update(slope=7.0)
    )


@case
def compiled_in_compiled():
    o = {"k": 2.0}
    inner = rn.compile(lambda t: t * o["k"])
    return changing(lambda t: inner(t) + 1, lambda: o.update(k=3.0))


@case
def compiled_method_in_compiled():
    class Own:
        def __init__(self):
            self.k = 2.0

        @rn.compile
        def inner(self, t):
            self.last = t * self.k
            return self.last

        def outer(self, t):
            return self.inner(t) + self.last

    o = Own()
    return changing(o.outer, lambda: setattr(o, "k", 3.0), lambda: setattr(o, "inner", lambda t: t), state=lambda: o)


@case
def compiled_replaced():
    o = {"f": rn.compile(lambda t: t * 2)}
    return changing(
        lambda t: o["f"](t), lambda: o.update(f=rn.compile(lambda t: t * 3)), lambda: o.update(f=lambda t: t * 4)
    )


@case
def compiled_forward_on_self():
    m = nn.Linear(4, 4)
    m.fast = rn.compile(m.forward)
    o = [1.0]
    return changing(lambda t: m.fast(t) * o[0], lambda: o.__setitem__(0, 2.0), lambda: setattr(m, "bias", None))


@case
def grad_of_a_compiled():
    o = {"k": 2.0}
    inner = rn.compile(lambda t: (t * t * o["k"]).sum())
    return changing(lambda t: rn.grad(inner)(t), lambda: o.update(k=3.0))


@case
def bound_method_kept():
    class Own:
        k = 2.0

        def f(self, t):
            return t * self.k

    a, b = Own(), Own()
    b.k = 5.0
    fs = [a.f]
    return changing(
        lambda t: fs[0](t),
        lambda: fs.__setitem__(0, b.f),
        lambda: setattr(b, "k", 6.0),
        lambda: setattr(Own, "f", lambda self, t: t),
    )


@case
def random_inside_scan():
    g = rn.Generator(3)

    def f(t):
        return rn.scan(lambda c, k: (c + rn.normal(size=4, key=k), c.sum()), t, rn.split_key(g.next_key(), 3))[0]

    return changing(f, state=lambda: g.get_state())


@case
def gradient_with_auxiliary():
    recorded: list[Any] = []

    def loss(t):
        recorded.append(t.shape)
        return (t * t).sum(), {"twice": t * 2, "count": len(recorded)}

    return (lambda t: rn.value_and_grad(loss, has_aux=True)(t)), [*warm(x()), *warm(x())], lambda: recorded


@case
def effect_inside_a_gradient():
    class Own:
        def __init__(self):
            self.calls = 0
            self.last = None

        def loss(self, t):
            self.calls += 1
            y = (t * t).sum()
            self.aux = y.detach()
            return y

    o = Own()
    return changing(lambda t: rn.grad(o.loss)(t), state=lambda: o)


@case
def effect_inside_a_scan():
    count = [0]

    def f(t):
        def body(c, r):
            count[0] += 1
            return c + r, c

        return rn.scan(body, t, rn.stack([t, t]))[0]

    return changing(f, state=lambda: None)


@case
def autocast_inside():
    m = nn.Linear(4, 4)
    o = {"dtype": rn.bfloat16}

    def f(t):
        with rn.autocast(o["dtype"]):
            return m(t[None])

    return changing(f, lambda: o.update(dtype=rn.float16))


@case
def gradient_modes():
    m = nn.Linear(4, 4)
    o = {"flag": True}

    def f(t):
        with rn.set_grad_enabled(o["flag"]):
            y = m(t[None])
        return y, y.requires_grad

    return changing(f, lambda: o.update(flag=False))


@case
def gradient_of_parameters_by_function():
    m = nn.Linear(4, 4)

    def f(t):
        with rn.enable_grad():
            loss = (m(t[None]) ** 2).sum()
            loss.backward()
        out = [p.grad * 1 for p in m.parameters()]
        m.zero_grad()
        return out

    return changing(f, lambda: m.weight.mul_(2), state=lambda: m)


@case
def argnums_change():
    o = {"n": 0}

    def f(t):
        return rn.grad(lambda a, b: (a * a * b).sum(), argnums=o["n"])(t, t * 2)

    return changing(f, lambda: o.update(n=1), lambda: o.update(n=(0, 1)))


@case
def other_weights_for_a_while():
    """What stands in the module's attributes meanwhile is of a level, which no call afterwards could make."""
    rn.manual_seed(3)
    model = nn.Linear(4, 2)

    def loss(weights, t):
        return (rn.functional_call(model, weights, t) ** 2).mean()

    def each(t):
        weights = dict(model.named_parameters())
        rows = rn.stack([t, t * 2])
        return rn.vmap(lambda w, row: rn.grad(loss)(w, row)["weight"], in_axes=(None, 0))(weights, rows)

    return changing(each, lambda: model.weight.mul_(2.0), state=lambda: list(vars(model)))


class Box:
    pass


def kept(box: Box, row: rn.Tensor) -> rn.Tensor:
    box.level = row
    return row * 2


@case
def an_attribute_written_twice():
    box = Box()

    def f(t):
        box.first = rn.vmap(lambda row: kept(box, row))(t[:, None]).sum()
        box.second = 1
        box.level = None
        return box.first

    return changing(f, lambda: vars(box).clear(), state=lambda: list(vars(box)))


@pytest.mark.parametrize("one", CASES)
def test_transforms(one: Case) -> None:
    one.run()
