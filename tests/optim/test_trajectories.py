"""Fifty steps of the optimizers that PyTorch lacks, against formulas in float64; learning rates of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim

State = dict[str, Any]


def lion(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    g = -g if h.get("maximize") else g
    beta1, beta2 = h.get("betas", (0.9, 0.99))
    m = s.get("m", 0)
    s["m"] = beta2 * m + (1 - beta2) * g
    return p * (1 - h["lr"] * h.get("weight_decay", 0)) - h["lr"] * np.sign(beta1 * m + (1 - beta1) * g)


def lamb(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    g = -g if h.get("maximize") else g
    beta1, beta2 = h.get("betas", (0.9, 0.999))
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    root = np.sqrt(s["v"] / (1 - beta2 ** s["t"])) + h.get("eps", 1e-6)
    r = s["m"] / (1 - beta1 ** s["t"]) / root + h.get("weight_decay", 0) * p
    return p - h["lr"] * np.linalg.norm(p) / np.linalg.norm(r) * r


def shampoo(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    g = g + h.get("weight_decay", 0) * p
    eps = h.get("eps", 1e-4)
    rows, columns = g.shape
    s["l"] = s.get("l", eps * np.eye(rows)) + g @ g.T
    s["r"] = s.get("r", eps * np.eye(columns)) + g.T @ g
    if columns > h.get("max_size", 1024):
        d = _power(s["l"], -0.5) @ g
    else:
        d = _power(s["l"], -0.25) @ g @ _power(s["r"], -0.25)
    if h.get("momentum"):
        d = s["b"] = h["momentum"] * s.get("b", 0) + d
    return p - h["lr"] * d


def _power(matrix: np.ndarray, power: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


CASES: list[tuple[type[optim.Optimizer], Any, dict[str, Any]]] = [
    (optim.Lion, lion, {"lr": 0.01}),
    (optim.Lion, lion, {"lr": 0.01, "betas": (0.7, 0.8), "weight_decay": 0.2, "maximize": True}),
    (optim.LAMB, lamb, {"lr": 0.02}),
    (optim.LAMB, lamb, {"lr": 0.02, "betas": (0.7, 0.8), "eps": 1e-3, "weight_decay": 0.2}),
    (optim.Shampoo, shampoo, {"lr": 0.1, "eps": 0.1}),
    (optim.Shampoo, shampoo, {"lr": 0.05, "eps": 0.1, "momentum": 0.5, "weight_decay": 0.1}),
    (optim.Shampoo, shampoo, {"lr": 0.05, "eps": 0.1, "max_size": 3}),
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


def test_the_learning_rate_of_a_step_comes_from_the_group() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = optim.SGD([p], lr=0.5)
    for lr in (0.5, 0.25, 0.0):
        optimizer.param_groups[0]["lr"] = lr
        before = p.numpy().copy()
        p.grad = rn.ones((3,))
        optimizer.step()
        np.testing.assert_array_equal(p.numpy(), before - np.float32(lr))


def test_groups_have_separate_rates_and_parameters_without_gradient_rest() -> None:
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
