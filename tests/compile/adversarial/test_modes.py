"""Gradient modes and autocast as decorators: of functions, and of methods of all kinds of objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import runnel as rn
from runnel import nn

CALLS = 6


class Plain:
    def __init__(self) -> None:
        self.n, self.log = 0, [0.0]

    @rn.no_grad()
    def quiet(self, x: Any) -> Any:
        return x * 2

    @rn.no_grad()
    def counted(self, x: Any) -> Any:
        self.n += 1
        self.log.append(self.n * 0.5)
        return x * 2

    @rn.enable_grad()
    def loud(self, x: Any) -> Any:
        return x * 2

    @rn.no_grad()
    def each(self, x: Any) -> Iterator[Any]:
        for i in range(2):
            yield x * i

    @rn.autocast()
    def cast(self, x: Any) -> Any:
        return x @ x


class OfModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.log = 0, [0.0]

    quiet, counted, loud, each, cast = Plain.quiet, Plain.counted, Plain.loud, Plain.each, Plain.cast


@dataclasses.dataclass
class OfData:
    n: int = 0
    log: list[float] = dataclasses.field(default_factory=lambda: [0.0])

    quiet, counted, loud, each, cast = Plain.quiet, Plain.counted, Plain.loud, Plain.each, Plain.cast


class OfOptimizer(rn.optim.SGD):
    quiet, counted, loud, each, cast = Plain.quiet, Plain.counted, Plain.loud, Plain.each, Plain.cast

    def __init__(self) -> None:
        super().__init__([rn.Parameter(rn.ones(1))], lr=0.1)
        self.n, self.log = 0, [0.0]


OUTER: list[Callable[[], Any]] = [lambda: rn.enable_grad(), lambda: rn.no_grad(), lambda: rn.inference_mode()]


@pytest.mark.parametrize("outer", OUTER, ids=["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("kind", [Plain, OfModule, OfData, OfOptimizer])
@pytest.mark.parametrize("method", ["quiet", "counted", "loud", "each", "cast"])
def test_decorated_methods_inside_of_a_mode(kind: type, method: str, outer: Callable[[], Any]) -> None:
    """They keep to the mode around the call, leave it as it was, and read of the object what their code reads."""
    w = rn.Parameter(rn.ones((2, 2)))

    def run(wrap: Callable[[Any], Any]) -> tuple[list[Any], Any]:
        one: Any = kind()

        def step(x: Any) -> Any:
            with outer():
                found = getattr(one, method)(w * x)
                found = list(found) if method == "each" else [found]
                inside = w * x
            one.n += 1
            return *found, inside, w * x

        stepped = wrap(step)
        seen = []
        for _ in range(CALLS):
            results = stepped(rn.ones((2, 2)))
            seen.append([(r.requires_grad, r.dtype, r.tolist()) for r in results])
            seen.append([rn.is_grad_enabled(), one.n, list(one.log)])
        return seen, stepped

    expected, _ = run(lambda step: step)
    actual, compiled = run(rn.compile)
    assert actual == expected
    assert compiled.statistics["traces"] <= 2, compiled.retraces


def test_functions_decorated_inside() -> None:
    w = rn.Parameter(rn.ones(2))

    @rn.compile
    def step(x: Any) -> Any:
        inner = rn.no_grad()(lambda y: y * w)
        with rn.no_grad():
            y = inner(x)
        return y, inner(x), w * x

    for _ in range(3):
        assert [r.requires_grad for r in step(rn.ones(2))] == [False, False, True] and rn.is_grad_enabled()
    assert step.statistics["traces"] == 1
