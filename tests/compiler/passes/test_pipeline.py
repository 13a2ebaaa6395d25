"""Inserting, leaving out, keeping and running passes, and the checks around them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from runnel.compiler.passes.pipeline import REQUIRED, USUAL, Pass, Pipeline
from runnel.core import switches
from runnel.core.avals import aval
from runnel.core.dtypes import float64
from runnel.core.errors import PassError, VerifierError
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.node import reapplied
from runnel.graph.rewriting import rewrite
from runnel.ops.elementwise.arithmetic import add_p, mul_p, neg_p

from ...graph.build import argument, constant, graph, op


def same(g: Graph) -> Graph:
    return g


def named(name: str) -> Pass:
    return Pass(name, "does nothing", same)


def sample() -> Graph:
    """(x·(0.5 + 0.5)) + (x·(0.5 + 0.5))"""
    x = argument(1, 3, name="x")
    parts = [op(mul_p, x, op(add_p, constant([[0.5]]), constant([[0.5]]))) for _ in range(2)]
    return graph([x], op(add_p, *parts))


def test_the_passes_work_together_and_each_can_be_seen() -> None:
    after, stages = USUAL.run(sample(), keep=True)
    assert [name for name, _ in stages] == list(USUAL.names) and stages[-1][1] is after
    assert printer.text(dict(stages)["fold"]).count("constant 1.0") == 2
    assert printer.text(after) == (
        "graph program:\n    %0 = argument x : float32[1,3]\n    %1 = add(%0, %0) : float32[1,3]\n    return %1\n"
    )
    assert USUAL.run(sample())[1] == []


@pytest.mark.parametrize("name", USUAL.names)
def test_each_pass_can_be_left_out(name: str) -> None:
    _, stages = USUAL.without(name).run(sample(), keep=True)
    assert [n for n, _ in stages] == [n for n in USUAL.names if n != name]


def test_no_passes_change_nothing() -> None:
    before = sample()
    assert USUAL.without(*USUAL.names).rewritten(before) is before


def test_places() -> None:
    mine = USUAL.insert(named("last"))
    mine = mine.insert(named("second"), after="fold").insert(named("first"), before="fold")
    at = USUAL.names.index("fold")
    expected = [*USUAL.names[:at], "first", "fold", "second", *USUAL.names[at + 1 :], "last"]
    assert list(mine.names) == expected
    assert list(mine.without("simplify", "last").names) == [n for n in expected if n not in ("simplify", "last")]
    assert "second" not in USUAL.names


def test_pipelines_of_equal_passes_are_equal() -> None:
    one, two = (USUAL.insert(named("mine"), after="fold") for _ in range(2))
    assert one == two and hash(one) == hash(two) and one != USUAL and one.without("mine") == USUAL
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: USUAL.without("folding"), r"no pass is called 'folding'; there are .*fold, simplify"),
        (lambda: USUAL.insert(named("y"), after="x"), "no pass is called 'x'"),
        (lambda: USUAL.insert(named("y"), before="x"), "no pass is called 'x'"),
        (lambda: USUAL.insert(named("fold")), "two passes are called 'fold'"),
        (
            lambda: USUAL.insert(named("z"), after="fold", before="bodies"),
            "after one pass or before one; received both",
        ),
        (lambda: USUAL.insert(same), r"is made of passes; received .*same"),
        (lambda: Pipeline([Pass("", "", same)]), "a pass has a name and a function"),
        (lambda: Pipeline([Pass("x", "", 3)]), "a pass has a name and a function"),
        (lambda: Pipeline([Pass("x", "", same, needs="decomposed")]), "tuples of names; received 'decomposed'"),
    ],
)
def test_wrong_pipelines(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(PassError, match=message):
        wrong()


def test_a_pass_of_ones_own_runs() -> None:
    def negate_outputs(g: Graph) -> Graph:
        return Graph(g.inputs, [op(neg_p, o) for o in g.outputs], g.updates, g.name)

    mine = USUAL.insert(Pass("negate", "every output changes its sign", negate_outputs), after="simplify")
    assert mine.rewritten(sample()).outputs[0].op is neg_p


def test_needs() -> None:
    giver = Pass("giver", "", same, gives=("layout",))
    user = Pass("user", "", same, needs=("layout",))
    Pipeline((giver, user)).run(sample())
    with pytest.raises(PassError, match=r"'user' needs 'layout', .*; insert a pass that gives 'layout'\."):
        Pipeline((giver, user)).without("giver").run(sample())
    with pytest.raises(PassError, match=r"'user' needs 'layout', .*; 'giver' gives it: place it earlier\."):
        Pipeline((user, giver)).run(sample())


@pytest.mark.parametrize("name", ["decompose", "bodies"])
def test_what_programs_need(name: str) -> None:
    USUAL.require(*REQUIRED)
    (lost,) = next(p for p in USUAL.passes if p.name == name).gives
    with pytest.raises(PassError, match=f"programs need '{lost}', which no pass gives; insert a pass that"):
        USUAL.without(name).require(*REQUIRED)
    USUAL.without(name).insert(Pass("other", "", same, gives=(lost,))).require(*REQUIRED)


def widen(g: Graph) -> Graph:
    return rewrite(g, lambda x: reapplied(x, x.inputs, aval=aval(x.aval.shape, float64)) if x.op else x)


def test_the_verifier_names_the_pass() -> None:
    own = Pipeline((Pass("widen", "", widen, is_own=True),))
    with switches.override(verify=False):
        own.run(sample())
    with switches.override(verify=True), pytest.raises(VerifierError, match="after pass 'widen'"):
        own.run(sample())
    broken = sample()
    broken.outputs[0].aval = aval((7,), float64)
    with switches.override(verify=True), pytest.raises(VerifierError, match="after pass 'trace'"):
        USUAL.run(broken)


def inside(g: Graph) -> Graph:
    """Only a value in the middle gets another dtype."""
    add = g.outputs[0]
    return Graph(g.inputs, [reapplied(add, (reapplied(add.inputs[0], add.inputs[0].inputs, aval=aval((1, 3), float64)),
                                            add.inputs[1]))], {}, g.name)  # fmt: skip


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (widen, r"result 0 is float64\[1,3\], and was float32\[1,3\]"),
        (inside, r"`%\d = mul\(.*` reading .* should be float32\[1,3\] by table 'abstract_eval'"),
        (lambda g: None, "a graph is expected, and it returned None"),
        (lambda g: Graph(g.inputs, (), {}, g.name), "it has 0 results, and had 1"),
        (lambda g: Graph((), g.outputs, {}, g.name), "its inputs are "),
        (lambda g: Graph(g.inputs, g.outputs, {g.inputs[0]: g.outputs[0]}, g.name), r"it updates \[Value"),
        (lambda g: Graph(g.inputs, g.outputs, {}, g.name, g.outputs), "it has 1 side effects, and had 0"),
    ],
)
def test_what_others_return_is_always_checked(run: Callable[[Graph], Any], message: str) -> None:
    with switches.override(verify=False), pytest.raises(VerifierError, match=f"after pass 'mine': {message}"):
        USUAL.insert(Pass("mine", "", run), before="simplify").run(sample())


def test_what_is_passed_through_is_well_formed() -> None:
    with switches.override(verify=True):
        USUAL.run(sample())


def test_every_pass_says_what_it_does() -> None:
    assert all(p.doc for p in USUAL.passes)
