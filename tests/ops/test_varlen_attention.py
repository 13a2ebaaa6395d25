"""Attention over sequences without padding as a function: against NumPy sequence by sequence, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.backends.host.objects import statistics
from runnel.core import switches
from runnel.core.errors import AxisError, DTypeError, ShapeError
from runnel.nn import functional as F

Array = np.ndarray[Any, Any]


def expected(q: Array, k: Array, v: Array, of_queries: Array, of_keys: Array, causal: bool) -> Array:
    """In float64, sequence by sequence; other rows are 0."""
    group = q.shape[1] // k.shape[1]
    result = np.zeros((*q.shape[:2], v.shape[2]))
    for i in range(len(of_queries) - 1):
        rows, columns = slice(*of_queries[i : i + 2]), slice(*of_keys[i : i + 2])
        n, m = rows.stop - rows.start, columns.stop - columns.start
        visible = np.tri(n, m, m - n, dtype=bool) if causal else np.ones((n, m), bool)
        for head in range(q.shape[1]):
            scores = q[rows, head].astype(np.float64) @ k[columns, head // group].T / np.sqrt(q.shape[2])
            powers = np.where(visible, np.exp(scores), 0)
            total = powers.sum(-1, keepdims=True)
            result[rows, head] = powers / np.where(total == 0, 1, total) @ v[columns, head // group]
    return result


def operands(queries: int, keys: int, heads: int, few: int, dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=s).astype(dtype) for s in ((queries, heads, 4), (keys, few, 4), (keys, few, 3))]


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4), before=st.integers(0, 3),
    behind=st.integers(0, 3), group=st.integers(1, 3), causal=st.booleans(),
    kind=st.sampled_from([np.int32, np.int64, np.uint8]),
)  # fmt: skip
def test_any_lengths(
    lengths: list[tuple[int, int]], before: int, behind: int, group: int, causal: bool, kind: Any
) -> None:
    of_queries, of_keys = (np.cumsum([before, *[n[i] for n in lengths]]).astype(kind) for i in range(2))
    arrays = operands(int(of_queries[-1]) + behind, int(of_keys[-1]) + behind, 2 * group, 2)
    actual = ops.varlen_attn(
        *map(rn.asarray, arrays), rn.asarray(of_queries), rn.asarray(of_keys), is_causal=causal, enable_gqa=True
    )
    expected_result = expected(*arrays, of_queries.astype(int), of_keys.astype(int), causal)
    np.testing.assert_allclose(actual.numpy(), expected_result, rtol=2e-5, atol=2e-5)


def test_equal_lengths_are_a_batch() -> None:
    q, k, v = (np.random.default_rng(s).normal(size=(3 * 20, 2, 8)).astype(np.float32) for s in range(3))
    offsets = rn.asarray(np.arange(0, 61, 20, np.int32))
    batch = [rn.asarray(x.reshape(3, 20, 2, 8).transpose(0, 2, 1, 3).copy()) for x in (q, k, v)]
    expected_result = ops.scaled_dot_product_attention(*batch, is_causal=True, scale=0.3)
    actual = ops.varlen_attn(*map(rn.asarray, (q, k, v)), offsets, None, 20, 20, True, scale=0.3)
    np.testing.assert_allclose(
        actual.numpy(), expected_result.numpy().transpose(0, 2, 1, 3).reshape(60, 2, 8), 1e-6, 1e-6
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_in_float64(causal: bool, order: int) -> None:
    of_queries, of_keys = np.array([1, 4, 4, 9]), np.array([0, 5, 6, 11])
    arrays = operands(10, 12, 2, 1, np.float64)
    weights = rn.asarray(np.random.default_rng(4).normal(size=(10, 2, 3)))
    given_offsets = rn.asarray(of_queries), rn.asarray(of_keys)

    def total(*xs: Any) -> Any:
        return (ops.varlen_attn(*xs, *given_offsets, is_causal=causal, enable_gqa=True) * weights).sum()

    def sharpness(*xs: Any) -> Any:
        q, k, v = rn.grad(total, argnums=(0, 1, 2))(*xs)
        return (q * q).sum() + (k * k).sum() + (v * v).sum()

    function = total if order == 1 else sharpness
    actual = rn.grad(function, argnums=(0, 1, 2))(*map(rn.asarray, arrays))
    rng = np.random.default_rng(6)
    for which, gradient in enumerate(actual):
        direction = rng.normal(size=arrays[which].shape)
        above, below = (
            float(function(*[rn.asarray(x + step * direction if i == which else x) for i, x in enumerate(arrays)]))
            for step in (1e-6, -1e-6)
        )
        slope = (above - below) / 2e-6
        np.testing.assert_allclose((gradient.numpy() * direction).sum(), slope, rtol=1e-6, atol=1e-7)


def test_dropout_is_a_function_of_its_key() -> None:
    q, k, _ = operands(40, 40, 2, 2)
    v = np.broadcast_to(np.eye(40, dtype=np.float32)[:, None], (40, 2, 40)).copy()
    offsets = np.array([0, 15, 40])
    key = rn.asarray(np.array([3, 4], np.uint32))
    args = [rn.asarray(x) for x in (q, k, v, offsets)]
    actual = ops.varlen_attn(*args, dropout_p=0.5, dropout_key=key).numpy()
    assert actual.tobytes() == ops.varlen_attn(*args, dropout_p=0.5, dropout_key=key).numpy().tobytes()
    whole = ops.varlen_attn(*args).numpy()
    is_nonzero = actual != 0
    np.testing.assert_allclose(actual[is_nonzero], 2 * whole[is_nonzero], rtol=1e-5)
    uniform = ops.uniform(key, (2, 40, 40)).numpy().transpose(1, 0, 2)
    np.testing.assert_array_equal(is_nonzero, (uniform >= 0.5) & (whole != 0))
    with pytest.raises(ValueError, match="dropout_key"):
        ops.varlen_attn(*args, dropout_p=0.5)


def test_half_precision_and_empty_operands() -> None:
    arrays = operands(9, 9, 2, 2)
    offsets = np.array([0, 4, 9])
    half = ops.varlen_attn(*[rn.asarray(x).astype(rn.bfloat16) for x in arrays], rn.asarray(offsets))
    assert half.dtype is rn.bfloat16
    np.testing.assert_allclose(half.numpy().astype(np.float32), expected(*arrays, offsets, offsets, False), 0.05, 0.05)
    empty = [rn.asarray(x) for x in operands(0, 0, 2, 2)]
    assert ops.varlen_attn(*empty, rn.asarray(np.zeros(3, np.int32))).shape == (0, 2, 3)


def test_new_lengths_are_another_input_of_the_same_program() -> None:
    arrays = [rn.asarray(x) for x in operands(50, 50, 2, 2)]

    @rn.compile
    def step(q: Any, k: Any, v: Any, offsets: Any) -> Any:
        def loss(*xs: Any) -> Any:
            out = F.varlen_attn(*xs, offsets, is_causal=True)
            return (out * out).sum()

        return rn.value_and_grad(loss, argnums=(0, 1, 2))(q, k, v)

    def eager(offsets: Array) -> Any:
        with switches.override(eager=True):
            return step(*arrays, rn.asarray(offsets))

    step(*arrays, rn.asarray(np.array([0, 10, 50])))
    result = statistics.compiled + statistics.loaded
    for middle in (0, 7, 31, 50):
        offsets = np.array([0, middle, 50])
        value, gradients = step(*arrays, rn.asarray(offsets))
        assert statistics.compiled + statistics.loaded == result
        assert step.statistics["traces"] == 1
        expected_result, others = eager(offsets)
        result = statistics.compiled + statistics.loaded
        assert value.numpy().tobytes() == expected_result.numpy().tobytes()
        assert all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(gradients, others, strict=True))


@pytest.mark.parametrize("wrong", [[0, 30, 20, 50], [0, 20, 51], [-1, 20, 50], [0, 2**40, 50], [-(2**63), 2**63 - 1]])
def test_offsets_that_make_no_sense_stop_the_program(wrong: list[int]) -> None:
    args = [rn.asarray(x) for x in operands(50, 50, 2, 2)]
    state = rn.Variable(np.zeros(1, np.float32))

    def step(q: Any, k: Any, v: Any, offsets: Any) -> Any:
        out = F.varlen_attn(q, k, v, offsets)
        state.assign(state + 1.0)
        return out

    offsets = rn.asarray(np.array(wrong))
    with pytest.raises(AxisError, match=r"sequence_(offset|length)"):
        ops.varlen_attn(*args, offsets)
    with pytest.raises(AxisError, match=r"sequence_(offset|length)"):
        rn.compile(step)(*args, offsets)
    assert state.numpy()[0] == 0.0


def test_what_does_not_fit_is_refused() -> None:
    q, k, v = (rn.asarray(x) for x in operands(9, 7, 4, 2))
    offsets = rn.asarray(np.array([0, 7]))
    with pytest.raises(ShapeError, match="enable_gqa"):
        ops.varlen_attn(q, k, v, offsets)
    with pytest.raises(ShapeError, match="three axes"):
        ops.varlen_attn(q[0], k, v, offsets)
    with pytest.raises(ShapeError, match="last axis only"):
        ops.varlen_attn(q, k, v[1:], offsets, enable_gqa=True)
    with pytest.raises(ShapeError, match="1 sequences of queries and 2 of keys"):
        ops.varlen_attn(q, k, v, offsets, rn.asarray(np.array([0, 3, 7])), enable_gqa=True)
    with pytest.raises(ShapeError, match="vector"):
        ops.varlen_attn(q, k, v, offsets.reshape((1, 2)), enable_gqa=True)
    with pytest.raises(DTypeError, match="integers"):
        ops.varlen_attn(q, k, v, offsets.astype(rn.float32), enable_gqa=True)
