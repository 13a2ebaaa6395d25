"""Gradients of declared tensors, of gradients, through branches and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ArgumentError, GradientError, GraphError

F = rn.nn.functional


def run(fetches: Any, feeds: dict[Any, Any]) -> list[np.ndarray]:
    return [x.numpy() for x in dg.Session().run(fetches, feeds)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: rn.tanh(x @ w).sum(),
        lambda x, w: F.softmax(x @ w, 1).max(),
        lambda x, w: rn.topk(x @ w, 2).values.sum(),
        lambda x, w: rn.concat([x, x * x], axis=0)[1:].mean() + w.sum(),
        lambda x, w: F.layer_norm(F.linear(x, w.T), (5,))[0, 1],
        lambda x, w: (x.T.reshape(-1) ** 2).sum() * w[0, 0],
    ],
)
def test_results_equal_the_ones_of_live_code(function: Any) -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 5))]
    x, w = dg.placeholder(shape=(None, 4)), dg.placeholder(shape=(4, 5))
    made = run(dg.gradients(function(x, w), [x, w]), dict(zip((x, w), values, strict=True)))
    expected = rn.grad(function, (0, 1))(*map(rn.asarray, values))
    for mine, theirs in zip(made, expected, strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-6, atol=1e-7)


def test_gradients_of_gradients() -> None:
    x = dg.placeholder("float64", (), name="x")
    y = x**4
    derivatives = []
    for _ in range(4):
        (y,) = dg.gradients(y, x)
        derivatives.append(y)
    assert [v.item() for v in run(derivatives, {x: 2.0})] == pytest.approx([32, 48, 48, 24])


def test_gradients_by_intermediate_tensors_and_with_cotangents() -> None:
    x = dg.placeholder(shape=(3,))
    h = rn.exp(x)
    y = h * h
    by_h, by_x = dg.gradients([y, h], [h, x], grad_ys=[np.array([1.0, 0, 2], np.float32), None])
    value = np.array([0.0, 1, 2], np.float32)
    e = np.exp(value)
    np.testing.assert_allclose(run([by_h], {x: value})[0], 2 * e * [1, 0, 2] + 1, rtol=1e-6)
    np.testing.assert_allclose(run([by_x], {x: value})[0], (2 * e * [1, 0, 2] + 1) * e, rtol=1e-6)
    fed = run([by_x], {x: value, h: [1.0, 1.0, 1.0]})  # a fed value ends no path, and is what the rules read
    np.testing.assert_allclose(fed[0], np.array([3, 1, 5]) * e, rtol=1e-6)


def test_values_without_a_gradient() -> None:
    x, n = dg.placeholder(shape=(3,)), dg.placeholder("int64", (3,))
    assert dg.gradients((x * 2).sum(), [x, n])[1] is None
    assert dg.gradients((x > 0).astype("float32").sum(), [x]) == [None]
    with pytest.raises(GradientError, match="only floating tensors have gradients"):
        dg.gradients(n.sum(), [n])
    with pytest.raises(ArgumentError, match="xs must be declared tensors"):
        dg.gradients(x, [1.0])
    with pytest.raises(ArgumentError, match="there are 1 ys, and 2 grad_ys"):
        dg.gradients(x, x, [1.0, 2.0])


def test_gradients_through_assignments() -> None:
    v, x = dg.Variable(0.0), dg.placeholder(shape=())
    assigned = v.assign(x * x)
    (g,) = dg.gradients(assigned * 3, x)
    assert run([g], {x: 2.0})[0].item() == 12


@pytest.mark.parametrize("fused", [True, False])
def test_branches(fused: bool) -> None:
    x = dg.placeholder(shape=(2,))
    w = dg.Variable(np.array([2.0, 3.0], np.float32))
    y = dg.cond(x.sum() > 0, lambda: {"y": x * w}, lambda: {"y": -x})["y"]
    grads = dg.gradients(y, [x, w])
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    made = [t.numpy().tolist() for t in session.run([y, *grads], {x: [1.0, 2.0]})]
    assert made == [[2, 6], [2, 3], [1, 2]]
    made = [t.numpy().tolist() for t in session.run([y, *grads], {x: [-1.0, -2.0]})]
    assert made == [[1, 2], [-1, -1], [0, 0]]


def test_one_branch_runs() -> None:
    counts = {True: 0, False: 0}

    def counted(which: bool) -> Any:
        def count(value: np.ndarray) -> np.ndarray:
            counts[which] += 1
            return value

        return lambda x: dg.call(lambda t: rn.pure_callback(count, rn.zeros(()), t), x)

    p, x = dg.placeholder("bool", ()), dg.placeholder(shape=())
    y = dg.cond(p, counted(True), counted(False), x)
    session = dg.Session()
    for which in (True, False, True):
        session.run(y, {p: which, x: 1.0})
    assert counts == {True: 2, False: 1}


@pytest.mark.parametrize("fused", [True, False])
def test_loops(fused: bool) -> None:
    n, x = dg.placeholder("int64", ()), dg.placeholder(shape=(None, 2))
    i, power = dg.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * 2), (0, 1.0))
    total, sums = dg.scan(lambda c, row: (c + row, c), np.zeros(2, np.float32), x)
    (slope,) = dg.gradients((total * total).sum(), x)
    session = dg.Session(fused=fused)
    assert [t.item() for t in session.run([i, power], {n: 5})] == [5, 32]
    assert session.run(sums, {x: [[1, 2], [3, 4]]}).numpy().tolist() == [[0, 0], [1, 2]]
    assert session.run(slope, {x: [[1, 2], [3, 4]]}).numpy().tolist() == [[8, 12], [8, 12]]
    with pytest.raises(Exception, match="while_loop"):
        session.run(
            dg.gradients(dg.while_loop(lambda c: c < 3, lambda c: (c * 2,), (x[0, 0],))[0], x)[0], {x: [[1, 2]]}
        )


def test_branches_in_loops_read_what_is_around_them() -> None:
    x = dg.placeholder(shape=())
    twice = x * 2
    carry = dg.while_loop(
        lambda i, c: i < 3, lambda i, c: (i + 1, dg.cond(i > 0, lambda: c + twice, lambda: c - x)), (0, 0.0)
    )
    assert dg.Session().run(carry[1], {x: 1.0}).item() == 3


def test_bodies_change_no_variables() -> None:
    v = dg.Variable(0.0)
    with pytest.raises(GraphError, match="branches and loops cannot change variables"):
        dg.cond(dg.constant(True), lambda: v.assign(v + 1), lambda: v + 0)
