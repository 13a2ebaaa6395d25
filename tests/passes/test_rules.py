"""Patterns, rules and values written into graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops, passes
from runnel.core.errors import PassError, RunnelError, VerifierError
from runnel.passes import Rule, anything, applied, number, rewriting, written

x, y = anything("x"), anything("y")
GELU_LIKE = applied("mul", x, applied("tanh", x), any_order=True)


def graph_of(function: Callable[..., Any], *args: rn.Tensor) -> passes.Graph:
    graph: passes.Graph = rn.compile(function).program(*args).graph
    return graph


def pipeline(*rules: Rule) -> passes.Pipeline:
    return passes.USUAL.insert(rewriting("mine", "", *rules), before="decompose")


def ops_of(graph: passes.Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_patterns_bind_names() -> None:
    graph = graph_of(lambda a, b: a * rn.tanh(a) + b, rn.ones(3), rn.ones(3))
    (total,) = graph.outputs
    pattern = applied("add", GELU_LIKE, y, called="all")
    match = pattern.match(total)
    assert match is not None and match["all"] is total and match["x"] is graph.inputs[0]
    assert pattern.names == {"x", "y", "all"}
    assert applied("add", y, GELU_LIKE).match(total) is None
    assert applied("add", y, GELU_LIKE, any_order=True).match(total) is not None
    assert applied("add").match(total) == {} and applied("add", x).match(total) is None


def test_a_name_is_one_value() -> None:
    (different,) = graph_of(lambda a, b: a * rn.tanh(b), rn.ones(3), rn.ones(3)).outputs
    (same,) = graph_of(lambda a: rn.tanh(a) * a, rn.ones(3)).outputs
    assert GELU_LIKE.match(different) is None and GELU_LIKE.match(same) is not None


def test_constants_attributes_and_results() -> None:
    (scaled,) = graph_of(lambda a: a * 3, rn.ones((2, 3))).outputs
    assert applied("mul", x, number(3)).match(scaled) and not applied("mul", x, number(4)).match(scaled)
    assert applied("mul", x, passes.constant("c")).match(scaled)["c"].value.item() == 3  # type: ignore[index]
    (total,) = graph_of(lambda a: a.sum(1, keepdims=True), rn.ones((2, 3))).outputs
    assert applied("sum", x, axes=(1,)).match(total) and not applied("sum", x, axes=(0,)).match(total)
    sorts = [v for v in graph_of(lambda a: rn.topk(a, 3), rn.ones(5)).values if v.op is passes.op("sort")]
    assert sorted([applied("sort", x, result=i).match(v) is not None for i in (0, 1)] for v in sorts) == [
        [False, True],
        [True, False],
    ]


def test_a_rule_replaces_and_keeps_the_line() -> None:
    f = rn.compile(lambda a: a * rn.tanh(a) + 1, passes=pipeline(Rule(GELU_LIKE, lambda x: rn.tanh(x) * 2)))
    a = rn.asarray([0.5, -1.0])
    np.testing.assert_array_equal(f(a).numpy(), (rn.tanh(a) * 2 + 1).numpy())
    before, after = (dict(f.program(a).passes)[name] for name in ("bodies", "mine"))
    line = {value.where for value in before.values if value.op is not None}
    assert {value.where for value in after.values if value.op is not None} == line
    assert ops_of(after) == ["tanh", "mul", "add"]


def test_a_rule_about_nothing_leaves_the_graph_itself() -> None:
    graph = graph_of(lambda a: a + 1, rn.ones(2))
    assert rewriting("mine", "", Rule(GELU_LIKE, lambda x: x)).run(graph) is graph


def test_the_first_rule_that_applies_is_taken_once() -> None:
    swap = Rule(applied("sub", x, y), lambda x, y: y - x)
    f = rn.compile(lambda a, b: a - b, passes=pipeline(swap, Rule(applied("sub", x, y), lambda x, y: x + y)))
    assert f(rn.asarray([3.0]), rn.asarray([1.0])).tolist() == [-2.0]


def test_conditions() -> None:
    small = Rule(applied("neg", x, called="all"), lambda x, all: x * 7, when=lambda x, all: x.aval.size < 3)
    f = rn.compile(lambda a: -a, passes=pipeline(small))
    assert f(rn.ones(2)).tolist() == [7.0, 7.0] and f(rn.ones(3)).tolist() == [-1.0] * 3


def test_composite_ops_can_be_written_anywhere() -> None:
    pool = Rule(applied("exp", x), lambda x: ops.max_pool(x, 1) + rn.var(x, keepdims=True))
    late = passes.USUAL.insert(rewriting("late", "", pool))
    a = rn.asarray(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    actual = rn.compile(lambda a: rn.exp(a), passes=late)(a)
    np.testing.assert_allclose(actual.numpy(), a.numpy() + np.var(a.numpy(), ddof=0), rtol=1e-6)


def test_written_values_know_their_attributes() -> None:
    again = Rule(applied("sum", x, called="all"), lambda x, all: all.again(x * 2) if all.attrs["axes"] == (0,) else all)
    f = rn.compile(lambda a: a.sum(0), passes=pipeline(again))
    assert f(rn.ones((3, 2))).tolist() == [6.0, 6.0]


WRITTEN: dict[str, tuple[Any, Any]] = {  # of x, and what it gives for [1, 2]
    "a gradient": (lambda x: rn.grad(lambda z: (z * z * z).sum())(x), [3, 12]),
    "a gradient of a gradient": (lambda x: rn.grad(lambda z: rn.grad(lambda y: (y**3).sum())(z).sum())(x), [6, 12]),
    "a gradient, and the value": (lambda x: x * rn.grad(lambda z: (z * x).sum())(x), [1, 4]),
    "a pullback": (lambda x: rn.vjp(lambda z: z * z, x)[1](x)[0], [2, 8]),
    "a tangent": (lambda x: rn.jvp(lambda z: z * z, (x,), (x,))[1], [2, 8]),
    "a map": (lambda x: rn.vmap(lambda z: z * 2)(x), [2, 4]),
    "a Jacobian": (lambda x: rn.jacrev(lambda z: z * z)(x).sum(0), [2, 4]),
    "a branch": (lambda x: rn.cond(x.sum() > 3, lambda: x, lambda: -x), [-1, -2]),
    "a loop": (lambda x: rn.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x), [4, 8]),
    "a scan": (lambda x: rn.scan(lambda c, r: (c + r, c * r), rn.asarray(1.0), x)[1], [1, 4]),
    "no gradient": (lambda x: rn.grad(lambda z: (z.detach() * z).sum())(x) + x.detach(), [2, 4]),
    "tensors and Variables from outside": (
        lambda x: rn.grad(lambda z: (z * LIVE * rn.exp(rn.zeros(2)) * ARRAY).sum())(x),
        [10, 10],
    ),
    "normalized values": (lambda x: rn.nn.functional.layer_norm(x, (2,)) * 0 + rn.softmax(x * 0), [0.5, 0.5]),
}
LIVE, ARRAY = rn.Variable(rn.asarray([5.0, 2.0])), np.asarray([2, 5], np.float32)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("place", ["fold", "common_subexpressions"])
def test_functions_on_functions_can_be_written(name: str, place: str) -> None:
    function, expected = WRITTEN[name]
    late = passes.USUAL.insert(rewriting("late", "", Rule(applied("exp", x), function)), before=place)
    a = rn.asarray([1.0, 2.0])
    assert rn.compile(lambda a: rn.exp(a), passes=late)(a).tolist() == expected
    gradient = rn.grad(lambda a: (rn.compile(lambda a: rn.exp(a), passes=late)(a) * 2).sum())(a)
    assert gradient.shape == (2,)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x if x.sum() > 0 else -x, r"has no value before a run; use rn\.where or rn\.cond"),
        (lambda x: x * float(x[0]), "has no value before a run"),
        (lambda x: np.asarray(x), "has no value before a run"),
        (lambda x: (LIVE.assign(rn.exp(LIVE)), x)[1], "must not assign a Variable"),
        (lambda x: rn.nn.functional.dropout(x, 0.5, True), "must not assign Variable 'random.state'"),
        (lambda x: (rn.debug.print("{}", x), x)[1], "must not call Python"),
    ],
)
def test_foreign_values_are_not_written(function: Any, told: str) -> None:
    late = passes.USUAL.insert(rewriting("late", "", Rule(applied("exp", x), function)))
    with pytest.raises(RunnelError, match=told):
        rn.compile(lambda a: rn.exp(a), passes=late)(rn.ones(2))
    assert LIVE.tolist() == [5, 2]


@pytest.mark.parametrize(
    ("constant", "dtype", "numbers"),
    [
        (2, "int8", {2: True, 2.5: False, 300: False, -1: False, math.inf: False, math.nan: False}),
        (1, "uint8", {1: True, -255: False, 257: False}),
        (math.inf, "float16", {math.inf: True, 1e6: False, -math.inf: False}),
        (0.1, "bfloat16", {0.1: True, 0.2: False}),
        (2, "complex64", {2: True, 3: False}),
    ],
)
def test_a_number_matches_constants_that_are_it(constant: float, dtype: str, numbers: dict[float, bool]) -> None:
    """A number that the dtype does not have is none that happens to be near, and no error."""
    array = np.full(2, constant).astype(rn.zeros(0, dtype=dtype).dtype.numpy)
    array.flags.writeable = False
    value = passes.Constant(rn.zeros(2, dtype=dtype).aval, array)
    assert {x: passes.number(x).match(value) is not None for x in numbers} == numbers


def test_substitution_and_written_values() -> None:
    def doubled(graph: passes.Graph) -> passes.Graph:
        new = {v: written(lambda v: v + v, v) for v in graph.outputs}
        return passes.Graph(graph.inputs, [new[v] for v in graph.outputs], graph.updates, graph.name)

    f = rn.compile(lambda a: a * 3, passes=passes.USUAL.insert(passes.Pass("doubled", "", doubled), before="fold"))
    assert f(rn.ones(2)).tolist() == [6.0, 6.0]


def test_tensors_and_arrays_in_rules_are_constants() -> None:
    table = rn.asarray([1.0, 2.0])
    left = Rule(applied("exp", x), lambda x: table * x + x * rn.asarray([3.0]))
    whole = Rule(applied("neg", x), lambda x: np.full(2, 7, np.float32))
    f = rn.compile(lambda a: rn.exp(a) + (-a), passes=pipeline(left, whole))
    assert f(rn.asarray([1.0, 10.0])).tolist() == [11.0, 57.0]


def test_a_rule_that_changes_a_type_is_refused() -> None:
    wrong = Rule(applied("exp", x), lambda x: x[:1])
    with pytest.raises(
        VerifierError, match=r"pass 'mine': the rule for 'exp' of .*test_rules\.py:\d+ must return .*got float32\[1\]"
    ):
        rn.compile(lambda a: rn.exp(a), passes=pipeline(wrong))(rn.ones(2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: applied("ad"), r"must be registered; got 'ad' \(str\)\. Similar names are .*add"),
        (lambda: passes.op(3), "must be registered; got 3"),  # type: ignore[arg-type]
        (lambda: applied("add", x, 1), r"the operands of 'add' must be patterns; got 1 \(int\)"),  # type: ignore[arg-type]
        (lambda: applied("neg", x, any_order=True), "any_order must have two operands; 'neg' got 1"),
        (lambda: Rule(applied("neg", x), lambda y: y), r"take the names of its pattern, x; got .*\(y\)"),
        (lambda: Rule(applied("neg", x), lambda x: x, when=lambda: True), "take the names of its pattern, x"),
        (lambda: passes.number("1"), r"number\(\) must get a number in .* got '1'"),  # type: ignore[arg-type]
        (lambda: passes.number(10**400), r"number\(\) must get a number"),
        (lambda: written(lambda: 3), r"must return one value; got 3 \(int\)"),
    ],
)
def test_wrong_rules(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(PassError, match=message):
        wrong()
