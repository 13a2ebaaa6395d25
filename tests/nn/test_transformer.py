"""Transformers against a NumPy transformer in float64 that reads their state dicts, under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.plan_ir.calls import MemorySpace
from tests.compiler.harness import Traced

Array = np.ndarray[Any, Any]
State = dict[str, Array]


def state_of(module: nn.Module) -> State:
    """Parameters under their names, in float64, moved away from ones and zeros."""
    rng = np.random.default_rng(4)
    for _, p in module.named_parameters():
        p.assign((p.numpy() + 0.1 * rng.normal(size=p.shape)).astype(np.float32))
    return {name: p.numpy().astype(np.float64) for name, p in module.named_parameters()}


def part(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)}


def linear(x: Array, s: State, name: str) -> Array:
    return x @ s[f"{name}.weight"].T + s[f"{name}.bias"]


def normed(x: Array, s: State, name: str) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * s[f"{name}.weight"] + s[f"{name}.bias"]


def attended(q: Array, k: Array, v: Array, s: State, heads: int, hidden: Any = False) -> tuple[Array, Array]:
    """Multi-head attention of (batch, time, features); ``hidden`` is True where a query does not see a key."""
    width = q.shape[-1]
    weights = np.split(s["in_proj_weight"], 3) if "in_proj_weight" in s else [
        s[f"{n}_proj_weight"] for n in "qkv"
    ]  # fmt: skip
    biases = np.split(s["in_proj_bias"], 3)
    parts = [x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True)]
    a, b, c = (x.reshape(*x.shape[:2], heads, width // heads).transpose(0, 2, 1, 3) for x in parts)
    scores = np.where(hidden, -np.inf, a @ b.swapaxes(-1, -2) / math.sqrt(width // heads))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    p = powers / powers.sum(-1, keepdims=True)
    joined = (p @ c).transpose(0, 2, 1, 3).reshape(*q.shape)
    return linear(joined, s, "out_proj"), p


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def encoded(x: Array, s: State, heads: int, first: bool, activation: Any, hidden: Any = False) -> Array:
    def attend(y: Array) -> Array:
        return attended(y, y, y, part(s, "self_attn."), heads, hidden)[0]

    def feed(y: Array) -> Array:
        return linear(activation(linear(y, s, "linear1")), s, "linear2")

    if first:
        x = x + attend(normed(x, s, "norm1"))
        return x + feed(normed(x, s, "norm2"))
    x = normed(x + attend(x), s, "norm1")
    return normed(x + feed(x), s, "norm2")


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(actual: Any, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("other_sizes", [False, True])
def test_multihead_attention(batch_first: bool, other_sizes: bool) -> None:
    more = {"kdim": 5, "vdim": 6} if other_sizes else {}
    layer = nn.MultiheadAttention(12, 3, batch_first=batch_first, **more)
    s = state_of(layer)
    q, k, v = normal(2, 4, 12), normal(2, 7, more.get("kdim", 12)), normal(2, 7, more.get("vdim", 12))
    padding = np.arange(7) >= np.array([[5], [7]])
    mask = np.random.default_rng(1).random((4, 7)) < 0.3
    mask[:, 0] = False
    expected, weights = attended(q, k, v, s, 3, padding[:, None, None] | mask)
    turn = (lambda x: x) if batch_first else (lambda x: np.ascontiguousarray(x.swapaxes(0, 1)))
    args = [rn.asarray(turn(x)) for x in (q, k, v)]
    arguments = {"key_padding_mask": rn.asarray(padding), "attn_mask": rn.asarray(mask)}
    actual, none = layer(*args, need_weights=False, **arguments)
    close(actual, turn(expected))
    assert none is None
    actual, own = layer(*args, need_weights=True, average_attn_weights=False, **arguments)
    close(actual, turn(expected))
    close(own, weights)
    close(layer(*args, need_weights=True, **arguments)[1], weights.mean(1))
    added = np.where(mask, -np.inf, 0).astype(np.float32)
    close(layer(*args, key_padding_mask=arguments["key_padding_mask"], attn_mask=rn.asarray(added))[0], turn(expected))
    lengths = layer(*args, attn_mask=arguments["attn_mask"], lengths=rn.asarray(np.array([5, 7])))[0]
    close(lengths, turn(expected))


def test_self_attention_packed_and_not_are_one() -> None:
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    s = state_of(layer)
    x = rn.asarray(normal(3, 6, 16))
    expected, _ = attended(*[x.numpy()] * 3, s, 4, np.triu(np.ones((6, 6), bool), 1))
    close(layer(x, x, x, is_causal=True)[0], expected)
    close(layer(x, x + 0.0, x, is_causal=True)[0], expected)
    one = layer(x[0], x[0], x[0], is_causal=True)[0]
    close(one, expected[0])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder(first: bool, activation: str) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation, batch_first=True, norm_first=first)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8))
    s = state_of(model)
    assert not np.array_equal(s["layers.0.linear1.weight"], s["layers.1.linear1.weight"])
    x = normal(2, 5, 8)
    padding = np.arange(5) >= np.array([[3], [5]])
    function = gelu if activation == "gelu" else lambda y: np.maximum(y, 0)
    expected = x.astype(np.float64)
    for i in range(2):
        expected = encoded(expected, part(s, f"layers.{i}."), 2, first, function, padding[:, None, None])
    close(model(rn.asarray(x), src_key_padding_mask=rn.asarray(padding)), normed(expected, s, "norm"))


def test_decoder() -> None:
    model = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True)
    s = state_of(model)
    src, tgt = normal(2, 5, 8), normal(2, 4, 8, seed=1)

    def relu(y: Array) -> Array:
        return np.maximum(y, 0)

    memory = normed(encoded(src, part(s, "encoder.layers.0."), 2, False, relu), s, "encoder.norm")
    x = tgt.astype(np.float64)
    hidden = np.triu(np.ones((4, 4), bool), 1)
    for i in range(2):
        own = part(s, f"decoder.layers.{i}.")
        x = normed(x + attended(x, x, x, part(own, "self_attn."), 2, hidden)[0], own, "norm1")
        x = normed(x + attended(x, memory, memory, part(own, "multihead_attn."), 2)[0], own, "norm2")
        x = normed(x + linear(relu(linear(x, own, "linear1")), own, "linear2"), own, "norm3")
    x = normed(x, s, "decoder.norm")
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    close(model(rn.asarray(src), rn.asarray(tgt), tgt_mask=mask), x)
    close(model(rn.asarray(src), rn.asarray(tgt), tgt_is_causal=True), x)


def test_names_are_those_of_pytorch() -> None:
    common = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    both = ["weight", "bias"]
    rest = [f"{n}.{w}" for n in ("linear1", "linear2", "norm1", "norm2") for w in both]
    encoder = [f"self_attn.{n}" for n in common] + rest
    decoder = [f"{a}.{n}" for a in ("self_attn", "multihead_attn") for n in common]
    decoder += [*rest, "norm3.weight", "norm3.bias"]
    model = nn.Transformer(4, 2, 2, 1, 8)
    expected = [f"encoder.layers.{i}.{n}" for i in range(2) for n in encoder] + [f"encoder.norm.{w}" for w in both]
    expected += [f"decoder.layers.0.{n}" for n in decoder] + [f"decoder.norm.{w}" for w in both]
    assert sorted(model.state_dict()) == sorted(expected)
    other = nn.Transformer(4, 2, 2, 1, 8)
    other.load_state_dict(model.state_dict())
    model.eval()
    other.eval()
    x = rn.asarray(normal(3, 2, 4))
    assert model(x, x).numpy().tobytes() == other(x, x).numpy().tobytes()


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
def test_lengths_do_what_padding_masks_do(batch_first: bool) -> None:
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
