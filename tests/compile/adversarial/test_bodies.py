"""What functions given to cond and to loops change, and what leaves them, in compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import runnel as rn
from runnel.core.errors import CaptureError, SideEffectError
from tests.compile.adversarial.stories import Story, stories
from tests.compile.adversarial.worlds import tensor

_REASON: Final = "given to cond changes something"
CASES: Final = f"""
## a_counter_in_each_branch, eager: {_REASON}
class Counts: a = b = 0
def first(x): Counts.a += 1; return x * 2
def second(x): Counts.b += 1; return x * 3
rn.cond(tensor(1.0).sum() > 5, first, second, tensor(1.0, 2.0, 3.0))
rn.cond(tensor(9.0).sum() > 5, first, second, tensor(1.0, 2.0, 3.0))
Counts.a = Counts.b = 0
def step(x): return rn.cond(x.sum() > 5, first, second, x)
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (i % 3),)

## a_list_of_the_function, eager: {_REASON}
def step(x):
    steps = []
    def first(x): steps.append("first"); return x * 2
    y = rn.cond(x.sum() > 5, first, lambda x: x * 3, x)
    return y, len(steps)
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (i % 3),)
for i in range(3):
    step(*arguments(i))

## a_variable_of_the_function, eager: {_REASON}
def step(x):
    n = 0
    def first(x):
        nonlocal n
        n += 1
        return x * 2
    return rn.cond(x.sum() > 5, first, lambda x: x * 3, x) * n
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (i % 3),)
for i in range(3):
    step(*arguments(i))

## a_tensor_kept_by_a_branch, eager: {_REASON}
def step(x):
    kept = {{}}
    def first(x): kept["y"] = x * 2; return x
    return rn.cond(x.sum() > 5, first, lambda x: x * 3, x), kept.get("y")
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (2 if i % 3 else 1),)

## an_attribute_of_an_object_of_the_function, eager: {_REASON}
class Box: pass
def step(x):
    box = Box()
    box.n = 1
    def first(x): box.n = 5; return x * 2
    return rn.cond(x.sum() > 5, first, lambda x: x * 3, x) * box.n
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (i % 3),)
for i in range(3):
    step(*arguments(i))

## inside_of_a_scan, eager: {_REASON}
def step(x):
    steps = []
    def first(v): steps.append(1); return v
    def body(carry, v): return carry + rn.cond(v > 1, first, lambda v: v * 2, v), v
    return rn.scan(body, rn.zeros(()), x), len(steps)

## lists_made_in_a_branch
factor = 2
def first(x):
    parts = []
    for k in range(3):
        parts.append(x * k * factor)
    return sum(parts)
def step(x): return rn.cond(x.sum() > 5, first, lambda x: x * 3, x)
def arguments(i): return (tensor(1.0, 2.0, 3.0) * (i % 3),)
#> factor = 5

## a_predicate_that_is_known
n = 0
def first(x):
    global n
    n += 1
    return x * 2
flag = True
def step(x): return rn.cond(flag, first, lambda x: x * 3, x)
#> flag = False
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


OUTER: Final = tensor(1.0, 2.0, 3.0)


def _loop(x: rn.Tensor, change: Callable[[Any], Any]) -> Any:
    def body(carry: Any, v: Any) -> Any:
        change(v)
        return carry + v, v

    return rn.scan(body, rn.zeros(()), x)


def _branch(x: rn.Tensor, change: Callable[[Any], Any]) -> Any:
    def first(v: Any) -> Any:
        change(v)
        return v

    return rn.cond(x.sum() > 5, first, lambda v: v * 2, x)


def changes_a_global(x: rn.Tensor, run: Any) -> Any:
    return run(x, lambda v: OUTER.add_(1)), OUTER * 1


def changes_a_local(x: rn.Tensor, run: Any) -> Any:
    y = x * 1
    return run(x, lambda v: y.add_(1)), y


def sets_an_item(x: rn.Tensor, run: Any) -> Any:
    y = x * 1

    def change(v: Any) -> None:
        y[0] = 5.0

    return run(x, change), y


def sets_a_gradient(x: rn.Tensor, run: Any) -> Any:
    def change(v: Any) -> None:
        OUTER.grad = rn.ones(3)

    return run(x, change)


@pytest.mark.parametrize("function", [changes_a_global, changes_a_local, sets_an_item, sets_a_gradient])
@pytest.mark.parametrize("run", [_loop, _branch])
def test_a_body_cannot_change_tensors_from_outside(function: Any, run: Any) -> None:
    before = OUTER.tolist()
    for _ in range(2):
        with pytest.raises(SideEffectError, match=r"a tensor from outside is changed at .*test_bodies.py:.*return"):
            rn.compile(lambda x: function(x, run))(tensor(1.0, 2.0, 3.0))
        assert OUTER.tolist() == before and OUTER.grad is None


def leaves_directly(x: rn.Tensor) -> Any:
    kept: list[Any] = []
    return _loop(x, kept.append), kept[0]


def leaves_computed(x: rn.Tensor) -> Any:
    kept: list[Any] = []
    return _loop(x, lambda v: kept.append(v * 2)), kept[0]


def is_used_later(x: rn.Tensor) -> Any:
    kept: list[Any] = []
    return _loop(x, lambda v: kept.append(v * 2)), kept[0] + x


def leaves_a_condition(x: rn.Tensor) -> Any:
    kept: list[Any] = []

    def goes_on(v: Any) -> Any:
        kept.append(v * 2)
        return v.sum() < 50

    return rn.while_loop(goes_on, lambda v: v * 2 + 9, x), kept[0] + 1


def enters_another_body(x: rn.Tensor) -> Any:
    kept: list[Any] = []
    _loop(x, lambda v: kept.append(v * 2))
    return rn.scan(lambda carry, v: (carry + kept[0], v), rn.zeros(()), x)


@pytest.mark.parametrize(
    "function", [leaves_directly, leaves_computed, is_used_later, leaves_a_condition, enters_another_body]
)
def test_a_tensor_of_a_body_cannot_be_used_outside(function: Any) -> None:
    with pytest.raises(CaptureError, match="that a function given to a loop"):
        rn.compile(function)(tensor(1.0, 2.0, 3.0))
