"""Functions with updates and givens, as Theano has them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ArgumentError, GraphError


def test_a_function_computes_its_outputs() -> None:
    x, y = dg.placeholder(shape=(None,), name="x"), dg.placeholder(shape=(), name="y")
    z = rn.exp(x) * y
    f = dg.function([x, y], {"z": z, "sum": z.sum()}, session=dg.Session())
    result = f([0.0, 1.0], 2.0)
    np.testing.assert_allclose(result["z"].numpy(), 2 * np.exp([0, 1]), rtol=1e-6)
    assert result["sum"].item() == pytest.approx(result["z"].numpy().sum())
    with pytest.raises(ArgumentError, match=r"takes 2 values \(x, y\); got 1"):
        f(1.0)


@pytest.mark.parametrize("fused", [True, False])
def test_updates_take_effect_after_the_outputs(fused: bool) -> None:
    total, count = dg.Variable(0.0, name="total"), dg.Variable(0, name="count")
    x = dg.placeholder(shape=())
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    add = dg.function([x], total * 1, updates={total: total + x, count: count + 1}, session=session)
    assert [add(v).item() for v in (1.0, 2.0, 3.0)] == [0, 1, 3]
    assert session.run([total, count])[0].item() == 6 and session.run(count).item() == 3
    dg.function([], [], updates={total: 0.0}, session=session)()
    assert session.run(total).item() == 0


@pytest.mark.parametrize("fused", [True, False])
def test_givens_replace_tensors(fused: bool) -> None:
    """A step on a part of a data set that lies in a variable, by its number alone."""
    x, number = dg.placeholder(shape=(4, 2), name="x"), dg.placeholder("int64", (), name="number")
    w = dg.Variable(np.ones((2, 1), np.float32), name="w")
    rows = np.arange(24, dtype=np.float32).reshape(12, 2) / 10
    data = dg.Variable(rows, name="data")
    hidden = x @ w
    loss = (hidden**2).mean()
    (slope,) = dg.gradients(loss, w)
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    part = dg.call(lambda data, i: rn.reshape(data, (3, 4, 2))[i], data, number)
    step = dg.function([number], loss, updates={w: w - 0.1 * slope}, givens={x: part}, session=session)
    value = np.ones((2, 1), np.float32)
    for i in (0, 2):
        batch = rows[4 * i : 4 * i + 4]
        assert step(i).item() == pytest.approx(np.mean((batch @ value) ** 2), rel=1e-5)
        value = value - 0.1 * 2 * batch.T @ (batch @ value) / 4
        np.testing.assert_allclose(session.run(w).numpy(), value, rtol=1e-5)
    assert dg.function([], loss, givens={hidden: np.full((4, 1), 3, np.float32)}, session=session)().item() == 9
    assert session.run(loss, {x: rows[:4]}).item() == pytest.approx(np.mean((rows[:4] @ value) ** 2), rel=1e-5)


def test_givens_in_front_of_assignments_are_refused() -> None:
    x, v = dg.placeholder(shape=()), dg.Variable(0.0)
    changed = dg.assign(v, x * 2, name="changed")
    with pytest.raises(GraphError, match="'changed' changes or reads variables behind a given value"):
        dg.function([], changed + 1, givens={x: 1.0}, session=dg.Session())
