"""Very many lifetimes in one block of memory: nothing overlaps, and nested lifetimes lie like a stack."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.compiler.memory.arena import Lifetime, arrange, pairs_alive, swept


def _random(seed: int, count: int) -> list[Lifetime]:
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, 50, count)
    return [Lifetime(int(rng.integers(1, 9)) * 64, int(b), int(b + rng.integers(0, 20))) for b in begins]


def _together(a: Lifetime, b: Lifetime) -> bool:
    return a.first <= b.last and b.first <= a.last


def _bound(lifetimes: list[Lifetime]) -> int:
    return max(sum(s.nbytes for s in lifetimes if s.first <= t <= s.last) for t in {s.first for s in lifetimes})


@pytest.mark.parametrize("seed", range(20))
def test_spans_alive_together_lie_apart(seed: int) -> None:
    lifetimes = _random(seed, 80)
    offsets, peak = swept(lifetimes)
    for i, a in enumerate(lifetimes):
        assert 0 <= offsets[i] <= offsets[i] + a.nbytes <= peak
        for j, b in enumerate(lifetimes[:i]):
            if _together(a, b):
                assert offsets[i] + a.nbytes <= offsets[j] or offsets[j] + b.nbytes <= offsets[i]
    assert peak <= 1.5 * _bound(lifetimes)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted(seed: int) -> None:
    lifetimes = _random(seed, 60)
    assert pairs_alive(lifetimes) == sum(_together(a, b) for a in lifetimes for b in lifetimes if a is not b)


def test_a_long_forward_and_backward_pass_needs_no_more_than_the_bound() -> None:
    count = 3000
    lifetimes = [Lifetime(64 * (1 + i % 5), i, 2 * count - i) for i in range(count)]
    arrangement = arrange(lifetimes, _bound(lifetimes[:1]) or 1, count)
    assert arrangement.peak == sum(s.nbytes for s in lifetimes)
