"""Fifty steps of each optimizer against the formulas in float64, in float64 and, less closely, in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.optim import formulas

CASES: list[tuple[type[optim.Optimizer], Any, dict[str, Any]]] = [
    (optim.SGD, formulas.sgd, {"lr": 0.05}),
    (optim.SGD, formulas.sgd, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    (optim.SGD, formulas.sgd, {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    (optim.SGD, formulas.sgd, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    (optim.SGD, formulas.sgd, {"lr": 0.001, "maximize": True}),
    (optim.Adam, formulas.adam, {"lr": 0.02}),
    (optim.Adam, formulas.adam, {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.2}),
    (optim.Adam, formulas.adam, {"lr": 0.02, "betas": (0.5, 0.6), "amsgrad": True}),
    (optim.Adam, formulas.adam, {"lr": 0.001, "maximize": True}),
    (optim.AdamW, formulas.adamw, {"lr": 0.02}),
    (optim.AdamW, formulas.adamw, {"lr": 0.02, "weight_decay": 0.3}),
    (optim.RMSprop, formulas.rmsprop, {"lr": 0.01}),
    (optim.RMSprop, formulas.rmsprop, {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    (optim.RMSprop, formulas.rmsprop, {"lr": 0.01, "centered": True, "eps": 1e-2}),
    (optim.Adagrad, formulas.adagrad, {"lr": 0.1}),
    (
        optim.Adagrad,
        formulas.adagrad,
        {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, "weight_decay": 0.1},
    ),
    (optim.Lion, formulas.lion, {"lr": 0.01}),
    (optim.Lion, formulas.lion, {"lr": 0.01, "betas": (0.7, 0.8), "weight_decay": 0.2, "maximize": True}),
    (optim.LAMB, formulas.lamb, {"lr": 0.02}),
    (optim.LAMB, formulas.lamb, {"lr": 0.02, "betas": (0.7, 0.8), "eps": 1e-3, "weight_decay": 0.2}),
    (optim.Shampoo, formulas.shampoo, {"lr": 0.1, "eps": 0.1}),
    (optim.Shampoo, formulas.shampoo, {"lr": 0.05, "eps": 0.1, "momentum": 0.5, "weight_decay": 0.1}),
    (optim.Shampoo, formulas.shampoo, {"lr": 0.05, "eps": 0.1, "max_size": 3}),
]
START = np.random.default_rng(0).standard_normal((3, 4))
SLOPES = np.random.default_rng(1).uniform(0.2, 2.0, (3, 4))


def gradient(p: np.ndarray, t: int) -> np.ndarray:
    """Of a tilted, trembling bowl: neither constant nor zero anywhere on the way."""
    return SLOPES * p + 0.3 * np.cos(t + SLOPES)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-4)])
@pytest.mark.parametrize(("kind", "formula", "options"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_fifty_steps(kind: Any, formula: Any, options: dict[str, Any], dtype: str, tolerance: float) -> None:
    p = nn.Parameter(START.astype(dtype), name="p")
    optimizer = kind([p], **options)
    expected, state = START.copy(), {"t": 0}
    for t in range(50):
        state["t"] += 1
        expected = formula(expected, gradient(expected, t), state, options)
        p.grad = rn.asarray(gradient(p.numpy(), t).astype(dtype))
        optimizer.step()
    np.testing.assert_allclose(p.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_the_learning_rate_of_a_step_is_that_of_the_group() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = optim.SGD([p], lr=0.5)
    for lr in (0.5, 0.25, 0.0):
        optimizer.param_groups[0]["lr"] = lr
        before = p.numpy().copy()
        p.grad = rn.ones((3,))
        optimizer.step()
        np.testing.assert_array_equal(p.numpy(), before - np.float32(lr))


def test_groups_have_rates_of_their_own_and_parameters_without_gradient_rest() -> None:
    a, b, c = (nn.Parameter(np.ones(2, np.float32), name=n) for n in "abc")
    optimizer = optim.Adam([{"params": [a, c]}, {"params": b, "lr": 0.5}], lr=0.1)
    a.grad, b.grad = rn.ones((2,)), rn.ones((2,))
    optimizer.step()
    np.testing.assert_allclose(a.numpy(), 0.9, rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), 0.5, rtol=1e-6)
    np.testing.assert_array_equal(c.numpy(), 1)
    c.grad = rn.ones((2,))
    optimizer.step()  # c's first step: its bias correction begins now
    np.testing.assert_allclose(c.numpy(), 0.9, rtol=1e-6)
