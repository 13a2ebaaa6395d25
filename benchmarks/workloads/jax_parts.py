"""The parts of JAX's side: layers as functions of dicts, the optimizer, a whole training step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

tree = jax.tree.map
Step = Callable[[], Any]


def draws(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def ints(below: int, *shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(0, below, shape).astype(np.int32))


def linear(inputs: int, outputs: int) -> dict[str, Any]:
    return {"w": draws(inputs, outputs) / inputs**0.5, "b": jnp.zeros(outputs)}


def apply(p: Any, x: Any) -> Any:
    return x @ p["w"] + p["b"] if "b" in p else x @ p["w"]


def mlp(*sizes: int) -> list[Any]:
    return [linear(a, b) for a, b in itertools.pairwise(sizes)]


def run_mlp(layers: Any, x: Any, act: Any = jax.nn.relu) -> Any:
    for layer in layers[:-1]:
        x = act(apply(layer, x))
    return apply(layers[-1], x)


def normed(width: int) -> dict[str, Any]:
    return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}


def norm(p: Any, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["shift"]


def cross_entropy(scores: Any, labels: Any) -> Any:
    scores = scores.reshape(-1, scores.shape[-1])
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), labels.reshape(-1, 1), 1))


def adam_state(p: Any) -> Any:
    return tree(jnp.zeros_like, p), tree(jnp.zeros_like, p), jnp.float32(0)


def adam(p: Any, slopes: Any, state: Any, rate: float = 1e-3, decay: float = 0.0) -> Any:
    m, v, t = state
    t = t + 1
    m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, slopes)
    v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, slopes)
    high, low = rate / (1 - 0.9**t), lax.rsqrt(1 - 0.999**t)
    return tree(lambda p, m, v: p - rate * decay * p - high * m / (jnp.sqrt(v) * low + 1e-8), p, m, v), (m, v, t)


def trained(loss: Any, p: Any, *data: Any, optimizer: str = "adam") -> Step:
    """Return a whole jitted training step with donated state."""

    def step(p: Any, state: Any, *data: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(p, *data)
        if optimizer == "sgd":
            return tree(lambda p, g: p - 1e-3 * g, p, slopes), state, value
        return *adam(p, slopes, state, decay=0.01 if optimizer == "adamw" else 0.0), value

    jitted = jax.jit(step, donate_argnums=(0, 1))
    kept = [p, adam_state(p) if optimizer != "sgd" else ()]

    def run() -> Any:
        kept[0], kept[1], value = jitted(kept[0], kept[1], *data)
        return value

    return run


def block(width: int) -> dict[str, Any]:
    sizes = {"qkv": (width, 3 * width), "merge": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    return {**{name: linear(*size) for name, size in sizes.items()}, "n1": normed(width), "n2": normed(width)}


def heads_of(x: Any, heads: int) -> Any:
    batch, length, _ = x.shape
    return x.reshape(batch, length, 3, heads, -1).transpose(2, 0, 3, 1, 4)


def run_block(p: Any, x: Any, heads: int, causal: bool = True) -> Any:
    q, k, v = heads_of(apply(p["qkv"], norm(p["n1"], x)), heads)
    x = x + apply(p["merge"], attention(q, k, v, causal))
    return x + apply(p["down"], jax.nn.gelu(apply(p["up"], norm(p["n2"], x)), approximate=False))


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], -1)
