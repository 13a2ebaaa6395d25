"""Automatic batching: the programs that DyNet and N3LDG++ published, batched and one by one.

    python benchmarks/autobatch.py --threads 1
    python benchmarks/autobatch.py --torch peers/torch/bin/python   # adds PyTorch, one sample after another

Each number is sentences per second, the best of some rounds, forward and backward without a step of an optimizer. The
sentences are made up: lengths like SST's, 19 words on average. Off and on take turns.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PUBLISHED = {
    "BiLSTM": 9.3,
    "BiLSTM, characters": 8.4,
    "tree-LSTM": 7.1,
    "transition parser": 3.6,
    "equal lengths": 11.4,
}
WORDS, LETTERS, TAGS = 2000, 60, 10


def sentence(rng: np.random.Generator, length: int | None = None) -> list[int]:
    """Return the words of a sentence."""
    return rng.integers(0, WORDS, length or int(np.clip(rng.normal(19, 9), 2, 50))).tolist()  # type: ignore[no-any-return]


def tree(rng: np.random.Generator, words: list[int]) -> Any:
    """Return a random binary tree over words."""
    if len(words) == 1:
        return words[0]
    cut = int(rng.integers(1, len(words)))
    return tree(rng, words[:cut]), tree(rng, words[cut:])


def actions(rng: np.random.Generator, words: int) -> list[int]:
    """Return shifts (0) and reductions (1) that leave one item."""
    sequence, depth, left = [], 0, words
    while left or depth > 1:
        shift = left and (depth < 2 or rng.random() < 0.5)
        sequence.append(0 if shift else 1)
        depth, left = (depth + 1, left - 1) if shift else (depth - 1, left)
    return sequence


def samples(case: str, count: int, seed: int) -> list[Any]:
    """Return samples of Python numbers."""
    rng = np.random.default_rng(seed)
    made = [sentence(rng, 20 if case == "equal lengths" else None) for _ in range(count)]
    if case == "tree-LSTM":
        return [tree(rng, words) for words in made]
    if case == "transition parser":
        return [(words, actions(rng, len(words))) for words in made]
    if case == "BiLSTM, characters":
        return [[rng.integers(0, LETTERS, rng.integers(2, 9)).tolist() for _ in words] for words in made]
    return made


class Network:
    """Build the networks with ``t``, which is Runnel or PyTorch: their names agree."""

    def __init__(self, t: Any, width: int) -> None:
        nn = t.nn
        self.t, self.width = t, width

        class Tree(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.gates = nn.Linear(2 * width, 5 * width)

            def forward(self, left: Any, right: Any) -> Any:
                (h1, c1), (h2, c2) = left, right
                i, f1, f2, o, u = t.chunk(self.gates(t.cat([h1, h2], -1)), 5, -1)
                c = t.sigmoid(i) * t.tanh(u) + t.sigmoid(f1) * c1 + t.sigmoid(f2) * c2
                return t.sigmoid(o) * t.tanh(c), c

        class Leaf(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.embedding, self.linear = nn.Embedding(WORDS, width), nn.Linear(width, width)

            def forward(self, word: Any) -> Any:
                c = self.linear(self.embedding(word))
                return t.tanh(c), c

        class Pair(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(2 * width, width)

            def forward(self, a: Any, b: Any) -> Any:
                return t.tanh(self.linear(t.cat([a, b], -1)))

        class Scored(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.linear, self.loss = nn.Linear(width, TAGS), nn.CrossEntropyLoss()

            def forward(self, x: Any, tag: Any) -> Any:
                return self.loss(self.linear(x), tag)

        self.words, self.letters = nn.Embedding(WORDS, width), nn.Embedding(LETTERS, width)
        self.there, self.back, self.spell = (nn.LSTMCell(width, width) for _ in range(3))
        self.tree, self.leaf, self.pair, self.scored = Tree(), Leaf(), Pair(), Scored()
        self.start = t.zeros(width)
        parts = (
            self.words,
            self.letters,
            self.there,
            self.back,
            self.spell,
            self.tree,
            self.leaf,
            self.pair,
            self.scored,
        )
        self.parameters = [p for part in parts for p in part.parameters()]
        self.tags = [t.tensor(i) for i in range(TAGS)]

    def tensors(self, sample: Any) -> Any:
        """Return a sample with tensors for words, as a program makes them once when it loads data."""
        if isinstance(sample, (tuple, list)):
            return type(sample)(map(self.tensors, sample))
        return self.t.tensor(sample)

    def chain(self, cell: Any, xs: list[Any]) -> list[Any]:
        """Return the states after each of ``xs``."""
        state, states = (self.start, self.start), []
        for x in xs:
            state = cell(x, state)
            states.append(state[0])
        return states

    def tagged(self, xs: list[Any]) -> Any:
        there, back = self.chain(self.there, xs), self.chain(self.back, xs[::-1])[::-1]
        losses = [self.scored(self.pair(a, b), self.tags[0]) for a, b in zip(there, back, strict=True)]
        return self.t.stack(losses).sum()

    def bilstm(self, words: Any) -> Any:
        return self.tagged([self.words(word) for word in words])

    def characters(self, words: Any) -> Any:
        return self.tagged([self.chain(self.spell, [self.letters(x) for x in word])[-1] for word in words])

    def encoded(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return self.tree(self.encoded(node[0]), self.encoded(node[1]))
        return self.leaf(node)

    def trees(self, node: Any) -> Any:
        return self.scored(self.encoded(node)[0], self.tags[1])

    def parser(self, sample: Any) -> Any:
        words, steps = sample
        buffer, losses = [self.words(x) for x in words], []
        empty = (self.start, self.start)
        stack: list[tuple[Any, Any]] = []
        for step in steps:
            state = stack[-1][1] if stack else empty
            losses.append(self.scored(state[0], self.tags[step]))
            if step == 0:
                x = buffer.pop(0)
            else:
                (right, _), (left, _) = stack.pop(), stack.pop()
                x = self.pair(left, right)
            stack.append((x, self.there(x, stack[-1][1] if stack else empty)))
        return self.t.stack(losses).sum()

    def manual(self, words: Any) -> Any:
        """The tagger for a matrix of words, one row for each sentence: batched by hand."""
        t = self.t
        columns = [self.words(words[:, i]) for i in range(words.shape[1])]
        start, self.start = self.start, t.zeros(words.shape[0], self.width)
        there, back = self.chain(self.there, columns), self.chain(self.back, columns[::-1])[::-1]
        self.start = start
        tag = t.zeros(words.shape[0], dtype=t.int64)
        losses = [self.scored(self.pair(a, b), tag) for a, b in zip(there, back, strict=True)]
        return t.stack(losses).sum() * words.shape[0]


CASES: dict[str, Callable[[Network], Callable[[Any], Any]]] = {
    "BiLSTM": lambda n: n.bilstm,
    "BiLSTM, characters": lambda n: n.characters,
    "tree-LSTM": lambda n: n.trees,
    "transition parser": lambda n: lambda sample: n.parser((sample[0], sample[1])),
    "equal lengths": lambda n: n.bilstm,
}


def rate(network: Network, run: Callable[[Any], Any], batch: Any, count: int) -> float:
    """Return sentences per second of one forward and backward pass."""
    begin = time.perf_counter()
    run(batch).backward()
    seconds = time.perf_counter() - begin
    for p in network.parameters:
        p.grad = None
    return count / seconds


def prepared(network: Network, case: str, count: int, seed: int) -> list[Any]:
    """Return a batch with tensors; the actions of a parser stay numbers."""
    made = samples(case, count, seed)
    if case == "transition parser":
        return [(network.tensors(words), steps) for words, steps in made]
    return [network.tensors(x) for x in made]


def measure(case: str, batch: int, rounds: int, width: int) -> dict[str, float]:
    """Return rates of Runnel: batched, on structures not seen before and again; one by one; by hand."""
    import runnel as rn

    rn.manual_seed(0)
    network = Network(rn, width)
    fn = rn.autobatch(CASES[case](network))
    batches = [prepared(network, case, batch, seed) for seed in range(rounds)]
    best = dict.fromkeys(("on", "off"), 0.0)

    def on(samples: Any) -> Any:
        return fn(samples).sum()

    def off(samples: Any) -> Any:
        return fn.one_by_one(samples).sum()

    for _ in range(2):
        for samples_ in batches[: rounds // 2]:
            rate(network, on, samples_, batch)
        rate(network, off, batches[0][: batch // 8], 1)
    for samples_ in batches[rounds // 2 :]:  # new structures
        best["on"] = max(best["on"], rate(network, on, samples_, batch))
        best["off"] = max(best["off"], rate(network, off, samples_[: batch // 8], batch // 8))
    report = fn.report()
    if case == "equal lengths":
        words = rn.asarray(np.array(samples(case, batch, 0)))
        best["by hand"] = 0.0
        for i in range(2 * rounds):
            by_hand = rate(network, network.manual, words, batch)
            again = rate(network, on, batches[0], batch)
            if i > 1:
                best["by hand"], best["on"] = max(best["by hand"], by_hand), max(best["on"], again)
    total = report.recording + report.scheduling + report.copies + report.programs
    best["calls"], best["groups"] = report.calls, report.groups
    best["copied"] = report.copied / max(report.read, 1)
    for step in ("recording", "scheduling", "copies", "programs"):
        best[step] = getattr(report, step) / total
    return best


def measure_torch(case: str, batch: int, rounds: int, width: int) -> float:
    """Return the rate of PyTorch, one sample after another."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    network = Network(torch, width)
    fn = CASES[case](network)
    best = 0.0
    for seed in range(rounds):
        part = prepared(network, case, batch // 8, seed)
        best = max(best, rate(network, lambda xs: torch.stack([fn(x) for x in xs]).sum(), part, batch // 8))
    return best


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch", help="the interpreter of an environment with PyTorch")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        found = measure_torch(options.side, options.batch, options.rounds, options.width)
        print(json.dumps(found))
        return 0
    os.environ["RUNNEL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print("| program | off | on | on / off | DyNet's on / off | PyTorch | calls | groups | gathered | recording | "
          "scheduling | copies | programs |\n| --- |" + " ---: |" * 12)  # fmt: skip
    for case in options.cases:
        found = measure(case, options.batch, options.rounds, options.width)
        torch = "-"
        if options.torch:
            command = [options.torch, __file__, "--side", case, "--batch", str(options.batch)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            torch = f"{json.loads(done.stdout):.1f}"
        shares = " | ".join(f"{found[x]:.0%}" for x in ("copied", "recording", "scheduling", "copies", "programs"))
        on, off = found["on"], found["off"]
        numbers = f"{off:.1f} | {on:.1f} | {on / off:.1f} | {PUBLISHED[case]} | {torch}"
        print(f"| {case} | {numbers} | {found['calls']} | {found['groups']} | {shares} |", flush=True)
        if "by hand" in found:
            print(f"batched by hand: {found['by hand']:.1f}; by hand / automatic {found['by hand'] / found['on']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
