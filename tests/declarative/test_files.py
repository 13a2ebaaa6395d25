"""Graphs in files, as text and as pictures."""

from __future__ import annotations

import contextlib
import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import FileError, GraphError, RunnelError
from runnel.declarative.files import from_json, to_json

F = rn.nn.functional


def program() -> list[Any]:
    """A graph with everything in it; what a run fetches, after "init" and "minimize"."""
    x, y = dg.placeholder(shape=(None, 4), name="x"), dg.placeholder(shape=(None, 1), name="y")
    w = dg.Variable(np.zeros((4, 1), np.float32), name="w")
    hidden = F.gelu(F.linear(x, dg.constant(np.eye(4, dtype=np.float32)))[:, ::-1])
    loss = rn.mean((hidden @ w - y) ** 2)
    chosen = dg.cond(loss > 1, lambda: {"a": loss * 2}, lambda: {"a": loss / 2})["a"]
    looped = dg.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a + loss), (0, loss))
    scanned = dg.scan(lambda c, r: (c + r, c * r), np.zeros(4, np.float32), x)
    slopes = dg.gradients([chosen, scanned[0]], [w, x])
    dg.minimize(loss, rn.optim.Adam, lr=0.05, name="minimize")
    with dg.default_graph().control_dependencies([dg.assign_add(w, 1.0, name="more").operation]):
        late = w.read()
    dg.initializer(name="init")
    return [loss, chosen, *looped, *scanned, *slopes, late]


def results(graph: dg.Graph, fetches: list[Any]) -> list[bytes]:
    rng = np.random.default_rng(0)
    feeds = {
        graph.operation(n).outputs[0]: rng.standard_normal((3, k)).astype(np.float32) for n, k in (("x", 4), ("y", 1))
    }
    there = [graph.operation(t.operation.name).outputs[t.index] for t in fetches]
    session = dg.Session(graph)
    session.run(graph.operation("init"))
    for _ in range(2):
        session.run(graph.operation("minimize"), feeds)
    return [x.numpy().tobytes() for x in session.run(there, feeds)]


def test_a_saved_graph_is_the_same_graph(tmp_path: Path) -> None:
    fetches = program()
    graph = dg.default_graph()
    dg.save(tmp_path / "graph.json")
    again = dg.load(tmp_path / "graph.json")
    assert dg.to_text(again) == dg.to_text(graph)
    assert to_json(again) == to_json(graph)
    assert results(again, fetches) == results(graph, fetches)


def test_cut_files_are_refused(tmp_path: Path) -> None:
    program()
    text = to_json(dg.default_graph())
    path = tmp_path / "graph.json"
    for length in [*range(0, len(text) - 1, 997), len(text) - 1]:
        path.write_text(text[:length])
        with pytest.raises(FileError, match="is not a complete graph"):
            dg.load(path)
    with pytest.raises(FileError, match="cannot be read"):
        dg.load(tmp_path / "none.json")


def forged(change: Any) -> str:
    x = dg.placeholder(shape=(2,), name="x")
    v = dg.Variable(np.ones(2, np.float32), name="v")
    dg.gradients(rn.exp(x) * v, [x])
    dg.minimize((v * v).sum(), rn.optim.SGD, lr=0.1)
    value = json.loads(to_json(dg.default_graph()))
    change(value, {each["name"]: each for each in value["operations"]})
    return json.dumps(value)


@pytest.mark.parametrize(
    "change",
    [
        lambda value, ops: value.update(format=2),
        lambda value, ops: value.update(operations={}),
        lambda value, ops: value["operations"].append(dict(ops["x"])),
        lambda value, ops: value["operations"].reverse(),
        lambda value, ops: ops["exp"].update(inputs=["multiply"]),
        lambda value, ops: ops["exp"].update(inputs=["nobody"]),
        lambda value, ops: ops["exp"].update(inputs=["x:3"]),
        lambda value, ops: ops["exp"].update(inputs=[]),
        lambda value, ops: ops["exp"].update(function="os:system"),
        lambda value, ops: ops["exp"].update(function="runnel:load"),
        lambda value, ops: ops["exp"].update(function="runnel:pure_callback"),
        lambda value, ops: ops["exp"].update(function="runnel.nn.functional:__builtins__"),
        lambda value, ops: ops["exp"].update(function="runnel.declarative.control:_Recorded"),
        lambda value, ops: ops["exp"].update(kind="pickle"),
        lambda value, ops: ops["exp"].update(arguments=[{"tuple": [{"input": 7}]}, {"dict": []}]),
        lambda value, ops: ops["exp"].update(after=["multiply"]),
        lambda value, ops: ops["x"].update(shape=[-1]),
        lambda value, ops: ops["x"].update(shape=[10**30]),
        lambda value, ops: ops["x"].update(dtype="float31"),
        lambda value, ops: ops["x"].update(name="a b"),
        lambda value, ops: ops["v/initial"].update(shape=[3]),
        lambda value, ops: ops["v/initial"].update(data="AAA"),
        lambda value, ops: ops["v"].update(initial="v"),
        lambda value, ops: ops["gradients/multiply"].update(of="x"),
        lambda value, ops: ops["gradients/multiply"].update(asked=[9]),
        lambda value, ops: ops["gradients/multiply"].update(through=[]),
        lambda value, ops: ops["minimize"].update(optimizer="Optimizer.step"),
        lambda value, ops: ops["minimize"].update(variables=["x"]),
        lambda value, ops: ops["minimize"].update(variables=[]),
        lambda value, ops: ops["minimize"].update(hyperparameters={"dict": [["rate", 0.1]]}),
        lambda value, ops: ops["minimize"].update(hyperparameters={"dict": [["lr", -0.1]]}),
        lambda value, ops: ops["exp"].update(kind="k" * 100_000),
        lambda value, ops: ops["exp"].update(inputs=["x" * 100_000]),
        lambda value, ops: ops["exp"].update(name="\ud800"),
    ],
)
def test_forged_files_are_refused(change: Any) -> None:
    with pytest.raises(GraphError, match=r"^\[load\]") as caught:
        from_json(forged(change))
    assert len(str(caught.value)) < 1000


ODD: list[Any] = [
    None, True, 0, -1, 10**30, 1.5, "", "x", "w", [], {}, [[]], {"input": 0}, {"input": 99}, {"list": []},
    {"float": "nan"}, {"slice": [None, None, 0]}, {"tuple": [{"input": 0}]}, {"dict": [[{"list": []}, 1]]}, "\ud800",
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """The lists and objects of ``value`` with their keys."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_are_refused_or_make_another_graph(seed: int) -> None:
    """Fields are changed, left out and swapped, and single characters are changed.

    A file that is not a graph leads to one error; a graph can be written again and run. Wrong numbers are errors of the
    library, never of Python."""
    program()
    text, rng, refused = to_json(dg.default_graph()), random.Random(seed), 0
    for _ in range(60):
        value = json.loads(text)
        every = list(places(value))
        holder, key = rng.choice(every)
        kind = rng.randrange(4)
        if kind == 0:
            holder[key] = rng.choice(ODD)
        elif kind == 1:
            del holder[key]
        elif kind == 2:
            holder[key] = (lambda other: other[0][other[1]])(rng.choice(every))
        try:
            forged = json.dumps(value)
        except (ValueError, RecursionError):  # a value inside itself
            continue
        at = rng.randrange(len(forged))
        try:
            graph = from_json(forged if kind < 3 else forged[:at] + rng.choice('019ax[]{},:"') + forged[at + 1 :])
        except GraphError as error:
            assert str(error).startswith("[load] ")
            refused += 1
            continue
        assert to_json(from_json(to_json(graph))) == to_json(graph)
        session = dg.Session(graph, fused=False)
        for x in graph.operations:
            with contextlib.suppress(RunnelError):
                session.run(x, {p.outputs[0]: np.ones((2, 4), np.float32) for p in graph.operations[:1]})
    assert refused > 20


def test_deep_files_are_refused() -> None:
    with pytest.raises(GraphError, match=r"^\[load\]"):
        from_json("[" * 100_000)


def test_functions_of_the_users_are_not_saved(tmp_path: Path) -> None:
    dg.call(lambda x: x + 1, dg.placeholder(shape=()))
    path = tmp_path / "graph.json"
    path.write_text("before")
    with pytest.raises(GraphError, match="cannot be saved; only functions of rn"):
        dg.save(path)
    assert path.read_text() == "before"


def test_text_says_what_every_operation_does() -> None:
    x = dg.placeholder(shape=(None, 3), name="x")
    with dg.default_graph().control_dependencies([x.operation]):
        rn.concat([x, x], axis=1)
    assert dg.to_text().splitlines() == [
        "x = placeholder(): float32[?,3]",
        "concat = concat([x, x], axis=1): float32[?,6] after x",
    ]


def test_dot_names_every_operation_and_edge() -> None:
    program()
    operations = dg.default_graph().operations
    text = dg.to_dot()
    assert text.startswith("digraph") and text.endswith("}")
    assert sum("label" in line and "->" not in line for line in text.splitlines()) == len(operations)
    edges = sum(len(op.inputs) + len(op.control_inputs) for op in operations)
    assert text.count("->") == edges and text.count("dashed") == sum(len(op.control_inputs) for op in operations)


def test_svg_draws_what_is_needed_above_what_needs_it() -> None:
    program()
    root = ElementTree.fromstring(dg.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    boxes = {}
    for g in root.iter(f"{space}g"):
        title, rect = g.find(f"{space}title"), g.find(f"{space}rect")
        assert title is not None and rect is not None
        boxes[re.split(r": ", title.text or "")[0]] = (int(rect.get("x", "")), int(rect.get("y", "")))
    operations = dg.default_graph().operations
    assert boxes.keys() == {op.name for op in operations}
    assert len(set(boxes.values())) == len(boxes)
    for op in operations:
        for tensor in op.inputs:
            assert boxes[tensor.operation.name][1] < boxes[op.name][1]
