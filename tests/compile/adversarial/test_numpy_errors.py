"""What NumPy tells of errors of floating-point numbers, once at each call, and how it is set to treat them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import runnel as rn

Step = Callable[[Any], Any]


class World:
    def __init__(self) -> None:
        self.a = np.array([1.0, 0.0])
        self.v = np.float32(1.0)
        self.small = np.int8(100)


STEPS: Final = {
    "of_arrays": "x * rn.asarray(1.0 / w.a).sum()",
    "of_items": "x * float(np.log(w.a[1]))",
    "of_scalars": "(x * 2, w.small + np.int8(1))",
    "of_constants": "(x * 2, np.float32(1.0) / np.float32(0.0))",
    "of_fresh_arrays": "(x * 2, np.ones(2) / np.zeros(2))",
    "underflow": "(x * 2, np.exp(np.float32(-200.0)) * w.v)",
    "hidden": "(x * 2, np.nan_to_num(np.array([np.inf])))",
}


def step_in(world: World, name: str) -> Step:
    """A step of its own code, so that programs of one test are none of another."""
    made: Step = eval(f"lambda x: {STEPS[name]}", {"w": world, "np": np, "rn": rn})
    return made


def change_values(world: World) -> None:
    world.a[:] = 2.0
    world.v = np.float32(3.0)
    world.small = np.int8(127)


def back(world: World) -> None:
    world.__init__()  # type: ignore[misc]


CHANGES: Final = (change_values, back)


def told(step: Step, treat: dict[str, Any]) -> tuple[str, list[str]]:
    """What a call gives or raises, and the warnings in it."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(**treat):
        warnings.simplefilter("always")
        try:
            result = str([np.asarray(part).tolist() for part in rn.tree.leaves(step(rn.asarray([1.0, 2.0])))])
        except FloatingPointError as problem:
            result = str(problem)
    return result, [str(w.message) for w in caught if w.category is RuntimeWarning]


@pytest.mark.filterwarnings("ignore::runnel.core.errors.CaptureWarning")
@pytest.mark.parametrize("name", STEPS)
def test_errors_are_told_of_at_each_call(name: str) -> None:
    plain, compiled = World(), World()
    eager, run = step_in(plain, name), rn.compile(step_in(compiled, name))
    settings: list[dict[str, Any]] = [{}, {"all": "ignore"}, {"all": "raise"}, {"all": "warn"}, {}]
    for treat in settings:
        for change in (lambda world: None, *CHANGES):
            change(plain), change(compiled)
            for call in range(3):
                assert told(run, treat) == told(eager, treat), (treat, call)
