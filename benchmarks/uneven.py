"""Train a Transformer encoder on sentences of uneven lengths: ragged in Runnel, padded in PyTorch, in one run.

    python benchmarks/uneven.py --torch peers/torch/bin/python --tokens 500 1000 2500 6000

Both sides see the same batches: sentences of lengths 20 ± 15 or 25 ± 19 until a batch has the number of tokens. Each
turn is a process that trains for some steps; sides alternate, and the best step of all turns counts. Tokens are those
of the sentences; padding is not counted. Memory is the largest resident size of the process, less the size before the
model exists.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DISTRIBUTIONS = {"20 ± 15": (20.3, 15.0), "25 ± 19": (24.8, 18.8)}
WORDS, CLASSES = 8000, 16


def batches(spread: str, tokens: int, count: int) -> list[list[np.ndarray]]:
    """Return batches of sentences with ``tokens`` words each."""
    mean, deviation = DISTRIBUTIONS[spread]
    rng = np.random.default_rng(0)
    results = []
    for _ in range(count):
        left, rows = tokens, []
        while left:
            length = min(left, max(1, round(rng.gamma((mean / deviation) ** 2, deviation**2 / mean))))
            rows.append(rng.integers(1, WORDS, length))
            left -= length
        results.append(rows)
    return results


def runnel_step(width: int, layers: int) -> Any:
    """Return a function that trains on a batch."""
    import runnel as rn
    from runnel import nn

    rn.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(WORDS, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, CLASSES))
    optimizer = rn.optim.Adam(model.parameters(), lr=1e-4)

    @rn.compile
    def step(words: Any, tags: Any) -> Any:
        loss = nn.functional.cross_entropy(model(words), tags)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return lambda rows: step(rn.ragged(rows), rn.ragged([r % CLASSES for r in rows])).item()


def torch_step(width: int, layers: int, threads: int) -> Any:
    """Return a function that trains on a padded batch."""
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    embedding = nn.Embedding(WORDS, width)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    encoder, output = nn.TransformerEncoder(layer, layers), nn.Linear(width, CLASSES)
    optimizer = torch.optim.Adam([p for m in (embedding, encoder, output) for p in m.parameters()], lr=1e-4)

    def step(rows: list[np.ndarray]) -> float:
        words = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.long)
        for i, row in enumerate(rows):
            words[i, : len(row)] = torch.from_numpy(row)
        mask = words == 0
        tags = (words % CLASSES).masked_fill(mask, -100)
        logits = output(encoder(embedding(words), src_key_padding_mask=mask))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Train in this process: the best tokens per second, the last loss and the memory."""
    side = options.worker
    data = batches(options.spread[0], options.tokens[0], options.steps)
    if side == "torch":
        import torch  # noqa: F401
    else:
        import runnel  # noqa: F401
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = (options.width, options.layers)
    step = torch_step(*made, options.threads) if side == "torch" else runnel_step(*made)
    times, loss = [], 0.0
    for rows in data:
        start = time.perf_counter()
        loss = step(rows)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    settled = sorted(times[len(times) // 3 :])
    return {
        "tokens": options.tokens[0] / settled[0],
        "median": options.tokens[0] / settled[len(settled) // 2],
        "loss": loss,
        "megabytes": (peak - before) / 1024,
    }


def turns(options: argparse.Namespace, spread: str, tokens: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure both sides in turns, each in a process."""
    threads = str(options.threads)
    environment = {**os.environ, "RUNNEL_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    for number in range(options.rounds):
        sides = {"runnel": sys.executable, "torch": options.torch}
        for side, python in sorted(sides.items(), reverse=bool(number % 2)):
            command = [
                python, __file__, "--worker", side, "--spread", spread, "--tokens", str(tokens), "--threads", threads,
                "--width", str(options.width), "--layers", str(options.layers), "--steps", str(options.steps),
            ]  # fmt: skip
            root = str(Path(__file__).resolve().parents[1])
            path = {"PYTHONPATH": root} if side == "runnel" else {}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment | path)
            yield side, json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="peers/torch/bin/python", help="an interpreter with PyTorch")
    parser.add_argument("--tokens", nargs="+", type=int, default=[500, 1000, 2500, 6000])
    parser.add_argument("--spread", nargs="+", default=list(DISTRIBUTIONS), choices=list(DISTRIBUTIONS))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", choices=("runnel", "torch"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options)))
        return 0
    print("| lengths | tokens | tokens/s | PyTorch, padded | ratio | ratio of medians | MiB | PyTorch | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for spread in options.spread:
        for tokens in options.tokens:
            best: dict[str, dict[str, float]] = {}
            for side, found in turns(options, spread, tokens):
                known = best.get(side, found)
                keep = {name: max(known[name], found[name]) for name in ("tokens", "median")}
                best[side] = {**keep, "megabytes": min(known["megabytes"], found["megabytes"])}
            ours, theirs = best["runnel"], best["torch"]
            ratios = [ours[name] / theirs[name] for name in ("tokens", "median", "megabytes")]
            print(
                f"| {spread} | {tokens} | {ours['tokens']:.0f} | {theirs['tokens']:.0f} | {ratios[0]:.2f} | "
                f"{ratios[1]:.2f} | {ours['megabytes']:.0f} | {theirs['megabytes']:.0f} | {ratios[2]:.2f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
