"""Eager ops, natively, against their references: every record in every dtype, and in every memory layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, float16, float32, float64
from runnel.core.tables import Op, abstract_eval, lower, reference
from runnel.loops.rules import Elementwise, Reduction
from tests.ops.records import RECORDS, Record, sample
from tests.ops.values import listed
from tests.suites.closeness import Array, check, ulps_allowed
from tests.suites.inputs import LAYOUTS, NAMES, dtype_of, main_dtype, shared, special_inputs, wide_case


def avals_of(op: Op, arrays: list[Array], attrs: dict[str, Any]) -> tuple[ShapedArray, ...]:
    """The avals of the operands and of the first result."""
    arguments = [aval(a.shape, dtype_of(a)) for a in arrays]
    result = abstract_eval[op](*arguments, **attrs)
    return (*arguments, result[0] if op.multiple_results else result)


def agrees(name: str, arrays: list[Array], attrs: dict[str, Any], what: Any) -> None:
    """The op on these very arrays gives its reference, to the bit or within its bound."""
    op, record = Op.registry[name], RECORDS[name]
    avals = avals_of(op, arrays, attrs)
    results = listed(op, apply(op, *map(shared, arrays), **attrs))
    assert results[0].aval is avals[-1], what
    ulps = ulps_allowed(op, avals, attrs)
    if ulps == 0:
        for result, exact in zip(results, listed(op, reference[op](*arrays, **attrs)), strict=True):
            check(result.numpy(), np.asarray(exact), 0, what)
        return
    slack = 1.0 if avals[-1].dtype is float64 else 0.0  # the oracle's own error
    scales: list[Any] = [None] * len(results)
    if not isinstance(lower.get(op), Elementwise):
        scales = oracle(op, record, [np.abs(a) for a in arrays], attrs, record.scale)
    for result, exact, scale in zip(results, oracle(op, record, arrays, attrs), scales, strict=True):
        check(result.numpy(), exact, ulps + slack, what, scale)


def oracle(
    op: Op, record: Record, arrays: list[Array], attrs: dict[str, Any], function: Callable[..., Any] | None = None
) -> list[Array]:
    wide = [a.astype(np.float64) if dtype_of(a).is_float else a for a in arrays]
    with np.errstate(all="ignore"):
        return [np.asarray(x) for x in listed(op, (function or record.oracle)(*wide, **attrs))]


@pytest.mark.usefixtures("usual_effort")
@pytest.mark.parametrize("name", NAMES)
def test_every_dtype(name: str) -> None:
    """All cases in one dtype, the first and the last of them in each."""
    record = RECORDS[name]
    few = [record.cases[0], *record.cases[1:][-1:]]
    for dtype in record.dtypes:
        for case in record.cases if dtype is main_dtype(record) else few:
            agrees(name, sample(record, case, dtype, seed=11), case[1], (dtype, case))


@pytest.mark.parametrize("name", NAMES)
def test_every_layout(name: str) -> None:
    record = RECORDS[name]
    dtype = main_dtype(record)
    for case in (wide_case(name), record.cases[0]):
        dense = sample(record, case, dtype, seed=12)
        for layout, lay in LAYOUTS.items():
            agrees(name, [lay(x) for x in dense], case[1], (layout, case))
        if len(dense) > 1:
            mixed = [lay(x) for lay, x in zip(LAYOUTS.values(), dense, strict=False)]
            agrees(name, mixed, case[1], ("mixed", case))


POINTWISE_FLOATS = [
    n
    for n in NAMES
    if isinstance(lower.get(Op.registry[n]), Elementwise)
    and float32 in RECORDS[n].dtypes
    and "*" not in Op.registry[n].signature  # of no attributes
]


@pytest.mark.parametrize("dtype", [float16, float32, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", POINTWISE_FLOATS)
def test_not_a_number_and_infinities(name: str, dtype: DType) -> None:
    agrees(name, special_inputs(name, dtype), {}, dtype)


REDUCE_FLOATS = [n for n in NAMES if isinstance(lower.get(Op.registry[n]), Reduction) and float32 in RECORDS[n].dtypes]


@pytest.mark.parametrize("name", REDUCE_FLOATS)
@pytest.mark.parametrize("place", [0, 20, 36])
def test_reductions_of_not_a_number(name: str, place: int) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        x = np.ones((2, 37), np.float32)
        x[1, place] = bad
        for axes in ((1,), (0,), (0, 1)):
            actual = apply(Op.registry[name], shared(x), axes=axes).numpy()
            np.testing.assert_array_equal(actual, RECORDS[name].oracle(x, axes=axes))


def test_inputs_of_several_blocks_of_lanes() -> None:
    """Every number of lanes in the rest, with and without whole blocks before it."""
    rng = np.random.default_rng(3)
    for n in range(50):
        x = rng.standard_normal(n).astype(np.float32)
        np.testing.assert_array_equal((shared(x) * 3.0 - shared(x)).numpy(), x * np.float32(3) - x)
        np.testing.assert_allclose(shared(x).sum().numpy(), x.astype(np.float64).sum(), rtol=1e-5, atol=1e-5)
