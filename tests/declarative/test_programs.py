"""Programs that the compiler makes of declared graphs, as the reports on a run show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core import switches
from runnel.inspection import measure

F = rn.nn.functional


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def ops_of(session: dg.Session, fetches: Any, feeds: Any) -> list[str]:
    return [node.op.name for node in session.program(fetches, feeds).optimized.nodes]


def kernels_of(session: dg.Session, fetches: Any, feeds: Any) -> list[list[str]]:
    """The ops of each call."""
    calls = session.program(fetches, feeds).plan.calls
    return [[value.op.name for value in call.nodes if value.op is not None] for call in calls]


@pytest.mark.suite
def test_independent_branches_run_on_all_threads_and_wait_for_nothing() -> None:
    """In the timeline both threads carry out a part of each branch; only what joins them waits."""
    x, y = (dg.placeholder(shape=(700, 700), name=name) for name in "xy")
    one, other = x @ x, y @ y
    both = one @ other
    feeds = {t: rng().standard_normal((700, 700)).astype(np.float32) for t in (x, y)}
    session = dg.Session()
    with switches.override(num_threads=2):
        seen = session.program([one, other], feeds)
        bars = [bar for bar in measure.events(seen.plan, seen.measure()) if bar["ph"] == "X"]
        assert [(bar["name"], bar["tid"]) for bar in bars] == [("matmul", 0), ("matmul", 1)] * 2
        assert len({(bar["tid"], tuple(bar["args"]["block"])) for bar in bars}) == 2
        assert not any(seen.plan.barriers)
        assert [bool(x) for x in session.program([both], feeds).plan.barriers] == [False, False, True]
        together = session.run([one, other, both], feeds)
    with switches.override(num_threads=1):
        alone = session.run([one, other, both], feeds)
    assert [t.numpy().tobytes() for t in together] == [t.numpy().tobytes() for t in alone]


@pytest.mark.suite
def test_independent_branches_of_small_kernels_run_whole_on_separate_threads() -> None:
    """In the timeline the two chains of products begin together, each on one thread; what joins them waits."""
    x, v, w = (dg.placeholder(shape=(32, 32), name=name) for name in "xvw")
    chains = []
    for weight in (v, w):
        chain = x
        for _ in range(10):
            chain = rn.tanh(chain @ weight)
        chains.append(chain)
    both = (chains[0] - chains[1]).sum(0)
    feeds = {t: rng().standard_normal((32, 32)).astype(np.float32) for t in (x, v, w)}
    session = dg.Session()
    with switches.override(num_threads=2, verify=True):
        seen = session.program(both, feeds)
        bars = [bar for bar in measure.events(seen.plan, seen.measure()) if bar["ph"] == "X"]
        together = session.run(both, feeds)
    first, other = ([bar for bar in bars if bar["tid"] == thread] for thread in (0, 1))
    assert first[0]["ts"] == other[0]["ts"] == 0 and {bar["name"] for bar in other} == {"matmul tanh"}
    assert min(len(first), len(other)) >= 9
    with switches.override(num_threads=1):
        assert session.run(both, feeds).numpy().tobytes() == together.numpy().tobytes()


def test_gradients_that_nobody_asked_for_are_not_computed() -> None:
    """A step of a convolution has two products, forwards and for the filters; one for the images comes on demand."""
    x, k = dg.placeholder(shape=(2, 3, 8, 8)), dg.Variable(np.ones((4, 3, 5, 5), np.float32))
    loss = (F.relu(F.conv2d(x, k)) ** 2).sum()
    train = dg.minimize(loss, rn.optim.SGD, lr=0.1)
    (by_images,) = dg.gradients(loss, x)
    session = dg.Session()
    session.run(dg.initializer())
    feeds = {x: np.ones((2, 3, 8, 8), np.float32)}
    products = [ops_of(session, f, feeds).count("tensordot") for f in (loss, [loss, train], [loss, train, by_images])]
    assert products == [1, 2, 3]


def test_expressions_are_simplified_where_no_bit_changes() -> None:
    x, y = dg.placeholder(shape=(64,)), dg.placeholder(shape=(64,))
    session = dg.Session()
    feeds = {x: np.ones(64, np.float32), y: np.ones(64, np.float32)}
    assert ops_of(session, rn.negative(-x), feeds) == []
    assert ops_of(session, rn.exp(x) * rn.exp(x), feeds).count("exp") == 1
    # x · y / x is not y where x is 0, or where the product is rounded; the log of a great power is infinite
    assert sorted(ops_of(session, x * y / x, feeds)) == ["div", "mul"]
    assert session.run([rn.log(1 + rn.exp(x)), F.softplus(x)], {x: [1000.0] * 64})[1].numpy().max() == 1000


def test_losses_are_differentiated_together_and_blocked_values_have_no_part_in_it() -> None:
    x, w = dg.placeholder(shape=(3,)), dg.Variable(np.full(3, 2.0, np.float32))
    first, second = (x * w).sum(), ((x * w).detach() * w**2).sum()
    (slope,) = dg.gradients([first, second], w)
    (blocked,) = dg.gradients((w * 3).detach().sum() + 0 * w.sum(), w)
    session = dg.Session()
    session.run(dg.initializer())
    assert session.run(slope, {x: [1.0, 2.0, 3.0]}).numpy().tolist() == [9.0, 18.0, 27.0]  # x + x·w · 2w
    assert session.run(blocked).numpy().tolist() == [0.0] * 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int8", "int32"])
def test_relu_is_there_for_every_kind_of_number(dtype: str) -> None:
    x = dg.placeholder(dtype, (None,))
    result = dg.Session().run(F.relu(x), {x: rn.asarray(np.array([-3, 0, 5]), dtype=dtype)})
    assert result.dtype.name == dtype and result.astype("float32").numpy().tolist() == [0, 0, 5]


def test_a_product_takes_what_follows_into_its_kernel() -> None:
    a, b, c = (dg.placeholder(shape=(48, 48)) for _ in range(3))
    feeds = {t: np.ones((48, 48), np.float32) for t in (a, b, c)}
    assert kernels_of(dg.Session(), a @ b * 3.0 + c, feeds) == [["matmul", "mul", "add"]]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": rn.tanh,
    "softmax": lambda x: F.softmax(x, 1) ** 2,
    "products": lambda x: x @ x.T @ x,
    "norm": lambda x: F.layer_norm(x, (4,)) * x,
    "indices": lambda x: x[:, ::2] * rn.concat([x, x], 0)[3:, 1:3],
    "convolution": lambda x: F.conv2d(x.reshape(1, 1, 3, 4) ** 2, x[:2, :2].reshape(1, 1, 2, 2)),
    "scan": lambda x: dg.scan(lambda c, r: (c * r, c), rn.ones_like(x[0]), x)[0],
    "cumsum": lambda x: rn.cumsum(x, 1) ** 3,
    "where": lambda x: rn.where(x > 0, rn.exp(x), x**2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_any_op_are_graphs_with_gradients(name: str) -> None:
    """Second derivatives along a direction, beside a difference of first ones."""
    function = FUNCTIONS[name]
    x, v = dg.placeholder("float64", (3, 4), name="x"), dg.placeholder("float64", (3, 4), name="v")
    (slope,) = dg.gradients(function(x).sum(), x)
    (second,) = dg.gradients((slope * v).sum(), x)
    point, direction = rng().uniform(0.3, 1, (3, 4)), rng().standard_normal((3, 4))
    session, h = dg.Session(), 1e-5
    above, below = (session.run(slope, {x: point + way * direction}).numpy() for way in (h, -h))
    result = session.run(second, {x: point, v: direction}).numpy()
    np.testing.assert_allclose(result, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)


def test_products_of_jacobians_from_the_left_and_from_the_right() -> None:
    """The right one is the gradient, by its cotangent, of the left one."""
    x, u, v = (dg.placeholder("float64", (n,)) for n in (4, 4, 4))
    y = rn.tanh(x) * rn.cumsum(x)
    (left,) = dg.gradients(y, x, grad_ys=u)
    (right,) = dg.gradients(left, u, grad_ys=v)
    point, along = rng().standard_normal(4), rng().standard_normal(4)
    fetched = dg.Session().run([left, right], {x: point, u: along, v: along})
    live = lambda x: rn.tanh(x) * rn.cumsum(x)  # noqa: E731
    _, expected = rn.jvp(live, (rn.asarray(point),), (rn.asarray(along),))
    _, pull = rn.vjp(live, rn.asarray(point))
    np.testing.assert_allclose(fetched[1].numpy(), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(fetched[0].numpy(), np.asarray(pull(rn.asarray(along))[0].numpy()), rtol=1e-12)
