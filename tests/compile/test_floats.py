"""Test float arguments in a trace: floats to the function, run-time data to the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn


def looks(s: float) -> tuple[Any, ...]:
    return (
        isinstance(s, rn.Tensor), isinstance(s, float), isinstance(s, (int, np.ndarray)), hasattr(s, "shape"),
        hasattr(s, "dtype"), hasattr(s, "numpy"), rn.asarray(s).dtype.name, rn.asarray(s, "float64").dtype.name,
    )  # fmt: skip


def uses(x: rn.Tensor, s: float) -> tuple[Any, ...]:
    y = x * s + s * 2
    y[0] = s
    y[1:] *= s
    y.add_(s).lerp_(x, s)
    return (
        looks(s), y, rn.full_like(x, s), rn.where(x > 0, s, 0.0), rn.clip(x, -s, s), rn.maximum(x, s), 1 - s, abs(-s),
        s * 2 + 1, s / 4, x / s, s / x, s**x, rn.asarray(s), rn.tensor(s), rn.stack([rn.asarray(s), rn.asarray(1.0)]),
        x.astype("int64") + s, x.astype("bfloat16") * s, rn.grad(lambda t: (t * t * s).sum())(x),
        rn.grad(lambda t: t * t)(s), rn.scan(lambda c, _: (c * s, c), 1.0, None, length=3)[1], y.clone().fill_(s),
    )  # fmt: skip


def test_floats_are_used_as_in_eager_code() -> None:
    x = rn.asarray([1.0, -2.0, 3.0])
    compiled = rn.compile(uses)
    for s in (0.3, 0.7, 1.1, 0.3):
        for actual, expected in zip(compiled(x, s), uses(x, s), strict=True):
            assert type(actual) is type(expected)
            if isinstance(expected, rn.Tensor):
                assert actual.dtype is expected.dtype and np.array_equal(actual.numpy(), expected.numpy())
            else:
                assert actual == expected
    assert compiled.statistics["traces"] == 1, "floats are run-time data"


def test_variables_take_floats() -> None:
    state = rn.Variable(np.zeros(2, np.float32))
    rate = rn.Variable(np.zeros((), np.float32))

    @rn.compile
    def step(s: float) -> None:
        state[0] = s
        rate.assign(s)
        state.__iadd__(s * 0.5)

    for s in (0.1, 0.2):
        step(s)
        assert rate.item() == np.float32(s) and state[0].item() == np.float32(np.float32(s) + np.float32(s * 0.5))
    assert step.statistics["traces"] == 1


@pytest.mark.parametrize("wrong", [lambda s: s.shape, lambda s: s.sum(), lambda s: s[0], lambda s: rn.exp(s)])
def test_errors_are_those_of_floats(wrong: Any) -> None:
    with pytest.raises((AttributeError, TypeError)) as eager:
        wrong(0.5)
    with pytest.raises(type(eager.value)):
        rn.compile(lambda s: wrong(s))(0.5)
