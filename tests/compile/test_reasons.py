"""Why a function was traced again, or what it changed: the first difference, with both values and the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.compile.telling import changed, keys_changed
from runnel.core.errors import SideEffectError

DIFFERENCES: list[tuple[Any, Any, str]] = [
    (1, 2, "x changed from 1 (int) to 2 (int)"),
    ((1, 2, 3), (1, 5, 3), "x[1] changed from 2"),
    ([1, (2, [3, 4])], [1, (2, [3, 5])], "x[1][1][1] changed from 4"),
    ((1, 2), (1, 2, 3), "x[2] changed from nothing to 3"),
    ((1, 2), (1,), "x[1] changed from 2"),
    ({1, 2}, {2, 3}, "x lost 1"),
    (np.array([1.0, 2.0]), np.array([1.0, 4.0]), "x[1] changed from 2.0 to 4.0"),
    (np.array([0.0]), np.array([-0.0]), "x changed in the bits of zeros or NaNs"),
    (int, float, "x changed from int to float"),
    ("a", None, "x changed from 'a'"),
]


@pytest.mark.parametrize(("before", "after", "told"), DIFFERENCES)
def test_the_first_difference_is_named(before: Any, after: Any, told: str) -> None:
    assert changed("x", before, after).startswith(told.replace(" (int)", ""))


def test_keys() -> None:
    assert keys_changed("d", ("a", "b"), ("a", "b", "c")) == "d got the key 'c'"
    assert keys_changed("d", ("a", "b"), ("a",)) == "d lost the key 'b'"
    assert keys_changed("d", ("a", "b"), ("b", "a")) == "d has the key 'b' where 'a' was"


def last_reason(function: Any, *calls: Callable[[], Any]) -> str:
    for call in calls:
        call()
    return str(function.retraces[-1]).partition("(): ")[2]


def test_a_requirement_of_gradients() -> None:
    f = rn.compile(lambda x, y: x * y, name="f")
    x, y = rn.ones(3), rn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert last_reason(f, lambda: f(x, x), lambda: f(x, y)) == "argument 'y' requires a gradient"
    g = rn.compile(lambda x: x * 2, name="g")
    assert last_reason(g, lambda: g(y), lambda: g(x)) == "no argument requires a gradient any more"


def test_autocast() -> None:
    f = rn.compile(lambda x: x @ x, name="f")
    x = rn.ones((4, 4))

    def cast() -> None:
        with rn.autocast():
            f(x)

    assert last_reason(f, lambda: f(x), cast) == "autocast is bfloat16, was off"


def test_numbers_of_numpy_are_shown_as_numbers() -> None:
    f = rn.compile(lambda x, n: x * n, name="f")
    x = rn.ones(3)
    reason = last_reason(f, lambda: f(x, np.int64(3)), lambda: f(x, np.int64(4)))
    assert reason == "argument 'n' is 4 (NumPy's int64), was 3 (NumPy's int64)"


def test_how_arguments_are_passed() -> None:
    f = rn.compile(lambda x, n=1, m=2: x * n * m, name="f")
    x = rn.ones(3)
    assert last_reason(f, lambda: f(x), lambda: f(x, 2)) == "the arguments are x, n; they were x"
    g = rn.compile(lambda xs: xs[0] * 1.0, name="g")
    assert last_reason(g, lambda: g([x]), lambda: g([x, x])) == "argument 'xs' is nested differently"


def test_a_schedule_that_reaches_zero() -> None:
    layer = nn.Linear(3, 2)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    schedule = optim.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=1)

    @rn.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = rn.ones((2, 3))
    reason = last_reason(step, lambda: step(x), schedule.step, lambda: step(x))
    assert reason.endswith("changed from 'lr is not 0' to 'lr is 0'")


def writes() -> dict[str, tuple[Callable[[], Any], str]]:
    """Functions that change something outside, with the source of the line that does."""
    box, seen, table = nn.Identity(), [1], {"a": 1}
    box.count = 0  # type: ignore[assignment]

    def counts(x: Any) -> Any:
        box.count += 1  # type: ignore[operator]
        return x

    def appends(x: Any) -> Any:
        y = x * len(seen)
        seen.append(2)
        return y

    def sets(x: Any) -> Any:
        table["a"] = table["a"] + 1
        return x

    def helps(x: Any) -> Any:
        return counts(x) * 2

    x = rn.ones(2)
    return {
        "an attribute": (lambda: rn.compile(counts)(x), "box.count += 1"),
        "a list": (lambda: rn.compile(appends)(x), "seen.append(2)"),
        "a dict": (lambda: rn.compile(sets)(x), 'table["a"] = '),
        "in a helper": (lambda: rn.compile(helps)(x), "box.count += 1"),
    }


@pytest.mark.parametrize("what", list(writes()))
def test_the_line_of_a_side_effect(what: str) -> None:
    call, source = writes()[what]
    with pytest.raises(SideEffectError) as caught:
        call()
    place = re.search(r"outside itself at (\S+):(\d+): ", str(caught.value))
    assert place is not None
    lines = Path(place[1]).read_text(encoding="utf-8").splitlines()
    assert source in lines[int(place[2]) - 1]
