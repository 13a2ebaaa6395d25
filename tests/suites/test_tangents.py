"""Forward mode of each op in float64: against central differences, against its vjp, and to second order in every
nesting with reverse mode and vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.dispatch import apply
from runnel.core.dtypes import float64
from runnel.core.tables import Op
from tests.ops.records import RECORDS, sample
from tests.ops.values import flat
from tests.suites.functions import FUNCTIONS
from tests.suites.test_eager import avals_of
from tests.suites.test_gradients import DIFFERENTIABLE, difference, directions

Array = np.ndarray[Any, Any]


def dot(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return float(sum((np.asarray(x) * np.asarray(y)).sum() for x, y in zip(xs, ys, strict=True)))


class Case:
    """A function of its float64 operands, at a point."""

    def __init__(self, function: Callable[..., Any], arrays: Sequence[Array]) -> None:
        self.function = function
        self.arrays = arrays
        self.places = [i for i, a in enumerate(arrays) if a.dtype == np.float64]

    @property
    def point(self) -> list[rn.Tensor]:
        return [rn.asarray(self.arrays[i]) for i in self.places]

    def along(self, seed: int) -> list[Array]:
        actual = directions(self.arrays, seed)
        return [np.asarray(actual[i]) for i in self.places]

    def __call__(self, *xs: rn.Tensor) -> rn.Tensor:
        arguments = dict(zip(self.places, xs, strict=True))
        result: rn.Tensor = self.function(*(arguments.get(i, rn.asarray(a)) for i, a in enumerate(self.arrays)))
        return result

    def weighted(self, *xs: rn.Tensor) -> rn.Tensor:
        """The sum of the results, weighted so that no two elements could be exchanged."""
        out = self(*xs)
        weights = np.cos(np.arange(out.size, dtype=np.float64)).reshape(out.shape) + 0.5
        total: rn.Tensor = (out * rn.asarray(weights)).sum()
        return total

    def gradient(self, *xs: rn.Tensor) -> list[rn.Tensor]:
        return list(rn.grad(self.weighted, tuple(range(len(xs))))(*xs))

    def slope(self, *xs: rn.Tensor, along: Sequence[Array]) -> rn.Tensor:
        actual: rn.Tensor = rn.jvp(self.weighted, xs, [rn.asarray(t) for t in along])[1]
        return actual


def check_tangents(function: Callable[..., Any], arrays: Sequence[Array]) -> None:
    case = Case(function, arrays)
    xs, along, other = case.point, case.along(1), case.along(11)
    if not xs:
        return
    out, tangent = rn.jvp(case, xs, list(map(rn.asarray, along)))
    np.testing.assert_array_equal(out.numpy(), case(*xs).numpy())
    slope = case.slope(*xs, along=along).item()
    picked = [arrays[i] for i in case.places]
    expected = difference(lambda ys: case.weighted(*map(rn.asarray, ys)).item(), picked, along)
    np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-7)
    weights = np.random.default_rng(3).standard_normal(out.shape)
    pulled = rn.vjp(case, *xs)[1](rn.asarray(weights))
    np.testing.assert_allclose(dot([weights], [tangent.numpy()]), dot(pulled, along), rtol=1e-12, atol=1e-11)
    check_second_order(case, xs, along, other)


def check_second_order(case: Case, xs: list[rn.Tensor], along: list[Array], other: list[Array]) -> None:
    """The second derivative along two directions by each nesting of two first ones, and of batches of these."""
    arrays = [x.numpy() for x in xs]
    expected = difference(lambda ys: case.slope(*map(rn.asarray, ys), along=along).item(), arrays, other)
    tangents = list(map(rn.asarray, other))
    over_forward = rn.jvp(lambda *ys: case.slope(*ys, along=along), xs, tangents)[1].item()
    over_reverse = dot(rn.jvp(lambda *ys: case.gradient(*ys), xs, tangents)[1], along)
    reverse_over = dot(rn.grad(lambda *ys: case.slope(*ys, along=along), tuple(range(len(xs))))(*xs), other)
    for actual in (over_forward, over_reverse, reverse_over):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    both = [rn.asarray(np.stack([a, b])) for a, b in zip(along, other, strict=True)]
    mapped = rn.vmap(lambda *ts: rn.jvp(lambda *ys: case.gradient(*ys), xs, ts)[1])(*both)
    np.testing.assert_allclose(dot([g[1] for g in mapped], along), expected, rtol=1e-6, atol=1e-6)
    points = [rn.asarray(np.stack([x, x + t])) for x, t in zip(arrays, along, strict=True)]
    each = rn.vmap(lambda *ys: case.gradient(*ys))(*points)
    sums = rn.grad(lambda *ps: rn.vmap(case.weighted)(*ps).sum(), tuple(range(len(xs))))(*points)
    for i in range(2):
        alone = case.gradient(*(p[i] for p in points))
        for a, b, c in zip(each, sums, alone, strict=True):
            np.testing.assert_array_equal(a[i].numpy(), c.numpy())
            np.testing.assert_allclose(b[i].numpy(), c.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_tangents_of_ops(name: str) -> None:
    op, record = Op.registry[name], RECORDS[name]
    for shapes, attrs in record.cases:
        arrays = sample(record, (shapes, attrs), float64, seed=21)
        if avals_of(op, arrays, attrs)[-1].size:
            check_tangents(lambda *xs, attrs=attrs: flat(apply(op, *xs, **attrs)), arrays)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_of_functions(name: str) -> None:
    check_tangents(*FUNCTIONS[name])
