"""Test audits: a later trace that differs is an error at the line of the user, and nothing runs."""

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
from runnel.core.errors import AuditError, CaptureError, CaptureWarning


def tensor(*values: float) -> rn.Tensor:
    return rn.asarray(np.array(values, np.float32))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A C function that is wrongly thought to depend on its arguments alone."""
    draw = itertools.count().__next__
    monkeypatch.setitem(RULES.rules, id(draw), lambda rec: draw())
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


def test_after_a_failed_audit_calls_run_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = [0.0]
    read = hidden.__getitem__
    monkeypatch.setitem(RULES.rules, id(read), lambda rec, i: hidden[i])
    f = compile(lambda x: x + read(0))
    assert [f(tensor(1)).item() for _ in range(5)] == [1.0] * 5
    hidden[0] = 1.0
    with pytest.raises(AuditError, match="Later calls run eagerly"):
        for _ in range(64):
            f(tensor(1))
    recorded = []
    for number in range(40):
        hidden[0] = float(number)
        recorded.append(f(tensor(1)).item() - 1)
    assert recorded == list(range(40))
    assert f.statistics["programs"] == 0
    with pytest.raises(CaptureError, match="an audit failed"):
        f.explain(tensor(1))
    f.clear_cache()
    assert f(tensor(1)).item() == 40.0
    assert f.statistics["programs"] == 1


def test_a_trace_that_is_refused_later_is_a_failed_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()
    read = [time.perf_counter].__len__  # some C function
    monkeypatch.setitem(RULES.rules, id(read), lambda rec: rec.refuse("a clock is read") if next(calls) else 1)
    f = compile(lambda x: x * read())
    f(tensor(1))
    with pytest.raises(AuditError, match="a clock is read"):
        f(tensor(1))
    assert f(tensor(3)).item() == 3.0


def test_an_error_while_it_is_traced_again_is_the_functions_own(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [2.0]
    read = numbers.__getitem__
    monkeypatch.setitem(RULES.rules, id(read), lambda rec, i: numbers[i])
    f = compile(lambda x: x * read(0))
    f(tensor(1))
    numbers.clear()
    with pytest.raises(IndexError):
        f(tensor(1))
    numbers.append(3.0)
    assert f(tensor(1)).item() == 3.0


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


def test_audits_become_rare() -> None:
    traces = []

    def f(x):
        traces.append  # noqa: B018 - read, so that it is watched
        return x + 1

    compiled = compile(f)
    for _ in range(130):
        compiled(tensor(1))
    assert compiled.statistics["audits"] == 3  # calls 2, 16, 128
    assert compiled.statistics["traces"] == 1


def test_what_is_the_same_passes() -> None:
    nan = float("nan")
    f = compile(lambda x: (x * np.float32(2) + np.ones(2, np.float32), nan, float("nan"), "text", np.arange(3)))
    for _ in range(8):
        out = f(tensor(1, 2))
        assert out[0].tolist() == [3, 5]
        out[4][:] = 7  # a copy: the next call gives its own
    assert f(tensor(1, 2))[4].tolist() == [0, 1, 2]
