"""A tree-LSTM on the Stanford Sentiment Treebank: five classes, from sentences as binary trees.

    python examples/sst_trees.py [--data-dir DIR] [--quick]

The network is the binary tree-LSTM of K. Tai et al., "Improved semantic representations from tree-structured long
short-term memory networks", 2015, with 150 units, words as vectors that begin at random, and a loss at every node. A
batch is a forest: ``rn.recur`` computes the nodes of all its trees together, the leaves first, without padding.
"""

from __future__ import annotations

import numpy as np
from running import Training, options, run

import runnel as rn
from runnel import data, nn, optim
from runnel.data.sentiment import Tree
from runnel.nn import functional as F

BATCH, UNITS, WIDTH, CLASSES = 50, 150, 300, 5
RARE, INNER = 0, 1  # numbers of words that training does not have, and of nodes without a word


class TreeLSTM(nn.Module):
    """Classify each node of a forest."""

    def __init__(self, words: int) -> None:
        self.embedding = nn.Embedding(words, WIDTH)
        self.inputs = nn.Linear(WIDTH, 5 * UNITS)
        self.left = nn.Linear(UNITS, 5 * UNITS, bias=False)
        self.right = nn.Linear(UNITS, 5 * UNITS, bias=False)
        self.dropout = nn.Dropout(0.5)
        self.classes = nn.Linear(UNITS, CLASSES)

    def forward(self, order: rn.Order, words: rn.Tensor) -> rn.Tensor:
        x = self.inputs(self.dropout(self.embedding(words)))
        nothing = rn.zeros(UNITS), rn.zeros(UNITS)
        h, _ = rn.recur(self.node, nothing, order, x)
        return self.classes(self.dropout(h))

    def node(self, below: tuple[tuple[rn.Tensor, rn.Tensor], ...], x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        (left, left_cell), (right, right_cell) = below
        gates = x + self.left(left) + self.right(right)
        write, keep_left, keep_right, show, new = rn.split(gates, UNITS)
        cell = rn.sigmoid(write) * rn.tanh(new)
        cell = cell + rn.sigmoid(keep_left) * left_cell + rn.sigmoid(keep_right) * right_cell
        return rn.sigmoid(show) * rn.tanh(cell), cell


class Forest:
    """Trees as arrays. The nodes of a tree are adjacent, the root last."""

    def __init__(self, trees: list[Tree], numbers: dict[str, int]) -> None:
        nodes: list[tuple[int, int, int, int]] = []
        begins = [0]

        def add(node: Tree) -> int:
            left, right = map(add, node.parts) if node.parts else (-1, -1)
            word = INNER if node.word is None else numbers.get(node.word, RARE)
            nodes.append((word, node.label, left, right))
            return len(nodes) - 1

        for tree in trees:
            add(tree)
            begins.append(len(nodes))
        table = np.array(nodes)
        self.words, self.labels, self.links, self.begins = table[:, 0], table[:, 1], table[:, 2:], np.array(begins)

    def batch(self, trees: np.ndarray) -> tuple[tuple[rn.Order, rn.Tensor], np.ndarray, np.ndarray]:
        """Return the order and the words of the nodes of some trees, their labels, and the rows of the roots."""
        sizes = self.begins[trees + 1] - self.begins[trees]
        ends = np.cumsum(sizes)
        shift = np.repeat(self.begins[trees] - (ends - sizes), sizes)
        rows = np.arange(ends[-1]) + shift
        links = self.links[rows]
        links = np.where(links < 0, -1, links - shift[:, None])
        return (rn.Order.of(links), rn.asarray(self.words[rows])), self.labels[rows], ends - 1


def main() -> None:
    chosen = options(__doc__, epochs=8)
    splits = {split: data.sst(chosen.data_dir, split) for split in ("train", "dev", "test")}
    found = dict.fromkeys(word for tree in splits["train"] for word in tree.words)
    numbers = {word: number for number, word in enumerate(found, 2)}
    forests = {split: Forest(trees, numbers) for split, trees in splits.items()}
    model = TreeLSTM(2 + len(numbers))
    optimizer = optim.Adagrad(model.parameters(), lr=0.05, weight_decay=1e-5)
    generator = np.random.default_rng(chosen.seed)

    @rn.compile
    def step(x: tuple[rn.Order, rn.Tensor], y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*x), y, reduction="sum") / BATCH
        loss.backward()
        optimizer.step()
        return loss

    @rn.compile
    def predicted(order: rn.Order, words: rn.Tensor) -> rn.Tensor:
        return model(order, words).argmax(axis=1)

    def right(split: str, most: int) -> float:
        """Return the share of trees whose root gets the right class."""
        model.eval()
        forest = forests[split]
        count = min(len(forest.begins) - 1, most)
        found = 0
        for first in range(0, count, BATCH):
            (order, words), labels, roots = forest.batch(np.arange(first, min(first + BATCH, count)))
            found += int((predicted(order, words).numpy() == labels)[roots].sum())
        model.train()
        return found / count

    training = Training("sst_trees", step, chosen.steps)
    trees = len(splits["train"])
    most = 500 if chosen.quick else trees
    best, reached = 0.0, 0.0
    for epoch in range(chosen.epochs):
        shuffled = generator.permutation(trees)
        batches = (forests["train"].batch(shuffled[i : i + BATCH])[:2] for i in range(0, trees - BATCH + 1, BATCH))
        loss = training.epoch(batches, trees // BATCH)
        dev, test = right("dev", most), right("test", most)
        if dev > best:
            best, reached = dev, test
        print(f"epoch {epoch + 1}: loss {loss:.3f}, roots right: dev {dev:.4f}, test {test:.4f}", flush=True)
    training.report(chosen.json, parameters=model.num_parameters(), test_accuracy=round(reached, 4))


if __name__ == "__main__":
    run(main)
