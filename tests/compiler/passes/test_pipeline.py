"""Running, skipping, keeping, adding passes, and the checks around them."""

from __future__ import annotations

import pytest

from runnel.compiler.passes import pipeline
from runnel.compiler.passes.pipeline import PIPELINE, Pass, Pipeline
from runnel.core import switches
from runnel.core.avals import aval
from runnel.core.dtypes import float64
from runnel.core.errors import VerifierError
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.node import reapplied
from runnel.graph.rewriting import rewrite
from runnel.ops.arithmetic import add_p, mul_p, neg_p

from ...graph.build import argument, constant, graph, op


def same(g: Graph) -> Graph:
    return g


def sample() -> Graph:
    """(x·(0.5 + 0.5)) + (x·(0.5 + 0.5))"""
    x = argument(1, 3, name="x")
    parts = [op(mul_p, x, op(add_p, constant([[0.5]]), constant([[0.5]]))) for _ in range(2)]
    return graph([x], op(add_p, *parts))


def test_the_passes_work_together_and_each_can_be_seen() -> None:
    after, stages = pipeline.run(sample(), keep=True)
    assert [name for name, _ in stages] == list(PIPELINE.names) and stages[-1][1] is after
    assert printer.text(dict(stages)["fold"]).count("constant 1.0") == 2
    assert printer.text(after) == (
        "graph program:\n    %0 = argument x : float32[1,3]\n    %1 = add(%0, %0) : float32[1,3]\n    return %1\n"
    )
    assert pipeline.run(sample())[1] == []


@pytest.mark.parametrize("name", PIPELINE.names)
def test_each_pass_can_be_skipped(name: str) -> None:
    _, stages = pipeline.run(sample(), keep=True, skip=frozenset({name}))
    assert [n for n, _ in stages] == [n for n in PIPELINE.names if n != name]


def test_skipping_all_changes_nothing() -> None:
    before = sample()
    assert pipeline.run(before, skip=frozenset(PIPELINE.names))[0] is before


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"No pass is called 'folding'; there are .*fold, simplify"):
        pipeline.run(sample(), skip=frozenset({"folding"}))
    with pytest.raises(ValueError, match="No pass is called 'x'"):
        PIPELINE.copy().register(Pass("y", "", same), after="x")
    with pytest.raises(ValueError, match="No pass is called 'x'"):
        PIPELINE.copy().remove("x")


def test_places() -> None:
    mine = PIPELINE.copy()
    mine.register(Pass("last", "", same))
    mine.register(Pass("second", "", same), after="fold")
    mine.register(Pass("first", "", same), before="fold")
    at = PIPELINE.names.index("fold")
    expected = [*PIPELINE.names[:at], "first", "fold", "second", *PIPELINE.names[at + 1 :], "last"]
    assert list(mine.names) == expected
    mine.remove("simplify")
    assert list(mine.names) == [n for n in expected if n != "simplify"]
    assert "second" not in PIPELINE.names
    with pytest.raises(ValueError, match="A pass called 'fold' is in the pipeline already"):
        mine.register(Pass("fold", "", same))
    with pytest.raises(ValueError, match="after one pass or before one, not both"):
        mine.register(Pass("z", "", same), after="fold", before="last")


def test_a_pass_of_ones_own_runs() -> None:
    def negate_outputs(g: Graph) -> Graph:
        return Graph(g.inputs, [op(neg_p, o) for o in g.outputs], g.updates, g.name)

    mine = PIPELINE.copy()
    mine.register(Pass("negate", "every output changes its sign", negate_outputs), after="simplify")
    assert mine.run(sample())[0].outputs[0].op is neg_p


def test_needs() -> None:
    giver = Pass("giver", "", same, gives=frozenset({"layout"}))
    user = Pass("user", "", same, needs=frozenset({"layout"}))
    Pipeline((giver, user)).run(sample())
    with pytest.raises(ValueError, match=r"'user' needs 'layout', .*; pass 'giver' gives it: run it, and earlier\."):
        Pipeline((giver, user)).run(sample(), skip=frozenset({"giver"}))
    with pytest.raises(ValueError, match="pass 'giver' gives it"):
        Pipeline((user, giver)).run(sample())
    with pytest.raises(ValueError, match=r"Pass 'user' needs 'layout', .*; no pass gives it"):
        Pipeline((user,)).run(sample())


def test_the_verifier_names_the_pass() -> None:
    def widen(g: Graph) -> Graph:
        return rewrite(g, lambda x: reapplied(x, x.inputs, aval=aval(x.aval.shape, float64)) if x.op else x)

    mine = Pipeline((Pass("widen", "", widen),))
    with switches.override(verify=False):
        mine.run(sample())
    with switches.override(verify=True), pytest.raises(VerifierError, match="after pass 'widen'"):
        mine.run(sample())
    broken = sample()
    broken.outputs[0].aval = aval((7,), float64)
    with switches.override(verify=True), pytest.raises(VerifierError, match="after pass 'trace'"):
        PIPELINE.run(broken)


def test_what_is_passed_through_is_well_formed() -> None:
    with switches.override(verify=True):
        PIPELINE.run(sample())


def test_every_pass_says_what_it_does() -> None:
    assert all(p.doc for p in PIPELINE.passes)
