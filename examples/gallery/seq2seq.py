"""Sequence to sequence: dates as people write them become dates as machines do.

    python examples/gallery/seq2seq.py [--quick] [--picture seq2seq.png]

D. Bahdanau, K. Cho and Y. Bengio, "Neural machine translation by jointly learning to align and translate", 2015: a
GRU reads "7 march 1986", another one writes "1986-03-07" and looks, at each character, at the part of the text that
it needs.
"""

from __future__ import annotations

import calendar
import datetime
from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

ALPHABET = " ,-/0123456789abcdefghijklmnoprstuvy^"
WIDTH, BATCH, READ, WRITTEN = 96, 64, 20, 10
FORMATS = ("{d} {m} {y}", "{m} {d}, {y}", "{d} {s} {y}", "{s} {d}, {y}", "{d}/{n}/{y}")
MONTHS = [name.lower() for name in calendar.month_name[1:]]


class Translator(nn.Module):
    def __init__(self) -> None:
        self.characters = nn.Embedding(len(ALPHABET), WIDTH)
        self.reader = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.memory, self.start = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.writer = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.output = nn.Linear(2 * WIDTH, len(ALPHABET))

    def forward(self, text: rn.Tensor, written: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        """Return the scores of the character after each written one, and where the model looked for it."""
        read, last = self.reader(self.characters(text))
        start = rn.tanh(self.start(rn.cat([last[0], last[1]], axis=-1)))
        states, _ = self.writer(self.characters(written), start[None])
        memory = self.memory(read)
        looks = rn.softmax(states @ memory.transpose(1, 2) / WIDTH**0.5, dim=-1)
        return self.output(rn.cat([states, looks @ memory], axis=-1)), looks


def encoded(texts: list[str], length: int) -> np.ndarray:
    return np.array([[ALPHABET.index(letter) for letter in text.ljust(length)] for text in texts])


def dates(count: int, generator: np.random.Generator) -> tuple[list[str], list[str]]:
    first = datetime.date(1950, 1, 1).toordinal()
    texts, answers = [], []
    for day, form in zip(
        generator.integers(0, 36_500, count), generator.integers(len(FORMATS), size=count), strict=True
    ):
        date = datetime.date.fromordinal(first + int(day))
        month = MONTHS[date.month - 1]
        texts.append(FORMATS[form].format(d=date.day, m=month, s=month[:3], n=date.month, y=date.year))
        answers.append(date.isoformat())
    return texts, answers


def train(steps: int) -> dict[str, Any]:
    model = Translator()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    generator = np.random.default_rng(0)

    @rn.compile
    def step(text: rn.Tensor, written: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        logits, _ = model(text, written[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), written[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(steps):
        texts, answers = dates(BATCH, generator)
        step(rn.asarray(encoded(texts, READ)), rn.asarray(encoded(["^" + a for a in answers], WRITTEN + 1)))
    texts, answers = dates(200, generator)
    read, written = rn.asarray(encoded(texts, READ)), rn.full((200, 1), ALPHABET.index("^"))
    with rn.no_grad():
        for _ in range(WRITTEN):
            logits, _ = model(read, written)
            written = rn.cat([written, logits[:, -1:].argmax(axis=-1)], axis=1)
        _, looks = model(read, written[:, :-1])
    translated = ["".join(ALPHABET[number] for number in row) for row in written[:, 1:].tolist()]
    right = np.mean([a == b for a, b in zip(translated, answers, strict=True)])
    return {"reached": {"dates right": right}, "text": texts[0], "answer": translated[0], "looks": looks[0].numpy()}


def draw(axes: Any, text: str, answer: str, looks: np.ndarray) -> None:
    axes.imshow(looks[:, : len(text)], cmap="Blues")
    axes.set_xticks(range(len(text)), list(text))
    axes.set_yticks(range(len(answer)), list(answer))


if __name__ == "__main__":
    run(__doc__, train, steps=1000, quick=10, draw=draw)
