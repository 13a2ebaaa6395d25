"""Attention over sequences one after another: kernels against the reference, on any threads, with any offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel.compiler.kernels.attention import blocks as attention_blocks
from runnel.compiler.plan_ir.calls import MemorySpace
from runnel.compiler.schedule import partition
from runnel.core.dispatch import apply
from runnel.core.tables import reference
from runnel.ops.attention.primitives import attention_gradient_p, attention_p
from tests.ops.values import listed
from tests.suites.plans import interpret, traced

from ...harness import Traced, same_bits

pytestmark = pytest.mark.suite


Array = np.ndarray[Any, Any]
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def bounds_of(of_queries: list[int], of_keys: list[int]) -> Array:
    """Sequences of these lengths, from row 0 on."""
    columns = []
    for lengths in (of_queries, of_keys):
        columns += [np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0), np.array(lengths)]
    return np.stack(columns, 1).astype(np.int64)


def operands(heads: int, few: int, queries: int, keys: int, dtype: Any = np.float32) -> list[Array]:
    """The gradient of the result, q, k and v."""
    rng = np.random.default_rng(2)
    shapes = ((1, queries, heads, 5), (1, heads, queries, 6), (1, few, keys, 6), (1, few, keys, 5))
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def attrs(causal: bool, p: float = 0.0) -> dict[str, Any]:
    return {
        "packed": False, "causal": causal, "scale": 0.3, "masked": False, "limited": False, "dropout": p,
        "ragged": True,
    }  # fmt: skip


def both(arrays: list[Array], bounds: Array, p: float) -> list[tuple[Any, list[Array]]]:
    """The two ops with their operands."""
    extras = [*([np.array([3, 4], np.uint32)] if p else []), bounds]
    return [(attention_p, [*arrays[1:], *extras]), (attention_gradient_p, [*arrays, *extras])]


LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=5)


@settings(deadline=None, max_examples=20)
@given(
    of_queries=LENGTHS, of_keys=LENGTHS, behind=st.integers(0, 20), group=st.integers(1, 2), causal=st.booleans(),
    p=st.sampled_from([0.0, 0.4]),
)  # fmt: skip
def test_any_lengths(
    of_queries: list[int], of_keys: list[int], behind: int, group: int, causal: bool, p: float
) -> None:
    count = min(len(of_queries), len(of_keys))
    bounds = bounds_of(of_queries[:count], of_keys[:count])
    rows, columns = (int(bounds[:, i].sum()) + behind for i in (1, 3))
    options = attrs(causal, p)
    for op, arrays in both(operands(2 * group, 2, rows, columns), bounds, p):
        args = [rn.asarray(x) for x in arrays]
        one, three = (Traced(lambda *xs, op=op: apply(op, *xs, **options), args, threads=t)(*args) for t in (1, 3))
        for a, b, expected in zip(one, three, listed(op, reference[op](*arrays, **options)), strict=True):
            assert same_bits(a, b)
            np.testing.assert_allclose(a, expected, 5e-5, 5e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_more_keys_than_a_turn(causal: bool) -> None:
    long = attention_blocks.KEYS + 33
    bounds = bounds_of([20, 1, 50], [long, 0, 2 * long])
    options = attrs(causal, 0.3)
    for op, arrays in both(operands(2, 1, 75, 3 * long + 4, np.float64), bounds, 0.3):
        args = [rn.asarray(x) for x in arrays]
        results = Traced(lambda *xs, op=op: apply(op, *xs, **options), args, threads=2)(*args)
        for actual, expected in zip(results, listed(op, reference[op](*arrays, **options)), strict=True):
            np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)


@settings(deadline=None, max_examples=25)
@given(
    bounds=st.lists(st.tuples(*[st.integers(-5, 30) | st.sampled_from([LEAST, MOST, 2**40])] * 4), max_size=3),
    causal=st.booleans(),
)  # fmt: skip
def test_no_offsets_lead_out_of_bounds(bounds: list[tuple[int, ...]], causal: bool) -> None:
    """The interpreter looks at every index; what sensible offsets give is compared with native code beside."""
    table = np.array(bounds, np.int64).reshape(-1, 4)
    for op, arrays in both(operands(1, 1, 20, 25), table, 0.2):
        plan = traced(lambda *xs, op=op: apply(op, *xs, **attrs(causal, 0.2)), arrays, threads=2)
        args = [rn.asarray(x) for x in arrays]
        native = Traced(lambda *xs, op=op: apply(op, *xs, **attrs(causal, 0.2)), args)(*args)
        for actual, expected in zip(interpret(plan, arrays), native, strict=True):
            np.testing.assert_allclose(actual, expected.reshape(-1), rtol=1e-4, atol=1e-5)


def test_what_is_written_is_known_before_the_run() -> None:
    """Rows of the result that a thread writes are those of its blocks, wherever sequences begin."""
    bounds = bounds_of([30, 50], [40, 40])
    for op, arrays in both(operands(4, 4, 80, 80), bounds, 0.0):
        args = [rn.asarray(x) for x in arrays]
        plan = Traced(lambda *xs, op=op: apply(op, *xs, **attrs(True)), args, threads=3).plan
        assert plan.threads == 3
        (call,) = plan.calls
        assert any(a.writes and a.allocation.space is MemorySpace.OUTPUT for a in call.accesses)
