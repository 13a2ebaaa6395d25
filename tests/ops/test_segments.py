"""Sums of buckets: the op that scattered sums become, differentiated and mapped by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

import runnel as rn
from runnel.ops.indexing.segments import segment_sum_p, segments
from tests.random_numbers import RNG

LABELS = np.array([2, 0, 2, 1, 2])
SHAPE = (4, 3)


def summed(updates: Any) -> Any:
    return segments(segment_sum_p, rn.asarray(LABELS), updates, SHAPE)


def expected(updates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = np.zeros(SHAPE, updates.dtype)
    np.add.at(result, LABELS, updates)
    return result


def test_derivatives() -> None:
    updates, tangent, cotangent = (RNG.normal(size=n) for n in ((5, 3), (5, 3), SHAPE))
    value, moved = rn.jvp(summed, (rn.asarray(updates),), (rn.asarray(tangent),))
    np.testing.assert_allclose(value.numpy(), expected(updates), rtol=1e-12)
    np.testing.assert_allclose(moved.numpy(), expected(tangent), rtol=1e-12)
    _, pull = rn.vjp(summed, rn.asarray(updates))
    (pulled,) = pull(rn.asarray(cotangent))
    np.testing.assert_array_equal(pulled.numpy(), cotangent[LABELS])


def test_maps() -> None:
    updates = RNG.normal(size=(2, 5, 3))
    actual = rn.vmap(summed)(rn.asarray(updates))
    np.testing.assert_allclose(actual.numpy(), np.stack([expected(one) for one in updates]), rtol=1e-12)


def test_of_nothing() -> None:
    nothing = segments(segment_sum_p, rn.asarray(np.zeros(0, np.int64)), rn.zeros((0, 3)), SHAPE)
    assert nothing.shape == SHAPE and not nothing.numpy().any()
