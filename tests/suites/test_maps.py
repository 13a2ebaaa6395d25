"""vmap of each op against a loop over the elements: to the bit, whichever operands have elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.dispatch import apply
from runnel.core.dtypes import float64
from runnel.core.tables import Op, axes, decompose, jvp, lower
from runnel.loops.rules import Elementwise
from tests.ops.records import RECORDS, sample
from tests.suites.closeness import check
from tests.suites.functions import FUNCTIONS
from tests.suites.inputs import NAMES, main_dtype, special_inputs

SIZE = 3
POINTWISE = [n for n in NAMES if type(lower.get(Op.registry[n])) is Elementwise and main_dtype(RECORDS[n]).is_float]


def stacks_of(name: str, case: Any) -> list[np.ndarray[Any, Any]]:
    """Operands of ``SIZE`` elements, along axis 0."""
    record = RECORDS[name]
    dtype = float64 if float64 in record.dtypes else main_dtype(record)
    return [np.stack(xs) for xs in zip(*(sample(record, case, dtype, seed=i) for i in range(SIZE)), strict=True)]


def choices(count: int) -> list[tuple[bool, ...]]:
    """Which operands have elements: all of them, and each alone."""
    alone = [tuple(i == j for j in range(count)) for i in range(count)] if count > 1 else []
    return [(True,) * count, *alone]


@pytest.mark.parametrize("name", NAMES)
def test_vmap_of_ops(name: str) -> None:
    op = Op.registry[name]
    for case in RECORDS[name].cases:
        attrs, stacks = case[1], stacks_of(name, case)
        for chosen in choices(len(stacks)):
            operands = [x if own else x[0] for x, own in zip(stacks, chosen, strict=True)]

            def element(i: int, operands: Any = operands, chosen: Any = chosen) -> list[rn.Tensor]:
                return [rn.asarray(x[i] if own else x) for x, own in zip(operands, chosen, strict=True)]

            def fn(*xs: rn.Tensor, attrs: Any = attrs) -> tuple[rn.Tensor, ...]:
                result = apply(op, *xs, **attrs)
                return result if op.multiple_results else (result,)

            in_axes = tuple(0 if own else None for own in chosen)
            actual = rn.vmap(fn, in_axes)(*map(rn.asarray, operands))
            each = zip(*(fn(*element(i)) for i in range(SIZE)), strict=True)
            for got, expected in zip(actual, each, strict=True):
                check(got.numpy(), np.stack([x.numpy() for x in expected]), 0.0, (name, case, chosen))


@pytest.mark.parametrize("name", POINTWISE)
def test_vmap_of_pointwise_ops_at_special_values(name: str) -> None:
    """Where samples of them agree: of equal numbers, of infinities, of NaN."""
    op = Op.registry[name]
    attrs = RECORDS[name].cases[0][1]
    arrays = [rn.asarray(x.reshape(10, 10)) for x in special_inputs(name, main_dtype(RECORDS[name]))]
    actual = rn.vmap(lambda *xs: apply(op, *xs, **attrs))(*arrays)
    check(actual.numpy(), apply(op, *arrays, **attrs).numpy(), 0.0, name)


def test_every_op_has_rules() -> None:
    for name, op in Op.registry.items():
        assert op in jvp, name
        assert op in axes or op in decompose, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_of_functions(name: str) -> None:
    function, arrays = FUNCTIONS[name]
    scales = np.array([1.0, 0.5, 2.0])
    stacks = [np.stack([a * s if a.dtype == np.float64 else a for s in scales]) for a in arrays]
    actual = rn.vmap(function)(*map(rn.asarray, stacks)).numpy()
    expected = np.stack([function(*(rn.asarray(x[i]) for x in stacks)).numpy() for i in range(SIZE)])
    check(actual, expected, 0.0, name)
