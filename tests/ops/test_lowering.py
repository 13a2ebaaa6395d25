"""The loops of an op compute what its reference says: expressions are evaluated, views read by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel.ops  # noqa: F401 - fills the tables
from runnel.core.avals import aval
from runnel.core.dtypes import float32, from_numpy, int64
from runnel.core.tables import Op, abstract_eval, lower, reference
from runnel.loops import scalar
from runnel.loops.ir import Apply, Const, Expr, Ref
from runnel.loops.rules import Elementwise, IotaLike, Reduction, View

from .records import RECORDS, sample

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def evaluate(expr: Expr, known: dict[str, Any]) -> Any:
    """An Expr over arrays; half precision is rounded after each scalar operation, as compiled code does."""
    if isinstance(expr, Ref):
        return known[expr.name]
    if isinstance(expr, Const):
        return np.asarray(expr.value, expr.dtype.numpy)
    assert isinstance(expr, Apply)
    args = [evaluate(a, known) for a in expr.args]
    assert len(args) == expr.op.arity
    if expr.op is scalar.cast:
        return reference[Op.registry["cast"]](args[0], dtype=expr.dtype)
    if expr.op.result == "same":
        assert from_numpy(args[-1].dtype) is expr.dtype, f"{expr.op} gives {args[-1].dtype}, not {expr.dtype}"
    wide = [a.astype(np.float32) if a.dtype in HALVES else a for a in args]
    with np.errstate(all="ignore"):
        return np.asarray(expr.op.numpy(*wide)).astype(expr.dtype.numpy)


def of_form(*forms: type) -> list[str]:
    return [n for n in sorted(RECORDS) if isinstance(lower.get(Op.registry[n]), forms)]


@pytest.mark.parametrize("name", of_form(Elementwise, IotaLike))
def test_expressions_mean_the_reference(name: str) -> None:
    record, op = RECORDS[name], Op.registry[name]
    rule = lower[op]
    for dtype in record.dtypes:
        for case in record.cases:
            arrays = sample(record, case, dtype)
            avals = [aval(a.shape, from_numpy(a.dtype)) for a in arrays]
            out = abstract_eval[op](*avals, **case[1])
            known = {f"x{i}": a for i, a in enumerate(arrays)}
            refs = [Ref(f"x{i}", a.dtype) for i, a in enumerate(avals)]
            if isinstance(rule, IotaLike):
                steps = rule.steps(out, **case[1])
                known["n"] = sum((s * p for s, p in zip(steps, np.indices(out.shape), strict=True)), np.int64(0))
                expr = rule.expr((*avals, out), Ref("n", int64), *refs, **case[1])
            else:
                expr = rule.expr((*avals, out), *refs, **case[1])
            assert expr.dtype is out.dtype
            actual = np.broadcast_to(evaluate(expr, known), out.shape)
            np.testing.assert_array_equal(actual, reference[op](*arrays, **case[1]))


@pytest.mark.parametrize("name", ["relu", "abs", "maximum", "minimum", "sign", "where"])
def test_not_a_number_stays(name: str) -> None:
    arrays = [np.array([np.nan, -0.0, np.inf, -np.inf], np.float32)] * (
        2 if name in ("maximum", "minimum", "where") else 1
    )
    if name == "where":
        arrays = [np.array([True, False, True, False]), *arrays]
    assert np.isnan(reference[Op.registry[name]](*arrays)[0])


def read_through(map_: Any, x: Any, out_shape: tuple[int, ...]) -> Any:
    """The result of a view, read through its index map."""
    places = np.indices(out_shape)
    assert len(map_) == x.ndim
    zero = np.zeros(out_shape, np.int64)
    index = tuple(offset + sum((step * places[a] for a, step in terms), zero) for offset, terms in map_)
    return x[index] if x.ndim else np.broadcast_to(x, out_shape)


@pytest.mark.parametrize("name", of_form(View))
def test_views_read_what_the_reference_gives(name: str) -> None:
    record, op = RECORDS[name], Op.registry[name]
    mapped = 0
    for case in record.cases:
        x, *_ = sample(record, case, float32)
        a = aval(x.shape, float32)
        out = abstract_eval[op](a, **case[1])
        map_ = lower[op].map(a, out, **case[1])
        if map_ is not None and out.size:
            mapped += 1
            np.testing.assert_array_equal(read_through(map_, x, out.shape), reference[op](x, **case[1]))
    assert mapped


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=4), st.booleans())
def test_splitting_reshapes_always_have_a_map(groups: list[list[int]], merge: bool) -> None:
    split = tuple(n for g in groups for n in g)
    whole = tuple(int(np.prod(g)) for g in groups)
    op = Op.registry["reshape"]
    source, target = (split, whole) if merge else (whole, split)
    x = np.arange(int(np.prod(split))).reshape(source)
    map_ = lower[op].map(aval(source, int64), aval(target, int64), shape=target)
    if merge and any(sum(n > 1 for n in g) > 1 for g in groups):
        assert map_ is None
    else:
        assert map_ is not None
        np.testing.assert_array_equal(read_through(map_, x, target), x.reshape(target))


def test_reductions_name_accumulators_of_the_loop_ir() -> None:
    kinds = {lower[Op.registry[n]].op for n in of_form(Reduction)}
    assert kinds == {"sum", "prod", "max", "min", "any", "all"}
