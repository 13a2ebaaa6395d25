"""Initial values of Parameters. Each function fills a Variable from the default random generator and returns it."""

from __future__ import annotations

import math

import numpy as np

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.tensor import random
from runnel.tensor.creation import asarray, full
from runnel.tensor.variable import Variable


def uniform_(x: Variable, a: float = 0.0, b: float = 1.0) -> Variable:
    """Fill ``x`` with uniform numbers in [a, b) from the default generator; returns ``x``, as all functions here."""
    x.assign(ops.uniform(random.next_key(None, x.device), x.shape, x.dtype, a, b))
    return x


def normal_(x: Variable, mean: float = 0.0, std: float = 1.0) -> Variable:
    """Fill ``x`` with normal numbers of this mean and standard deviation."""
    x.assign(ops.normal(random.next_key(None, x.device), x.shape, x.dtype, mean, std))
    return x


def constant_(x: Variable, value: float) -> Variable:
    """Fill ``x`` with one value."""
    x.assign(full(x.shape, value, x.dtype, device=x.device))
    return x


def zeros_(x: Variable) -> Variable:
    """Fill ``x`` with zeros."""
    return constant_(x, 0)


def ones_(x: Variable) -> Variable:
    """Fill ``x`` with ones."""
    return constant_(x, 1)


def trunc_normal_(x: Variable, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Variable:
    """Normal, restricted to [a, b] through the inverse of the distribution function."""
    unit = ops.uniform(random.next_key(None, x.device), x.shape, "float64").numpy()
    low, high = (_phi((edge - mean) / std) for edge in (a, b))
    drawn = _inverse_phi(low + unit * (high - low))
    x.assign(asarray(np.clip(drawn * std + mean, a, b), device=x.device).astype(x.dtype))
    return x


def _phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def _inverse_phi(p: np.ndarray) -> np.ndarray:
    """x with Φ(x) = p, by bisection: 60 halvings of [-12, 12] reach the spacing of float64."""
    low, high = np.full(p.shape, -12.0), np.full(p.shape, 12.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = 0.5 * (1 + ops.erf(asarray(middle / math.sqrt(2))).numpy()) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def fans(x: Variable) -> tuple[int, int]:
    """How many inputs and outputs each unit of a weight (out, in, ...) has."""
    if x.ndim < 2:
        raise ShapeError(f"[init] fan-in and fan-out need a weight of two axes or more; received shape {x.shape}.")
    field = math.prod(x.shape[2:])
    return x.shape[1] * field, x.shape[0] * field


def gain_of(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which initial values make up for what a nonlinearity takes away."""
    if nonlinearity in ("linear", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity == "selu":
        return 0.75
    raise ValueError(f"[init] no gain is known for {nonlinearity!r}; linear, sigmoid, tanh, relu, leaky_relu or selu.")


calculate_gain = gain_of


def xavier_uniform_(x: Variable, gain: float = 1.0) -> Variable:
    """Uniform, of variance 2·gain² / (fan_in + fan_out) (X. Glorot, Y. Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(x)))
    return uniform_(x, -bound, bound)


def xavier_normal_(x: Variable, gain: float = 1.0) -> Variable:
    """Normal, of variance 2·gain² / (fan_in + fan_out) (X. Glorot, Y. Bengio, 2010)."""
    return normal_(x, 0.0, gain * math.sqrt(2 / sum(fans(x))))


def _kaiming_std(x: Variable, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"[init] mode is 'fan_in' or 'fan_out'; received {mode!r}.")
    return gain_of(nonlinearity, a) / math.sqrt(fans(x)[mode == "fan_out"])


def kaiming_uniform_(x: Variable, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Variable:
    """Uniform, of variance gain² / fan (K. He et al., 2015); ``a`` is the slope of the leaky relu."""
    bound = math.sqrt(3) * _kaiming_std(x, a, mode, nonlinearity)
    return uniform_(x, -bound, bound)


def kaiming_normal_(x: Variable, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Variable:
    """Normal, of variance gain² / fan (K. He et al., 2015); ``a`` is the slope of the leaky relu."""
    return normal_(x, 0.0, _kaiming_std(x, a, mode, nonlinearity))


def orthogonal_(x: Variable, gain: float = 1.0) -> Variable:
    """Orthogonal rows or columns, whichever are fewer (A. Saxe et al., 2013), by a QR decomposition in float64."""
    if x.ndim < 2:
        raise ShapeError(f"[orthogonal_] needs a weight of two axes or more; received shape {x.shape}.")
    rows, columns = x.shape[0], math.prod(x.shape[1:])
    drawn = ops.normal(random.next_key(None, x.device), (max(rows, columns), min(rows, columns)), "float64").numpy()
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))
    matrix = gain * (q if rows >= columns else q.T)
    x.assign(asarray(matrix.reshape(x.shape), device=x.device).astype(x.dtype))
    return x
