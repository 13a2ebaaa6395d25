"""What strangers do with graphs: parts of other graphs, wrong kinds of things, changes inside of branches."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ArgumentError, DTypeError, GraphError, RunnelError, ShapeError

UNCHANGED = r"branches and loops change no variables"


def elsewhere() -> Any:
    """A tensor of another graph."""
    with dg.Graph("other"):
        return dg.constant(1.0)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda x, y: x.operation.add_control_inputs(y.operation),
        lambda x, y: dg.group(x, y),
        lambda x, y: dg.gradients(x * x, y),
        lambda x, y: dg.gradients([x * x, y], x),
        lambda x, y: dg.default_graph().control_dependencies([y]).__enter__(),
        lambda x, y: dg.Session().run(y),
        lambda x, y: dg.Session().run(x, {x: 1.0, y: 1.0}),
        lambda x, y: dg.Variable(0.0).assign(y),
        lambda x, y: x + y,
    ],
)
def test_other_graphs(mistake: Callable[[Any, Any], Any]) -> None:
    x = dg.placeholder(shape=())
    with pytest.raises(GraphError, match="is of the graph 'other'"):
        mistake(x, elsewhere())
    assert x.operation.control_inputs == dg.default_graph().control_inputs == ()
    assert dg.Session().run(x, {x: 1.0}).item() == 1


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda x: x.operation.add_control_inputs("a"), "takes operations and declared tensors"),
        (lambda x: dg.default_graph().control_dependencies(["a"]).__enter__(), "takes operations and declared tensors"),
        (lambda x: dg.Session().run(x, [(x, 1.0)]), "feeds are a dict"),
        (lambda x: dg.Session().plan(x, [(x, 1.0)]), "feeds are a dict"),
        (lambda x: dg.infer(x, {"x": (2,)}), "shapes are those of declared tensors"),
        (lambda x: dg.Session().run(None), "fetches are declared tensors"),
        (lambda x: dg.Session().run(x, {x: None}), "a tensor holds numbers"),
        (lambda x: pickle.dumps(dg.default_graph()), r"saved with declarative\.save"),
        (lambda x: copy.deepcopy(dg.default_graph()), r"saved with declarative\.save"),
    ],
)
def test_things_of_the_wrong_kind(mistake: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        mistake(dg.placeholder(shape=()))


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 1j), ("int64", 1.5), ("bool", 2), ("uint8", np.ones((), int))]
)
def test_feeds_keep_their_kind(dtype: str, value: Any) -> None:
    x = dg.placeholder(dtype, ())
    with pytest.raises(DTypeError, match="Cast it first"):
        dg.Session().run(x, {x: value})
    for name, number in (("float32", 3), ("complex64", 2.5), ("bfloat16", 2), ("uint8", 7), ("float32", True)):
        y = dg.placeholder(name, ())
        assert dg.Session().run(y, {y: number}).item() == number


@pytest.mark.parametrize(
    "change",
    [
        lambda v, x: v.assign(x),
        lambda v, x: v.assign(1.0),
        lambda v, x: dg.assign_add(v, 1.0),
        lambda v, x: (dg.minimize(v * v, rn.optim.SGD, lr=0.1), x)[1],
    ],
)
def test_branches_and_loops_change_nothing(change: Callable[[Any, Any], Any]) -> None:
    v, x, p = dg.Variable(0.0), dg.placeholder(shape=()), dg.placeholder("bool", ())
    with pytest.raises(RunnelError, match=UNCHANGED):
        dg.cond(p, lambda: change(v, x), lambda: x)
    with pytest.raises(RunnelError, match=UNCHANGED):
        dg.while_loop(lambda i: i < 3, lambda i: (change(v, i),), (0.0,))
    assert dg.Session().run(dg.cond(p, lambda: v + x, lambda: x), {p: False, x: 2.0, v: 1.0}).item() == 2


def test_gradients_inside_of_branches() -> None:
    x, p = dg.placeholder(shape=()), dg.placeholder("bool", ())
    y = dg.cond(p, lambda: dg.gradients(x**3, x)[0], lambda: x)
    assert [dg.Session().run(y, {p: which, x: 2.0}).item() for which in (True, False)] == [12, 2]


def test_loops_keep_their_carry() -> None:
    with pytest.raises(ShapeError, match="the body gives 2 tensors, and the carry has 1"):
        dg.while_loop(lambda i: i < 3, lambda i: (i, i), (0,))
    assert dg.Session().run(dg.while_loop(lambda i: i < 3, lambda i: i + 1, (0,)))[0].item() == 3


def test_sizes_that_arguments_imply_are_found() -> None:
    x = dg.placeholder(shape=(None,))
    assert x.reshape(2, 3).shape == (2, 3)
    assert dg.infer(x.reshape(2, 3))[x].shape == (6,)
    assert dg.call(lambda t: rn.reshape(t, (5, 7)), x).shape == (5, 7)
    assert dg.Session().run(x.reshape(2, 3) * 2, {x: np.arange(6.0)}).numpy().tolist() == [[0, 2, 4], [6, 8, 10]]
    with pytest.raises(ShapeError, match="reshape"):
        dg.Session().run(x.reshape(2, 3), {x: np.arange(5.0)})
    with pytest.raises(ShapeError, match="no sizes of the unknown axes"):
        dg.placeholder(shape=(None, 3)).reshape(2, 7, 11)


def test_errors_of_a_run_name_the_operation_and_its_line() -> None:
    x = dg.placeholder(shape=(None,))
    y = dg.call(lambda t: rn.reshape(t, (2, -1)), x, name="halves")
    for fused in (True, False):
        with pytest.raises(ShapeError) as caught:
            dg.Session(fused=fused).run(y, {x: np.ones(5)})
        (note,) = [n for n in caught.value.__notes__ if "halves" in n]
        assert note == f"in operation 'halves', declared at {y.operation.where}"


def test_every_thread_has_a_graph_of_its_own() -> None:
    graphs: list[dg.Graph] = []
    worker = threading.Thread(target=lambda: graphs.append(dg.constant(1.0).operation.graph))
    worker.start()
    worker.join()
    assert graphs[0] is not dg.default_graph() and len(graphs[0]) == 1
