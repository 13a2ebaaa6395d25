"""Attention as a function: PyTorch's arguments against NumPy in float64, over shapes, masks and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.core.errors import ShapeError

Array = np.ndarray[Any, Any]


def expected(
    q: Array, k: Array, v: Array, visible: Array | None = None, added: Array | None = None, scale: float | None = None
) -> Array:
    """In float64; a query that sees no key gives 0."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2)
    scores = scores * (1 / np.sqrt(q.shape[-1]) if scale is None else scale) + (0 if added is None else added)
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
    powers = powers if visible is None else np.where(visible, powers, 0)
    total = powers.sum(-1, keepdims=True)
    result: Array = (powers / np.where(total == 0, 1, total)) @ v.astype(np.float64)
    return result


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(actual: Any, expected_result: Array) -> None:
    assert actual.shape == expected_result.shape
    np.testing.assert_allclose(actual.numpy(), expected_result, rtol=2e-5, atol=2e-5)


@settings(deadline=None, max_examples=30)
@given(
    lead=st.sampled_from([(), (2,), (2, 3), (2, 1, 3)]), queries=st.integers(1, 70), keys=st.integers(1, 70),
    depth=st.integers(1, 20), values=st.integers(1, 20), causal=st.booleans(),
    mask=st.sampled_from(["none", "bool", "added", "row"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_shape(
    lead: Any, queries: int, keys: int, depth: int, values: int, causal: bool, mask: str, seed: int
) -> None:
    q, k, v = normal(*lead, queries, depth, seed=seed), normal(*lead, keys, depth), normal(*lead, keys, values)
    visible = np.ones((queries, keys), bool)
    added = given_mask = None
    if mask == "bool":
        given_mask = np.random.default_rng(seed).random((queries, keys)) < 0.5
        visible = given_mask
    elif mask != "none":
        given_mask = added = normal(*(lead if mask == "added" else ()), 1 if mask == "row" else queries, keys, seed=3)
    if causal:
        visible = visible & np.tri(queries, keys, dtype=bool)
    actual = ops.scaled_dot_product_attention(
        rn.asarray(q), rn.asarray(k), rn.asarray(v), None if given_mask is None else rn.asarray(given_mask),
        is_causal=causal,
    )  # fmt: skip
    close(actual, expected(q, k, v, visible, added))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_lengths_hide_keys_even_if_they_are_not_numbers(dtype: Any) -> None:
    q, k, v = normal(4, 2, 5, 8), normal(4, 2, 9, 8), normal(4, 2, 9, 3)
    lengths = np.array([9, 4, 0, 100], dtype)
    visible = np.arange(9) < lengths[:, None, None, None]
    expected_result = expected(q, k, v, np.broadcast_to(visible, (4, 2, 5, 9)))
    k[1, :, 4:], v[1, :, 4:] = np.nan, np.inf
    args = [rn.asarray(x) for x in (q, k, v)]
    close(ops.scaled_dot_product_attention(*args, lengths=rn.asarray(lengths)), expected_result)


@pytest.mark.parametrize("keys", [512, 513, 1300])
@pytest.mark.parametrize("causal", [False, True])
def test_long_sequences_are_taken_in_blocks(keys: int, causal: bool) -> None:
    q, k, v = normal(1, 2, keys, 4), 3 * normal(1, 2, keys, 4, seed=1), normal(1, 2, keys, 5)
    visible = np.tri(keys, dtype=bool) if causal else None
    actual = ops.scaled_dot_product_attention(*[rn.asarray(x) for x in (q, k, v)], is_causal=causal)
    close(actual, expected(q, k, v, visible))


def test_masked_long_sequences_with_rows_that_see_nothing() -> None:
    q, k, v = normal(2, 1, 20, 4), normal(2, 1, 700, 4), normal(2, 1, 700, 4)
    visible = np.random.default_rng(0).random((2, 1, 20, 700)) < 0.5
    visible[0, 0, 3] = False
    visible[0, 0, 4, :512] = False
    visible[1, 0, 5, 512:] = False
    actual = ops.scaled_dot_product_attention(*[rn.asarray(x) for x in (q, k, v, visible)])
    close(actual, expected(q, k, v, visible))
    assert not actual.numpy()[0, 0, 3].any()


def test_grouped_heads_scale_and_half_precision() -> None:
    q, k, v = normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 4)
    wide = [np.repeat(x, 3, axis=1) for x in (k, v)]
    args = [rn.asarray(x) for x in (q, k, v)]
    close(ops.scaled_dot_product_attention(*args, scale=0.7, enable_gqa=True), expected(q, *wide, scale=0.7))
    close(ops.scaled_dot_product_attention(*args, scale=-0.7, enable_gqa=True), expected(q, *wide, scale=-0.7))
    half = ops.scaled_dot_product_attention(*[x.astype(rn.bfloat16) for x in args], enable_gqa=True)
    assert half.dtype is rn.bfloat16
    np.testing.assert_allclose(half.numpy().astype(np.float32), expected(q, *wide), rtol=0.05, atol=0.05)


def test_packed_operands_give_the_bits_of_separate_ones() -> None:
    qkv = normal(2, 60, 3, 4, 16)
    packed = rn.asarray(qkv).requires_grad_()
    separate = [rn.asarray(np.ascontiguousarray(qkv[:, :, i])).requires_grad_() for i in range(3)]
    one = ops.packed_attention(packed, is_causal=True)
    other = ops.scaled_dot_product_attention(*[ops.permute(x, (0, 2, 1, 3)) for x in separate], is_causal=True)
    assert one.numpy().tobytes() == np.ascontiguousarray(other.numpy().transpose(0, 2, 1, 3)).tobytes()
    (one * one).sum().backward()
    (other * other).sum().backward()
    for i, x in enumerate(separate):
        assert np.ascontiguousarray(packed.grad.numpy()[:, :, i]).tobytes() == x.grad.numpy().tobytes()


def test_dropout_keeps_the_mean_and_is_a_function_of_its_key() -> None:
    q, k, v = rn.asarray(normal(1, 1, 64, 8)), rn.asarray(normal(1, 1, 512, 8)), rn.ones((1, 1, 512, 1))
    key = rn.asarray(np.array([3, 4], np.uint32))
    one = ops.scaled_dot_product_attention(q, k, v, dropout_p=0.25, dropout_key=key).numpy()
    assert one.tobytes() == ops.scaled_dot_product_attention(q, k, v, dropout_p=0.25, dropout_key=key).numpy().tobytes()
    assert one.std() > 0 and abs(one.mean() - 1) < 0.05
    with pytest.raises(ValueError, match="dropout_key"):
        ops.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    for wrong in (-0.5, 1.5):
        with pytest.raises(ValueError, match="is a probability"):
            ops.scaled_dot_product_attention(q, k, v, dropout_p=wrong, dropout_key=key)


def test_a_trained_mask_has_a_gradient() -> None:
    arrays = [normal(2, 2, 3, 4, seed=s).astype(np.float64) for s in range(3)]
    bias = rn.asarray(normal(2, 1, 3).astype(np.float64)).requires_grad_()
    weights = normal(2, 2, 3, 4, seed=9).astype(np.float64)

    def total(added: Array) -> float:
        return float((expected(*arrays, added=added) * weights).sum())

    actual = ops.scaled_dot_product_attention(*map(rn.asarray, arrays), bias)
    (actual * rn.asarray(weights)).sum().backward()
    at = bias.numpy()
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        slope = (total(at + step) - total(at - step)) / 2e-6
        np.testing.assert_allclose(bias.grad.numpy()[place], slope, rtol=1e-6, atol=1e-8)


def test_what_does_not_fit_is_refused() -> None:
    q, k = rn.ones((2, 3, 4)), rn.ones((2, 5, 6))
    with pytest.raises(ShapeError, match="query and key must not"):
        ops.scaled_dot_product_attention(q, k, k)
    with pytest.raises(ShapeError, match="broadcast"):
        ops.scaled_dot_product_attention(q, rn.ones((3, 5, 4)), rn.ones((3, 5, 4)))
    with pytest.raises(ShapeError, match="multiple"):
        ops.scaled_dot_product_attention(rn.ones((3, 3, 4)), q, q, enable_gqa=True)
    with pytest.raises(ShapeError, match="does not broadcast"):
        ops.scaled_dot_product_attention(q, q, q, rn.ones((2, 4), dtype=rn.float32))
    with pytest.raises(ShapeError, match="lengths are 2 integers"):
        ops.scaled_dot_product_attention(q, q, q, lengths=rn.ones((3,), dtype=rn.int64))
    with pytest.raises(ShapeError, match=r"\(B, T, 3, H, D\)"):
        ops.packed_attention(q)
