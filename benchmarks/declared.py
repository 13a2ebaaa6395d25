"""A run of a session beside a call of the same compiled function: microseconds, alternating, best against best."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
import runnel.declarative as dg

CALLS = 50
TURNS = 400


def seconds(call: Callable[[], Any]) -> float:
    """A call's time, over many."""
    begun = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begun) / CALLS


def main() -> None:
    rng = np.random.default_rng(0)
    points, truth = rng.standard_normal((32, 4)).astype(np.float32), rng.standard_normal((4, 1)).astype(np.float32)
    x, y = rn.asarray(points), rn.asarray(points @ truth)

    declared_x, declared_y = dg.placeholder(shape=(None, 4)), dg.placeholder(shape=(None, 1))
    w = dg.Variable(np.zeros((4, 1), np.float32))
    loss = rn.mean((declared_x @ w - declared_y) ** 2)
    fetches = [loss, dg.assign_sub(w, 0.1 * dg.gradients(loss, w)[0])]
    session = dg.Session()
    session.run(dg.initializer())
    feeds = {declared_x: x, declared_y: y}

    live = rn.Variable(np.zeros((4, 1), np.float32))

    @rn.compile
    def step(x: Any, y: Any) -> Any:
        value, slope = rn.value_and_grad(lambda w: rn.mean((x @ w - y) ** 2))(live.value)
        new = live - 0.1 * slope
        live.assign(new)
        return value, new

    times: dict[str, float] = {}
    for _ in range(TURNS):
        for name, call in (("compiled function", lambda: step(x, y)), ("session", lambda: session.run(fetches, feeds))):
            times[name] = min(times.get(name, 1.0), seconds(call))
    for name, took in times.items():
        print(f"{name:18} {took * 1e6:6.2f} µs")
    print(f"{'more':18} {(times['session'] - times['compiled function']) * 1e6:6.2f} µs")


if __name__ == "__main__":
    main()
