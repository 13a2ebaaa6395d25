"""Every op has a record; its reference is what the float64 oracle says; infer agrees; the vjp is the derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel.ops  # noqa: F401 - fills the tables
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType, float64
from runnel.core.tables import Op, abstract_eval, cost, decompose, lower, reference, vjp
from runnel.loops.rules import HostCall

from .records import RECORDS, sample
from .values import ArrayValue, check_grad, flat, listed

pytestmark = pytest.mark.suite


NAMES = sorted(RECORDS)
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}


def test_every_op_has_a_record() -> None:
    own = {
        name
        for name, op in Op.registry.items()
        if abstract_eval.get(op) and abstract_eval[op].__module__.startswith("runnel.")
    }
    elsewhere = {n for n, op in Op.registry.items() if op.regions or isinstance(lower.get(op), HostCall)}
    assert own - elsewhere == set(RECORDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_stands_in_the_tables(name: str) -> None:
    for table in (abstract_eval, reference, cost) if RECORDS[name].made_late else (abstract_eval, reference, vjp, cost):
        assert Op.registry[name] in table, f"{name} is missing in {table.name}"
    assert Op.registry[name] in lower or Op.registry[name] in decompose, f"{name} is lowered, or expanded"


@pytest.mark.parametrize("name", NAMES)
def test_reference_agrees_with_the_oracle(name: str) -> None:
    record, op = RECORDS[name], Op.registry[name]
    for dtype in record.dtypes:
        for case in record.cases:
            arrays = sample(record, case, dtype)
            built = apply(op, *map(ArrayValue, arrays), **case[1])
            wide = [a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in arrays]
            with np.errstate(all="ignore"):
                actual = record.oracle(*wide, **case[1])
            for result, expected in zip(listed(op, built), listed(op, actual), strict=True):
                compare(result.array, np.asarray(expected), dtype)


def compare(result: Any, expected: Any, dtype: DType) -> None:
    assert result.shape == expected.shape
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected.astype(result.dtype))
    else:
        narrowest = max(TOLERANCE.get(dtype.name, 0.0), TOLERANCE[result.dtype.name])
        exact = expected.astype(np.float64)
        size = np.max(np.abs(exact), initial=1.0, where=np.isfinite(exact))  # terms that cancel are as large
        np.testing.assert_allclose(result.astype(np.float64), exact, narrowest, narrowest * size)


@pytest.mark.parametrize("name", [n for n in NAMES if RECORDS[n].smooth and float64 in RECORDS[n].dtypes])
def test_vjp_is_the_derivative(name: str) -> None:
    record, op = RECORDS[name], Op.registry[name]
    result = abstract_eval[op](*_avals(record, op), **record.cases[0][1])
    if any(x.dtype.is_float for x in listed(op, result)):
        for case in record.cases:
            check_grad(lambda *xs, attrs=case[1]: flat(apply(op, *xs, **attrs)), *sample(record, case, float64, seed=3))


def _avals(record: Any, op: Op) -> list[Any]:
    return [ArrayValue(a).aval for a in sample(record, record.cases[0], float64)]


@pytest.mark.parametrize("name", NAMES)
def test_cost_is_a_count(name: str) -> None:
    record = RECORDS[name]
    for case in record.cases:
        avals = [ArrayValue(a).aval for a in sample(record, case, record.dtypes[-1])]
        assert cost[Op.registry[name]](*avals, **case[1]) >= 0
