"""A small program of tutorials in three styles: output = a + b·c·w is trained until it is 10. And very long graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import GraphError
from runnel.declarative.files import from_json, to_json

FIRST = [2.0, 1.64, 1.5392, 1.510976]  # of w: its distance to 1.5 shrinks by 0.28 in each step


def check(weights: list[float], losses: list[float]) -> None:
    np.testing.assert_allclose(weights[:4], FIRST, rtol=1e-5)
    assert f"Epoch 0, Loss: {losses[0]:.4f}" == "Epoch 0, Loss: 9.0000"
    assert losses[6] > 1e-7 and losses[7] < 1e-6 and losses[-1] < 1e-10
    assert weights[-1] == pytest.approx(1.5, abs=1e-6)


def named() -> dg.NamedGraph:
    graph = dg.NamedGraph()
    for name in "abc":
        graph.placeholder(name)
    graph.variable("w", 2.0)
    graph.node("bc", "*", "b", "c")
    graph.node("bcw", "multiply", "bc", "w")
    graph.node("output", "+", "a", "bcw")
    graph.node("wrong", "-", "output", 10.0)
    graph.node("loss", "*", "wrong", "wrong")
    return graph


FEEDS = {"a": 1.0, "b": 2.0, "c": 3.0}


def test_nodes_by_name() -> None:
    graph = named()
    assert graph.run(["output", "bc"], FEEDS)["output"].item() == 13
    weights, losses = [2.0], []
    for _ in range(100):
        losses.append(graph.run(["loss"], FEEDS)["loss"].item())
        weights.append(weights[-1] - 0.01 * graph.backward("loss", FEEDS)["w"].item())
        graph.assign("w", weights[-1])
    check(weights, losses)


def test_operators() -> None:
    w = rn.Parameter(2.0)
    optimizer = rn.optim.SGD([w], lr=0.01)
    weights, losses = [2.0], []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (1.0 + 2.0 * 3.0 * w - 10.0) ** 2
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        weights.append(w.item())
    check(weights, losses)


@pytest.mark.parametrize("fused", [True, False])
def test_a_session(fused: bool) -> None:
    a, b, c = (dg.placeholder(shape=(), name=name) for name in "abc")
    w = dg.Variable(2.0, name="w")
    output = a + b * c * w
    loss = (output - 10.0) ** 2
    train = dg.minimize(loss, rn.optim.SGD, lr=0.01)
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    feeds = {a: 1.0, b: 2.0, c: 3.0}
    assert session.run(output, feeds).item() == 13
    assert session.run(a + b * c, feeds).item() == 7
    weights, losses = [2.0], []
    for _ in range(100):
        losses.append(session.run([loss, train], feeds)[0].item())
        weights.append(session.run(w).item())
    check(weights, losses)


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda graph: graph.placeholder("a"), "there is a node 'a' already"),
        (lambda graph: graph.variable("bc", 1.0), "there is a node 'bc' already"),
        (lambda graph: graph.node("loss", "+", "a", "b"), "there is a node 'loss' already"),
        (lambda graph: graph.node("new", "frobnicate", "a"), "rn has no op 'frobnicate'"),
        (lambda graph: graph.node("new", "load", "a"), "rn has no op 'load'"),
        (lambda graph: graph.node("new", "+", "a", "z"), "no node 'z'"),
        (lambda graph: graph.run(["z"], FEEDS), "no node 'z'"),
        (lambda graph: graph.run(["output"], {**FEEDS, "bc": 1.0}), "'bc' is fed, but is not a placeholder"),
        (lambda graph: graph.run(["output"], {"a": 1.0}), "the placeholder 'b'.* not fed"),
        (lambda graph: graph.run(["output"]), "not fed"),
        (lambda graph: graph.assign("a", 1.0), "'a' is not a variable"),
    ],
)
def test_mistakes_are_value_errors(mistake: Any, told: str) -> None:
    graph = named()
    with pytest.raises(ValueError, match=told) as caught:
        mistake(graph)
    assert isinstance(caught.value, GraphError)
    assert graph.run(["output"], FEEDS)["output"].item() == 13
    graph.node("new", "+", "a", "b")


@pytest.mark.suite
def test_a_chain_of_100_000_nodes() -> None:
    x = dg.placeholder(shape=())
    y = x
    for _ in range(100_000):
        y = y + 1
    assert dg.Session().run(y, {x: 0.5}).item() == pytest.approx(100_000.5)


@pytest.mark.suite
def test_long_chains_are_differentiated_and_saved() -> None:
    x = dg.placeholder(shape=(), name="x")
    y = x
    for _ in range(5_000):
        y = y + x
    (g,) = dg.gradients(y, x)
    graph = dg.default_graph()
    again = from_json(to_json(graph))
    assert dg.to_text(again) == dg.to_text(graph)
    there = again.operation(g.operation.name).outputs[g.index]
    assert dg.Session(again).run(there, {again.operation("x").outputs[0]: 1.0}).item() == 5_001
