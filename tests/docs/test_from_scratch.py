"""Compare docs/internals/from_scratch.py with Runnel and its page; check the homework on right and wrong solutions."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from tests.docs import homework
from tests.docs.homework import CHECKS, Training, fs
from tests.docs.pages import ROOT, blocks

SOURCE = (ROOT / "docs" / "internals" / "from_scratch.py").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "internals" / "from_scratch.md").read_text(encoding="utf-8")
Life = tuple[int, int, int]


def lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line]


def test_the_page_quotes_the_whole_file() -> None:
    """Compare the file with the blocks that promise no output; the others are for the reader to try."""
    quoted = [line for block in blocks(PAGE) if block.output is None for line in lines(block.code)]
    (docstring, *_) = ast.parse(SOURCE).body
    assert quoted == lines("\n".join(SOURCE.splitlines()[docstring.end_lineno :]))


def test_the_file_is_short_and_needs_only_numpy_and_llvmlite() -> None:
    framework, demo, _ = SOURCE.partition("\n\ndef demo")
    assert demo and len(framework.splitlines()) < 300
    imports = [x for x in ast.walk(ast.parse(SOURCE)) if isinstance(x, ast.Import | ast.ImportFrom)]
    modules = {alias.name if isinstance(x, ast.Import) else x.module for x in imports for alias in x.names}
    assert modules == {"__future__", "collections.abc", "ctypes", "functools", "llvmlite.binding", "numpy", "typing"}


def test_the_page_counts_right() -> None:
    ops = [x for x in vars(fs).values() if isinstance(x, fs.Op) and x is not fs.source]
    assert len(ops) == 10 and "| ops | ten, of float32 |" in PAGE
    one = fs.as_node(1.0)
    text = fs.kernel_text([one], reads=[], writes=[one])
    assert fs.compiled(text, 1) is fs.compiled(text, 1)


def test_training_takes_the_way_that_runnel_takes() -> None:
    mine = Training()
    starts = [v.value for v in mine.model]
    x, label = dg.placeholder(shape=(32, 2)), dg.placeholder(shape=(32, 1))
    model = w, b, v = [dg.Variable(value) for value in starts]
    loss = rn.mean(rn.log(rn.exp(-(rn.tanh(x @ w + b) @ v) * label) + 1))
    step = dg.minimize(loss, rn.optim.SGD, lr=0.1, momentum=0.9)
    feeds = dict(zip((x, label), (value.astype(np.float32) for value in mine.feeds.values()), strict=True))
    session = dg.Session()
    session.run(dg.initializer())

    slopes = fs.Session().run(fs.gradients(mine.loss, mine.model), mine.feeds)
    for slope, expected in zip(slopes, session.run(dg.gradients(loss, model), feeds), strict=True):
        np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-5, atol=1e-6)
    losses = [session.run([loss, step], feeds)[0].item() for _ in range(50)]
    np.testing.assert_allclose(mine.losses(fs.Session(), 50), losses, rtol=1e-4)
    assert losses[-1] < losses[0] / 2


def test_passes_change_no_bit() -> None:
    training = Training()
    losses = {
        tuple(training.losses(fs.Session(fuse, plan), 10))
        for fuse, plan in itertools.product((fs.fuse, one_by_one, all_that_is_ready), (fs.plan_memory, each_alone))
    }
    assert len(losses) == 1


def test_updates_take_effect_together_after_the_run() -> None:
    a, b = fs.variable([1.0]), fs.variable([2.0])
    session = fs.Session()
    assert [x.item() for x in session.run([a, b], updates={a: b, b: a + b})] == [1, 2]
    assert [x.item() for x in session.run([a, b])] == [2, 3]
    other = fs.Session()
    assert other.run([a])[0].item() == 1
    assert [x.item() for x in session.run([a, b, b])] == [2, 3, 3]  # no other program for the same nodes in other roles


def test_shapes_that_do_not_fit_are_reported_where_they_are_declared() -> None:
    x = fs.placeholder(2, 3)
    with pytest.raises(ValueError, match=re.escape("source[2, 3] and source[2, 3] have no product")):
        x @ x
    with pytest.raises(ValueError, match="shape mismatch"):
        x + fs.placeholder(4)
    for feeds in ({}, {x: np.ones((3, 2))}, {x: 1.0}):
        with pytest.raises(ValueError, match=re.escape("source[2, 3] has to be fed")):
            fs.Session().run([x + 1.0], feeds)


def test_long_and_empty_graphs() -> None:
    x = fs.placeholder(2)
    y = x
    for _ in range(2000):
        y = y + x
    (slope,) = fs.gradients(y, [x])
    assert fs.Session().run([y, slope], {x: [1.0, 2.0]})[0].tolist() == [2001, 4002]
    empty = fs.placeholder(0, 3)
    assert fs.Session().run([fs.tanh(empty), fs.sum_to(empty, (3,))], {empty: np.ones((0, 3))})[1].tolist() == [0, 0, 0]
    assert fs.Session().run([]) == []


# Homework: solutions that are right, and such that are not ------------------------------------------------------------


def by_definition(y: Any, xs: Sequence[Any]) -> list[Any]:
    """The derivative by a node is the sum over the nodes that use it; each is asked for once."""
    order = fs.ordered([y])
    known = {y: fs.broadcast_to(fs.as_node(1.0), y.shape)}

    def slope(x: Any) -> Any:
        if x not in known:
            known[x] = fs.broadcast_to(fs.as_node(0.0), x.shape)
            for user in order:
                if x in user.inputs:
                    passed_on = user.op.gradient(user, slope(user), *user.inputs)
                    for g in (g for i, g in zip(user.inputs, passed_on, strict=True) if i is x):
                        known[x] = known[x] + g
        return known[x]

    return [slope(x) for x in xs]


def without_sums(y: Any, xs: Sequence[Any]) -> list[Any]:
    slopes = {y: fs.broadcast_to(fs.as_node(1.0), y.shape)}
    for node in reversed(fs.ordered([y])):
        if node in slopes and node.op.gradient:
            slopes.update(zip(node.inputs, node.op.gradient(node, slopes[node], *node.inputs), strict=True))
    return [slopes.get(x, fs.broadcast_to(fs.as_node(0.0), x.shape)) for x in xs]


def shapeless(y: Any, xs: Sequence[Any]) -> list[Any]:
    reached = set(fs.ordered([y]))
    return [fs.gradients(y, [x])[0] if x in reached else fs.as_node(0.0) for x in xs]


def too_early(y: Any, xs: Sequence[Any]) -> list[Any]:
    """Passes derivatives on before all of them have arrived."""
    slopes = {y: fs.broadcast_to(fs.as_node(1.0), y.shape)}
    waiting = [y]
    while waiting:
        node = waiting.pop()
        passed_on = node.op.gradient(node, slopes[node], *node.inputs) if node.inputs else []
        for x, g in zip(node.inputs, passed_on, strict=True):
            slopes[x] = slopes[x] + g if x in slopes else g
            waiting.append(x)
        if len(slopes) > 10_000 or len(waiting) > 10_000:
            break
    return [slopes.get(x, fs.broadcast_to(fs.as_node(0.0), x.shape)) for x in xs]


def each_alone(lives: Sequence[Life]) -> list[int]:
    return [sum(size for size, _, _ in lives[:i]) for i in range(len(lives))]


def largest_first(lives: Sequence[Life]) -> list[int]:
    places = dict.fromkeys(range(len(lives)), 0)
    done: list[int] = []
    for i in sorted(places, key=lambda i: -lives[i][0]):
        size, first, last = lives[i]
        for j in sorted(done, key=places.__getitem__):
            if first <= lives[j][2] and lives[j][1] <= last and places[j] < places[i] + size:
                places[i] = max(places[i], places[j] + lives[j][0])
        done.append(i)
    return list(places.values())


def no_last_reads(lives: Sequence[Life]) -> list[int]:
    """Gives a place away in the step that reads it for the last time."""
    return fs.plan_memory([(size, first, last - 1) for size, first, last in lives])  # type: ignore[no-any-return]


def one_by_one(order: Sequence[Any]) -> list[list[Any]]:
    return [[node] for node in order]


def all_that_is_ready(order: Sequence[Any]) -> list[list[Any]]:
    """Groups as large as can be: of the nodes whose inputs are there, all of one shape, and what they make ready."""
    left, computed, groups = list(order), {x for n in order for x in n.inputs if x.op is fs.source}, []
    while left:
        ready = next(node for node in left if computed.issuperset(node.inputs))
        group = [ready]
        computed.add(ready)
        for node in left if ready.op.code else ():
            if node is not ready and node.op.code and node.shape == ready.shape and computed.issuperset(node.inputs):
                group.append(node)
                computed.add(node)
        groups.append(group)
        left = [node for node in left if node not in computed]
    return groups


def by_shape(order: Sequence[Any]) -> list[list[Any]]:
    """A group for each shape, whatever lies between its nodes."""
    groups: dict[Any, list[Any]] = {}
    for node in order:
        groups.setdefault(node.shape if node.op.code else node, []).append(node)
    return list(groups.values())


def without_constants(order: Sequence[Any]) -> list[list[Any]]:
    return fs.fuse([node for node in order if node.op is not fs.constant])  # type: ignore[no-any-return]


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "gradients": [fs.gradients, by_definition],
    "plan_memory": [fs.plan_memory, each_alone, largest_first],
    "fuse": [fs.fuse, one_by_one, all_that_is_ready],
}
WRONG: dict[str, list[tuple[Callable[..., Any], str]]] = {
    "gradients": [
        (without_sums, "the derivative of x · x"),
        (too_early, "derivative of|many paths"),
        (shapeless, "has the shape of what it is by"),
        (lambda y, xs: [fs.broadcast_to(fs.as_node(0.0), x.shape) for x in xs], "the derivative of x · x"),
        (lambda y, xs: [slope * -1.0 for slope in fs.gradients(y, xs)], "the derivative of x · x"),
    ],
    "plan_memory": [
        (lambda lives: [0] * len(lives), "live at the same time and overlap"),
        (no_last_reads, "live at the same time and overlap"),
        (lambda lives: [place - 1 for place in fs.plan_memory(lives)], "the arena begins at 0"),
        (lambda lives: fs.plan_memory(lives)[:-1], "values have"),
    ],
    "fuse": [
        (lambda order: [list(order)], "not elementwise|several shapes"),
        (by_shape, "comes before"),
        (without_constants, "each of .* nodes is in one group"),
        (lambda order: [[node] for node in reversed(order)], "comes before"),
        (lambda order: [*one_by_one(order), list(order[:1])], "each of .* nodes is in one group"),
    ],
}


@pytest.mark.parametrize(("name", "solution"), [(name, x) for name, each in RIGHT.items() for x in each])
def test_right_homework_passes(name: str, solution: Callable[..., Any]) -> None:
    assert CHECKS[name](solution).startswith("right; ")


@pytest.mark.parametrize(("name", "solution", "told"), [(name, *x) for name, each in WRONG.items() for x in each])
def test_wrong_homework_gets_a_reason(name: str, solution: Callable[..., Any], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        CHECKS[name](solution)


def test_homework_is_handed_in_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "my_passes.py"
    mine.write_text(
        "from from_scratch import fuse as best\n\ndef fuse(order):\n    return best(order)\n\n"
        "def plan_memory(lives):\n    return [0 for life in lives]\n"
    )
    assert homework.main(mine) == 1
    memory, fusion = capsys.readouterr().out.splitlines()
    assert memory.startswith("plan_memory: wrong: ") and fusion.startswith("fuse: right; ")
