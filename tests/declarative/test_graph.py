"""Graphs: names, scopes, control dependencies, and what users do wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ArgumentError, DTypeError, GradientError, GraphError, ShapeError
from runnel.declarative.operation import PendingError


def test_names_are_unique() -> None:
    assert [dg.constant(1.0, name="c").name for _ in range(3)] == ["c", "c_1", "c_2"]
    graph = dg.default_graph()
    with graph.name_scope("outer"):
        assert [dg.constant(1.0, name="c").name for _ in range(2)] == ["outer/c", "outer/c_1"]
        with graph.name_scope("inner"):
            assert dg.placeholder(name="c").name == "outer/inner/c"
    with graph.name_scope("outer"):
        assert dg.constant(1.0, name="c").name == "outer_1/c"
    assert graph.operation("outer/c_1").name == "outer/c_1"
    assert (rn.exp(dg.placeholder()) + 1).name == "add"
    for bad in ("", "a b", "/a", "a/", 'a"'):
        with pytest.raises(ArgumentError, match="a name must consist of"):
            dg.constant(1.0, name=bad)


def test_control_dependencies_order_a_run() -> None:
    v = dg.Variable(1.0, name="v")
    graph = dg.default_graph()
    early = v.read()
    doubled = v.assign(v * 2)
    with graph.control_dependencies([doubled.operation]):
        late = v.read()
        anything = dg.constant(5.0)
    session = dg.Session()
    session.run(dg.initializer())
    assert [x.item() for x in session.run([early, v, doubled, late])] == [1, 1, 2, 2]
    assert session.run(late).item() == 4  # what it depends on runs with it
    assert session.run(anything).item() == 5 and session.run(v).item() == 8


def test_control_inputs_that_are_added_change_later_runs() -> None:
    v = dg.Variable(0.0)
    more = dg.assign_add(v, 1.0)
    x = dg.constant(3.0)
    session = dg.Session()
    session.run(dg.initializer())
    session.run(x)
    x.operation.add_control_inputs(more.operation)
    session.run(x)
    session.run(x)
    assert session.run(v).item() == 2


def test_groups_run_all_of_theirs() -> None:
    v, w = dg.Variable(0.0), dg.Variable(np.zeros(2, np.float32))
    both = dg.group(v.assign(1.0), w.assign(np.ones(2, np.float32)))
    session = dg.Session()
    assert session.uninitialized() == [v.name, w.name]
    assert session.run(both) is None
    assert session.run(v).item() == 1 and session.run(w).numpy().tolist() == [1, 1]
    assert session.uninitialized() == []


def test_a_cycle_is_refused() -> None:
    x = dg.placeholder(shape=())
    y = x + 1
    z = y * 2
    with pytest.raises(GraphError, match="'add' cannot run after 'multiply', which needs it itself: that is a cycle"):
        y.operation.add_control_inputs(z.operation)
    assert y.operation.control_inputs == ()
    assert dg.Session().run(z, {x: 1.0}).item() == 4


def test_missing_feeds() -> None:
    x = dg.placeholder(shape=(2,), name="x")
    with pytest.raises(GraphError, match=rf"the placeholder 'x', declared at {Path(__file__).name}|needed and not fed"):
        dg.Session().run(x + 1)
    with pytest.raises(GraphError, match="not fed"):
        dg.Session().run(x)


def test_feeds_that_do_not_fit() -> None:
    x, n = dg.placeholder(shape=(None, 2), name="x"), dg.placeholder("int64", (2,), name="n")
    y = x + n
    session = dg.Session()
    for value in (np.ones(2), np.ones((2, 3)), 1.0):
        with pytest.raises(ShapeError, match=r"'x'.* is float32\[\?,2\]; fed"):
            session.run(y, {x: value, n: [1, 2]})
    with pytest.raises(DTypeError, match=r"'n' is int64\[2\]; fed float"):
        session.run(y, {x: np.ones((1, 2)), n: np.ones(2)})
    with pytest.raises(ArgumentError, match="keys of feed_dict must be declared tensors"):
        session.run(y, {"x": 1})
    with pytest.raises(ArgumentError, match="which is declared; feed its value"):
        session.run(y, {x: y})
    with pytest.raises(ArgumentError, match="fetches must be declared tensors"):
        session.run("x")
    assert session.run(y, {x: [[1, 2]], n: [1, 2]}).dtype is rn.float32
    assert session.run(y, {x: np.ones((1, 2), np.float64), n: np.ones(2, np.int32)}).numpy().tolist() == [[2, 2]]


def test_variables_without_a_value_are_named() -> None:
    v = dg.Variable(np.ones(2, np.float32), name="kernel")
    session = dg.Session()
    with pytest.raises(GraphError, match=r"the variable 'kernel', declared at .*test_graph.py:\d+, has no value"):
        session.run(v * 2)
    step = dg.minimize((v * v).sum(), rn.optim.SGD, lr=0.1)
    with pytest.raises(GraphError, match="without a value in this session: kernel"):
        session.run(step)


@pytest.mark.parametrize("fused", [True, False])
def test_an_error_changes_nothing(fused: bool) -> None:
    v, b = dg.Variable(1.0), dg.placeholder(shape=(2, 1))
    fresh = dg.Variable(shape=(), name="fresh")
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    changed = dg.group(v.assign(2.0), fresh.assign(3.0))
    with dg.default_graph().control_dependencies([changed]):
        solved = rn.linalg.solve(dg.constant(np.zeros((2, 2), np.float32)), b)
    with pytest.raises(np.linalg.LinAlgError):
        session.run(solved, {b: np.ones((2, 1))})
    assert session.run(v).item() == 1 and session.uninitialized() == ["fresh"]


def test_shapes_that_do_not_fit_are_refused_where_they_are_declared() -> None:
    x, w = dg.placeholder(shape=(None, 3)), dg.placeholder(shape=(4, 5))
    with pytest.raises(
        ShapeError, match=r"\[matmul\] no sizes of the unknown axes of float32\[\?,3\] and float32\[4,5\]"
    ):
        x @ w
    with pytest.raises(ShapeError, match="matmul"):
        dg.placeholder(shape=(2, 3)) @ w
    v = dg.Variable(np.zeros(3, np.float32), name="v")
    with pytest.raises(ShapeError, match=r"'v' is float32\[3\], and the value float32\[4\]"):
        v.assign(dg.constant(np.zeros(4, np.float32)))
    with pytest.raises(DTypeError, match="cast it first"):
        v.assign(dg.placeholder("float64", (3,)))


def test_declared_tensors_have_no_value() -> None:
    x = dg.placeholder(shape=(2,), name="x")
    for use in (bool, float, len, np.asarray, lambda x: x.numpy(), lambda x: x.item()):
        with pytest.raises(PendingError, match=r"'x', declared at .*, has no value before it is run"):
            use(x)
    with pytest.raises(ArgumentError, match=r"rn\.unstack"):
        list(x)
    with pytest.raises(ArgumentError, match="never changes"):
        x[0] = 1
    with pytest.raises(ArgumentError, match="is live; use the graph's own variables"):
        x + rn.Variable(np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match="takes a declared Variable"):
        dg.assign(x, 1.0)  # type: ignore[arg-type]


def test_graphs_are_not_mixed() -> None:
    x = dg.placeholder(shape=())
    with dg.Graph("other"):
        y = dg.placeholder(shape=())
        assert (x + 1).operation.graph is x.operation.graph
    with pytest.raises(GraphError, match="is of the graph 'other'"):
        x + y
    with pytest.raises(GraphError, match="is of the graph 'other'"):
        dg.Session().run(y, {y: 1.0})
    with pytest.raises(GraphError, match="is being declared"):
        dg.reset_default_graph()


def test_closed_sessions_run_nothing() -> None:
    x = dg.constant(1.0)
    with dg.Session() as session:
        session.run(x)
    with pytest.raises(GraphError, match="it is closed"):
        session.run(x)


def test_values_that_cannot_be_trained() -> None:
    v, w = dg.Variable(1.0, name="v"), dg.Variable(2.0, name="w")
    loss = v * v
    with pytest.raises(GradientError, match="does not depend on 'w'"):
        dg.minimize(loss, rn.optim.SGD, [v, w], lr=0.1)
    with pytest.raises(GradientError, match="depends on no variable"):
        dg.minimize(dg.constant(1.0) * 2, rn.optim.SGD, lr=0.1)
    with pytest.raises(ArgumentError, match=r"a class of rn\.optim"):
        dg.minimize(loss, "SGD")  # type: ignore[arg-type]


def test_live_arrays_meet_declared_tensors() -> None:
    x = dg.placeholder(shape=(2,))
    session = dg.Session()
    for y in (x + rn.ones(2), x + np.ones(2, np.float32), np.ones(2, np.float32) + x, 1 + x, rn.ones(2) + x):
        assert session.run(y, {x: [1.0, 2.0]}).numpy().tolist() == [2, 3]
