"""A training step of TinyFlow's LeNet and residual network, three ways: operation by operation, fused, and compiled
from the same layers. Milliseconds, alternating, best against best: the table in docs/extend/declarative.md.

python benchmarks/tinyflow.py [--batch 100] [--turns 10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
import runnel.compat.tinyflow as tf
from runnel import declarative, nn
from runnel.nn import functional as F

Layers = Callable[[Any], Any]
WAYS = ('Session("cpu")', 'Session("cpu fusion")', "rn.compile")


# The networks, in TinyFlow's interface -------------------------------------------------------------------------------


def lenet(x: Any) -> Any:
    for filters in (20, 50):
        x = tf.tanh(tf.nn.conv2d(x, num_filter=filters, ksize=[1, 5, 5, 1], no_bias=False))
        x = tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    x = tf.tanh(tf.nn.linear(tf.nn.flatten_layer(x), num_hidden=500))
    return tf.nn.linear(x, num_hidden=10)


def block(x: Any, filters: int, size: int) -> Any:
    x = tf.nn.conv2d(x, num_filter=filters, ksize=[1, size, size, 1], padding="SAME")
    return tf.nn.relu(tf.nn.batch_normalization(x))


def resnet(x: Any) -> Any:
    x = tf.tanh(tf.nn.conv2d(x, num_filter=16, ksize=[1, 5, 5, 1], padding="SAME"))
    for number, filters in enumerate((16, 32, 64)):
        past = block(x, filters, 1) if number else x
        x = tf.nn.relu(past + block(block(x, filters, 3), filters, 3))
    x = tf.nn.avg_pool(x, ksize=[1, 4, 4, 1], strides=[1, 2, 2, 1], padding="SAME")
    x = tf.nn.conv2d(x, num_filter=16, ksize=[1, 5, 5, 1])
    return tf.nn.linear(tf.nn.flatten_layer(x), num_hidden=10)


# The same networks as modules -----------------------------------------------------------------------------------------


class LeNet(nn.Module):
    def __init__(self) -> None:
        self.convolutions = nn.ModuleList([nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)])
        self.dense = nn.ModuleList([nn.Linear(800, 500, bias=False), nn.Linear(500, 10, bias=False)])

    def forward(self, x: Any) -> Any:
        for convolution in self.convolutions:
            x = F.max_pool2d(rn.tanh(convolution(x)), 2)
        return self.dense[1](rn.tanh(self.dense[0](x.flatten(1))))


class Block(nn.Module):
    def __init__(self, before: int, filters: int, size: int) -> None:
        self.convolution = nn.Conv2d(before, filters, size, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(filters, track_running_stats=False)

    def forward(self, x: Any) -> Any:
        return F.relu(self.norm(self.convolution(x)))


class Residual(nn.Module):
    def __init__(self, before: int, filters: int) -> None:
        self.past = Block(before, filters, 1) if before != filters else nn.Identity()
        self.first, self.second = Block(before, filters, 3), Block(filters, filters, 3)

    def forward(self, x: Any) -> Any:
        return F.relu(self.past(x) + self.second(self.first(x)))


class ResNet(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Conv2d(3, 16, 5, padding=2, bias=False)
        self.blocks = nn.ModuleList([Residual(16, 16), Residual(16, 32), Residual(32, 64)])
        self.last = nn.Conv2d(64, 16, 5, bias=False)
        self.dense = nn.Linear(16 * 12 * 12, 10, bias=False)

    def forward(self, x: Any) -> Any:
        x = rn.tanh(self.first(x))
        for each in self.blocks:
            x = each(x)
        return self.dense(self.last(F.avg_pool2d(x, 4, 2, 1)).flatten(1))


NETWORKS: dict[str, tuple[Layers, type[nn.Module], tuple[int, ...], float]] = {
    "LeNet": (lenet, LeNet, (1, 28, 28), 0.005),
    "ResNet": (resnet, ResNet, (3, 32, 32), 0.0005),
}


# Steps ----------------------------------------------------------------------------------------------------------------


def declared_step(layers: Layers, rate: float, config: str, x: np.ndarray, labels: np.ndarray) -> Callable[[], float]:
    """A step in TinyFlow's interface, which gives its loss."""
    with declarative.Graph():
        data, label = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(layers(data), label)
        train = tf.train.AdamOptimizer(rate).minimize(loss)
        session = tf.Session(config)
        shapes = tf.infer_variable_shapes(loss, feed_dict={data: x.shape, label: labels.shape})
        session.run([tf.assign(v, tf.normal(shape, 0.05)) for v, _, shape in shapes])
        session.run(tf.initialize_all_variables())
    feeds = {data: x, label: labels}
    return lambda: session.run([loss, train], feed_dict=feeds)[0].item()


def compiled_step(model: nn.Module, rate: float, x: np.ndarray, labels: np.ndarray) -> Callable[[], float]:
    """The same step as a compiled function."""
    optimizer = rn.optim.Adam(model.parameters(), lr=rate, eps=1e-4)

    @rn.compile
    def step(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda: step(rn.asarray(x), rn.asarray(labels.astype(np.int64))).item()


def steps(network: str, batch: int) -> dict[str, Callable[[], float]]:
    """A step of ``network`` in each of the three ways."""
    layers, model, shape, rate = NETWORKS[network]
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (batch, *shape)).astype(np.float32)
    labels = rng.integers(0, 10, batch).astype(np.float32)
    ways = [declared_step(layers, rate, config, x, labels) for config in ("cpu", "cpu fusion")]
    return dict(zip(WAYS, (*ways, compiled_step(model(), rate, x, labels)), strict=True))


def measured(calls: dict[str, Callable[[], float]], turns: int) -> dict[str, float]:
    """Milliseconds of each, the best of all turns."""
    times: dict[str, float] = {}
    for call in calls.values():
        call()
    for _ in range(turns):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            times[name] = min(times.get(name, np.inf), 1e3 * (time.perf_counter() - begun))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--turns", type=int, default=10)
    chosen = parser.parse_args()
    print(f"| network | {' | '.join(f'`{way}`' for way in WAYS)} | unfused / fused |")
    print("| --- | --- | --- | --- | --- |")
    for network in NETWORKS:
        times = measured(steps(network, chosen.batch), chosen.turns)
        ratio = times[WAYS[0]] / times[WAYS[1]]
        print(f"| {network} | {' | '.join(f'{times[way]:.1f} ms' for way in WAYS)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
