"""Schedules that are stepped inside of compiled functions: the numbers of eager steps, and nothing compiled anew."""

from __future__ import annotations

import functools
import math
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn, optim
from runnel.optim import lr_scheduler as schedules
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case
TEN = 10

MAKES: dict[str, Callable[[Any], Any]] = {
    "lambda": lambda o: schedules.LambdaLR(o, lambda n: 0.9**n),
    "lambdas_of_groups": lambda o: schedules.LambdaLR(o, [lambda n: 1 / (1 + n)]),
    "multiplicative": lambda o: schedules.MultiplicativeLR(o, lambda n: 0.9 if n < 4 else 1.0),
    "step": lambda o: schedules.StepLR(o, 3, 0.5),
    "multi_step": lambda o: schedules.MultiStepLR(o, [2, 5, 5], 0.5),
    "constant": lambda o: schedules.ConstantLR(o, 0.5, 4),
    "linear": lambda o: schedules.LinearLR(o, 0.5, total_iters=4),
    "exponential": lambda o: schedules.ExponentialLR(o, 0.9),
    "polynomial": lambda o: schedules.PolynomialLR(o, 30, 2.0),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 6, eta_min=0.001),
    "warm_restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2),
    "cyclic": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 3, mode="triangular2"),
    "cyclic_with_a_function": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda n: 1 / n),
    "one_cycle": lambda o: schedules.OneCycleLR(o, 0.2, total_steps=20),
    "one_cycle_in_three_phases": lambda o: schedules.OneCycleLR(o, 0.2, total_steps=20, three_phase=True),
    "one_after_the_other": lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, 0.1, total_iters=3), schedules.ExponentialLR(o, 0.9)], [3]
    ),
    "chained": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.5, 4), schedules.MultiplicativeLR(o, lambda n: 0.8)]
    ),
}


class World:
    """A Parameter, its optimizer and a schedule."""

    def __init__(self, make: Callable[[Any], Any], optimizer: Any = None) -> None:
        self.p = nn.Parameter([1.0, 2.0])
        self.optimizer = (optimizer or functools.partial(optim.SGD, momentum=0.9))([self.p], lr=0.1)
        self.schedule = make(self.optimizer)

    def loss(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = (self.p * self.p * x).sum()
        loss.backward()
        return loss

    def step(self, x: Any) -> Any:
        loss = self.loss(x)
        self.optimizer.step()
        self.schedule.step()
        return loss

    def state(self) -> Any:
        return self.p, self.optimizer, self.schedule.state_dict()


def own_step(world: World) -> Any:
    """Its step with code of its own: programs are kept by code."""
    result = types.FunctionType(World.step.__code__.replace(), globals())
    return types.MethodType(result, world)


def story_of(world: World, step: Any = None) -> Any:
    return step or own_step(world), [call(tensor(1.0, 0.5))] * TEN, world.state


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_every_schedule(make: Callable[[Any], Any]) -> None:
    Case(lambda: story_of(World(make)), None, 1, None).run()


def test_of_betas() -> None:
    Case(lambda: story_of(World(MAKES["one_cycle"], optimizer=optim.AdamW)), None, 1, None).run()


@case(traces=2)
def a_rate_that_becomes_zero():
    return story_of(World(lambda o: schedules.PolynomialLR(o, 5)))


@case(traces=2)
def a_plateau_of_a_loss_of_the_function():
    world = World(lambda o: schedules.ReduceLROnPlateau(o, patience=1, threshold=0.5))

    def step(x: Any) -> Any:
        loss = world.loss(x)
        world.optimizer.step()
        world.schedule.step(loss)
        return loss

    return story_of(world, step)


@case
def epochs_and_values_that_are_given():
    world = World(MAKES["cosine"])
    plateau = schedules.ReduceLROnPlateau(world.optimizer, patience=0)

    def step(x: Any, epoch: int, value: float) -> Any:
        loss = world.loss(x)
        world.optimizer.step()
        world.schedule.step(epoch)
        plateau.step(value)
        return loss

    calls = [call(tensor(1.0, 0.5), i * 3, 1.0 + i % 2) for i in range(6)]
    return step, calls, lambda: (world.state(), plateau.state_dict())


@case(traces=3)
def rates_and_epochs_that_are_read_before():
    world = World(MAKES["exponential"])

    def step(x: Any) -> Any:
        before, epoch = world.schedule.get_last_lr()[0], world.schedule.last_epoch
        rate = world.optimizer.param_groups[0]["lr"]
        return world.step(x) * rate, before, epoch

    return story_of(world, step)


@case
def several_schedules_of_several_optimizers():
    a, b = World(MAKES["step"]), World(MAKES["cosine"])

    def step(x: Any) -> Any:
        return a.step(x) + b.step(x)

    return step, [call(tensor(1.0, 0.5))] * TEN, lambda: (a.state(), b.state())


@case(eager="an optimizer steps after its schedule was stepped")
def stepped_before_the_optimizer():
    world = World(MAKES["step"])

    def step(x: Any) -> Any:
        loss = world.loss(x)
        world.schedule.step()
        world.optimizer.step()
        return loss

    return story_of(world, step)


@case(eager="an optimizer steps after its schedule was stepped")
def twice_in_a_call():
    world = World(MAKES["exponential"])
    return story_of(world, lambda x: world.step(x) + world.step(x))


@case(eager="get_last_lr() of a schedule is read after its step")
def the_rate_is_read_after():
    world = World(MAKES["exponential"])
    return story_of(world, lambda x: (world.step(x), world.schedule.get_last_lr()))


@case(eager="'last_epoch' of a schedule is read after its step")
def the_epoch_is_read_after():
    world = World(MAKES["exponential"])
    return story_of(world, lambda x: (world.step(x), world.schedule.last_epoch))


@case(eager="a number of a group is read after its schedule was stepped")
def the_group_is_read_after():
    world = World(MAKES["exponential"])
    return story_of(world, lambda x: (world.step(x), world.optimizer.param_groups[0]["lr"] * 2))


@case(eager="where a clock is read")
def a_function_that_reads_a_clock():
    return story_of(World(lambda o: schedules.LambdaLR(o, lambda n: 1.0 if time.time() > 0 else 0.5)))


@case(eager="a schedule calls")
def a_function_that_changes_something():
    recorded: list[int] = []
    world = World(lambda o: schedules.LambdaLR(o, lambda n: recorded.append(n) or 0.9**n))  # type: ignore[func-returns-value]

    def step(x: Any) -> Any:
        return world.step(x) * len(recorded)

    return step, [call(tensor(1.0, 0.5))] * TEN, lambda: (world.state(), recorded)


@case
def a_function_that_reads_what_the_function_changes():
    counts = [0]
    world = World(lambda o: schedules.LambdaLR(o, lambda n: 0.9 ** counts[0]))

    def step(x: Any) -> Any:
        counts[0] += 2
        return world.step(x)

    return story_of(world, step)


class Halving(schedules.LRScheduler):
    factor = 0.5

    def get_lr(self) -> list[float]:
        return [base * math.pow(self.factor, self.last_epoch) for base in self.base_lrs]


class Noting(Halving):
    def step(self, epoch: int | None = None) -> None:
        self.calls = getattr(self, "calls", 0) + 1
        super().step(epoch)


class Multiplied(schedules.LRScheduler):
    def multiplier(self, epoch: int) -> float:
        return 1.0 / (1 + epoch)


@pytest.mark.parametrize("kind", [Halving, Noting, Multiplied])
def test_schedules_of_the_users(kind: type[schedules.LRScheduler]) -> None:
    Case(lambda: story_of(World(kind)), None, 3, None).run()


class Setting(schedules.LRScheduler):
    def set_rates(self, rates: Any) -> None:
        super().set_rates([rate * 0.5 for rate in rates])

    def multiplier(self, epoch: int) -> float:
        return 0.9


@case(eager="set_rates() of its own")
def a_schedule_that_sets_in_a_way_of_its_own():
    return story_of(World(Setting))


@case
def another_schedule_of_the_same_class():
    world = World(MAKES["exponential"])

    def change() -> None:
        world.schedule = schedules.ExponentialLR(world.optimizer, 0.5)

    calls = [call(tensor(1.0, 0.5))] * 3
    return own_step(world), [*calls, change, *calls], world.state


@case
def attributes_of_a_schedule_that_are_set_inside():
    world = World(MAKES["exponential"])

    def step(x: Any) -> Any:
        world.schedule.gamma = 0.8
        world.schedule.last_epoch = 3
        return world.step(x)

    return story_of(world, step)


@case(eager="stepped inside of a loop")
def inside_of_a_loop():
    world = World(MAKES["exponential"])

    def step(x: Any) -> Any:
        def body(total: Any, one: Any) -> Any:
            world.schedule.step()
            return total + one, one

        return rn.scan(body, rn.zeros(()), x)[0]

    return story_of(world, step)


@pytest.mark.parametrize("one", CASES)
def test_schedules(one: Case) -> None:
    one.run()
