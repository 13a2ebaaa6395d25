"""Test ``rn.uncompiled``: a marked function runs eagerly without a warning."""

from __future__ import annotations

import time

import pytest

import runnel as rn


def test_a_compiled_function_that_calls_it_runs_eagerly_without_a_warning() -> None:
    @rn.uncompiled
    def now() -> float:
        return time.perf_counter()

    step = rn.compile(lambda x: (x * 2, now()))
    times = [step(rn.ones(1))[1] for _ in range(4)]
    assert times == sorted(set(times))
    assert step.statistics["traces"] == 1


def test_methods_and_what_is_no_function() -> None:
    class Clock:
        ticks = 0

        @rn.uncompiled
        def read(self) -> int:
            self.ticks += 1
            return self.ticks

    clock = Clock()
    step = rn.compile(lambda x: x * clock.read())
    assert [step(rn.ones(1)).item() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(TypeError, match=r"\[uncompiled\] fn must be a function; got int"):
        rn.uncompiled(3)  # type: ignore[arg-type]
