"""Messages about bad input, word for word; nothing has changed afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import DTypeError, FileError, GradientError, GraphError, RunnelError, ShapeError
from runnel.declarative.files import to_json


class Program:
    """Make a small graph with an initialized session."""

    def __init__(self) -> None:
        self.x = dg.placeholder(shape=(None, 2), name="x")
        self.n = dg.placeholder("int64", (), name="n")
        self.w = dg.Variable(np.ones((2, 1), np.float32), name="w")
        self.product = self.x @ self.w
        self.loss = (self.product**2).sum()
        self.late = dg.Variable(1.0, name="late")
        self.step = dg.assign_sub(self.w, dg.gradients(self.loss, self.w)[0])
        self.session = dg.Session()
        self.session.run(dg.initializer([self.w]))

    def run(self, fetches: Any, feeds: Any) -> Any:
        return self.session.run(fetches, feeds)

    def state(self) -> tuple[Any, ...]:
        graph = dg.default_graph()
        controls = [x.control_inputs for x in graph.operations]
        return self.session.run(self.w).numpy().tobytes(), self.session.uninitialized(), controls


ONES = np.ones((3, 2), np.float32)
MISTAKES: dict[str, tuple[Callable[[Program], Any], type[Exception], str]] = {
    "a cycle": (
        lambda p: p.product.operation.add_control_inputs(p.loss.operation),
        GraphError,
        "[graph] 'matmul' cannot run after 'sum', which needs it itself: that is a cycle. Leave one of the "
        "dependencies out.",
    ),
    "what is fetched is not fed": (
        lambda p: p.run([p.step], {}),
        GraphError,
        "[session] the placeholder 'x', declared at HERE, is needed and not fed; run(fetches, feed_dict={it: value}).",
    ),
    "a feed of another shape": (
        lambda p: p.run([p.step], {p.x: np.ones((3, 4), np.float32)}),
        ShapeError,
        "[session] 'x', declared at HERE, is float32[?,2]; fed float32[3,4].",
    ),
    "a feed of another dtype": (
        lambda p: p.run([p.step, p.n], {p.x: ONES, p.n: 1.5}),
        DTypeError,
        "[session] 'n' is int64[]; fed float32[]. Cast it first.",
    ),
    "a feed that does not fit inside the graph": (
        lambda p: p.run([p.step], {p.x: ONES, p.product: np.ones((3, 2), np.float32)}),
        ShapeError,
        "[session] 'matmul', declared at HERE, is float32[?,1]; fed float32[3,2].",
    ),
    "a feed for a name": (
        lambda p: p.run([p.step], {"x": ONES}),
        RunnelError,
        "[session] keys of feed_dict must be declared tensors; got 'x' (str).",
    ),
    "a fetch by name": (
        lambda p: p.run("loss", {p.x: ONES}),
        RunnelError,
        "[session] fetches must be declared tensors and operations; got 'loss' (str).",
    ),
    "a variable without a value": (
        lambda p: p.run([p.step, p.late], {p.x: ONES}),
        GraphError,
        "[session] the variable 'late', declared at HERE, has no value in this session; run its initializer, or assign "
        "something, first.",
    ),
    "an assignment of another shape": (
        lambda p: p.w.assign(np.zeros((3, 1), np.float32)),
        ShapeError,
        "[assign] 'w' is float32[2,1], and the value float32[3,1].",
    ),
    "a training step of nothing": (
        lambda p: dg.minimize(p.x.sum(), rn.optim.SGD, lr=0.1),
        GradientError,
        "[minimize] 'sum_1' depends on no variable that can be trained.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    mistake, kind, told = MISTAKES[name]
    program = Program()
    before = program.state()
    with pytest.raises(kind) as caught:
        mistake(program)
    message = re.sub(rf"\S*{Path(__file__).name}:\d+", "HERE", str(caught.value))
    assert message == told
    after = program.state()
    assert after[:2] == before[:2] and after[2][: len(before[2])] == before[2]
    program.run([program.step], {program.x: ONES})


def test_a_name_that_is_used_twice() -> None:
    graph = dg.NamedGraph()
    graph.placeholder("a")
    for again in (
        lambda: graph.placeholder("a"),
        lambda: graph.variable("a", 1.0),
        lambda: graph.node("a", "neg", "a"),
    ):
        with pytest.raises(GraphError) as caught:
            again()
        assert str(caught.value) == "[graph] there is a node 'a' already; a name is used once."
    assert graph.run(["a"], {"a": 2.0})["a"].item() == 2


# Files ----------------------------------------------------------------------------------------------------------------


def cut(text: str) -> str:
    return text[: len(text) // 2]


def forged(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    """The file with the operation ``exp`` changed."""

    def forge(text: str) -> str:
        value = json.loads(text)
        change(next(x for x in value["operations"] if x["name"] == "exp"))
        return json.dumps(value)

    return forge


FILES: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (cut, "the text is not JSON, or is truncated: "),
    "empty": (lambda text: "", "the text is not JSON, or is truncated: "),
    "a list": (lambda text: "[]", "it is not an object."),
    "another format": (lambda text: text.replace('"format":1', '"format":9'), "the format is 9, and not 1."),
    "a name twice": (
        lambda text: text.replace('"name":"exp"', '"name":"x"'),
        "operation 1, 'x': the name 'x' occurs twice.",
    ),
    "an input that does not exist": (
        forged(lambda op: op.update(inputs=["y"])),
        "operation 1, 'exp': [graph] 'graph' has no operation called 'y'.",
    ),
    "an output that does not exist": (
        forged(lambda op: op.update(inputs=["x:1"])),
        "operation 1, 'exp': 'x' has no output 1.",
    ),
    "fewer inputs": (
        forged(lambda op: op.pop("inputs")),
        "operation 1, 'exp': its arguments do not refer to its 0 inputs, once to each.",
    ),
    "a cycle": (
        forged(lambda op: op.update(after=["exp"])),
        "[graph] 'exp' cannot run after 'exp', which needs it itself: that is a cycle. Leave one of the dependencies "
        "out.",
    ),
    "a function that is nobody's business": (
        forged(lambda op: op.update(function="os:system")),
        "operation 1, 'exp': 'os:system' (str) is not a function that a graph can call.",
    ),
    "something missing": (forged(lambda op: op.pop("arguments")), "operation 1, 'exp': 'arguments' is missing."),
    "something else": (
        forged(lambda op: op.update(inputs=7)),
        "operation 1, 'exp': a value has the wrong type ('int' object is not iterable).",
    ),
    "a dtype": (
        lambda text: text.replace('"float32"', '"float31"'),
        "operation 0, 'x': [dtype] no dtype is called 'float31'; there are bool, ",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, tmp_path: Path) -> None:
    change, told = FILES[name]
    rn.exp(dg.placeholder(shape=(2,), name="x"))
    path = tmp_path / "graph.json"
    path.write_text(change(to_json(dg.default_graph())))
    count = len(dg.default_graph())
    with pytest.raises(FileError) as caught:
        dg.load(path)
    message = f"[load] '{path}' is not a complete graph: {told}"
    assert str(caught.value) == message or (told.endswith(" ") and str(caught.value).startswith(message))
    assert len(dg.default_graph()) == count
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="it is not text"):
        dg.load(path)
