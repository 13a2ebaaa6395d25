"""Passes from outside, wherever graphs are compiled: what they are run on, and that nobody else is affected."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.declarative as tf
from runnel import nn, ops, optim, passes
from runnel.compiler import disk_cache
from runnel.compiler.options import Choices
from runnel.core.errors import ArgumentError, CaptureWarning, PassError, VerifierError
from runnel.declarative.graph_function import GraphFunction
from runnel.graph.building import Builder

from ..random_numbers import RNG
from .examples import ROOT, example, imported


class Noting:
    """A pass that changes nothing and notes what it is run on."""

    def __init__(self) -> None:
        self.graphs: list[passes.Graph] = []

    def __call__(self, graph: passes.Graph) -> passes.Graph:
        self.graphs.append(graph)
        return graph

    @property
    def names(self) -> list[str]:
        return [graph.name for graph in self.graphs]

    @property
    def pipeline(self) -> passes.Pipeline:
        return passes.USUAL.insert(passes.Pass("noting", "notes graphs", self), before="decompose")


def normal(*shape: int) -> rn.Tensor:
    return rn.asarray(RNG.standard_normal(shape).astype(np.float32))


class Unhashable:
    """Two of them may be equal."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        return x


def test_passes_may_be_any_callable() -> None:
    own = passes.USUAL.insert(passes.Pass("callable", "an object", Unhashable()))
    assert rn.compile(lambda x: x + 1, passes=own)(rn.ones(2)).tolist() == [2.0, 2.0]


def test_a_graph_built_by_hand() -> None:
    noting, graph = Noting(), Builder("by hand")
    x = graph.argument((3,))
    function = GraphFunction(graph.build(ops.exp(x)), {}, choices=Choices(passes=noting.pipeline))
    assert function(rn.zeros(3))[0].tolist() == [1.0] * 3 and noting.names == ["by hand"]


def test_outsiders_need_only_the_public_modules() -> None:
    files = [*(ROOT / "passes").glob("*.py"), *(ROOT / "memory_planners").glob("*.py")]
    assert len(files) >= 5
    public = {"runnel", "runnel.passes", "runnel.memory", "runnel.nn", "runnel.optim"}
    assert set().union(*map(imported, files)) <= public


def test_a_compiled_function_and_its_gradients() -> None:
    noting = Noting()
    f = rn.compile(lambda x, w: rn.tanh(x @ w).sum(), passes=noting.pipeline)
    x, w = normal(3, 4), rn.tensor(normal(4, 2).numpy(), requires_grad=True)
    f(x, w).backward()
    own = w.grad.numpy()
    assert len(noting.graphs) == 2  # forward and backward
    w.grad = None
    rn.tanh(x @ w).sum().backward()
    np.testing.assert_array_equal(own, w.grad.numpy())


def test_a_training_step_and_an_optimizer() -> None:
    noting = Noting()
    net = nn.Linear(4, 2)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    @rn.compile(passes=noting.pipeline)
    def step(x: rn.Tensor) -> rn.Tensor:
        sgd.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        sgd.step()
        return loss

    x = normal(3, 4)
    losses = [step(x).item() for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    assert len(noting.graphs) == 1 and len(noting.graphs[0].updates) == 2


def test_derivatives_of_derivatives() -> None:
    noting = Noting()
    second = rn.compile(rn.grad(lambda x: rn.grad(lambda y: (y**3).sum())(x).sum()), passes=noting.pipeline)
    np.testing.assert_allclose(second(rn.asarray([2.0, 3.0])).numpy(), [12.0, 18.0], rtol=1e-6)
    assert len(noting.graphs) == 1


def test_bodies_of_loops() -> None:
    noting = Noting()
    f = rn.compile(lambda x: rn.scan(lambda c, y: (c + y, c * y), rn.zeros(()), x)[1], passes=noting.pipeline)
    f(normal(5))
    assert len(noting.graphs) == 2  # the body, and the function


def test_a_session_of_declared_graphs() -> None:
    noting = Noting()
    with tf.Graph():
        x = tf.placeholder("float32", (2,), name="x")
        y = rn.exp(x) * 2
        slope = tf.gradients(y, [x])[0]
        session = tf.Session(passes=noting.pipeline)
        value = session.run(slope, {x: np.zeros(2, np.float32)})
    assert value.tolist() == [2.0, 2.0] and noting.names == ["session"]


def test_compiled_functions_inside_follow_the_outer_one() -> None:
    outer, inner = Noting(), Noting()
    g = rn.compile(lambda x: x * 2, passes=inner.pipeline)
    rn.compile(lambda x: g(x) + 1, passes=outer.pipeline)(normal(2))
    assert len(outer.graphs) == 1 and not inner.graphs


def test_programs_of_one_function_with_other_passes_are_others() -> None:
    def f(x: rn.Tensor) -> rn.Tensor:
        return x * 3 - x

    noting, x = Noting(), normal(4)
    plain, own, same = rn.compile(f), rn.compile(f, passes=noting.pipeline), rn.compile(f, passes=noting.pipeline)
    results = [g(x).numpy() for g in (plain, own, same, plain)]
    assert all((r == results[0]).all() for r in results)
    assert len(noting.graphs) == 1  # equal pipelines share programs
    assert "noting" not in dict(plain.program(x).passes) and "noting" in dict(own.program(x).passes)
    other = Noting()
    again = rn.compile(own, passes=other.pipeline)
    again(x)
    assert len(other.graphs) == 1
    kept = rn.compile(own, memory_budget="1MB")
    kept(x)
    assert len(noting.graphs) == 3  # the report on passes ran them once more, and another budget


def test_programs_with_other_passes_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Any] = []
    monkeypatch.setattr(disk_cache, "load", lambda key: keys.append(key) or ())
    rn.compile(lambda x: x * 5 - x)(normal(3))
    assert len(keys) == 1
    rn.compile(lambda x: x * 5 - x, passes=Noting().pipeline)(normal(3))
    rn.compile(lambda x: x * 5 - x, memory_planner=rn.memory.search)(normal(3))
    assert len(keys) == 1


def test_threads_do_not_share_passes() -> None:
    def f(x: rn.Tensor) -> rn.Tensor:
        return rn.exp(x) + 1

    noted = [Noting() for _ in range(4)]
    x, results = normal(8), [None] * 4

    def work(i: int) -> None:
        results[i] = rn.compile(f, passes=noted[i].pipeline)(x).numpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(n.graphs) for n in noted] == [1] * 4
    assert all((r == f(x).numpy()).all() for r in results)


def test_a_pass_that_changes_a_type_is_named_and_leaves_the_function_usable() -> None:
    def halved(graph: passes.Graph) -> passes.Graph:
        outputs = [passes.written(lambda y: y[:1], y) for y in graph.outputs]
        return passes.Graph(graph.inputs, outputs, graph.updates, graph.name, graph.effects)

    f = rn.compile(lambda x: x + 1, passes=passes.USUAL.insert(passes.Pass("halved", "", halved)))
    for _ in range(2):
        with pytest.raises(VerifierError, match=r"after pass 'halved': result 0 is float32\[1\], and was float32\[2\]"):
            f(rn.ones(2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"passes": [1]}, ArgumentError, r"\[compile\] passes must be a pipeline, .* got"),
        ({"passes": passes.USUAL.without("decompose")}, PassError, "programs need 'decomposed', which no pass gives"),
        ({"passes": passes.USUAL.without("bodies")}, PassError, "programs need 'decomposed bodies'"),
        ({"memory_planner": 3}, ArgumentError, r"\[compile\] memory_planner must be a function .* got 3"),
        ({"memory_planner": Unhashable()}, ArgumentError, r"\[compile\] memory_planner must be .*with a hash"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rn.compile(lambda x: x, **options)
    with pytest.raises(error, match=message.replace("compile", "session")):
        tf.Session(tf.Graph(), **options)


def test_an_order_that_a_pass_does_not_allow() -> None:
    fold = example("passes/constant_folding").FOLD
    with pytest.raises(
        PassError, match=r"'fold_by_attributes' needs 'decomposed', .*; 'decompose' gives it: place it earlier"
    ):
        rn.compile(lambda x: x, passes=passes.USUAL.insert(fold, before="decompose"))


def cubes(x: rn.Tensor) -> rn.Tensor:
    return (x**3).sum()


def unchanged(graph: passes.Graph) -> passes.Graph:
    return graph


def test_compiled_functions_with_passes_go_through_pickle() -> None:
    own = passes.USUAL.insert(passes.Pass("unchanged", "", unchanged))
    copy = pickle.loads(pickle.dumps(rn.compile(cubes, passes=own)))
    assert copy(rn.asarray([1.0, 2.0])).item() == 9.0
    assert "unchanged" in dict(copy.program(rn.ones(2)).passes)


def test_double_backward_through_a_compiled_function() -> None:
    noting = Noting()
    f, x = rn.compile(cubes, passes=noting.pipeline), rn.asarray([1.0, 2.0])
    with pytest.warns(CaptureWarning, match="op by op"):
        second = rn.grad(lambda y: rn.grad(f)(y).sum())(x)
    assert second.tolist() == [6.0, 12.0] and "backward" in noting.names


def test_a_pass_that_loses_effects_or_updates_is_refused_before_anything_runs() -> None:
    def lost(graph: passes.Graph) -> passes.Graph:
        return passes.Graph(graph.inputs, graph.outputs, {}, graph.name)

    own, w = passes.USUAL.insert(passes.Pass("lost", "", lost)), rn.Variable(np.ones(3, np.float32))

    @rn.compile(passes=own)
    def update(x: rn.Tensor) -> rn.Tensor:
        w.assign(w + x)
        return w * 2

    @rn.compile(passes=own)
    def printing(x: rn.Tensor) -> rn.Tensor:
        rn.debug.print("{}", x)
        return x

    with pytest.raises(VerifierError, match=r"after pass 'lost': it updates \[\], and updated"):
        update(rn.ones(3))
    assert w.tolist() == [1.0] * 3
    with pytest.raises(VerifierError, match="after pass 'lost': it has 0 side effects, and had 1"):
        printing(rn.ones(3))


def mutating(graph: passes.Graph) -> passes.Graph:
    for node in graph.nodes:
        if "axes" in node.attrs:
            node.attrs["axes"] = (1,)
    return graph


def adding_in_place(value: passes.Value) -> passes.Value:
    return passes.written(lambda x: x.add_(1), value)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (
            mutating,
            VerifierError,
            r"after pass 'wrong': `.* = sum\(.*` .*should be float32\[3,1\] by table 'abst",
        ),
        (
            lambda graph: passes.rewrite(graph, lambda value: None),
            VerifierError,
            "must return a value in place of .*got None",
        ),
        (lambda graph: passes.rewrite(graph, adding_in_place), PassError, "add_ must not change"),
    ],
)
def test_a_pass_that_changes_values_is_refused(run: Any, error: type[Exception], message: str) -> None:
    wrong = passes.USUAL.insert(passes.Pass("wrong", "", run), before="fold")
    f = rn.compile(lambda x: (x * 2).sum(0), passes=wrong)
    with pytest.raises(error, match=message):
        f(rn.ones((3, 1)))


def test_a_pass_that_fails_leaves_its_error() -> None:
    def failing(graph: passes.Graph) -> passes.Graph:
        raise RuntimeError("not today")

    f = rn.compile(lambda x: x + 1, passes=passes.USUAL.insert(passes.Pass("failing", "", failing)))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not today"):
            f(rn.ones(2))
