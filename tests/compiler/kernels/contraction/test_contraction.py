"""Contractions over several axes: operands read where they lie, epilogues fused, one kernel for every batch size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.compiler.lowering import operands
from runnel.compiler.lowering.operands import OffsetTables
from runnel.compiler.plan_ir.calls import Call
from runnel.compiler.plan_ir.strides import merged_stride
from runnel.compiler.schedule import partition
from runnel.compiler.verification.footprint import footprints
from runnel.core.avals import row_major
from runnel.core.dispatch import apply
from runnel.loops.ir import Contract
from runnel.ops.convolution.windows import im2col
from runnel.ops.linear_algebra.contraction import tensordot_p
from tests.compiler.harness import Traced, same_bits
from tests.compiler.test_plans import check, numbers


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def product(x: Any, y: Any, axes: int) -> Any:
    return apply(tensordot_p, x, y, axes=axes)


def convolution(x: Any, w: Any, stride: int = 1) -> Any:
    """Channels last, with w[R, S, C, K]."""
    return product(im2col(x, w.shape[:2], (stride, stride), (1, 1)), w, 3)


def contracts(traced: Traced) -> list[tuple[Call, Contract]]:
    specs = []
    for call in traced.plan.calls:
        first = call.kernel.body[0]
        if isinstance(first, Contract):
            specs.append((call, first))
    return specs


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    batch=st.integers(1, 3), height=st.integers(3, 8), width=st.integers(3, 8), channels=st.integers(1, 9),
    results=st.integers(1, 20), taps=st.sampled_from([1, 2, 3]), stride=st.integers(1, 2), seed=st.integers(0, 5),
)  # fmt: skip
def test_convolutions(
    batch: int, height: int, width: int, channels: int, results: int, taps: int, stride: int, seed: int
) -> None:
    x = numbers(batch, height, width, channels, seed=seed)
    w = numbers(taps, taps, channels, results, seed=seed + 1)
    bias = numbers(results, seed=seed + 2)
    allocations = [(n - taps) // stride + 1 for n in (height, width)]
    other = numbers(batch, results, *allocations, seed=seed + 3)

    def block(x: Any, w: Any, bias: Any, other: Any) -> tuple[Any, ...]:
        y = convolution(x, w, stride)
        z = ops.relu(y + bias)
        return z, z + ops.permute(other, (0, 2, 3, 1)), y.sum((0, 1, 2)), ops.permute(y, (0, 3, 1, 2)) * 2.0

    check(block, x, w, bias, other, threads=(1, 3))
    wide = np.lib.stride_tricks.sliding_window_view(x.numpy().astype(np.float64), (taps, taps), (1, 2))
    expected = np.einsum("nhwcrs,rsck->nhwk", wide[:, ::stride, ::stride], w.numpy().astype(np.float64))
    np.testing.assert_allclose(convolution(x, w, stride).numpy(), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    rows=st.lists(st.integers(1, 4), max_size=2), inner=st.lists(st.integers(1, 4), max_size=3),
    columns=st.lists(st.integers(1, 6), max_size=2), data=st.data(),
)  # fmt: skip
def test_operands_in_any_order(rows: list[int], inner: list[int], columns: list[int], data: st.DataObject) -> None:
    """The axes of both operands lie permuted in memory."""

    def laid(shape: list[int], seed: int) -> tuple[Any, tuple[int, ...]]:
        order = data.draw(st.permutations(range(len(shape))))
        return numbers(*(shape[a] for a in order), seed=seed), tuple(int(a) for a in np.argsort(order))

    (x, x_back), (y, y_back) = laid([*rows, *inner], 0), laid([*inner, *columns], 1)

    def fn(x: Any, y: Any) -> Any:
        return product(ops.permute(x, x_back), ops.permute(y, y_back), len(inner)) * 2.0 + 1.0

    check(fn, x, y, threads=(1, 2))
    a, b = (np.transpose(z.numpy().astype(np.float64), back) for z, back in ((x, x_back), (y, y_back)))
    np.testing.assert_allclose(fn(x, y).numpy(), np.tensordot(a, b, len(inner)) * 2 + 1, rtol=1e-4, atol=1e-4)


def test_epilogues_are_fused_and_indirect_operands_used_only_where_strides_do_not_do() -> None:
    x, w, bias = numbers(2, 6, 7, 5), numbers(3, 3, 5, 8), numbers(8)
    three = Traced(lambda x, w, b: ops.relu(convolution(x, w) + b), (x, w, bias))
    ((call, contract),) = contracts(three)
    assert len(three.plan.calls) == 1
    assert contract.indirect is not None
    assert len(call.nodes) == 3
    one = Traced(lambda x, w, b: ops.relu(convolution(x, w[:1, :1]) + b), (x, w, bias))
    ((_, contract),) = contracts(one)
    assert contract.indirect is None


def test_what_has_no_strides_of_rows_and_columns_is_not_fused() -> None:
    x, w, other = numbers(2, 6, 7, 5), numbers(3, 3, 5, 8), numbers(2, 8, 4, 5)
    traced = Traced(lambda x, w, o: convolution(x, w) + ops.permute(o, (0, 2, 3, 1)), (x, w, other))
    assert [len(c.nodes) for c in traced.plan.calls] == [1, 1]
    dense = Traced(lambda x, w, o: convolution(x, w) + ops.reshape(o, (2, 4, 5, 8)), (x, w, other))
    assert [len(c.nodes) for c in dense.plan.calls] == [2]


def test_random_numbers_in_an_epilogue() -> None:
    x, w, key = numbers(2, 6, 7, 5), numbers(3, 3, 5, 8), rn.asarray(np.array([7, 9], np.uint32))
    fn = lambda x, w, key: ops.dropout(convolution(x, w), key, 0.4)  # noqa: E731
    check(fn, x, w, key)
    assert len(Traced(fn, (x, w, key)).plan.calls) == 1


def test_equal_lists_are_one() -> None:
    x, w = numbers(2, 8, 8, 5), numbers(3, 3, 5, 5)
    v = numbers(3, 3, 5, 4)
    traced = Traced(lambda x, w, v: (convolution(x, w), convolution(x, v)), (x, w, v))
    lists = [access.allocation for call, _ in contracts(traced) for access in call.accesses[2:4]]
    assert len(lists) == 4
    assert len(set(lists)) == 2


def test_a_batch_size_changes_no_kernel() -> None:
    names = set()
    for batch, height in ((1, 5), (2, 9), (7, 6)):
        x, w, bias = numbers(batch, height, 8, 5), numbers(3, 3, 5, 8), numbers(8)
        traced = Traced(lambda x, w, b: ops.relu(convolution(x, w) + b), (x, w, bias))
        names.add(tuple(c.kernel.name for c in traced.plan.calls))
    assert len(names) == 1


def test_offsets_too_large_for_a_list_are_copied_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OffsetTables().allocation((2, 3), (1 << 31, 1)) is None
    assert OffsetTables().allocation((2, 3), ((1 << 31) - 3, 1)) is not None
    assert OffsetTables().allocation((2, 3), (-(1 << 31), 1)) is not None
    x, w = numbers(2, 6, 7, 5), numbers(3, 3, 5, 8)
    expected = convolution(x, w).numpy()
    monkeypatch.setattr(operands, "_OFFSET_LIMITS", np.iinfo(np.int8))
    traced = Traced(convolution, (x, w), threads=2)
    ((_, contract),) = contracts(traced)
    assert contract.indirect is None
    assert same_bits(traced(x, w)[0], expected)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-6, 12)), max_size=4))
def test_merged_strides_lead_to_the_same_elements(axes: list[tuple[int, int]]) -> None:
    shape, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
    operands = np.zeros(shape, np.int64)
    for axis, (n, s) in enumerate(axes):
        operands += (np.arange(n) * s).reshape([n if a == axis else 1 for a in range(len(axes))])
    flat = operands.reshape(-1)
    stride = merged_stride(shape, strides)
    if stride is not None:
        np.testing.assert_array_equal(flat, np.arange(flat.size) * stride)
    else:
        assert len(set(np.diff(flat).tolist())) > 1
    allocation = OffsetTables().allocation(shape, strides)
    assert allocation is not None and allocation.value is not None
    np.testing.assert_array_equal(allocation.value, flat)
    assert merged_stride(shape, row_major(shape)) == (1 if math.prod(shape) > 1 else 0)


def test_footprints_are_what_listed_operands_reach() -> None:
    x, w = numbers(2, 6, 7, 5), numbers(3, 3, 5, 8)
    traced = Traced(convolution, (x, w))
    ((call, _),) = contracts(traced)
    whole = np.arange(2 * 6 * 7 * 5).reshape(2, 6, 7, 5)
    im2col = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), (1, 2)).reshape(2 * 4 * 5, -1)
    for rows in ((0, 40), (3, 11), (20, 21)):
        (footprint,) = [f for f in footprints(call, (*rows, 0, 8)) if f.buffer == "b0"]
        touched = im2col[slice(*rows)]
        assert footprint.contracted
        reached = np.concatenate([np.arange(begin, end) for begin, end in footprint.runs])
        np.testing.assert_array_equal(reached, (np.unique(touched)[:, None] * 4 + np.arange(4)).reshape(-1))


def test_gradients_of_a_convolution() -> None:
    def fn(x: Any, w: Any) -> Any:
        return rn.grad(lambda x, w: (convolution(x, w) * convolution(x, w)).sum(), argnums=(0, 1))(x, w)

    x, w = numbers(2, 6, 5, 3), numbers(3, 3, 3, 4)
    check(fn, x, w, threads=(1, 2))
    y = convolution(x, w).numpy().astype(np.float64) * 2
    wide = np.lib.stride_tricks.sliding_window_view(x.numpy().astype(np.float64), (3, 3), (1, 2))
    by_weight = np.einsum("nhwcrs,nhwk->rsck", wide, y)
    np.testing.assert_allclose(fn(x, w)[1].numpy(), by_weight, rtol=1e-4, atol=1e-3)
