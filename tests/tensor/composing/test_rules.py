"""Rules of derivatives as programs: the bits of the rules run op by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from runnel.tensor import composing

from .test_bits import bits, first_order

RNG = np.random.default_rng(7)
X, Y, ROW = (rn.asarray(RNG.normal(size=shape).astype(np.float32)) for shape in ((4, 6), (4, 6), (6,)))
POSITIONS = rn.asarray(RNG.integers(0, 4, (3, 6)))

CASES: dict[str, tuple[Callable[..., Any], tuple[rn.Tensor, ...]]] = {
    "product": (lambda x, y: x * y, (X, Y)),
    "product with a row": (lambda x, y: x * y, (X, ROW)),
    "sum with a row": (lambda x, y: x + y, (X, ROW)),
    "quotient": (lambda x, y: x / (y * y + 1), (X, Y)),
    "power": (lambda x: x**3, (X,)),
    "a tensor by itself": (lambda x: x * x + x, (X,)),
    "where": (lambda x, y: rn.where(x > y, x, y), (X, Y)),
    "matrix product": (lambda x, y: x @ y.T, (X, Y)),
    "transposed": (lambda x, y: rn.tanh(x.T) * y.T, (X, Y)),
    "broadcast": (lambda x: x.expand((4, 6)) * X, (ROW,)),
    "only one operand": (lambda x: x * Y, (X,)),
    "sum": (lambda x: x.sum(0) * x.sum(1, keepdims=True), (X,)),
    "maximum": (lambda x: x.max(1)[0], (X,)),
    "taken": (lambda x: rn.take_along_axis(x, POSITIONS, 0), (X,)),
    "joined": (lambda x, y: rn.concat([x, y], 0) * 2, (X, Y)),
    "running product": (lambda x: x.cumprod(1), (X,)),
    "float64": (lambda x: rn.sin(x) * rn.exp(x), (X.astype(rn.float64),)),
    "no axes": (lambda x: x[0, 0] * x[1, 1], (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_of_rules(name: str) -> None:
    fn, arguments = CASES[name]
    with switches.override(eager=True):
        expected = bits(first_order(fn, arguments))
    composing.clear()
    for _ in range(2):
        assert bits(first_order(fn, arguments)) == expected


def test_a_rule_is_one_program() -> None:
    composing.clear()
    for _ in range(2):
        first_order(CASES["product"][0], (X, Y))
        assert [len(programs) for programs in composing.OF_RULES.values()] == [1]
