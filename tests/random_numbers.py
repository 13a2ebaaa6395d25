"""Random numbers for tests: they depend only on the test, not on what ran before it in the same process.

``tests/conftest.py`` seeds them for each test, and Hypothesis, which is told of them, for each example. Values that are
drawn when a module is imported come from a generator of that module instead, which no function uses.
"""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np


class Numbers:
    """Draws like a NumPy generator, while a test runs."""

    def __init__(self) -> None:
        self.generator: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        if self.generator is None:
            raise RuntimeError("These numbers are for tests while they run; make a separate generator for a module.")
        return getattr(self.generator, name)

    def seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def getstate(self) -> Any:
        return None if self.generator is None else self.generator.bit_generator.state

    def setstate(self, state: Any) -> None:
        if state is None:
            self.generator = None
            return
        self.seed(0)
        assert self.generator is not None
        self.generator.bit_generator.state = state


RNG = Numbers()
hypothesis.register_random(RNG)  # type: ignore[arg-type]
