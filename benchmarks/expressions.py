"""Schedules of tensor expressions: a matrix product and a training step of a network, naive, by hand and by search."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn

TURNS = 5
WIDTHS = (784, 256, 256, 10)
BATCH = 1000
FORWARD = "Y[n, o] += X[n, i] * W[i, o]"
BY_WEIGHT = "D[i, o] += X[n, i] * G[n, o]"
BY_INPUT = "D[n, i] += G[n, o] * W[i, o]"


def seconds(call: Callable[[], Any]) -> float:
    """The best of a few runs."""
    call()
    times = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times)


def tiled(expression: Any, *operands: Any) -> Any:
    """Register tiles of 6 × 64 of a result with two axes, with a block of the second operand in the cache."""
    schedule = expression.schedule(*operands)
    first, second = (loop.name for loop in schedule.loops if not loop.is_reduced)
    reduced = [loop.name for loop in schedule.loops if loop.is_reduced]
    column, inner = schedule.split(second, 64)
    beside, lanes = schedule.split(inner, 16)
    row, within = schedule.split(first, 6)
    chunk, row = schedule.split(row, 22)
    schedule.reorder(chunk, column, row, *reduced, within, beside, lanes)
    schedule.unroll(within)
    schedule.unroll(beside)
    schedule.vectorize(lanes)
    schedule.parallel(chunk)
    second_operand = schedule.solved.expression.names[1]
    schedule.cache(second_operand)
    schedule.compute_at(second_operand, column)
    return expression.scheduled(schedule)


def product(size: int, trials: int, log: str | None) -> None:
    rng = np.random.default_rng(0)
    a, b = (rn.asarray(rng.standard_normal((size, size)).astype(np.float32)) for _ in range(2))
    matmul = rn.expressions.tensor_expr("C[i, j] += A[i, k] * B[k, j]")
    functions = {
        "naive": matmul.scheduled(()),
        "default": matmul,
        "by hand": tiled(matmul, a, b),
        "by search": rn.expressions.search_schedule(matmul, a, b, trials=trials, log=log),
        "rn.matmul": rn.matmul,
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(3):  # alternating
        for name, function in functions.items():
            best[name] = min(best[name], seconds(lambda function=function: function(a, b)))
    for name, took in best.items():
        print(f"| product of {size}×{size} | {name} | {1e3 * took:.3g} ms | {2e-9 * size**3 / took:.3g} Gflop/s |")


def step(schedule: Callable[..., Any]) -> float:
    """The seconds of a training step of the network: forward, softmax, backward and the update, all products by
    expressions in the loops of ``schedule``."""
    rng = np.random.default_rng(1)
    shapes = list(itertools.pairwise(WIDTHS))
    weights = [rn.Variable(rng.standard_normal(s).astype(np.float32) / np.sqrt(s[0])) for s in shapes]
    x = rn.asarray(rng.standard_normal((BATCH, WIDTHS[0])).astype(np.float32))
    labels = rn.asarray(np.eye(WIDTHS[-1], dtype=np.float32)[rng.integers(0, WIDTHS[-1], BATCH)])
    texts = (FORWARD, BY_WEIGHT, BY_INPUT)
    functions = []
    for wide, narrow in shapes:
        operands = (
            ((BATCH, wide), (wide, narrow)),
            ((BATCH, wide), (BATCH, narrow)),
            ((BATCH, narrow), (wide, narrow)),
        )
        functions.append([schedule(rn.expressions.tensor_expr(t), *o) for t, o in zip(texts, operands, strict=True)])

    @rn.compile
    def train(x: Any, labels: Any) -> Any:
        layers = [x]
        for (forward, _, _), w in zip(functions, weights, strict=True):
            y = forward(layers[-1], w.value)
            layers.append(rn.relu(y) if w is not weights[-1] else y)
        g = (rn.softmax(layers[-1]) - labels) / BATCH
        for i in reversed(range(len(weights))):
            _, by_weight, by_input = functions[i]
            gradient = by_weight(layers[i], g)
            if i:
                g = rn.where(layers[i] > 0, by_input(g, weights[i].value), 0.0)
            weights[i].assign(weights[i] - 0.1 * gradient)
        return layers[-1]

    return seconds(lambda: train(x, labels).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=384)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--log")
    arguments = parser.parse_args()
    product(arguments.size, arguments.trials, arguments.log)
    naive, fast = step(lambda expression, *shapes: expression.scheduled(())), step(tiled)
    for name, took in (("naive", naive), ("by hand", fast)):
        print(f"| step of {'-'.join(map(str, WIDTHS))}, batch {BATCH} | {name} | {1e3 * took:.3g} ms | |")
    print(f"by hand is {naive / fast:.1f} times as fast as naive")


if __name__ == "__main__":
    main()
