"""An expression whose parts are used several times is compiled once for each part, not once for each path to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from runnel.core.dispatch import apply
from runnel.core.tables import Op, abstract_eval, lower, reference
from runnel.loops import scalar
from runnel.loops.ir import Apply, Expr
from runnel.loops.rules import Elementwise

DEPTH = 80  # as many paths as 2 to this power


def doubled(avals: Any, x: Expr) -> Expr:
    for _ in range(DEPTH):
        x = Apply(scalar.add, (x, x), x.dtype)
    return x


@pytest.fixture
def op() -> Iterator[Op]:
    op = Op("doubled_often", "x", f"x · 2^{DEPTH}.")
    abstract_eval.register(op, lambda x: x)
    reference.register(op, lambda x: x * x.dtype.type(2.0**DEPTH))
    lower.register(op, Elementwise(doubled))
    yield op
    del Op.registry[op.name]


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_shared_parts(op: Op, device: str, dtype: str) -> None:
    x = rn.asarray(np.arange(6).reshape(2, 3).astype(dtype), device=device)

    def function(x: rn.Tensor) -> rn.Tensor:
        return apply(op, x * 3).sum(axis=1)

    expected = (x.numpy() * 3 * x.numpy().dtype.type(2.0**DEPTH if dtype == "float32" else 0)).sum(axis=1)
    with switches.override(verify=True):
        compiled = rn.compile(function)(x)
    assert np.array_equal(compiled.numpy(), expected)
    assert np.array_equal(function(x).numpy(), expected)
