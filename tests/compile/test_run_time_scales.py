"""Test numbers that change from call to call as factors of other arguments: they are run-time data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import runnel as rn

FUNCTIONS: dict[str, Any] = {
    "addcmul": lambda x, y, s: x.addcmul(x, y, value=s),
    "addcdiv": lambda x, y, s: x.addcdiv(x, y, value=s),
    "addcdiv_": lambda x, y, s: x.clone().addcdiv_(x, y, value=-s),
    "add": lambda x, y, s: x.add(y, alpha=s),
    "numbers": lambda x, y, s: x.addcmul(y, 2.0, value=s * 2),
    "full": lambda x, y, s: rn.full((3,), s) * x,
    "full_of_a_dtype": lambda x, y, s: rn.full(3, s, rn.float64) + x,
    "full_that_requires_a_gradient": lambda x, y, s: rn.full((2, 3), s, requires_grad=True) * y,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors_are_run_time_data(name: str) -> None:
    function = FUNCTIONS[name]
    x, y = rn.asarray([1.5, -0.0, np.nan]), rn.asarray([0.5, 2.0, 3.0])
    state = SimpleNamespace(s=0.0)
    compiled = rn.compile(lambda x, y: function(x, y, state.s))
    for s in (0.1, 1.0, 0.0, -2.5, 1.0 / 3.0):
        state.s = s
        actual, expected = compiled(x, y), function(x, y, s)
        assert actual.dtype is expected.dtype and actual.requires_grad == expected.requires_grad
        assert actual.detach().numpy().tobytes() == expected.detach().numpy().tobytes()
    assert compiled.statistics["traces"] <= 2, compiled.retraces


def test_whole_numbers_keep_their_dtype() -> None:
    x = rn.asarray([1, 2, 3])
    compiled = rn.compile(lambda x, s: rn.full((2,), s, rn.int64) + x[:2])
    for s in (1.0, 2.0):
        assert compiled(x, s).tolist() == (rn.full((2,), s, rn.int64) + x[:2]).tolist()
