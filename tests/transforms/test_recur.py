"""``recur``: against one row after another, eager and compiled to the bit, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compiler.schedule import partition
from runnel.core import switches
from runnel.core.errors import ArgumentError, DTypeError, RunnelError, ShapeError, SideEffectError
from runnel.transforms.order import Order

Array = np.ndarray[Any, Any]
SIZE = 5


def chains(rng: np.random.Generator) -> Array:
    lengths = rng.integers(0, 7, 6)
    links = np.arange(lengths.sum()) - 1
    links[(np.cumsum(lengths) - lengths)[lengths > 0]] = -1
    return links[:, None]


def trees(rng: np.random.Generator) -> Array:
    links = np.full((37, 2), -1)
    free: list[int] = []
    for row in range(len(links)):
        if len(free) > 1 and rng.random() < 0.6:
            links[row] = [free.pop(rng.integers(len(free))) for _ in range(2)]
        free.append(row)
    return links


def graphs(rng: np.random.Generator) -> Array:
    """Rows with up to three links to any other row, in any order: several rows read the same one."""
    count = 29
    links = np.full((count, 3), -1)
    for row in range(1, count):
        chosen = rng.random(3) < 0.7
        links[row, chosen] = rng.integers(0, row, chosen.sum())
    place = rng.permutation(count)
    moved = np.full_like(links, -1)
    moved[place] = np.where(links < 0, -1, place[links])
    return moved


def one(rng: np.random.Generator) -> Array:
    return np.full((1, 2), -1)


def none(rng: np.random.Generator) -> Array:
    return np.full((0, 1), -1)


STRUCTURES: list[Callable[[np.random.Generator], Array]] = [chains, trees, graphs, one, none]


def cell(below: tuple[Any, ...], x: Any, w: Any, u: Any, b: Any) -> Any:
    """Several readers of the same values, weights read plain and transposed, and reductions over a row."""
    h = sum((h * (1 + k) for k, (h, _) in enumerate(below)), start=0.0 * below[0][0])
    c = sum((c for _, c in below), start=0.0 * below[0][1])
    z = x @ w + h @ u + b
    gate = rn.sigmoid(z[:SIZE])
    c = gate * rn.tanh(z[SIZE:]) + (1 - gate) * c
    return rn.tanh(c - c.mean()) @ w[:, :SIZE].T[:, :SIZE], c


def arguments(count: int, dtype: str, rng: np.random.Generator) -> list[Any]:
    shapes = [(count, SIZE), (SIZE, 2 * SIZE), (SIZE, 2 * SIZE), (2 * SIZE,), (SIZE,), (SIZE,)]
    return [rn.asarray(rng.normal(size=shape).astype(dtype)) for shape in shapes]


def folded(order: Any, x: Any, w: Any, u: Any, b: Any, h: Any, c: Any) -> Any:
    return rn.recur(lambda below, x: cell(below, x, w, u, b), (h, c), order, x)


def row_by_row(links: Array, x: Any, w: Any, u: Any, b: Any, h: Any, c: Any) -> Any:
    known: dict[int, Any] = {-1: (h, c)}

    def state(row: int) -> Any:
        if row not in known:
            known[row] = cell(tuple(state(int(k)) for k in links[row]), x[row], w, u, b)
        return known[row]

    states = [state(row) for row in range(len(links))]
    return rn.stack([h for h, _ in states]), rn.stack([c for _, c in states])


def scored(result: Any, weights: Any) -> Any:
    return (result[0] * weights).sum() + (rn.sin(result[1]) * weights).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda f: f.__name__)
def test_rows_are_those_of_a_loop(structure: Any, dtype: str) -> None:
    rng = np.random.default_rng(7)
    links = structure(rng)
    order, inputs = Order.of(links), arguments(len(links), dtype, rng)
    eager = folded(order, *inputs)
    compiled = rn.compile(folded)(order, *inputs)
    for x, y in zip(eager, compiled, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    if not len(links):
        assert eager[0].shape == (0, SIZE)
        return
    for x, y in zip(eager, row_by_row(links, *inputs), strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()


@pytest.mark.parametrize("structure", STRUCTURES[:3], ids=lambda f: f.__name__)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_a_loop(structure: Any, compiled: bool) -> None:
    rng = np.random.default_rng(11)
    links = structure(rng)
    order, inputs = Order.of(links), arguments(len(links), "float64", rng)
    weights = rn.asarray(rng.normal(size=(len(links), SIZE)))
    numbers = tuple(range(len(inputs)))
    of_fold = rn.grad(lambda *args: scored(folded(order, *args), weights), argnums=numbers)
    of_loop = rn.grad(lambda *args: scored(row_by_row(links, *args), weights), argnums=numbers)
    for x, y in zip((rn.compile(of_fold) if compiled else of_fold)(*inputs), of_loop(*inputs), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-10, atol=1e-12)


def test_gradients_of_some_results_and_inputs() -> None:
    rng = np.random.default_rng(3)
    links = trees(rng)
    order, inputs = Order.of(links), arguments(len(links), "float64", rng)
    for number in (0, 2, 4):  # a state of which nothing else is read; xs, a weight, the first state
        grads = [
            rn.grad(lambda *args, run=run: run(*args)[0].sum(), argnums=number)(*inputs)
            for run in (lambda *a: folded(order, *a), lambda *a: row_by_row(links, *a))
        ]
        np.testing.assert_allclose(grads[0].numpy(), grads[1].numpy(), rtol=1e-10, atol=1e-12)


def test_forward_mode_is_the_transpose_of_backward() -> None:
    rng = np.random.default_rng(9)
    links = graphs(rng)
    order, inputs = Order.of(links), arguments(len(links), "float64", rng)
    weights = rn.asarray(rng.normal(size=(len(links), SIZE)))
    tangents = [rn.asarray(rng.normal(size=x.shape)) for x in inputs]
    for numbers in ((0, 1, 2, 3, 4, 5), (2,), (0, 4)):

        def loss(*chosen: Any, numbers: tuple[int, ...] = numbers) -> Any:
            known = dict(zip(numbers, chosen, strict=True))
            return scored(folded(order, *(known.get(i, x) for i, x in enumerate(inputs))), weights)

        points, directions = [inputs[i] for i in numbers], [tangents[i] for i in numbers]
        forward = rn.jvp(loss, tuple(points), tuple(directions))[1]
        grads = rn.grad(loss, argnums=tuple(range(len(numbers))))(*points)
        backward = sum(float((g * t).sum()) for g, t in zip(grads, directions, strict=True))
        np.testing.assert_allclose(float(forward), backward, rtol=1e-10)


def test_second_derivatives() -> None:
    rng = np.random.default_rng(5)
    links = graphs(rng)[:9]
    links[links >= 9] = -1
    order, inputs = Order.of(links), arguments(len(links), "float64", rng)
    weights = rn.asarray(rng.normal(size=(len(links), SIZE)))

    def norm(run: Callable[..., Any]) -> Any:
        def slope(u: Any) -> Any:
            def loss(u: Any) -> Any:
                return scored(run(*inputs[:2], u, *inputs[3:]), weights)

            return (rn.grad(loss)(u) ** 2).sum()

        return rn.grad(slope)(inputs[2]).numpy()

    by_fold = norm(lambda *args: folded(order, *args))
    np.testing.assert_allclose(by_fold, norm(lambda *args: row_by_row(links, *args)), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("structure", STRUCTURES[:3], ids=lambda f: f.__name__)
def test_threads_share_waves(structure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads with random delays give the same bits, even for waves too small to split by default."""
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_A_WAVE", 0.0)
    rng = np.random.default_rng(13)
    links = structure(rng)
    order, inputs = Order.of(links), arguments(len(links), "float32", rng)
    weights = rn.asarray(rng.normal(size=(len(links), SIZE)).astype("float32"))
    results = []
    for threads in (1, 2, 3):
        with switches.override(num_threads=threads, stress=3):
            numbers = tuple(range(len(inputs)))
            step = rn.compile(rn.grad(lambda *args: scored(folded(order, *args), weights), argnums=numbers))
            results.append([x.numpy().tobytes() for x in (*folded(order, *inputs), *step(*inputs))])
    assert results[0] == results[1] == results[2]


def test_other_structures_need_no_trace() -> None:
    step = rn.compile(lambda order, x, u: rn.recur(lambda h, x: rn.tanh(h[0] @ u + x), rn.zeros(3), order, x))
    rng = np.random.default_rng(1)
    u = rn.asarray(rng.normal(size=(3, 3)).astype("float32"))
    for lengths in ([3, 4], [5, 9, 2], [11, 1, 6], [4, 4, 4, 4, 5], [30, 2], [7, 6, 9]):
        x = rn.asarray(rng.normal(size=(sum(lengths), 3)).astype("float32"))
        step(Order.chains(lengths), x, u)
    assert step.statistics["traces"] <= 3


def test_a_map_over_folds() -> None:
    def sums(x: Any) -> Any:
        return rn.recur(lambda h, x: h[0] + x, rn.zeros(2), Order.of([[-1], [0]]), x)

    xs = rn.asarray(np.arange(12.0, dtype="float32").reshape(3, 2, 2))
    np.testing.assert_array_equal(rn.vmap(sums)(xs).numpy(), np.stack([sums(x).numpy() for x in xs]))


def test_a_reversed_chain_goes_from_the_end() -> None:
    x = rn.asarray(np.arange(6.0))
    sums = rn.recur(lambda after, x: after[0] + x, rn.asarray(0.0, "float64"), Order.chains([2, 0, 4], reverse=True), x)
    assert sums.tolist() == [1.0, 1.0, 14.0, 12.0, 9.0, 5.0]


def test_orders_of_parents() -> None:
    order = Order.from_parents([2, 2, 4, 4, -1], 2)
    assert order.starts.tolist() == [0, 3, 4, 5]
    sums = rn.recur(lambda below, x: below[0] - below[1] + x, rn.asarray(0), order, rn.asarray([1, 2, 4, 8, 16]))
    assert sums.tolist() == [1, 2, 3, 8, 11]


def one_link() -> Order:
    return Order.of([[-1], [0]])


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: Order.of([[1], [0]]), ArgumentError, "must not form a cycle; row 0"),
        (lambda: Order.of([[-1], [5]]), ArgumentError, "must be rows below 2, or -1; got 5 in row 1"),
        (lambda: Order.of([0, 1]), ShapeError, r"must have the axes \(rows, links of a row\)"),
        (lambda: Order.of([[0.5]]), ArgumentError, "must be integers"),
        (lambda: Order.chains([2, -1]), ArgumentError, "must be numbers of rows"),
        (lambda: Order.from_parents([1, 9], 2), ArgumentError, "must be rows below 2"),
        (lambda: Order.from_parents([3, 3, 3, -1], 2), ArgumentError, "at most 2 children; row 3 has more"),
        (lambda: rn.recur(lambda h, x: h[0], rn.zeros(2), one_link(), rn.ones((3, 2))), ShapeError, "2 rows of the"),
        (lambda: rn.recur(lambda h, x: h, rn.zeros(2), one_link()), ShapeError, "keep its structure"),
        (lambda: rn.recur(lambda h, x: h[0][:1], rn.zeros(2), one_link()), ShapeError, "keep its shape"),
        (lambda: rn.recur(lambda h, x: h[0] > 0, rn.zeros(2), one_link()), DTypeError, "keep its dtype"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        call()


def test_refusals() -> None:
    state = rn.Variable(rn.zeros(2))

    def writes(below: Any, x: Any) -> Any:
        state.assign(below[0])
        return below[0]

    with pytest.raises(SideEffectError, match="must not assign Variables"):
        rn.recur(writes, rn.zeros(2), one_link())

    def loops(below: Any, x: Any) -> Any:
        return rn.scan(lambda c, _: (c * 2, None), below[0], length=3)[0]

    with pytest.raises(RunnelError, match=r"\[recur\]"):
        rn.recur(loops, rn.zeros(2), one_link())
