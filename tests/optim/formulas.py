"""PyTorch's update formulas in NumPy and float64: what the optimizers are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

State = dict[str, Any]


def sgd(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    if h.get("maximize"):
        g = -g
    g = g + h.get("weight_decay", 0) * p
    momentum = h.get("momentum", 0)
    if momentum:
        s["b"] = g if s["t"] == 1 else momentum * s["b"] + (1 - h.get("dampening", 0)) * g
        g = g + momentum * s["b"] if h.get("nesterov") else s["b"]
    return p - h["lr"] * g


def adam(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any], decoupled: bool = False) -> np.ndarray:
    if h.get("maximize"):
        g = -g
    decay = h.get("weight_decay", 0.01 if decoupled else 0.0)
    if decoupled:
        p = p * (1 - h["lr"] * decay)
    else:
        g = g + decay * p
    beta1, beta2 = h.get("betas", (0.9, 0.999))
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    v = s["v"]
    if h.get("amsgrad"):
        v = s["x"] = np.maximum(s.get("x", 0), v)
    root = np.sqrt(v) / np.sqrt(1 - beta2 ** s["t"]) + h.get("eps", 1e-8)
    return p - h["lr"] / (1 - beta1 ** s["t"]) * s["m"] / root


def adamw(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    return adam(p, g, s, h, decoupled=True)


def rmsprop(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    alpha = h.get("alpha", 0.99)
    g = g + h.get("weight_decay", 0) * p
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    spread = s["v"]
    if h.get("centered"):
        s["a"] = alpha * s.get("a", 0) + (1 - alpha) * g
        spread = spread - s["a"] ** 2
    d = g / (np.sqrt(spread) + h.get("eps", 1e-8))
    if h.get("momentum"):
        d = s["b"] = h["momentum"] * s.get("b", 0) + d
    return p - h["lr"] * d


def adagrad(p: np.ndarray, g: np.ndarray, s: State, h: dict[str, Any]) -> np.ndarray:
    g = g + h.get("weight_decay", 0) * p
    s["s"] = s.get("s", h.get("initial_accumulator_value", 0)) + g * g
    rate = h["lr"] / (1 + (s["t"] - 1) * h.get("lr_decay", 0))
    return p - rate * g / (np.sqrt(s["s"]) + h.get("eps", 1e-10))


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
