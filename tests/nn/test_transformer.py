"""Attention and transformers beyond the cases recorded from PyTorch: masks, lengths, dropout, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.plan_ir.calls import MemorySpace
from tests.compiler.harness import Traced

Array = np.ndarray[Any, Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(actual: Any, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("batch_first", [True, False])
def test_masks_of_attention_that_mean_the_same(batch_first: bool) -> None:
    layer = nn.MultiheadAttention(12, 3, batch_first=batch_first)
    q, k = (rn.asarray(normal(*((2, n) if batch_first else (n, 2)), 12)) for n in (4, 7))
    padding = np.arange(7) >= np.array([[5], [7]])
    mask = np.random.default_rng(1).random((4, 7)) < 0.3
    mask[:, 0] = False
    seen = {"attn_mask": rn.asarray(mask)}
    expected, weights = layer(q, k, k, key_padding_mask=rn.asarray(padding), average_attn_weights=False, **seen)
    assert not weights.numpy()[np.broadcast_to(padding[:, None, None] | mask, weights.shape)].any()
    added = {"attn_mask": rn.asarray(np.where(mask, -np.inf, 0).astype(np.float32))}
    for options in (
        {"key_padding_mask": rn.asarray(padding), "need_weights": False, **seen},
        {"key_padding_mask": rn.asarray(padding), **added},
        {"lengths": rn.asarray(np.array([5, 7])), **seen},
    ):
        actual, average = layer(q, k, k, **options)
        close(actual, expected.numpy())
        assert average is None or np.allclose(average.numpy(), weights.numpy().mean(1), atol=1e-6)


def test_causal_attention_is_attention_with_a_mask() -> None:
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    x = rn.asarray(normal(3, 6, 16))
    expected = layer(x, x, x, attn_mask=rn.asarray(np.triu(np.ones((6, 6), bool), 1)))[0].numpy()
    close(layer(x, x, x, is_causal=True)[0], expected)
    close(layer(x, x + 0.0, x, is_causal=True)[0], expected)
    close(layer(x[0], x[0], x[0], is_causal=True)[0], expected[0])
    model = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True)
    src, tgt = rn.asarray(normal(2, 5, 8)), rn.asarray(normal(2, 4, 8, seed=1))
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    close(model(src, tgt, tgt_is_causal=True), model(src, tgt, tgt_mask=mask).numpy())


def test_a_compiled_step_with_dropout_gives_eagers_bits() -> None:
    x, y = rn.asarray(normal(2, 6, 8)), rn.asarray(np.array([1, 0]))

    def losses(compiled: bool) -> list[bytes]:
        rn.manual_seed(5)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.2, "gelu", batch_first=True)
        model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(48, 2))
        optimizer = rn.optim.SGD(model.parameters(), 0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = ops.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = rn.compile(step) if compiled else step
        actual = [run(x, y).numpy().tobytes() for _ in range(4)]
        return actual + [p.numpy().tobytes() for p in model.parameters()]

    assert losses(True) == losses(False)
    assert len(set(losses(True)[:4])) == 4


def test_dropout_happens_inside_attention() -> None:
    """No array as large as all weights, and the numbers of the layer that gives its weights, which are arrays."""
    layer = nn.MultiheadAttention(16, 4, dropout=0.3, batch_first=True)
    x = rn.asarray(normal(2, 200, 16))

    def program(x: Any) -> Any:
        for p in layer.parameters():
            p.grad = None
        out = layer(x, x, x, is_causal=True, need_weights=False)[0]
        (out * out).sum().backward()
        return out, layer.in_proj_weight.grad

    plan = Traced(program, [x], rewrite=lambda graph: USUAL.run(graph)[0]).plan
    assert (
        max(a.allocation.size for c in plan.calls for a in c.accesses if a.allocation.space is MemorySpace.ARENA)
        < 200 * 200
    )
    results = []
    for need_weights in (False, True):
        rn.manual_seed(3)
        results.append(layer(x, x, x, is_causal=True, need_weights=need_weights)[0])
    close(results[0], results[1].numpy())
    layer.eval()
    assert not np.allclose(results[0].numpy(), layer(x, x, x, is_causal=True)[0].numpy(), atol=1e-2)


@pytest.mark.parametrize("batch_first", [True, False])
def test_lengths_have_the_effect_of_padding_masks(batch_first: bool) -> None:
    model = nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=batch_first)
    shapes = ((3, 5, 8), (3, 6, 8)) if batch_first else ((5, 3, 8), (6, 3, 8))
    src, tgt = (rn.asarray(normal(*s, seed=i)) for i, s in enumerate(shapes))
    of_src, of_tgt = np.array([5, 2, 3]), np.array([1, 6, 4])
    hidden, tgt_hidden = (np.arange(n) >= x[:, None] for n, x in ((5, of_src), (6, of_tgt)))
    masks = {
        "src_key_padding_mask": rn.asarray(hidden), "memory_key_padding_mask": rn.asarray(hidden),
        "tgt_key_padding_mask": rn.asarray(tgt_hidden),
    }  # fmt: skip
    lengths = {
        "src_lengths": rn.asarray(of_src),
        "memory_lengths": rn.asarray(of_src),
        "tgt_lengths": rn.asarray(of_tgt),
    }
    close(model(src, tgt, **lengths), model(src, tgt, **masks).numpy())
    padded = model.encoder(src, src_key_padding_mask=rn.asarray(hidden))
    close(model.encoder(src, lengths=rn.asarray(of_src)), padded.numpy())


def test_layers_that_know_of_no_lengths_still_fit() -> None:
    class Twice(nn.Module):
        def forward(self, src: Any, mask: Any = None, padding: Any = None, is_causal: bool = False) -> Any:
            return src * 2.0

    model = nn.TransformerEncoder(Twice(), 3)
    assert model(rn.ones((1, 2, 4))).numpy().max() == 8


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="must be divisible by num_heads"):
        nn.MultiheadAttention(10, 3)
    with pytest.raises(ValueError, match="'relu' or 'gelu'"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")
