"""Misuse of graphs: parts of other graphs, wrong kinds of objects, changes inside branches."""

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

UNCHANGED = r"branches and loops cannot change variables"


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
        (lambda x: dg.Session().run(x, [(x, 1.0)]), "feed_dict must map"),
        (lambda x: dg.Session().plan(x, [(x, 1.0)]), "feed_dict must map"),
        (lambda x: dg.infer(x, {"x": (2,)}), "keys of shapes must be declared tensors"),
        (lambda x: dg.Session().run(None), "fetches must be declared tensors"),
        (
            lambda x: dg.Session().run(x, {x: None}),
            r"\[session\] 'placeholder' is float32\[\], .*the elements must be numbers",
        ),
        (lambda x: dg.Session().run(x, {x: np.array("1")}), "'placeholder' is float32.*the elements must be numbers"),
        (
            lambda x: dg.Session().run(x, {x: np.array([None])}),
            "'placeholder' is float32.*the elements must be numbers",
        ),
        (lambda x: dg.Session().run(x, {x: [1, [2]]}), "'placeholder' is float32.*its rows differ in length"),
        (lambda x: dg.Session("graph"), r"\[Session\] graph must be a Graph or None; got 'graph'"),
        (lambda x: dg.function([x], x, session=x), "takes a session"),
        (lambda x: dg.function([x, x + 1, x], x, session=dg.Session()), "'placeholder' is an input twice"),
        (lambda x: dg.minimize(x, rn.optim.SGD, rate=0.1), "takes no argument 'rate'"),
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


@pytest.mark.parametrize(
    "declare", [lambda: dg.placeholder(shape=()), lambda: dg.Variable(1.0), lambda: dg.Variable(shape=(2,))]
)
def test_feeds_are_declared_outside_branches_and_loops(declare: Callable[[], Any]) -> None:
    x, p = dg.placeholder(shape=()), dg.placeholder("bool", ())
    count = len(dg.default_graph())
    with pytest.raises(GraphError, match="would never have a value in 'cond'; declare it outside"):
        dg.cond(p, lambda: x, lambda: declare() + x)
    with pytest.raises(GraphError, match="would never have a value in 'while_loop'"):
        dg.while_loop(lambda i: i < 3, lambda i: (i + declare(),), (x,))
    assert len(dg.default_graph()) == count
    assert dg.Session().run(dg.cond(p, lambda: x, lambda: -x), {p: False, x: 2.0}).item() == -2


@pytest.mark.parametrize("fused", [True, False])
def test_scans_of_nothing_give_their_carry(fused: bool) -> None:
    x = dg.placeholder(shape=(None, 2))
    last, rows = dg.scan(lambda c, r: (c + r, c * r), np.ones(2, np.float32), x)
    session = dg.Session(fused=fused)
    for length in (0, 2):
        values = session.run([last, rows], {x: np.ones((length, 2))})
        assert values[0].numpy().tolist() == [1.0 + length] * 2 and values[1].shape == (length, 2)


def test_gradients_inside_branches() -> None:
    x, p = dg.placeholder(shape=()), dg.placeholder("bool", ())
    y = dg.cond(p, lambda: dg.gradients(x**3, x)[0], lambda: x)
    assert [dg.Session().run(y, {p: which, x: 2.0}).item() for which in (True, False)] == [12, 2]


def test_loops_keep_their_carry() -> None:
    with pytest.raises(ShapeError, match="body_fn must return the 1 tensors of the carry; got 2"):
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


@pytest.mark.parametrize("fused", [True, False])
def test_errors_of_users_functions_name_the_operation_and_change_nothing(fused: bool) -> None:
    is_broken = False

    def own(t: Any) -> Any:
        if is_broken:
            raise ZeroDivisionError("mine")
        return t * 2

    x, v = dg.placeholder(shape=()), dg.Variable(1.0, name="v")
    add = dg.assign_add(v, dg.call(own, x, name="own"))
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    is_broken = True
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        session.run(add, {x: 1.0})
    assert [n for n in caught.value.__notes__ if n.startswith("in operation 'own', declared at ")]
    is_broken = False
    assert session.run(v).item() == 1 and session.run(add, {x: 1.0}).item() == 3


@pytest.mark.parametrize("fused", [True, False])
def test_callbacks_that_fail_change_nothing_and_may_run_the_session(fused: bool) -> None:
    x, v = dg.placeholder(shape=()), dg.Variable(1.0, name="v")
    double = x * 2
    session = dg.Session(fused=fused)
    session.run(dg.initializer())

    def host(a: np.ndarray) -> np.ndarray:
        if a > 3:
            raise ValueError("too large")
        return np.asarray(session.run(double, {x: a}).numpy())

    called = dg.call(lambda t: rn.pure_callback(host, t, t), x)
    add = dg.assign_add(v, called)
    assert session.run(called + v, {x: 3.0}).item() == 7
    for value, expected in ((1.0, 3.0), (2.0, 7.0)):
        with pytest.raises(ValueError, match="too large"):
            session.run(add, {x: 4.0})
        assert session.run(add, {x: value}).item() == expected


def test_sessions_are_initialised_trained_and_closed_by_several_threads() -> None:
    """Each run is as if it were alone; those that come after the end are refused."""
    v = dg.Variable(np.ones(3, np.float32), name="v")
    add, init = dg.assign_add(v, 1.0), dg.initializer()
    session = dg.Session()
    wrong: list[Any] = []

    def work() -> None:
        try:
            session.run(init)
            for _ in range(50):
                value = session.run(add).numpy()
                if value.min() != value.max() or value[0] != int(value[0]):
                    wrong.append(value)
        except GraphError as error:
            wrong.extend([] if "it is closed" in str(error) else [error])
        except Exception as error:
            wrong.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    session.run(init)
    session.run(add)
    session.close()
    for worker in workers:
        worker.join()
    assert not wrong
    with pytest.raises(GraphError, match="it is closed"):
        session.run(add)


def test_every_thread_has_a_separate_graph() -> None:
    graphs: list[dg.Graph] = []
    worker = threading.Thread(target=lambda: graphs.append(dg.constant(1.0).operation.graph))
    worker.start()
    worker.join()
    assert graphs[0] is not dg.default_graph() and len(graphs[0]) == 1
