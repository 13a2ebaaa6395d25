"""Workloads on sequences of words: language models, their generation, taggers, translation, embeddings."""

from __future__ import annotations

import math
from typing import Any

from names import F, Step, compiled, draws, inferred, ints, nn, torch, trained


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool, rotated: bool = False) -> None:
        super().__init__()
        self.heads, self.causal, self.rotated = heads, causal, rotated
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if self.rotated:
            q, k = rotate(q), rotate(k)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.merge(attended.transpose(1, 2).reshape(batch, length, width))


def rotate(x: Any) -> Any:
    """Turn pairs of channels by angles that grow with the place (RoPE)."""
    half = x.shape[-1] // 2
    speeds = torch.exp(torch.arange(half, dtype=torch.float32) * (-math.log(10000.0) / half))
    angles = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * speeds
    a, b, sine, cosine = x[..., :half], x[..., half:], torch.sin(angles), torch.cos(angles)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], dim=-1)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = True) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


class GatedBlock(nn.Module):
    """A block in the manner of Llama: RMS norm, rotated places, SwiGLU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, heads, True, rotated=True)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Language(nn.Module):
    def __init__(self, words: int, places: int, width: int, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)
        self.output = nn.Linear(width, words, bias=False)

    def forward(self, words: Any) -> Any:
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        return self.output(self.norm(self.blocks(x)))


def language(model: Any, words: int, batch: int, length: int, parameters: Any = None) -> Step:
    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    data = ints(words, batch, length), ints(words, batch, length, seed=1)
    return trained(loss, parameters or model.parameters(), *data, optimizer="AdamW")


def nanogpt() -> Step:
    return language(Language(65, 256, 384, [Block(384, 6) for _ in range(6)]), 65, 4, 256)


def gpt_rope() -> Step:
    return language(Language(256, 128, 256, [GatedBlock(256, 4) for _ in range(4)]), 256, 8, 128)


def long_attention() -> Step:
    return language(Language(256, 2048, 256, [Block(256, 4) for _ in range(2)]), 256, 1, 2048)


class LowRank(nn.Module):
    """A fixed linear layer with a trained addition of low rank (LoRA)."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(draws(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Any) -> Any:
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)


def lora() -> Step:
    model = Language(256, 128, 256, [Block(256, 4) for _ in range(4)])
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv = LowRank(block.attention.qkv, 8)
    return language(model, 256, 4, 128, [p for p in model.parameters() if p.requires_grad])


class CachedBlock(nn.Module):
    """A block that reads a word at a time and keeps the keys and values of those before."""

    def __init__(self, width: int, heads: int, batch: int, places: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("keys", torch.zeros(batch, heads, places, width // heads))
        self.register_buffer("values", torch.zeros(batch, heads, places, width // heads))

    def forward(self, x: Any, place: Any, seen: Any) -> Any:
        batch, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, 3, self.heads, -1).unbind(1)
        self.keys[:, :, place] = k
        self.values[:, :, place] = v
        attended = F.scaled_dot_product_attention(q[:, :, None], self.keys, self.values, attn_mask=seen)
        x = x + self.merge(attended.reshape(batch, width))
        return x + self.dense(self.norm2(x))


def generated(batch: int, width: int, heads: int, layers: int, words: int, places: int, count: int) -> Step:
    """Return greedy generation of ``count`` words from an empty cache of ``places``."""
    blocks = nn.ModuleList([CachedBlock(width, heads, batch, places) for _ in range(layers)])
    table, position, norm = nn.Embedding(words, width), nn.Embedding(places, width), nn.LayerNorm(width)
    output = nn.Linear(width, words, bias=False)

    @compiled
    def step(word: Any, place: Any) -> Any:
        with torch.no_grad():
            x = table(word) + position(place)
            seen = (torch.arange(places) <= place)[None]
            for block in blocks:
                x = block(x, place, seen)
            return output(norm(x)).argmax(-1)

    def generate() -> Any:
        word, written = torch.zeros(batch, dtype=torch.int64), []
        for place in range(count):
            word = step(word, torch.tensor(place))
            written.append(word)
        return torch.stack(written)

    return generate


def gpt_generate() -> Step:
    return generated(1, 384, 6, 6, 65, 256, 64)


def read_weights() -> Step:
    """Read as many bytes as ``gpt_generate`` reads of its matrices: a lower bound of its time."""
    weights = draws(6 * 12 * 384 * 384 + 65 * 384)

    @compiled
    def step(weights: Any) -> Any:
        return weights.sum()

    return lambda: [step(weights) for _ in range(64)]


def generate_batch() -> Step:
    return generated(8, 256, 4, 4, 1000, 128, 64)


def encoder_infer() -> Step:
    return inferred(Language(1000, 64, 384, [Block(384, 6, causal=False) for _ in range(6)]), ints(1000, 1, 64))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(5000, 100), nn.LSTM(100, 128, batch_first=True, bidirectional=True)
        self.output = nn.Linear(256, 20)

    def forward(self, words: Any) -> Any:
        return self.output(self.lstm(self.words(words))[0])


def lstm_tagger() -> Step:
    model = Tagger()

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    return trained(loss, model.parameters(), ints(5000, 32, 40), ints(20, 32, 40))


class Translator(nn.Module):
    """GRU to GRU, with attention to every word of the source."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.reader, self.writer = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.output = nn.Linear(width, words)

    def forward(self, source: Any, target: Any) -> Any:
        read, h = self.reader(self.source(source))
        h, words, outputs = h[0], self.target(target), []
        for place in range(words.shape[1]):
            weights = torch.softmax((read @ h[:, :, None])[..., 0], dim=-1)
            context = (weights[:, None] @ read)[:, 0]
            h = self.writer(torch.cat([words[:, place], context], dim=-1), h)
            outputs.append(h)
        return self.output(torch.stack(outputs, dim=1))


def seq2seq() -> Step:
    model = Translator(2000, 128)

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x, y).flatten(0, 1), y.flatten())

    return trained(loss, model.parameters(), ints(2000, 32, 20), ints(2000, 32, 20, seed=1))


def big_vocab() -> Step:
    table, dense, output = nn.Embedding(30000, 128), nn.Linear(512, 256), nn.Linear(256, 30000)

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(output(torch.tanh(dense(table(x).flatten(1)))), y)

    parameters = [*table.parameters(), *dense.parameters(), *output.parameters()]
    return trained(loss, parameters, ints(30000, 128, 4), ints(30000, 128, seed=1))


def word2vec() -> Step:
    inner, outer = nn.Embedding(20000, 100), nn.Embedding(20000, 100)

    def loss(center: Any, near: Any, noise: Any) -> Any:
        c = inner(center)
        right = F.logsigmoid((c * outer(near)).sum(-1))
        wrong = F.logsigmoid(-(outer(noise) @ c[:, :, None])[..., 0]).sum(-1)
        return -(right + wrong).mean()

    data = ints(20000, 512), ints(20000, 512, seed=1), ints(20000, 512, 5, seed=2)
    return trained(loss, [*inner.parameters(), *outer.parameters()], *data, optimizer="SGD")


WORKLOADS = {
    made.__name__: made
    for made in (
        nanogpt, gpt_rope, long_attention, lora, gpt_generate, read_weights, generate_batch, encoder_infer, lstm_tagger,
        seq2seq, big_vocab, word2vec,
    )
}  # fmt: skip
