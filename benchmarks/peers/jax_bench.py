"""Training steps of the benchmark cases in JAX, jitted with donated state.

    python jax_bench.py [CASE ...]

Needs jax.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from measuring import chosen, report

rng = np.random.default_rng(0)
Loss = Callable[[Any, Any, Any], Any]


def weights(*shape: int) -> Any:
    return jnp.asarray(rng.normal(size=shape).astype(np.float32) * 0.05)


def ints(below: int, *shape: int) -> Any:
    return jnp.asarray(rng.integers(0, below, size=shape))


def cross_entropy(scores: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1))


def dense(inputs: int, outputs: int) -> tuple[Any, Any]:
    return weights(inputs, outputs), weights(outputs)


def mlp(*sizes: int) -> tuple[Any, Loss]:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = params[-1]
        return cross_entropy(x @ weight + bias, y)

    return [dense(a, b) for a, b in itertools.pairwise(sizes)], loss


def cnn() -> tuple[Any, Loss]:
    """Return the network for CIFAR-10 of the Rosetta collection, without dropout, channels last."""
    layout = ("NHWC", "HWIO", "NHWC")

    def convolution(x: Any, weight: Any, bias: Any) -> Any:
        return lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout) + bias

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p: Any, x: Any, y: Any) -> Any:
        relu = jax.nn.relu
        x = relu(pool(convolution(relu(convolution(x, *p["c1"])), *p["c2"])))
        x = relu(pool(convolution(relu(convolution(x, *p["c3"])), *p["c4"])))
        x = relu(x.reshape(x.shape[0], -1) @ p["f1"][0] + p["f1"][1])
        return cross_entropy(x @ p["f2"][0] + p["f2"][1], y)

    params = {
        "c1": (weights(3, 3, 3, 50), weights(50)),
        "c2": (weights(3, 3, 50, 50), weights(50)),
        "c3": (weights(3, 3, 50, 100), weights(100)),
        "c4": (weights(3, 3, 100, 100), weights(100)),
        "f1": dense(6400, 512),
        "f2": dense(512, 10),
    }
    return params, loss


def gru() -> tuple[Any, Loss]:
    """Return the network for IMDB of the Rosetta collection."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        inputs = (p["embedding"][x] @ p["wx"] + p["b"]).swapaxes(0, 1)

        def cell(h: Any, a: Any) -> tuple[Any, None]:
            g = h @ p["wh"]
            reset = jax.nn.sigmoid(a[:, :100] + g[:, :100])
            update = jax.nn.sigmoid(a[:, 100:200] + g[:, 100:200])
            new = jnp.tanh(a[:, 200:] + reset * (g[:, 200:] + p["bn"]))
            return (1 - update) * new + update * h, None

        h, _ = lax.scan(cell, jnp.zeros((x.shape[0], 100)), inputs)
        return cross_entropy(h @ p["w"] + p["c"], y)

    shapes = {"embedding": (30000, 125), "wx": (125, 300), "wh": (100, 300), "b": (300,), "bn": (100,)}
    return {name: weights(*shape) for name, shape in {**shapes, "w": (100, 2), "c": (2,)}.items()}, loss


def encoder(width: int, heads: int, layers: int, words: int) -> tuple[Any, Loss]:
    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift

    def loss(p: Any, x: Any, y: Any) -> Any:
        batch, length = x.shape
        x = p["embedding"][x]
        for layer in p["layers"]:
            parts = jnp.split(x @ layer["qkv"][0] + layer["qkv"][1], 3, -1)
            q, k, v = (a.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for a in parts)
            attended = jax.nn.softmax(q @ k.swapaxes(-1, -2) / (width // heads) ** 0.5) @ v
            attended = attended.transpose(0, 2, 1, 3).reshape(batch, length, width)
            x = norm(x + attended @ layer["o"][0] + layer["o"][1], *layer["n1"])
            hidden = jax.nn.gelu(x @ layer["f1"][0] + layer["f1"][1], approximate=False)
            x = norm(x + hidden @ layer["f2"][0] + layer["f2"][1], *layer["n2"])
        return cross_entropy((x @ p["output"]).reshape(batch * length, -1), y)

    def layer() -> dict[str, Any]:
        return {
            "qkv": dense(width, 3 * width),
            "o": dense(width, width),
            "f1": dense(width, 4 * width),
            "f2": dense(4 * width, width),
            "n1": (weights(width), weights(width)),
            "n2": (weights(width), weights(width)),
        }

    made = [layer() for _ in range(layers)]
    return {"embedding": weights(words, width), "output": weights(width, words), "layers": made}, loss


CASES: dict[str, Callable[[], tuple[tuple[Any, Loss], Any, Any, str]]] = {
    "mlp_tiny_b8": lambda: (mlp(4, 16, 16, 3), weights(8, 4), ints(3, 8), "sgd"),
    "mlp_b32": lambda: (mlp(784, 256, 128, 10), weights(32, 784), ints(10, 32), "adam"),
    "mlp_b256": lambda: (mlp(784, 1024, 1024, 10), weights(256, 784), ints(10, 256), "adam"),
    "cnn_b64": lambda: (cnn(), weights(64, 32, 32, 3), ints(10, 64), "sgd"),
    "gru_b64": lambda: (gru(), ints(30000, 64, 150), ints(2, 64), "adam"),
    "encoder_b8_t128": lambda: (encoder(256, 4, 4, 1000), ints(1000, 8, 128), ints(1000, 1024), "adam"),
}


def training_step(case: str) -> Callable[[], Any]:
    """Return a whole training step, whose state stays on the device."""
    (params, loss), x, y, kind = CASES[case]()
    tree = jax.tree.map

    def sgd(p: Any, momentum: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        momentum = tree(lambda m, g: 0.9 * m + g, momentum, gradients)
        return tree(lambda p, m: p - 0.01 * m, p, momentum), momentum, value

    def adam(p: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        m, v, t = state
        t = t + 1
        m = tree(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
        v = tree(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)

        def updated(p: Any, m: Any, v: Any) -> Any:
            return p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)

        return tree(updated, p, m, v), (m, v, t), value

    def zeros() -> Any:
        return tree(jnp.zeros_like, params)

    state = [params, (zeros(), zeros(), jnp.float32(0)) if kind == "adam" else zeros()]
    jitted = jax.jit(adam if kind == "adam" else sgd, donate_argnums=(0, 1))

    def step() -> None:
        state[0], state[1], value = jitted(state[0], state[1], x, y)
        value.block_until_ready()

    return step


if __name__ == "__main__":
    peer = f"jax {jax.__version__}"
    for case in chosen(peer, CASES):
        report(peer, case, "jit", lambda case=case: training_step(case))  # type: ignore[misc]
