"""Optimizers, schedulers, random generators and training loops, changed between steps."""

from __future__ import annotations

import copy
import functools
import random
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


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


class Trainer:
    def __init__(self, optimizer: Any = optim.SGD, **options: Any) -> None:
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.optimizer = optimizer(self.model.parameters(), **{"lr": 0.1, **options})
        self.losses: list[Any] = []
        self.count = 0
        self.clip: float | None = None
        self.last: Any = None
        self.weight = 1.0

    def step(self, x: Any) -> Any:
        with rn.enable_grad():
            self.optimizer.zero_grad()
            loss = (self.model(x) ** 2).mean() * self.weight
            loss.backward()
        if self.clip is not None:
            for p in self.model.parameters():
                p.grad = p.grad.clip(-self.clip, self.clip)
        self.optimizer.step()
        return loss.detach()


def training(trainer: Trainer, *changes: Any) -> Any:
    steps = warm(rows())
    for change in changes:
        steps += [change, *warm(rows())]
    return trainer.step, steps, lambda: trainer


def group(t: Trainer) -> Any:
    return t.optimizer.param_groups[0]


@case
def rate_changed():
    t = Trainer()
    return training(
        t, lambda: group(t).__setitem__("lr", 0.5), lambda: group(t).update(lr=0.0), lambda: group(t).update(lr=0.2)
    )


@case
def momentum_changed():
    t = Trainer(momentum=0.9)
    return training(
        t,
        lambda: group(t).update(momentum=0.5),
        lambda: group(t).update(weight_decay=0.1),
        lambda: group(t).update(nesterov=True),
    )


@case
def adam_changed():
    t = Trainer(optim.Adam)
    return training(t, lambda: group(t).update(betas=(0.5, 0.9)), lambda: group(t).update(eps=0.1))


@case
def group_added():
    t = Trainer()
    extra = nn.Parameter(np.ones(2, np.float32))
    return training(t, lambda: t.optimizer.add_param_group({"params": [extra], "lr": 0.3}))


@case
def optimizer_replaced():
    t = Trainer()
    return training(t, lambda: setattr(t, "optimizer", optim.Adam(t.model.parameters(), lr=0.2)))


@case
def state_loaded():
    t = Trainer(optim.Adam)
    retained: list[Any] = []
    return training(
        t,
        lambda: retained.append(copy.deepcopy(t.optimizer.state_dict())),
        lambda: t.optimizer.load_state_dict(retained[0]),
    )


@case
def scheduler_outside():
    t = Trainer()
    s = optim.StepLR(t.optimizer, 1, 0.5)
    return training(t, s.step, s.step)


@case
def rate_read_inside():
    t = Trainer()
    return (
        (lambda x: (t.step(x), t.optimizer.param_groups[0]["lr"] * 2)),
        [*warm(rows()), lambda: group(t).update(lr=0.7), *warm(rows())],
        lambda: t,
    )


@case
def rate_decides():
    t = Trainer()
    return (lambda x: x * 2 if t.optimizer.param_groups[0]["lr"] > 0.3 else x), [
        *warm(rows()),
        lambda: group(t).update(lr=0.7),
        *warm(rows()),
    ]


@case
def parameters_of_a_group_read():
    t = Trainer()

    def f(x):
        return x * sum(p.requires_grad for p in t.optimizer.param_groups[0]["params"])

    return f, [*warm(rows()), lambda: t.model[0].weight.requires_grad_(False), *warm(rows())]


@case
def state_of_a_parameter_read():
    t = Trainer(momentum=0.9)
    t.step(rows())

    def f(x):
        return x + sum(s["momentum_buffer"].sum() for s in t.optimizer.state.values())

    return f, [*warm(rows()), lambda: t.step(rows()), *warm(rows())]


@case
def clipping_switched():
    t = Trainer()
    return training(
        t, lambda: setattr(t, "clip", 0.01), lambda: setattr(t, "clip", 0.02), lambda: setattr(t, "clip", None)
    )


@case
def loss_weight_annealed():
    t = Trainer()
    return training(t, *[functools.partial(setattr, t, "weight", w) for w in (0.5, 0.25, 0.125)])


@case
def frozen_in_between():
    t = Trainer()
    return training(t, lambda: t.model[0].requires_grad_(False), lambda: t.model[0].requires_grad_(True))


@case
def model_replaced():
    t = Trainer()

    def change() -> None:
        t.model = nn.Linear(4, 3)
        t.optimizer = optim.SGD(t.model.parameters(), lr=0.3)

    return training(t, change)


@case
def activation_replaced():
    t = Trainer()
    return training(t, lambda: t.model.__setitem__(1, nn.ReLU()))


@case
def gradients_accumulated():
    t = Trainer()

    def f(x, last):
        with rn.enable_grad():
            loss = (t.model(x) ** 2).mean()
            loss.backward()
        if last:
            t.optimizer.step()
            t.optimizer.zero_grad()
        return loss.detach()

    return f, [call(rows(), False), call(rows(), True)] * 3, lambda: (t, [p.grad for p in t.model.parameters()])


class Signed(optim.Optimizer):
    """A user's optimizer."""

    factor = 1.0

    def __init__(self, params: Any, lr: float = 0.1) -> None:
        super().__init__(params, {"lr": lr})
        self.scale = 1.0

    def update(self, group: Any, active: Any, steps: Any) -> None:
        for _, p, g in active:
            p.assign(p - rn.sign(g) * (group["lr"] * self.scale * self.factor))


@case
def users_optimizer():
    t = Trainer(Signed)
    return training(
        t,
        lambda: group(t).update(lr=0.5),
        lambda: setattr(t.optimizer, "scale", 2.0),
        lambda: setattr(Signed, "factor", 3.0),
        lambda: setattr(Signed, "factor", 1.0),
    )


class Warm(optim.SGD):
    """A user's subclass of SGD."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, lr=lr)
        self.multiplier = 0.5
        self.history = {"steps": 0}

    def step(self, closure: Any = None) -> Any:
        for p in self.param_groups[0]["params"]:
            if p.grad is not None:
                p.grad = p.grad * self.multiplier
        return super().step()


@case
def users_subclass_of_sgd():
    t = Trainer(Warm)
    return training(t, lambda: setattr(t.optimizer, "multiplier", 2.0), lambda: group(t).update(lr=0.5))


class Counting(optim.SGD):
    def step(self, closure: Any = None) -> Any:
        self.made = getattr(self, "made", 0) + 1
        return super().step()


@case(traces=9)
def users_subclass_that_counts():
    return training(Trainer(Counting))


@case
def torch_style_optimizer():
    class Plain(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for g in self.param_groups:
                for p in g["params"]:
                    if p.grad is None:
                        continue
                    p.sub_(p.grad * g["lr"])

    t = Trainer(Plain)
    return training(t, lambda: group(t).update(lr=0.5))


@case
def optimizer_by_hand():
    t = Trainer()
    rate = [0.1]

    def f(x):
        with rn.enable_grad():
            loss = (t.model(x) ** 2).mean()
            loss.backward()
        for p in t.model.parameters():
            p.assign(p.detach() - rate[0] * p.grad)
            p.grad = None
        return loss.detach()

    return f, [*warm(rows()), lambda: rate.__setitem__(0, 0.5), *warm(rows())], lambda: t


@case
def two_optimizers_alternate():
    t = Trainer()
    two = [optim.SGD(t.model[0].parameters(), lr=0.1), optim.Adam(t.model[2].parameters(), lr=0.1)]

    def f(x, which):
        t.optimizer = two[which]
        t.model.zero_grad()
        return t.step(x)

    return f, [call(rows(), 0), call(rows(), 1)] * 3, lambda: (t, two)


@case(traces=12)
def history_and_counter():
    class Own(Trainer):
        def step(self, x):
            loss = super().step(x)
            self.count += 1
            self.losses.append(loss)
            self.last = loss
            return loss

    t = Own()
    return training(t, t.losses.clear)


@case
def counter_outside():
    class Own(Trainer):
        def step(self, x):
            return super().step(x) + 0

    t = Own()
    t.figure = object()

    def tick() -> None:
        t.count += 1
        t.losses.append(1.0)

    return training(t, tick, tick, tick)


@case
def step_under_condition():
    t = Trainer()

    def f(x):
        loss = t.step(x)
        if len(t.losses) % 2 == 0:
            return loss * 2
        return loss

    return f, [*warm(rows()), lambda: t.losses.append(1), *warm(rows())], lambda: t


@case
def gradient_norm_by_tree():
    t = Trainer()

    def f(x):
        with rn.enable_grad():
            t.optimizer.zero_grad()
            (t.model(x) ** 2).mean().backward()
        norm = sum((p.grad**2).sum() for p in t.model.parameters() if p.grad is not None) ** 0.5
        return norm

    return f, [*warm(rows()), lambda: t.model[0].requires_grad_(False), *warm(rows())], lambda: t


@case
def gradients_left():
    t = Trainer()

    def f(x):
        with rn.enable_grad():
            (t.model(x) ** 2).mean().backward()

    return f, [*warm(rows()), t.optimizer.zero_grad, *warm(rows())], lambda: [p.grad for p in t.model.parameters()]


# Random numbers -------------------------------------------------------------------------------------------------------


@case
def global_generator():
    return (lambda x: x + rn.rand(4)), [*warm(tensor(1, 2, 3, 4)), lambda: rn.manual_seed(3), *warm(tensor(1, 2, 3, 4))]


@case
def generator_passed():
    g = rn.Generator(1)
    h = rn.Generator(2)
    return (
        (lambda x, g: x + rn.rand(4, generator=g)),
        [
            *warm(tensor(1, 2, 3, 4), g),
            *warm(tensor(1, 2, 3, 4), h),
            lambda: g.set_state(h.get_state()),
            *warm(tensor(1, 2, 3, 4), g),
        ],
        lambda: (g.get_state(), h.get_state()),
    )


@case
def generator_replaced_on_self():
    t = Trainer()
    t.generator = rn.Generator(1)
    return (
        (lambda x: x + rn.rand(3, 4, generator=t.generator)),
        [*warm(rows()), lambda: setattr(t, "generator", rn.Generator(5)), *warm(rows())],
        lambda: t.generator.get_state(),
    )


@case
def dropout_layers_generator():
    m = nn.Dropout(0.5)
    return (lambda x: m(x)), [
        *warm(rows()),
        lambda: rn.manual_seed(3),
        *warm(rows()),
        lambda: rn.set_rng_state(rn.Generator(9).get_state()),
        *warm(rows()),
    ]


@case
def key_passed():
    def f(x, key):
        a, b = rn.split_key(key)
        return x + rn.normal(size=4, key=a) * rn.uniform(size=4, key=b)

    g = rn.Generator(1)
    return f, [call(tensor(1, 2, 3, 4), g.next_key()) for _ in range(4)]


@case(eager="random numbers")
def stochastic_depth():
    m = nn.Linear(4, 4)
    return (lambda x: m(x) if random.random() < 0.5 else x), [*warm(rows()), *warm(rows())]


@case(eager="NumPy's random numbers are drawn by a Generator")
def numpy_noise():
    g = np.random.default_rng(3)
    return (lambda x: x + g.normal(size=4).astype(np.float32)), [*warm(tensor(1, 2, 3, 4))]


@case(eager="random numbers")
def numpy_noise_of_the_module():
    return (lambda x: x * float(np.random.rand())), [*warm(tensor(1, 2, 3, 4))]


@case(eager="random numbers")
def shuffled():
    order = [0, 1, 2, 3]

    def f(x):
        random.shuffle(order)
        return x[order[0]]

    return f, [*warm(tensor(1, 2, 3, 4))], lambda: order


@case(eager="random numbers")
def users_random_generator():
    g = random.Random(3)
    return (lambda x: x * g.choice([1.0, 2.0])), [*warm(tensor(1, 2, 3, 4))]


@case
def random_number_made_outside():
    state = {"keep": random.random() < 0.5}
    return (lambda x: x * 2 if state["keep"] else x), [
        *warm(tensor(1, 2)),
        lambda: state.update(keep=not state["keep"]),
        *warm(tensor(1, 2)),
    ]


@case(traces=4)
def counters_by_parameter():
    rn.manual_seed(0)
    layer = nn.Linear(3, 2)
    state = {p: {"step": 0, "rate": 0.5} for p in layer.parameters()}

    def f(x: Any) -> Any:
        total = layer(x)
        for p in layer.parameters():
            if p in state:
                mine = state[p]
                mine["step"] += 1
                mine["rate"] *= 0.5
                total = total + p.sum() * mine["step"] * mine["rate"]
        return total

    x = rn.ones((2, 3))
    return f, [*[call(x)] * 5, lambda: state.pop(layer.bias), *[call(x)] * 3], lambda: list(state.values())


@case
def objects_as_keys():
    class Key:
        pass

    a, b = Key(), Key()
    table = {a: 1.0, b: 2.0}

    def f(x: Any, key: Any) -> Any:
        return x * (table[key] if key in table else -1.0) + len(table)

    x = rn.ones(3)
    return f, [
        *[call(x, a)] * 3, call(x, b), lambda: table.update({a: 5.0}), *[call(x, a)] * 2, lambda: table.pop(b),
        *[call(x, b), call(x, a)] * 2, call(x, Key()),
    ]  # fmt: skip


@pytest.mark.parametrize("one", CASES)
def test_optimizers(one: Case) -> None:
    one.run()
