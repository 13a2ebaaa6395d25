"""What guards cannot see, audits find: a later trace that differs is an error at the user's line; nothing runs."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compile import compile
from runnel.compile.capture import RULES
from runnel.core.errors import AuditError, CaptureWarning


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A C function that is wrongly thought to depend on its arguments alone."""
    draw = itertools.count().__next__
    monkeypatch.setitem(RULES.answers, id(draw), lambda rec: draw())
    yield draw


def test_hidden_input_is_found_at_the_second_call(drawn: Any) -> None:
    f = compile(lambda x: x * drawn())
    with pytest.raises(AuditError, match=r"test_audit\.py:"):
        for _ in range(64):
            f(tensor(1, 2))


def test_nothing_runs_when_an_audit_fails(drawn: Any) -> None:
    v = rn.Variable([0.0])

    @compile
    def f():
        v.assign(v + 1 + drawn())

    f()
    before = v.item()
    with pytest.raises(AuditError):
        f()
    assert v.item() == before


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        (lambda x: x * np.random.rand(), "NumPy's random numbers are drawn"),
        (lambda x: x * random.random(), "Python's random numbers are drawn"),
        (lambda x: x + np.random.rand(2).astype(np.float32), "NumPy's random numbers are drawn"),
        (lambda x: x * (time.perf_counter() * 1e3 % 1.0), "a clock is read"),
    ],
)
def test_what_cannot_be_known_runs_eagerly_and_says_so_once(hidden: Any, why: str) -> None:
    f = compile(hidden)
    with pytest.warns(CaptureWarning, match=rf"test_audit\.py:\d+: {why}"):
        first = f(tensor(1, 2))
    assert len({tuple(f(tensor(1, 2)).tolist()) for _ in range(8)} | {tuple(first.tolist())}) > 1
    assert f.statistics["traces"] == 1


def test_audits_are_at_powers_of_two() -> None:
    traces = []

    def f(x):
        traces.append  # noqa: B018 - read, so that it is watched
        return x + 1

    compiled = compile(f)
    for _ in range(40):
        compiled(tensor(1))
    assert compiled.statistics["audits"] == 5  # calls 2, 4, 8, 16, 32
    assert compiled.statistics["traces"] == 1


def test_what_is_the_same_passes() -> None:
    nan = float("nan")
    f = compile(lambda x: (x * np.float32(2) + np.ones(2, np.float32), nan, float("nan"), "text", np.arange(3)))
    for _ in range(8):
        out = f(tensor(1, 2))
        assert out[0].tolist() == [3, 5]
        out[4][:] = 7  # a copy: the next call gives its own
    assert f(tensor(1, 2))[4].tolist() == [0, 1, 2]
