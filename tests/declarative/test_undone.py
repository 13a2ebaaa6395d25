"""Declarations that fail leave graphs as they were: operations, names, and what names come next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.tinyflow as tf
import runnel.declarative as dg
from runnel.core.errors import GradientError, RunnelError
from runnel.declarative.files import to_json
from runnel.declarative.graph import whole

HALF = np.ones((2, 2), np.float32)


class Parts:
    """A graph with what the mistakes need."""

    def __init__(self) -> None:
        self.x = dg.placeholder(shape=(3,), name="x")
        self.n = dg.placeholder("int64", (), name="n")
        self.p = dg.placeholder("bool", (), name="p")
        self.w = dg.Variable(np.ones(3, np.float32), name="w")
        self.alone = dg.Variable(1.0, name="alone")
        self.bare = dg.Variable(shape=(3,), name="bare")
        self.loss = (self.x * self.w).sum()
        self.double = self.x * 2
        self.loop = dg.while_loop(lambda a: a.sum() < 9, lambda a: (a * 2,), (self.w,))[0].sum()
        self.both = self.loss + self.loop


MISTAKES: dict[str, Callable[[Parts], Any]] = {
    "a variable that the loss does not depend on": lambda p: dg.minimize(p.loss, rn.optim.SGD, [p.w, p.alone], lr=0.1),
    "a loss behind a loop": lambda p: dg.minimize(p.both, rn.optim.SGD, lr=0.1),
    "an optimizer's name that is none": lambda p: dg.minimize(p.loss, rn.optim.SGD, [p.w], name="a b", lr=0.1),
    "a hyperparameter": lambda p: dg.minimize(p.loss, rn.optim.SGD, [p.w], lr=-1),
    "a gradient behind a loop": lambda p: dg.gradients([p.loss, p.loop], p.w),
    "a gradient by another kind of thing": lambda p: dg.gradients(p.loss, [p.w, "w"]),
    "a gradient of integers": lambda p: dg.gradients([p.loss, p.n], p.w),
    "cotangents of another shape": lambda p: dg.gradients([p.loss, p.x], p.w, [1.0, HALF]),
    "too few cotangents": lambda p: dg.gradients([p.loss, p.x], p.w, [1.0]),
    "a call with a constant that does not fit": lambda p: p.x @ HALF,
    "a call with a live Variable behind a constant": lambda p: dg.call(
        lambda a, b, c: a, p.x, HALF, rn.Variable(rn.ones(2))
    ),
    "a call that fails": lambda p: dg.call(lambda a, b: 1 / 0, p.x, HALF),
    "an assignment of another shape": lambda p: p.w.assign(HALF),
    "an addition of another shape": lambda p: dg.assign_add(p.w, HALF),
    "a subtraction that gives another shape": lambda p: dg.assign_sub(p.alone, np.ones(3, np.float32)),
    "a first value of another dtype": lambda p: dg.Variable(HALF, dtype="int31", name="late"),
    "a first value that is declared, of another dtype": lambda p: dg.Variable(p.double, dtype="int32"),
    "a shape that is none": lambda p: dg.Variable(HALF, shape=(-1,)),
    "an initializer of one without a first value": lambda p: dg.initializer([p.w, p.bare]),
    "an initializer of something else": lambda p: dg.initializer([p.w, p.x]),
    "a branch of another shape": lambda p: dg.cond(p.p, lambda: p.x, lambda: p.loss),
    "a branch that fails": lambda p: dg.cond(p.p, lambda: p.x * 2, lambda: p.x @ HALF),
    "a branch with an operand": lambda p: dg.cond(p.p, lambda a: a, lambda a: 1 / 0, HALF),
    "a loop that grows": lambda p: dg.while_loop(lambda a: a < 3, lambda a: (a, a), (1.0,)),
    "a loop of a condition that is none": lambda p: dg.while_loop(lambda a: a, lambda a: (a,), (HALF,)),
    "a scan that changes its carry": lambda p: dg.scan(lambda c, r: (p.x, r), HALF, HALF),
    "a function with updates of another shape": lambda p: dg.function(
        [p.x], p.loss, updates={p.w: p.double, p.alone: HALF}, session=dg.Session()
    ),
    "a function with givens of another shape": lambda p: dg.function(
        [], p.loss, givens={p.x: HALF}, session=dg.Session()
    ),
    "TinyFlow: a layer of something else": lambda p: tf.nn.linear("x", num_hidden=3, name="fc"),
    "TinyFlow: a layout": lambda p: tf.nn.conv2d(p.x, num_filter=2, ksize=[1, 3, 3, 1], padding="WRONG"),
    "TinyFlow: a step behind a loop": lambda p: tf.train.AdamOptimizer(0.1).minimize(p.loop),
    "TinyFlow: a first value that is declared elsewhere": lambda p: tf.Variable(elsewhere(), name="w"),
}


def elsewhere() -> Any:
    with dg.Graph("other"):
        return dg.constant(1.0)


def texts() -> tuple[str, list[int]]:
    graph = dg.default_graph()
    return to_json(graph), [x.number for x in graph.operations]


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_left_of_a_declaration_that_fails(name: str) -> None:
    parts = Parts()
    before = texts()
    with pytest.raises((RunnelError, ZeroDivisionError, TypeError, ValueError)):
        MISTAKES[name](parts)
    assert texts() == before
    with pytest.raises((RunnelError, ZeroDivisionError, TypeError, ValueError)):  # again, and the same
        MISTAKES[name](parts)
    step = dg.minimize(parts.loss, rn.optim.SGD, [parts.w], lr=0.1)
    after = to_json(dg.default_graph())
    with dg.Graph():
        fresh = Parts()
        dg.minimize(fresh.loss, rn.optim.SGD, [fresh.w], lr=0.1)
        assert to_json(dg.default_graph()) == after  # names as if nothing had been tried
    session = dg.Session()
    session.run(dg.initializer([parts.w]))
    session.run(step, {parts.x: np.ones(3)})
    assert session.run(parts.w).numpy().tolist() == [np.float32(0.9)] * 3


def test_a_failed_declaration_inside_another_one_takes_back_its_own_part() -> None:
    x = dg.placeholder(shape=(2, 2), name="x")

    def branch() -> Any:
        doubled = x * 2
        with pytest.raises(RunnelError):
            doubled @ np.ones((3, 3), np.float32)
        return doubled @ HALF

    y = dg.cond(x.sum() > 0, branch, lambda: x)
    assert dg.Session().run(y, {x: HALF}).numpy().tolist() == [[4, 4], [4, 4]]
    names = [op.name for op in y.operation.arguments.leaves[1].graph.operations]
    assert names == ["x", "multiply", "matmul/constant", "matmul"]


def test_declarations_of_other_threads_stay() -> None:
    graph = dg.default_graph()
    x = dg.placeholder(shape=(), name="x")
    inside, go = threading.Event(), threading.Event()

    @whole
    def fails() -> None:
        with graph:
            dg.constant(1.0, name="lost")
            inside.set()
            assert go.wait(10)
            dg.constant(2.0, name="lost")
        raise KeyError("mine")

    def work() -> None:
        with pytest.raises(KeyError):
            fails()

    worker = threading.Thread(target=work)
    worker.start()
    assert inside.wait(10)
    y = x * 3
    go.set()
    worker.join()
    assert [(op.name, op.number) for op in graph.operations] == [("x", 0), ("multiply", 1)]
    assert dg.constant(1.0, name="lost").name == "lost"
    assert dg.Session().run(y, {x: 2.0}).item() == 6


@pytest.mark.parametrize(
    ("declare", "name"),
    [
        (lambda x: dg.while_loop(lambda a: a < 9, lambda a: (a * x,), (x,))[0], "while_loop"),
        (lambda x: dg.call(lambda a: rn.while_loop(lambda c: c < 9, lambda c: c * 2, a), x, name="own"), "own"),
        (
            lambda x: dg.cond(x > 1, lambda: dg.while_loop(lambda a: a < 9, lambda a: (a * x,), (x,))[0], lambda: x),
            "cond",
        ),
    ],
)
@pytest.mark.parametrize("shape", [(), None])
def test_a_missing_gradient_is_named_where_it_is_declared(declare: Callable[[Any], Any], name: str, shape: Any) -> None:
    x = dg.placeholder(shape=shape, name="x")
    y = declare(x)
    top, slope = y * 2, dg.gradients(dg.gradients(x * x, x)[0] * x, x)[0]
    other = y * slope
    count = len(dg.default_graph())
    for ask in (lambda: dg.gradients(top, x), lambda: dg.gradients([slope, other], x)):
        with pytest.raises(GradientError) as caught:
            ask()
        assert str(caught.value) == (
            f"[gradients] no gradient passes through '{name}', declared at {y.operation.where}: [while_loop] has no "
            "gradient: how many steps to keep is not known before it runs. Use runnel.scan with a fixed length."
        )
        assert len(dg.default_graph()) == count
    assert dg.gradients(y.detach() * x, x)[0] is not None
