"""A recurrent network on film reviews: 0.845 to 0.87 of the test reviews after three epochs.

    python examples/imdb_gru.py [--data-dir DIR] [--quick]

Network, training and expected accuracies come from the Rosetta benchmark of deep-learning frameworks
(I. Karmanov et al., github.com/ilkarman/DeepLearningFrameworks): words as vectors of 125 numbers, a GRU of 100 units
over 150 words (the last of each review, zeros behind short ones), and a dense layer: 3,818,302 parameters, Adam.
"""

from __future__ import annotations

import numpy as np
from running import Training, accuracy, options, run

import runnel as rn
from runnel import data, nn, optim
from runnel.nn import functional as F

BATCH, WORDS, LENGTH = 64, 30_000, 150


class Reader(nn.Module):
    """Classify by the state of the GRU after the last word."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(WORDS, 125)
        self.gru = nn.GRU(125, 100, batch_first=True)
        self.dense = nn.Linear(100, 2)

    def forward(self, words: rn.Tensor) -> rn.Tensor:
        outputs, _ = self.gru(self.embedding(words))
        return self.dense(outputs[:, -1])


def main() -> None:
    chosen = options(__doc__, epochs=3)
    reviews = data.imdb(chosen.data_dir, length=LENGTH, words=WORDS)
    order = np.random.default_rng(chosen.seed)
    model = Reader()
    optimizer = optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.999), eps=1e-8)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    @rn.compile
    def labels(x: rn.Tensor) -> rn.Tensor:
        return model(x).argmax(axis=1)

    training = Training("imdb_gru", step, chosen.steps)
    tested = 2000 if chosen.quick else len(reviews.test_y)
    reached = 0.0
    for epoch in range(chosen.epochs):
        loss = training.epoch(reviews.batches(BATCH, order), len(reviews.train_y) // BATCH)
        reached = accuracy(labels, reviews.test_x[:tested], reviews.test_y[:tested])
        print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {reached:.4f}, {training.epoch_s[-1]:.1f} s")
    training.report(chosen.json, parameters=model.num_parameters(), test_accuracy=round(reached, 4))


if __name__ == "__main__":
    run(main)
