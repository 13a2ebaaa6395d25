"""Wrong arguments to every public function, method and constructor: the right result, or one sentence that names it.

Each argument of a good call in turn is replaced by something that is of another kind, shape or range.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError
from tests.core.errors.calls import calls

pytestmark = pytest.mark.suite


WRONG: dict[str, Any] = {
    "None": None, "a string": "a", "a fraction": 1.5, "negative": -1, "zero": 0, "True": True, "ints": [1, 2],
    "ragged": [[1], [2, 3]], "a dict": {}, "an object": object(), "an array": np.zeros(3), "NaN": float("nan"),
    "complex": 1j, "strings": ["a", "b"], "nothing": (), "a function": len, "a scalar": rn.asarray(1.0),
    "seven axes": rn.zeros((1,) * 7), "integers": rn.asarray([1, 2]), "empty": rn.zeros((0, 4)),
    "huge": 2**70, "huge and negative": -(2**70), "a small NumPy integer": np.int8(3),
    "an array without axes": np.array(2), "a bfloat16": rn.asarray(1.0, rn.bfloat16), "an infinity": float("inf"),
}  # fmt: skip
SENTENCE = re.compile(r"\[[\w.]+\] ")
CALLS = {call.name: call for call in calls()}


def complaint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str | None:
    """Return the fault in the answer to a call; None for a result or a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            message = str(error)
            if not SENTENCE.match(message) or "cannot be done with" in message:
                return f"{type(error).__name__}: {message}"
    return None


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_reported(name: str) -> None:
    call = CALLS[name]
    complaints: dict[str, str | None] = {}
    for argument in call.arguments:
        for what, value in WRONG.items():
            complaints[f"{argument}: {what}"] = complaint(call.function, **{**call.arguments, argument: value})
        rest = {key: value for key, value in call.arguments.items() if key != argument}
        complaints[f"without {argument}"] = complaint(call.function, **rest)
    assert {case: message for case, message in complaints.items() if message} == {}


@pytest.mark.parametrize("name", CALLS)
def test_unknown_names_and_too_many_arguments_are_reported(name: str) -> None:
    call = CALLS[name]
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(call.function).parameters.values()):
        return  # it takes any, which have no effect
    if name != "rn.rand" and name != "rn.randn" and not name.startswith("Tensor."):
        assert complaint(call.function, *call.arguments.values(), *range(1, 20)) is None
    with pytest.raises(ArgumentError, match=r"\[\w+\] takes no argument 'tint'"):
        call.function(**call.arguments, tint=3)


def as_numpy(value: Any) -> Any:
    """Python numbers and what holds them as NumPy's."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float32(value)
    if isinstance(value, (tuple, list)) and all(isinstance(v, (int, float, tuple)) for v in value):
        return type(value)(map(as_numpy, value))
    return value


def summary(result: Any) -> Any:
    """Return the part of a result that does not depend on random numbers."""
    if isinstance(result, (tuple, list)):
        return [summary(x) for x in result]
    return repr(result.aval) if isinstance(result, (rn.Tensor, rn.Variable)) else type(result).__name__


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("Tensor.")])
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    call = CALLS[name]
    expected = summary(call.function(**call.arguments))
    assert summary(call.function(**{key: as_numpy(value) for key, value in call.arguments.items()})) == expected


def test_errors_of_the_package_are_reported_from_those_of_users() -> None:
    def broken() -> None:
        raise KeyError("the user's")

    with pytest.raises(KeyError, match="user"):
        rn.cond(True, broken, broken)


def test_a_fault_inside_looks_like_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that no argument explains keeps its class and its traceback."""

    def faulty(*args: Any) -> None:
        raise KeyError("inside")

    x = rn.ones((2, 3))
    monkeypatch.setattr("runnel.ops.reductions.statistics.finished", faulty)
    faulty.__code__ = faulty.__code__.replace(co_filename=rn.__file__)
    with pytest.raises(KeyError, match="inside") as caught:
        rn.logsumexp(x)
    assert "faulty" in [entry.name for entry in caught.traceback]
