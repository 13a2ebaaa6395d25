"""Test graphs that are built by hand, compiled, and trained with."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.backends import context
from runnel.core.errors import ArgumentError, VerifierError
from runnel.declarative.graph_function import GraphFunction
from runnel.graph.building import Builder
from runnel.graph.graph import Graph
from runnel.graph.node import Value


def regression(rows: int = 32, columns: int = 4, rate: float = 0.1) -> tuple[Graph, Value]:
    """A step of gradient descent on the mean of (x·w - y)², and the input for w."""
    graph = Builder("regression")
    x, y = graph.argument((rows, columns), name="x"), graph.argument((rows, 1), name="y")
    w = graph.variable((columns, 1), name="w")
    wrong = ops.subtract(ops.matmul(x, w), y)
    gradient = ops.multiply(ops.matmul(ops.transpose(x), wrong), 2 / rows)
    graph.update(w, ops.subtract(w, ops.multiply(gradient, rate)))
    return graph.build(ops.mean(ops.multiply(wrong, wrong))), w.value


def data(rows: int = 32, columns: int = 4) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    x, truth = rng.standard_normal((rows, columns)).astype(np.float32), rng.standard_normal((columns, 1))
    return x, (x @ truth).astype(np.float32), truth


def compiled(**options: Any) -> tuple[GraphFunction, Any]:
    graph, slot = regression()
    w = rn.Variable(np.zeros((4, 1), np.float32))
    return GraphFunction(graph, {slot: w}, **options), w


def test_training_with_a_graph() -> None:
    x, y, truth = data()
    step, w = compiled()
    losses = [step(rn.asarray(x), rn.asarray(y))[0].item() for _ in range(200)]
    assert losses[0] > 1 > 1e-6 > losses[-1]
    np.testing.assert_allclose(w.numpy(), truth, atol=1e-3)


def test_it_has_the_results_of_eager_code() -> None:
    x, y, _ = map(rn.asarray, data())
    step, w = compiled()
    mine = rn.Variable(np.zeros((4, 1), np.float32))
    for _ in range(3):
        wrong = x @ mine - y
        loss = (wrong * wrong).mean()
        mine.assign(mine - (x.T @ wrong) * (2 / 32) * 0.1)
        assert step(x, y)[0].numpy().tobytes() == loss.numpy().tobytes()
        assert w.numpy().tobytes() == mine.numpy().tobytes()


def test_views_are_made_dense_and_several_results_come_out() -> None:
    graph = Builder("sorted")
    x = graph.argument((5, 3))
    values, indices = ops.topk(x, 2)
    run = GraphFunction(graph.build(values, indices, ops.add(x, graph.constant(1.0, "float32"))), {})
    arguments = rn.asarray(np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)).T
    for actual, expected in zip(run(arguments), (*rn.topk(arguments, 2), arguments + 1), strict=True):
        assert actual.numpy().tobytes() == np.ascontiguousarray(expected.numpy()).tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_context_has_the_given_settings(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNEL_NUM_THREADS", str(threads))
    here = context.current()
    monkeypatch.delenv("RUNNEL_NUM_THREADS")
    step, _ = compiled(context=here)
    assert step.compiled.recipe.context is here
    x, y, _ = map(rn.asarray, data())
    assert step(x, y)[0].item() > 0


def test_threads_train_together() -> None:
    x, y, _ = map(rn.asarray, data())
    (together, w), (alone, mine) = compiled(), compiled()
    workers = [threading.Thread(target=lambda: [together(x, y) for _ in range(25)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(100):
        alone(x, y)
    assert w.numpy().tobytes() == mine.numpy().tobytes()


def test_arguments_that_do_not_fit() -> None:
    graph, slot = regression()
    with pytest.raises(ArgumentError, match="takes a Variable of its shape and dtype"):
        GraphFunction(graph, {})
    with pytest.raises(ArgumentError, match="takes a Variable of its shape and dtype"):
        GraphFunction(graph, {slot: rn.Variable(np.zeros((3, 1), np.float32))})
    step, _ = compiled()
    with pytest.raises(ArgumentError, match=r"\[regression\] arguments must be tensors"):
        step(rn.zeros((32, 4)))
    builder = Builder()
    x = builder.argument((2,))
    with pytest.raises(VerifierError, match="must have a Variable"):
        builder.update(x, x)
