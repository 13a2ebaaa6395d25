"""Attention's kernels: the same bits on any number of threads, no matrix of all scores, no copies around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.backends.cpu.codegen.contract import SCRATCH
from runnel.compiler.kernels.attention import blocks as attention_blocks, gradient as attention_gradient
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.schedule import partition
from runnel.core import switches
from runnel.core.dispatch import apply
from runnel.core.tables import reference
from runnel.ops.attention.primitives import attention_gradient_p, attention_p
from tests.compiler.harness import Traced, same_bits
from tests.ops.values import listed

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)


def operands(
    batch: int, heads: int, few: int, queries: int, keys: int, depth: int, dtype: Any, *extras: Array
) -> list[rn.Tensor]:
    rng = np.random.default_rng(2)
    shapes = ((batch, heads, queries, depth), (batch, few, keys, depth), (batch, few, keys, depth))
    return [rn.asarray(x) for x in (*[rng.normal(size=s).astype(dtype) for s in shapes], *extras)]


def attrs(causal: bool, masked: bool = False, limited: bool = False) -> dict[str, Any]:
    return {
        "packed": False,
        "causal": causal,
        "scale": 0.3,
        "masked": masked,
        "limited": limited,
        "dropout": 0.0,
        "ragged": False,
    }


def agrees(args: list[rn.Tensor], options: dict[str, Any], tolerance: float) -> None:
    """Both ops, on one to three threads, against the reference."""
    arrays = [x.numpy() for x in args]
    expected_results = reference[attention_p](*arrays, **options)
    g = np.random.default_rng(3).normal(size=expected_results.shape).astype(expected_results.dtype)
    both = [
        (attention_p, args, expected_results),
        (attention_gradient_p, [rn.asarray(g), *args], reference[attention_gradient_p](g, *arrays, **options)),
    ]
    for op, operands, reference_results in both:
        eager = [x.numpy() for x in listed(op, apply(op, *operands, **options))]
        for actual, expected in zip(eager, listed(op, reference_results), strict=True):
            np.testing.assert_allclose(actual, expected, tolerance, tolerance)
        for threads in (1, 2, 3):
            program = Traced(lambda *xs, op=op: apply(op, *xs, **options), operands, threads=threads)
            for actual, expected in zip(program(*operands), eager, strict=True):
                assert same_bits(actual, expected), (op, threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_queries_and_shared_heads(dtype: Any, causal: bool) -> None:
    agrees(operands(2, 4, 2, 110, 70, 8, dtype), attrs(causal), 5e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_more_keys_than_a_block_masks_and_lengths(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_gradient, "WHOLE", attention_blocks.KEYS)
    keys = attention_blocks.KEYS + 90
    mask = np.random.default_rng(1).random((2, 1, 60, keys)) < 0.7
    lengths = np.array([keys - 20, 33], np.int32)
    agrees(operands(2, 2, 1, 60, keys, 4, np.float32, mask, lengths), attrs(causal, True, True), 5e-5)
    added = np.random.default_rng(1).normal(size=(1, 2, 1, keys)).astype(np.float32)
    agrees(operands(2, 2, 2, 60, keys, 4, np.float32, added), attrs(causal, True), 5e-5)


def test_results_do_not_depend_on_how_queries_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    args, options = operands(1, 2, 2, 150, 40, 8, np.float32), attrs(True)
    whole = Traced(lambda *xs: apply(attention_p, *xs, **options), args)(*args)[0]
    monkeypatch.setattr(attention_blocks, "FEWEST", 7)
    cut = Traced(lambda *xs: apply(attention_p, *xs, **options), args)(*args)[0]
    assert same_bits(whole, cut)


def test_memory_does_not_grow_with_the_square_of_the_length() -> None:
    def scratch(length: int) -> tuple[int, int]:
        x = rn.zeros((1, length, 3, 1, 4)).requires_grad_()

        def program(x: rn.Tensor) -> rn.Tensor:
            x.requires_grad_()
            ops.packed_attention(x).sum().backward()
            return x.grad

        traced = Traced(program, [x])
        return traced.plan.arena.peak, traced.program.buffer.scratch_bytes - SCRATCH

    (arena, own), (twice_arena, twice_own) = scratch(1024), scratch(2048)
    assert twice_arena <= 2.1 * arena and twice_own <= 2.1 * own
    assert twice_own < 2048 * 2048 * 4 / 4


def test_scratch_of_the_gradient_is_bounded() -> None:
    def scratch(length: int) -> int:
        arrays = [rn.zeros((1, length, 1, 4)), rn.zeros((1, length, 3, 1, 4))]
        options = {**attrs(False), "packed": True}
        return Traced(lambda *xs: apply(attention_gradient_p, *xs, **options), arrays).program.buffer.scratch_bytes

    with switches.override(verify=False):  # which looks at every turn
        assert scratch(1 << 13) == scratch(1 << 14) <= scratch(attention_gradient.WHOLE)


@pytest.mark.parametrize("causal", [False, True])
def test_a_gradient_in_turns_is_that_of_all_keys_at_once(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = attention_blocks.KEYS + 70
    mask = np.random.default_rng(1).random((2, 1, 60, keys)) < 0.7
    mask[0, :, 5] = False
    lengths = np.array([keys - 20, 33], np.int32)
    args = operands(2, 4, 2, 60, keys, 4, np.float64, mask, lengths)
    g = rn.asarray(np.random.default_rng(3).normal(size=(2, 60, 4, 4)))

    def found() -> list[Array]:
        options = attrs(causal, True, True)
        return Traced(lambda *xs: apply(attention_gradient_p, *xs, **options), [g, *args])(g, *args)

    whole = found()
    monkeypatch.setattr(attention_gradient, "WHOLE", 0)
    for by_k_blocks, at_once in zip(found(), whole, strict=True):
        np.testing.assert_allclose(by_k_blocks, at_once, 1e-12, 1e-13)


def test_gradients_that_nobody_reads_cost_no_output() -> None:
    args = operands(1, 2, 1, 20, 30, 4, np.float32)
    g = rn.asarray(np.random.default_rng(3).normal(size=(1, 20, 2, 4)).astype(np.float32))
    every = apply(attention_gradient_p, g, *args, **attrs(False))
    for i in range(3):
        program = Traced(lambda *xs, i=i: apply(attention_gradient_p, *xs, **attrs(False))[i], [g, *args])
        assert len(program.plan.outputs) == 1
        assert same_bits(program(g, *args)[0], every[i].numpy())


def test_one_kernel_for_all_lengths() -> None:
    def name(length: int, batch: int) -> str:
        x = rn.zeros((batch, length, 3, 2, 8))
        (call,) = Traced(lambda x: ops.packed_attention(x, is_causal=True), [x]).plan.calls
        return call.kernel.name

    assert len({name(length, batch) for length in (1, 2, 17, 130, attention_blocks.KEYS) for batch in (1, 3)}) == 1


def test_nothing_is_copied_around_attention() -> None:
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    x = rn.asarray(np.random.default_rng(0).normal(size=(2, 6, 16)).astype(np.float32))

    def program(x: rn.Tensor) -> tuple[rn.Tensor, ...]:
        for p in layer.parameters():
            p.grad = None
        out = layer(x, x, x, need_weights=False)[0]
        (out * out).sum().backward()
        return (out, layer.in_proj_weight.grad)

    calls = Traced(program, [x], rewrite=lambda graph: USUAL.run(graph)[0]).plan.calls
    assert sum(c.kernel.name.startswith("attention") for c in calls) == 2
    assert not [c for c in calls if c.kernel.name.startswith(("copy", "concat"))]
    touched = [a.allocation for c in calls for a in c.accesses if c.kernel.name.startswith("map")]
    assert max((p.size for p in touched), default=0) <= 2 * 6 * 3 * 16
