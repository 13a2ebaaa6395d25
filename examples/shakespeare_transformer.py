"""A transformer that writes Shakespeare letter by letter: less than 1.6 nats a character on text it has not seen.

    python examples/shakespeare_transformer.py [--data-dir DIR] [--quick]

Four blocks of causal attention and two dense layers each, the norms in front (A. Radford et al., "Language models are
unsupervised multitask learners", 2019), on windows of 256 characters; AdamW with a warm-up and a cosine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from running import Training, options, run

import runnel as rn
from runnel import data, nn, optim
from runnel.nn import functional as F

BATCH, WINDOW = 16, 256
WIDTH, HEADS, BLOCKS = 192, 6, 4
DROPOUT = 0.1
RATE, WARM_UP = 2e-3, 100
TEMPERATURE = 0.8


class Block(nn.Module):
    """Attention to what came before, then a dense layer of four times the width and back."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        size, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).reshape(size, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.dropout(self.merge(seen.permute(0, 2, 1, 3).reshape(size, length, WIDTH)))
        return x + self.dropout(self.narrow(F.gelu(self.widen(self.norm2(x)))))


class Writer(nn.Module):
    """For each place in a window, how likely each character is to follow."""

    def __init__(self, characters: int) -> None:
        self.characters, self.places = nn.Embedding(characters, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.dense = nn.Linear(WIDTH, characters)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                deep = name.endswith(("merge.weight", "narrow.weight"))  # what adds to x, 2·BLOCKS times
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * BLOCKS) if deep else 0.02)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        x = F.dropout(self.characters(x) + self.places(rn.arange(x.shape[1])), DROPOUT, self.training)
        return self.dense(self.norm(self.blocks(x)))


def main() -> None:
    chosen = options(__doc__, epochs=16)
    text = data.tiny_shakespeare(chosen.data_dir)
    order = np.random.default_rng(chosen.seed)
    model = Writer(len(text.alphabet))
    optimizer = optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.1)
    per_epoch = max(1, (len(text.train) - WINDOW) // WINDOW // BATCH)
    total = min(per_epoch, chosen.steps or per_epoch) * chosen.epochs

    def loss_of(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    @rn.compile
    def compiled_step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    evaluate = rn.compile(lambda x, y: loss_of(x, y).detach())
    following = rn.compile(lambda x: model(x).detach())
    done = 0

    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        nonlocal done
        done += 1
        cosine = 0.55 + 0.45 * math.cos(math.pi * done / total)
        optimizer.param_groups[0]["lr"] = RATE * min(done / WARM_UP, cosine)
        return compiled_step(x, y)

    training = Training("shakespeare_transformer", step, chosen.steps)
    reached = math.nan
    for epoch in range(chosen.epochs):
        model.train()
        loss = training.epoch(text.batches(BATCH, WINDOW, order), per_epoch)
        model.eval()
        pairs = [(x, y) for x, y in text.validation(BATCH, WINDOW)][: 8 if chosen.quick else None]
        losses = [evaluate(rn.asarray(x), rn.asarray(y)).item() for x, y in pairs]
        reached = float(np.average(losses, weights=[y.size for _, y in pairs]))
        print(f"epoch {epoch + 1}: loss {loss:.3f}, validation {reached:.4f} nats, {training.epoch_s[-1]:.1f} s")
    written = sample(following, text, 200 if chosen.quick else 800, order)
    print(f"\n{written}\n")
    parameters = model.num_parameters()
    training.report(chosen.json, parameters=parameters, validation_nats=round(reached, 4), sample=repr(written[:60]))


def sample(following: Callable[..., rn.Tensor], text: data.Characters, count: int, order: np.random.Generator) -> str:
    """``count`` characters, each drawn from what the model expects after those before it."""
    labels = text.encode("\n")
    for _ in range(count):
        seen = labels[-WINDOW:]
        window = np.zeros((1, WINDOW), np.int64)
        window[0, : len(seen)] = seen  # later places do not change the prediction at a place
        expected = following(rn.asarray(window)).numpy()[0, len(seen) - 1].astype(np.float64) / TEMPERATURE
        share = np.exp(expected - expected.max())
        labels = np.append(labels, order.choice(len(share), p=share / share.sum()))
    return text.decode(labels[1:])


if __name__ == "__main__":
    run(main)
