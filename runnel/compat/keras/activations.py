"""Activation functions by Keras's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel import ops
from runnel.core.errors import ArgumentError


def softmax(x: Any) -> Any:
    return ops.softmax(x, -1)


def linear(x: Any) -> Any:
    return x


def gelu(x: Any) -> Any:
    return ops.gelu(x)


def swish(x: Any) -> Any:
    return x * ops.sigmoid(x)


def leaky_relu(x: Any) -> Any:
    return ops.where(ops.greater(x, 0), x, x * 0.2)


BY_NAME: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": linear, "relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh, "softmax": softmax, "gelu": gelu,
    "elu": ops.elu, "selu": ops.selu, "softplus": ops.softplus, "swish": swish, "silu": swish,
    "leaky_relu": leaky_relu, "exponential": ops.exp,
}  # fmt: skip


def get(activation: Any) -> Callable[[Any], Any]:
    """Return an activation by its name. None is the identity; functions are returned unchanged."""
    if activation is None:
        return linear
    if callable(activation):
        result: Callable[[Any], Any] = activation
        return result
    if activation not in BY_NAME:
        raise ArgumentError(f"[activation] there is no activation {activation!r}; there are {', '.join(BY_NAME)}.")
    return BY_NAME[activation]
