"""Test calls of compiled functions: attributes, alternating programs, timeouts, and modules."""

from __future__ import annotations

import functools
import signal
import sys
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.compile.executable import Executable
from runnel.tensor.trace import Trace


def doubled(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize("make", [rn.compile, rn.uncompiled])
def test_attributes_of_a_function_do_not_replace_those_of_the_compiled_one(make: Any) -> None:
    inner = make(doubled)

    @functools.wraps(inner)
    def outer(x: Any) -> Any:
        return inner(x) + 1

    outer.function = outer._entry = outer._options = None  # type: ignore[attr-defined]
    assert make(outer)(rn.asarray([1.0])).tolist() == [3.0]
    assert make(outer)._options is not None or make is rn.uncompiled


def test_calls_that_alternate_between_programs_look_none_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that steps the optimizer, and one that only accumulates gradients."""
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters())
    x = rn.asarray(np.ones((3, 4), np.float32))

    def step(x: Any, n: int) -> Any:
        loss = (model(x) ** 2).mean()
        loss.backward()
        if n % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    compiled = rn.compile(step)
    looked_up: list[int] = []
    run = Executable.run
    for n in range(3000):
        if n == 2900:
            monkeypatch.setattr(Executable, "run", lambda *args: looked_up.append(1) or run(*args))
        compiled(x, n)
    assert not looked_up
    again, before = step(x, 1).item(), compiled.statistics["traces"]
    assert compiled(x, 1).item() == again and compiled.statistics["traces"] == before


def test_gradients_are_what_eager_calls_leave_when_programs_alternate() -> None:
    def run(compiled: bool) -> list[Any]:
        rn.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, n: int) -> Any:
            loss = (model(x) ** 2).mean()
            loss.backward()
            if n % 3 == 0:
                optimizer.step()
                optimizer.zero_grad()
            return loss

        call, values = rn.compile(step, keep_grads=True) if compiled else step, []
        for n in range(24):
            values.append(call(rn.asarray(np.full((3, 4), n / 8, np.float32)), n).item())
            values.append(None if model.weight.grad is None else model.weight.grad.tolist())
            if n % 7 == 0:
                model.weight.grad = None
        return [*values, model.weight.tolist()]

    assert run(True) == run(False)


@pytest.mark.skipif(sys.platform == "win32", reason="signals one cannot send to oneself")
def test_a_timeout_that_rings_during_an_audit_ends_the_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def ring(*_: object) -> None:
        raise TimeoutError("too long")

    def recorded(*args: Any) -> Any:
        signal.raise_signal(signal.SIGALRM)
        return record(*args)

    record, f, x = Trace.record, rn.compile(lambda x: x * 0.25), rn.asarray([1.0, 2.0])
    f(x)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with monkeypatch.context() as patch, pytest.raises(TimeoutError):
            patch.setattr(Trace, "record", recorded)
            f(x)  # is audited
    finally:
        signal.signal(signal.SIGALRM, before)
    assert f(x).tolist() == [0.25, 0.5] and f.statistics["programs"] == 1


def test_a_compiled_module_has_the_attributes_of_the_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = rn.compile(model)
    assert list(compiled.parameters()) == list(model.parameters()) and compiled.state_dict().keys()
    compiled.eval()
    x = rn.asarray([[1.0, 2.0]])
    assert not model.training and compiled(x).tolist() == model(x).tolist()
    with pytest.raises(AttributeError, match="missing"):
        compiled.missing  # noqa: B018
