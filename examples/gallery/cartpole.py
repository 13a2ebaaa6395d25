"""The cart with a pole on it, many at once, in NumPy.

A. Barto, R. Sutton and C. Anderson, "Neuronlike adaptive elements that can solve difficult learning control
problems", 1983, with the constants of that paper and a step of 0.02 s; an episode ends after 500 steps, or when the
pole leans more than 12° or the cart is 2.4 m off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LONGEST = 500


class Carts:
    """``count`` carts, each of which restarts when its episode ends. ``lengths`` has the lengths of ended episodes."""

    def __init__(self, count: int, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self.state = self._start(count)  # position, speed, angle, its speed
        self._steps = np.zeros(count, np.int64)
        self.lengths: list[int] = []

    def _start(self, count: int) -> np.ndarray:
        return self._generator.uniform(-0.05, 0.05, (count, 4)).astype(np.float32)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Push left (0) or right (1). The states after it, which of them are falls, and which episodes ended."""
        x, v, angle, w = self.state.T.astype(np.float64)
        force = np.where(actions == 1, FORCE, -FORCE)
        total = CART + POLE
        push = (force + POLE * HALF_LENGTH * w**2 * np.sin(angle)) / total
        lever = HALF_LENGTH * (4 / 3 - POLE * np.cos(angle) ** 2 / total)
        turn = (GRAVITY * np.sin(angle) - np.cos(angle) * push) / lever
        speed_up = push - POLE * HALF_LENGTH * turn * np.cos(angle) / total
        after = np.stack([x + SECONDS * v, v + SECONDS * speed_up, angle + SECONDS * w, w + SECONDS * turn], axis=1)
        after = after.astype(np.float32)
        self._steps += 1
        fallen = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > np.radians(12))
        ended = fallen | (self._steps >= LONGEST)
        self.lengths += self._steps[ended].tolist()
        self.state = after.copy()
        self.state[ended] = self._start(int(ended.sum()))
        self._steps[ended] = 0
        return after, fallen, ended

    def report(self) -> dict[str, Any]:
        """Return the lengths of the episodes, and the means of the first and the last ones."""
        lengths = self.lengths or [0]
        reached = {"first 20 episodes, steps": np.mean(lengths[:20]), "last 20 episodes, steps": np.mean(lengths[-20:])}
        return {"reached": reached, "lengths": lengths}


def draw(axes: Any, lengths: list[int]) -> None:
    """A point for each episode."""
    axes.plot(lengths, ".", markersize=3)
    axes.set(xlabel="episode", ylabel="steps before the pole fell")
