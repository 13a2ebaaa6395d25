"""A share of the random programs; ``python -m tests.fuzz`` runs as many as one likes."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.core import switches, tables
from runnel.core.tables import Op
from runnel.loops.rules import Elementwise
from tests.fuzz import graph_programs, modes, sums
from tests.fuzz.graph_checks import same_bits
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


def test_every_pointwise_op_is_drawn() -> None:
    """But those with attributes, which functions stand for."""
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


def test_what_failed_before() -> None:
    """Programs that found faults: float arguments alone in a choice, captured views, gathered strides, negatives
    without sign."""
    with np.errstate(all="ignore"):
        for seed in (0, 3, 17, 22, 137, 69902):
            modes.run(seed)
