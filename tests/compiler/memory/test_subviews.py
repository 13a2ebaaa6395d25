"""Pieces of concatenations that their makers store in place: equal to the bit, and no copies left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.compiler.memory import in_place
from runnel.ops.shapes.pieces import concat_p
from runnel.tensor.tensor import Tensor
from tests.random_numbers import RNG


def values(*shape: int) -> Tensor:
    return rn.asarray(RNG.normal(size=shape).astype(np.float32))


CASES: dict[str, tuple[Any, tuple[tuple[int, ...], ...], int]] = {  # a function, shapes, copies
    "columns": (lambda x, y: ops.concat([x * 2.0, x + y, x - y], 1), ((5, 20), (5, 20)), 0),
    "rows": (lambda x, y: ops.concat([x * 2.0, y + 1.0]), ((3, 17), (4, 17)), 0),
    "twice the same": (lambda x: ops.concat([y := x * 2.0, y], 1), ((5, 20),), 0),
    "in two": (lambda x: (ops.concat([y := x * 2.0, x], 1), ops.concat([x, y])), ((5, 20),), 2),
    "stack": (lambda x: ops.stack([x * 2.0, x + 1.0]), ((5, 20),), 0),
    "read elsewhere": (lambda x: (y := x * 2.0, ops.concat([y, x + 1.0], 1)), ((5, 20),), 0),
    "short rows": (lambda x: ops.concat([x * 2.0, x + 1.0], 1), ((5, 3),), 2),
    "of a reduction": (lambda x: ops.concat([x - x.sum(1, keepdims=True), x], 1), ((5, 20),), 2),
    "of a product": (lambda x: ops.concat([x @ x.T, x * 2.0], 1), ((20, 20),), 0),
    "broadcast": (lambda x, y: ops.concat([x + y, y * 2.0]), ((4, 20), (1, 20)), 0),
    "transposed": (lambda x: ops.concat([(x * 2.0).T, x.T + 1.0], 1), ((20, 30),), 1),
    "gradient of slices": (lambda x: rn.grad(lambda x: rn.sin(x[:, :20] * x[:, 20:]).sum())(x), ((3, 40),), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_and_copies(name: str) -> None:
    function, shapes, copies = CASES[name]
    inputs = [values(*shape) for shape in shapes]
    compiled = rn.compile(function)
    expected, actual = function(*inputs), compiled(*inputs)
    for e, f in zip(*(x if isinstance(x, tuple) else (x,) for x in (expected, actual)), strict=True):
        np.testing.assert_array_equal(e.numpy(), f.numpy())
    calls = compiled.program(*inputs).plan.calls
    assert sum(any(n.op is concat_p for n in call.nodes) for call in calls) == copies


def test_without_pieces_nothing_is_laid() -> None:
    assert in_place.find_in_place({}, {}, ()).views({}) == {}
