"""The same mistakes in many places: cycles, what is not fed, feeds of every wrong kind, names, files that were cut."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ArgumentError, FileError, GraphError, RunnelError
from runnel.declarative.files import to_json


@pytest.mark.parametrize("seed", range(60))
def test_a_dependency_is_refused_exactly_where_it_closes_a_ring(seed: int) -> None:
    rng = random.Random(seed)
    x = dg.placeholder(shape=(), name="x")
    values = [x]
    for _ in range(10):
        a, b = rng.choice(values), rng.choice(values)
        values.append(rng.choice([a + b, a * 2.0, dg.call(rn.maximum, a, b)]))
    operations = [v.operation for v in values]
    needs = {op: {i.operation for i in op.inputs} for op in operations}
    # constants among the inputs need nothing

    def reaches(begin: Any, end: Any) -> bool:
        return begin is end or any(reaches(op, end) for op in needs.get(begin, ()))

    refused = 0
    for _ in range(40):
        first, last = rng.choice(operations), rng.choice(operations)
        before = last.control_inputs
        if reaches(first, last):
            refused += 1
            with pytest.raises(
                GraphError, match=f"^.graph. '{last.name}' cannot run after '{first.name}', which needs it"
            ):
                last.add_control_inputs(first)
            assert last.control_inputs == before
        else:
            last.add_control_inputs(first)
            needs[last] |= {first}
    assert refused
    session = dg.Session()
    order = session.plan(values).operations
    place = {op: i for i, op in enumerate(order)}
    assert all(place[first] < place[op] for op in operations for first in needs[op] if op in place and first in place)
    assert session.run(values[-1], {x: 1.0}).item() >= 1


@pytest.mark.parametrize("seed", range(60))
def test_a_missing_feed_is_named(seed: int) -> None:
    rng = random.Random(seed)
    inputs = [dg.placeholder(shape=(), name=f"x{i}") for i in range(5)]
    total = dg.Variable(0.0, name="total")
    needed = rng.sample(inputs, rng.randint(1, 4))
    value = sum(needed[1:], needed[0])
    step = dg.assign_add(total, value)
    session = dg.Session()
    session.run(dg.initializer())
    fed = {x: 1.0 for x in inputs if rng.random() < 0.6}
    missing = [x.name for x in needed if x not in fed]
    if not missing:
        assert session.run(step, fed).item() == len(needed)
        return
    with pytest.raises(GraphError) as caught:
        session.run(step, fed)
    named = re.findall(r"'(\w+)', declared at \S+:\d+, is needed and not fed", str(caught.value))
    assert len(named) == 1 and named[0] in missing
    assert session.run(total).item() == 0
    assert session.run(step, dict.fromkeys(needed, 1.0)).item() == len(needed)


@pytest.mark.parametrize("fused", [True, False])
def test_what_runs_after_a_placeholder_runs_where_it_is_fed(fused: bool) -> None:
    x, total = dg.placeholder(shape=(), name="x"), dg.Variable(0.0, name="total")
    with dg.default_graph().control_dependencies([x]):
        step = dg.assign_add(total, 1.0)
    session = dg.Session(fused=fused)
    session.run(dg.initializer())
    for fetches in (step, dg.group(x, step), [x.operation, step]):
        session.run(fetches, {x: 3.0})
        with pytest.raises(GraphError, match=r"'x', declared at .* is needed and not fed"):
            session.run(fetches)
    assert session.run(total).item() == 3


KINDS: dict[str, tuple[Any, Any]] = {
    "a float": ("float32", ()), "a row": ("float32", (3,)), "rows": ("float32", (None, 3)), "anything": (None, None),
    "an integer": ("int64", ()), "bytes": ("uint8", (3,)), "truths": ("bool", (3,)), "complex": ("complex64", (3,)),
}  # fmt: skip
FEEDS: dict[str, Any] = {
    "a number": 2.5, "an integer": 3, "a truth": True, "three": [1.0, 2.0, 3.0], "two": [1.0, 2.0],
    "two rows": np.ones((2, 3)), "two columns": np.ones((3, 2)), "no rows": np.zeros((0, 3)),
    "bytes": np.zeros(3, np.uint8),
    "a complex number": 1j, "a text": "1", "nothing": None, "rows of different lengths": [[1.0], [1.0, 2.0]],
    "objects": np.array([None]), "a dict": {}, "a function": len, "a declared tensor": "declared",
    "dates": np.zeros(3, "M8[D]"),
    "a large integer": 10**30,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "feed"), list(itertools.product(KINDS, FEEDS)))
def test_feeds_fit_or_are_refused_by_name(kind: str, feed: str) -> None:
    dtype, shape = KINDS[kind]
    x = dg.placeholder(dtype, shape, name="fed")
    count = dg.Variable(0.0, name="count")
    step = dg.assign_add(count, 1.0)
    session = dg.Session()
    session.run(dg.initializer())
    value = x if feed == "a declared tensor" else FEEDS[feed]
    try:
        result, _ = session.run([x, step], {x: value})
    except RunnelError as error:
        assert str(error).startswith("[session] 'fed'"), error
        assert session.run(count).item() == 0
        return
    array = np.asarray(value)
    assert array.dtype.kind in "biufc" and result.numpy().tolist() == array.tolist()
    assert shape is None or (
        len(shape) == array.ndim and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    )
    assert session.run(count).item() == 1


@pytest.mark.parametrize("seed", range(60))
def test_names_are_used_once(seed: int) -> None:
    rng = random.Random(seed)
    graph = dg.NamedGraph()
    taken: set[str] = set()
    for _ in range(12):
        name = rng.choice("abcdef")
        declare = rng.choice(
            [
                lambda name=name: graph.placeholder(name),
                lambda name=name: graph.variable(name, 1.0),
                lambda name=name: graph.node(name, "*", *rng.choices(sorted(taken), k=2)),
            ]
            if taken
            else [lambda name=name: graph.placeholder(name)]
        )
        if name in taken:
            with pytest.raises(GraphError, match=f"there is a node '{name}' already"):
                declare()
        else:
            declare()
            taken.add(name)
    scoped = dg.Graph()
    with scoped:
        for _ in range(30):
            with scoped.name_scope(rng.choice("ab")):
                dg.constant(1.0, name=rng.choice("ab"))
    assert len({op.name for op in scoped.operations}) == 30
    for wrong in ("", "a b", "/a", "a/", "a//b", "ä", "a\n", None, 3, "a:0", "-a"):
        with pytest.raises((ArgumentError, TypeError)):
            dg.constant(1.0, name=wrong)  # type: ignore[arg-type]


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path) -> None:
    x = dg.placeholder(shape=(None, 2), name="x")
    w = dg.Variable(np.ones((2, 1), np.float32), name="w")
    loss = dg.cond(x.sum() > 0, lambda: ((x @ w) ** 2).sum(), lambda: rn.exp(w).sum())
    dg.minimize(loss, rn.optim.Adam, lr=0.1)
    text, path, count = to_json(dg.default_graph()), tmp_path / "graph.json", len(dg.default_graph())
    for at in range(0, len(text), max(1, len(text) // 100)):
        path.write_text(text[:at])
        with pytest.raises(FileError, match=re.escape(f"[load] '{path}' is not a complete graph: ")):
            dg.load(path)
    path.write_text(text)
    assert to_json(dg.load(path)) == text and len(dg.default_graph()) == count
