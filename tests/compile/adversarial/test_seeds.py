"""Seeding the default generators inside of compiled functions."""

from __future__ import annotations

from typing import Any

import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def elsewhere() -> Any:
    """What the generator of the other device gives next."""
    return rn.rand(2, device="interpreter").tolist()


def steps() -> list[Any]:
    return [call(tensor(1.0, 2.0))] * 4


@case
def before_it_draws():
    def f(x: Any) -> Any:
        rn.manual_seed(3)
        return x + rn.rand(2), rn.rand(3)

    return f, steps(), elsewhere


@case
def between_draws():
    return (lambda x: (rn.rand(2), rn.manual_seed(3), rn.rand(2) + x)), steps(), elsewhere


@case
def after_draws():
    return (lambda x: (rn.rand(2) + x, rn.manual_seed(seed=4))[0]), steps(), elsewhere


@case
def with_another_seed_each_time():
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        rn.manual_seed(count[0])
        return x * rn.rand(2)

    return f, steps(), lambda: (count, elsewhere())


@case
def by_a_step_that_draws_nothing():
    return (lambda x: (rn.manual_seed(5), x * 2)[1]), steps(), elsewhere


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case) -> None:
    case.run()


def test_a_function_on_another_device() -> None:
    f = rn.compile(lambda x: (rn.manual_seed(3), x + rn.rand(2, device="interpreter"))[1])
    x = rn.ones(2, device="interpreter")
    assert [f(x).tolist() for _ in range(3)] == [f.function(x).tolist()] * 3
