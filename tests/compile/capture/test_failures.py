"""Test functions that fail or that cannot be traced."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.compile import boundary, compile
from runnel.compile.owned import structure
from runnel.core.errors import CaptureWarning
from runnel.tensor.trace import Trace
from tests.compile.capture.agreeing import tensor


def test_index_out_of_range_leaves_variables() -> None:
    v = rn.Variable([1.0, 2.0, 3.0])

    @compile
    def f(i):
        v.assign(v + v[i].sum())
        return v.read()

    good, bad = rn.asarray([0, 2]), rn.asarray([0, 7])
    assert f(good).tolist() == [5, 6, 7]
    for _ in range(3):
        with pytest.raises(IndexError):
            f(bad)
        assert v.numpy().tolist() == [5, 6, 7]
    assert f(good).tolist() == [17, 18, 19]


def test_state_made_at_each_call_runs_eagerly() -> None:
    f = compile(lambda x: rn.Variable([1.0]) + x)
    with pytest.warns(CaptureWarning, match="made inside"):
        for i in range(4):
            assert f(tensor(i)).item() == i + 1


def test_a_layer_is_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is called, as long as the function changes nothing; then it is looked at again."""
    walked: list[Any] = []
    monkeypatch.setattr(boundary, "structure", lambda value, *rest: walked.append(value) or structure(value, *rest))
    layer = nn.Linear(2, 2)

    def function(x: Any, note: bool) -> Any:
        for _ in range(20):
            x = layer(x)
        if note:
            layer.note = 7
            x = layer(x)
        return x

    rn.compile(function)(rn.zeros((1, 2)), False)
    assert walked.count(layer) == 1
    rn.compile(function)(rn.zeros((1, 2)), True)
    assert walked.count(layer) == 3 and layer.note == 7


def test_sentences_of_errors_end_once() -> None:
    f = compile(lambda x: x.to("interpreter") + 1)
    with pytest.warns(CaptureWarning, match=r"it raised DeviceError: .*move it before the call\.$"):
        assert f(tensor(1)).tolist() == [2]


@pytest.mark.skipif(sys.platform == "win32", reason="signals one cannot send to oneself")
def test_a_timeout_that_a_handler_raises_while_it_is_traced_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def ring(*_: object) -> None:
        raise TimeoutError("too long")

    def recorded(*args: Any) -> Any:
        signal.raise_signal(signal.SIGALRM)
        return record(*args)

    n, x, record = [0], tensor(1, 2), Trace.record

    @compile
    def f(x):
        n[0] += 1
        return x * 0.5

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with monkeypatch.context() as patch, pytest.raises(TimeoutError):
            patch.setattr(Trace, "record", recorded)
            f(x)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert n == [0]
    assert f(x).tolist() == [0.5, 1] and n == [1]


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, Stop, ValueError])
def test_what_came_before_an_error_of_the_function_has_happened(kind: type[BaseException]) -> None:
    counts, total = [0], rn.zeros(2)

    def step(x: rn.Tensor) -> rn.Tensor:
        counts[0] += 1
        total.add_(1.0)
        if counts[0] % 3 == 0:
            raise kind("stop")
        return x * counts[0]

    compiled, told = rn.compile(step), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        for _ in range(7):
            try:
                compiled(rn.ones(2))
            except kind:
                told.append(counts[0])
    assert (counts, total.tolist(), told) == ([7], [7.0, 7.0], [3, 6])
