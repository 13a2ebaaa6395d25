"""A share of the random programs; ``python -m tests.fuzz`` runs as many as one likes."""

from __future__ import annotations

import numpy as np
import pytest

from runnel.core import tables
from runnel.core.tables import Op
from runnel.loops.rules import Pointwise
from tests.fuzz import modes, sums


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
        if isinstance(tables.lower.get(op), Pointwise) and op not in drawn and "*" not in op.signature
    }
    assert missing == {"where"}


def test_what_failed_before() -> None:
    """Programs that found faults: float arguments alone in a choice, captured views, gathered strides, negatives
    without sign."""
    with np.errstate(all="ignore"):
        for seed in (0, 3, 17, 22, 137, 69902):
            modes.run(seed)
