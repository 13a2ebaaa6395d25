"""Test assignments at computed positions of a Variable: one write of a row, where the old value is not read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from runnel.core.errors import AxisError

Change = Callable[[rn.Variable, rn.Tensor, rn.Tensor], Any]


def write(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    cache[:, at] = new
    return cache.sum()


def write_after_reading(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    before = cache.read() * 2
    cache[:, at] = new
    return before, cache.read() + 1


def write_twice(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    cache[:, at] = new
    cache[:, at + 1] = new * 2
    return cache.sum()


def write_own_rows(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    cache[:, at] = cache.read()[:, 3:5]
    return cache.sum()


def write_all_rows_reversed(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    cache[:, rn.cat([at, at + 2, at + 4, at[:1] * 0 + 6]).flip(0)] = cache.read()
    return cache.sum()


def return_what_is_written(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    cache[:, at] = new
    return cache.read()


def write_in_a_loop(cache: rn.Variable, new: rn.Tensor, at: rn.Tensor) -> Any:
    def step(total: rn.Tensor, place: rn.Tensor) -> Any:
        cache[:, place] = new[:, 0] + total
        return total + cache[:, place].sum(), total

    return rn.scan(step, rn.zeros(()), at)[0]


CHANGES = (
    write, write_after_reading, write_twice, write_own_rows, write_all_rows_reversed, return_what_is_written,
    write_in_a_loop,
)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_compiled_writes_are_those_of_eager_code(change: Change, threads: int) -> None:
    with switches.override(num_threads=threads):
        results = []
        for mode in (rn.compile, lambda f: f):
            rng = np.random.default_rng(0)
            cache = rn.Variable(rng.normal(size=(64, 7, 40)).astype("float32"))
            step = mode(lambda new, at, cache=cache: change(cache, new, at))
            kept = [cache.read().clone()]
            for first in (0, 1, 0):
                new = rn.asarray(rng.normal(size=(64, 2, 40)).astype("float32"))
                kept += [*rn.tree.leaves(step(new, rn.asarray([first, 0]))), cache.read().clone()]
            results.append([x.numpy().tobytes() for x in kept])
        assert results[0] == results[1]


def test_one_row_is_written_in_place() -> None:
    cache = rn.Variable(np.zeros((4, 64, 16), "float32"))
    step = rn.compile(lambda new, at: write(cache, new, at))
    new, at = rn.ones((4, 1, 16)), rn.asarray([3])
    calls = step.program(new, at).plan.calls
    (written,) = [c for c in calls if c.kernel.name.startswith("write_rows")]
    assert written.bytes_moved < 1000
    assert not any(c.kernel.name.startswith("copy") for c in calls)


def test_an_index_outside_leaves_the_variable() -> None:
    cache = rn.Variable(np.zeros((4, 8, 16), "float32"))
    step = rn.compile(lambda new, at: write(cache, new, at))
    step(rn.ones((4, 1, 16)), rn.asarray([7]))
    with pytest.raises(AxisError, match="8"):
        step(rn.ones((4, 1, 16)) * 2, rn.asarray([8]))
    assert cache.sum().item() == 64
