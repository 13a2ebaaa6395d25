"""Training steps of the benchmark cases in TensorFlow and Keras: tf.function as a graph and with jit_compile.

    python tensorflow_bench.py [CASE ...]

Needs tensorflow-cpu. Keras has no encoder layer, so ``encoder_b8_t128`` is absent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from measuring import THREADS, chosen, report

layers = tf.keras.layers


def ints(below: int, *shape: int) -> Any:
    return tf.random.uniform(shape, 0, below, tf.int32)


def mlp(*sizes: int) -> Any:
    hidden = [layers.Dense(size, activation="relu") for size in sizes[1:-1]]
    return tf.keras.Sequential([*hidden, layers.Dense(sizes[-1])])


def cnn() -> Any:
    """Return the network for CIFAR-10 of the Rosetta collection."""

    def block(channels: int) -> list[Any]:
        convolutions = [layers.Conv2D(channels, 3, padding="same", activation="relu") for _ in range(2)]
        return [*convolutions, layers.MaxPool2D(), layers.Dropout(0.25)]

    head = [layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dropout(0.5), layers.Dense(10)]
    return tf.keras.Sequential([*block(50), *block(100), *head])


def gru() -> Any:
    """Return the network for IMDB of the Rosetta collection."""
    return tf.keras.Sequential([layers.Embedding(30000, 125), layers.GRU(100), layers.Dense(2)])


CASES: dict[str, Callable[[], tuple[Any, Any, Any, str]]] = {
    "mlp_tiny_b8": lambda: (mlp(4, 16, 16, 3), tf.random.normal((8, 4)), ints(3, 8), "sgd"),
    "mlp_b32": lambda: (mlp(784, 256, 128, 10), tf.random.normal((32, 784)), ints(10, 32), "adam"),
    "mlp_b256": lambda: (mlp(784, 1024, 1024, 10), tf.random.normal((256, 784)), ints(10, 256), "adam"),
    "cnn_b64": lambda: (cnn(), tf.random.normal((64, 32, 32, 3)), ints(10, 64), "sgd"),
    "gru_b64": lambda: (gru(), ints(30000, 64, 150), ints(2, 64), "adam"),
}


def training_step(case: str, jit: bool) -> Callable[[], Any]:
    """Return a whole training step that ends when its loss is on the host."""
    model, x, y, kind = CASES[case]()
    keras = tf.keras.optimizers
    optimizer = keras.Adam() if kind == "adam" else keras.SGD(0.01, momentum=0.9)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model(x)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=jit)  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return lambda: step(x, y).numpy()


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    peer = f"tensorflow {tf.__version__}"
    for case in chosen(peer, CASES):
        for config, jit in (("graph", False), ("jit", True)):
            report(peer, case, config, lambda case=case, jit=jit: training_step(case, jit))  # type: ignore[misc]
