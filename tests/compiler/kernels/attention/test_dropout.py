"""Dropout inside attention's kernels: the mask of the composed form to the bit, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.backends.interpreter import kernels as interpreter
from runnel.compiler.kernels.attention import blocks as attention_blocks, gradient as attention_gradient, masks
from runnel.compiler.lowering.parts import Parts
from runnel.compiler.plan_ir.calls import Allocation, MemorySpace
from runnel.compiler.schedule import partition
from runnel.core.dispatch import apply
from runnel.core.dtypes import bool_, float32, int64, uint32
from runnel.core.tables import reference
from runnel.loops.ir import Buffer, Const, For, Index, Kernel, Store, Var
from runnel.ops.attention.primitives import attention_gradient_p, attention_p
from runnel.ops.attention.terms import Options, attention_weights, dropped
from runnel.ops.random import philox
from tests.ops.values import listed
from tests.suites.plans import interpret, traced

from ...harness import Traced, same_bits

Array = np.ndarray[Any, Any]
KEY = np.array([7, 2**32 - 5], np.uint32)


def attrs(p: float, causal: bool = False, masked: bool = False, limited: bool = False) -> dict[str, Any]:
    return {
        "packed": False, "causal": causal, "scale": 0.3, "masked": masked, "limited": limited, "dropout": p,
        "ragged": False,
    }  # fmt: skip


def operands(shape: tuple[int, ...], queries: int, keys: int, dtype: Any = np.float32, seed: int = 0) -> list[Array]:
    """q, k, v of (batch, heads, depth)."""
    rng = np.random.default_rng(seed)
    batch, heads, depth = shape
    return [rng.normal(size=(batch, heads, n, depth)).astype(dtype) for n in (queries, keys, keys)]


@settings(deadline=None, max_examples=15)
@given(
    batch=st.integers(1, 2), heads=st.integers(1, 3), queries=st.integers(1, 40), keys=st.integers(1, 40),
    p=st.sampled_from([0.1, 0.5, 0.9, 1.0, 1e-9]), causal=st.booleans(), key=st.integers(0, 2**64 - 1),
)  # fmt: skip
def test_the_kernel_drops_what_the_composed_form_drops(
    batch: int, heads: int, queries: int, keys: int, p: float, causal: bool, key: int
) -> None:
    q, k, _ = map(rn.asarray, operands((batch, heads, 4), queries, keys))
    each = rn.asarray(np.broadcast_to(np.eye(keys, dtype=np.float32), (batch, heads, keys, keys)).copy())
    words = rn.asarray(np.array([key & 0xFFFFFFFF, key >> 32], np.uint32))
    options = Options(causal, 0.5, None, None, p, words)
    composed = dropped(attention_weights(q, k, options), options).numpy()
    actual = ops.scaled_dot_product_attention(q, k, each, None, p, causal, 0.5, dropout_key=words).numpy()
    np.testing.assert_array_equal(actual == 0, composed == 0)
    np.testing.assert_allclose(actual, composed, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("extents", [(2, 110, 70), (1, 20, 1100)])
def test_both_kernels_on_any_number_of_threads(
    extents: tuple[int, int, int], causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    monkeypatch.setattr(attention_gradient, "WHOLE", attention_blocks.KEYS)
    batch, queries, keys = extents
    main = operands((batch, 2, 8), queries, keys)
    mask = np.random.default_rng(1).normal(size=(1, 2, 1, keys)).astype(np.float32)
    lengths = np.full(batch, keys - 3, np.int32)
    arrays = [*main, mask, lengths, KEY]
    options = attrs(0.25, causal, True, True)
    g = np.random.default_rng(3).normal(size=(batch, queries, 2, 8)).astype(np.float32)
    for op, op_arrays in ((attention_p, arrays), (attention_gradient_p, [g, *arrays])):
        args = [rn.asarray(x) for x in op_arrays]
        eager = [x.numpy() for x in listed(op, apply(op, *args, **options))]
        for actual, expected in zip(eager, listed(op, reference[op](*op_arrays, **options)), strict=True):
            np.testing.assert_allclose(actual, expected, 5e-5, 5e-5)
        for threads in (1, 2, 3):
            program = Traced(lambda *xs, op=op: apply(op, *xs, **options), args, threads=threads)
            for actual, expected in zip(program(*args), eager, strict=True):
                assert same_bits(actual, expected), (op, threads)


def test_positions_of_two_words_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    args, options = [rn.asarray(x) for x in (*operands((1, 2, 4), 33, 50), KEY)], attrs(0.3)
    narrow = Traced(lambda *xs: apply(attention_p, *xs, **options), args)
    monkeypatch.setattr(masks, "WORDS", 0)
    wide = Traced(lambda *xs: apply(attention_p, *xs, **options), args)
    assert wide.plan.calls[-1].kernel.name != narrow.plan.calls[-1].kernel.name
    assert same_bits(wide(*args)[0], narrow(*args)[0])


def test_a_row_that_crosses_into_the_next_word() -> None:
    """The positions of one row of 70 begin 30 before 2³², in the kernel's own statements as in the generator."""
    parts, j = Parts(), Var("j")
    allocation = Allocation(MemorySpace.INPUT, uint32, 2, "key")
    dropout_mask = masks.DropoutMask(parts, (allocation, 0, 1), 0.5, float32, masks.WORDS + 1, 1)
    begin = masks.WORDS - 30
    parts.buffers.append(Buffer("o", bool_, "out"))
    store = Store("o", Index(((j, 1),)), masks.DROPPED)
    body = (
        *dropout_mask.begin(),
        *dropout_mask.row(Const(begin, int64), None),
        For(j, 0, 70, "vec", (*dropout_mask.draw(j), store)),
    )
    kernel = Kernel("k", tuple(parts.buffers), tuple(parts.params), body)
    dropped = np.zeros(70, bool)
    params = {p.name: v for p, v in zip(parts.params, parts.values, strict=True)}
    interpreter.run(kernel, {"key": KEY, "o": dropped}, params, 0, 1)
    np.testing.assert_array_equal(dropped, [_word(begin + i) < 2**31 for i in range(70)])


def _word(position: int) -> int:
    """Word 0 of the block of one position, by the generator's rounds on Python's integers."""
    mask = 0xFFFFFFFF
    word = philox(
        (position & mask, position >> 32, 0, 0), (int(KEY[0]), int(KEY[1])), int,
        lambda a, b: (a + b) & mask, lambda a, b: a * b & mask, lambda a, b: a * b >> 32, lambda a, b: a ^ b,
    )  # fmt: skip
    return int(word[0])


def test_one_kernel_for_all_probabilities_and_none_without() -> None:
    args = [rn.asarray(x) for x in operands((1, 2, 4), 9, 9)]
    key = rn.asarray(KEY)

    def name(p: float) -> str:
        all_args = [*args, key] if p else args
        (call,) = Traced(lambda *xs: apply(attention_p, *xs, **attrs(p)), all_args).plan.calls
        return str(call.kernel.name)

    assert len({name(p) for p in (0.1, 0.7, 1.0)}) == 1
    assert name(0.0) != name(0.1)


@pytest.mark.parametrize("at_once", [1024, 16])
def test_the_interpreter_agrees(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_gradient, "WHOLE", at_once)
    arrays = [*operands((1, 2, 4), 7, 20), KEY]
    g = np.random.default_rng(3).normal(size=(1, 7, 2, 4)).astype(np.float32)
    for op, op_arrays in ((attention_p, arrays), (attention_gradient_p, [g, *arrays])):
        plan = traced(lambda *xs, op=op: apply(op, *xs, **attrs(0.4, True)), op_arrays)
        native = Traced(lambda *xs, op=op: apply(op, *xs, **attrs(0.4, True)), [rn.asarray(x) for x in op_arrays])
        native_results = native(*[rn.asarray(x) for x in op_arrays])
        for actual, expected in zip(interpret(plan, op_arrays), native_results, strict=True):
            np.testing.assert_allclose(actual, expected.reshape(-1), rtol=1e-5, atol=1e-6)


def test_gradients_in_float64() -> None:
    """The gradient of the composed form, which draws the same mask, and the gradient of that gradient."""
    arrays = operands((2, 2, 3), 5, 6, np.float64)
    key = rn.asarray(KEY)
    weights = rn.asarray(np.random.default_rng(5).normal(size=(2, 2, 5, 3)))

    def fused(q: Any, k: Any, v: Any) -> Any:
        return ops.scaled_dot_product_attention(q, k, v, None, 0.4, True, 0.7, dropout_key=key)

    def composed(q: Any, k: Any, v: Any) -> Any:
        options = Options(True, 0.7, None, None, 0.4, key)
        return ops.matmul(dropped(attention_weights(q, k, options), options), v)

    for order in (1, 2):
        derivatives = [_derivatives(f, arrays, weights, order) for f in (fused, composed)]
        for x, y in zip(*derivatives, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


def _derivatives(function: Any, arrays: list[Array], weights: Any, order: int) -> list[Array]:
    def total(*xs: Any) -> Any:
        return (function(*xs) * weights).sum()

    def sharpness(*xs: Any) -> Any:
        return sum(((g * g).sum() for g in rn.grad(total, argnums=(0, 1, 2))(*xs)), start=rn.asarray(0.0))

    objective = total if order == 1 else sharpness
    return [g.numpy() for g in rn.grad(objective, argnums=(0, 1, 2))(*map(rn.asarray, arrays))]


def test_eager_and_compiled_are_one() -> None:
    arrays = [rn.asarray(x) for x in operands((2, 2, 4), 30, 30)]
    key = rn.asarray(KEY)

    def step(q: Any, k: Any, v: Any) -> tuple[Any, ...]:
        def loss(*xs: Any) -> Any:
            out = ops.scaled_dot_product_attention(*xs, dropout_p=0.2, dropout_key=key)
            return (out * out).sum()

        return rn.value_and_grad(loss, argnums=(0, 1, 2))(q, k, v)

    value, grads = step(*arrays)
    again, compiled = rn.compile(step)(*arrays)
    assert same_bits(value.numpy(), again.numpy())
    assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(grads, compiled, strict=True))
