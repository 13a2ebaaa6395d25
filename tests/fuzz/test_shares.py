"""Run a share of the random programs; ``python -m tests.fuzz`` runs as many as you like."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.core import switches, tables
from runnel.core.tables import Op
from runnel.loops.rules import Elementwise
from tests.fuzz import graph_programs, modes, sums
from tests.fuzz.graph_checks import same_bits
from tests.fuzz.language import PARTS, checking, drawn
from tests.fuzz.language.grammar import Program
from tests.fuzz.language.shrinking import smallest
from tests.fuzz.language.worlds import compare
from tests.fuzz.oracle import numpy_where_exact


@pytest.mark.parametrize("first", [1000, 2000, 3000])
def test_sums(first: int) -> None:
    with np.errstate(all="ignore"):
        for seed in range(first, first + 12):
            sums.run(seed)


@pytest.mark.parametrize("first", [1000, 2000, 3000])
def test_modes(first: int) -> None:
    with np.errstate(all="ignore"):
        for seed in range(first, first + 15):
            modes.run(seed)


@pytest.mark.parametrize("first", [1000, 2000, 3000])
def test_programs(first: int) -> None:
    """Of stateful Python; most of them must run as programs, or nothing is compared."""
    eager = 0
    with np.errstate(all="ignore"), switches.override(effort=0):
        for seed in range(first, first + 4):
            before = checking.COUNTS["eager"]
            assert checking.fault(seed, shrink=False) is None
            eager += checking.COUNTS["eager"] - before
    assert eager <= 6  # of some 40 calls


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_drawn_programs_are_python_of_all_parts() -> None:
    met = set()
    for seed in range(120):
        program = drawn(seed)
        compile(program.source, "<program>", "exec")
        for event in program.events:
            compile(event, "<event>", "exec")
        met |= {name for name, part in PARTS.items() if part["code"][0][:20] in program.source}
    assert met == set(PARTS)


def test_differences_are_found_and_made_small() -> None:
    """A step that knows whether it is compiled differs."""
    source = (
        "calls, other, more = [0], [1], {}\n"
        "def helper(y): return y + 1\n"
        "def step(x, s=1):\n    other.append(s)\n    calls[0] += not rn.core.switches.eager.value\n"
        "    if s:\n        x = helper(x)\n    return x\n"
    )
    events = ("step(tensor(1.0), 2)", "other.clear()", "step(tensor(1.0), 2)")
    program = Program(source, events)
    assert "calls" in str(compare(program).fault)
    small = smallest(program, lambda one: compare(one).fault is not None)
    assert len(small.events) == 1
    assert "helper" not in small.source and "calls" in small.source


def test_every_pointwise_op_is_drawn() -> None:
    """Except ops with attributes, which functions represent."""
    drawn = {op for ops in (modes.POINTWISE[1], modes.POINTWISE[2]) for op in ops}
    missing = {
        op.name
        for op in Op.registry.values()
        if isinstance(tables.lower.get(op), Elementwise) and op not in drawn and "*" not in op.signature
    }
    assert missing == {"where"}


def test_the_oracle_of_graphs_gives_the_bits_of_eager_runs() -> None:
    for seed in range(40, 48):
        program = graph_programs.draw(seed)
        (f, arguments, _), (again, _, _) = graph_programs.function(program), graph_programs.function(program)
        with switches.override(num_threads=1):
            expected = f(*arguments)
            with numpy_where_exact():
                actual = again(*arguments)
        for a, b in zip(expected, actual, strict=True):
            assert same_bits(a.numpy(), b.numpy())


def test_programs_that_failed_before() -> None:
    """Programs that found faults: float arguments alone in a choice, captured views, gathered strides, negatives
    without sign."""
    with np.errstate(all="ignore"):
        for seed in (0, 3, 17, 22, 137, 69902):
            modes.run(seed)
