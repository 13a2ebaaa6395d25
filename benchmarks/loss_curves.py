"""Loss curves of the same networks in PyTorch and in Runnel, from the same initial weights and batches.

    peers/torch/bin/python benchmarks/loss_curves.py --framework torch --json torch.json
    python benchmarks/loss_curves.py --against torch.json

The text of a network is the same for both: it is built from ``nn`` and ``F``, which are PyTorch's or Runnel's. Weights
and batches come from NumPy's ``RandomState``, whose streams are fixed for all time. The second command prints, for each
network, by how much Runnel's losses differ from PyTorch's at most, relative to PyTorch's. ``--size small`` takes
networks that a test can train.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Batch = tuple[np.ndarray, np.ndarray]
STEPS = 100
BATCHES = 10  # that many different ones, again and again


def cnn(nn: Any, F: Any, channels: int, pixels: int, hidden: int) -> Any:
    """The Rosetta network for images, without dropout."""

    class CNN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            a, b = channels, 2 * channels
            self.c1, self.c2 = nn.Conv2d(3, a, 3, padding=1), nn.Conv2d(a, a, 3, padding=1)
            self.c3, self.c4 = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
            self.f1, self.f2 = nn.Linear(b * (pixels // 4) ** 2, hidden), nn.Linear(hidden, 10)

        def forward(self, x: Any) -> Any:
            x = F.relu(F.max_pool2d(self.c2(F.relu(self.c1(x))), 2))
            x = F.relu(F.max_pool2d(self.c4(F.relu(self.c3(x))), 2))
            return self.f2(F.relu(self.f1(x.flatten(1))))

    return CNN()


def gru(nn: Any, F: Any, words: int, inputs: int, hidden: int) -> Any:
    """The Rosetta network for reviews."""

    class GRU(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.e, self.g = nn.Embedding(words, inputs), nn.GRU(inputs, hidden, batch_first=True)
            self.o = nn.Linear(hidden, 2)

        def forward(self, x: Any) -> Any:
            return self.o(self.g(self.e(x))[0][:, -1])

    return GRU()


def encoder(nn: Any, F: Any, width: int, heads: int, layers: int, words: int) -> Any:
    """A transformer's encoder and a dense layer."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
            self.e, self.t = nn.Embedding(words, width), nn.TransformerEncoder(layer, layers)
            self.o = nn.Linear(width, words)

        def forward(self, x: Any) -> Any:
            return self.o(self.t(self.e(x))).flatten(0, 1)

    return Encoder()


@dataclass(frozen=True)
class Case:
    """A network, its batches, and how it is trained."""

    build: Callable[..., Any]
    sizes: dict[str, int]
    draw: Callable[[np.random.RandomState], Batch]
    optimizer: str
    lr: float

    def batches(self) -> Iterator[Batch]:
        """STEPS of them, BATCHES different ones."""
        drawn = np.random.RandomState(1)
        made = [self.draw(drawn) for _ in range(BATCHES)]
        return (made[step % BATCHES] for step in range(STEPS))


def cnn_case(channels: int, pixels: int, hidden: int, batch: int, lr: float) -> Case:
    """Images with one row brighter: the label."""

    def draw(rng: np.random.RandomState) -> Batch:
        x, y = rng.uniform(0, 1, (batch, 3, pixels, pixels)), rng.randint(0, 10, batch)
        x[np.arange(batch), :, y] += 0.5
        return x.astype(np.float32), y

    return Case(cnn, {"channels": channels, "pixels": pixels, "hidden": hidden}, draw, "sgd", lr)


def gru_case(words: int, inputs: int, hidden: int, batch: int, length: int, lr: float) -> Case:
    """Odd words, or even ones."""

    def draw(rng: np.random.RandomState) -> Batch:
        x, y = rng.randint(0, words // 2, (batch, length)), rng.randint(0, 2, batch)
        return 2 * x + y[:, None], y

    return Case(gru, {"words": words, "inputs": inputs, "hidden": hidden}, draw, "adam", lr)


def encoder_case(width: int, heads: int, layers: int, words: int, batch: int, length: int, lr: float) -> Case:
    """At each place the sum of the word and its neighbor to the left, modulo the number of words."""

    def draw(rng: np.random.RandomState) -> Batch:
        x = rng.randint(0, words, (batch, length))
        return x, ((x + np.roll(x, 1, axis=1)) % words).reshape(-1)

    return Case(encoder, {"width": width, "heads": heads, "layers": layers, "words": words}, draw, "adam", lr)


CASES = {
    "full": {
        "cnn": cnn_case(50, 32, 512, 64, 0.003),
        "gru": gru_case(30000, 125, 100, 64, 150, 1e-3),
        "encoder": encoder_case(256, 4, 4, 1000, 8, 128, 1e-3),
    },
    "small": {
        "cnn": cnn_case(5, 16, 33, 8, 0.01),
        "gru": gru_case(50, 12, 10, 8, 20, 1e-2),
        "encoder": encoder_case(32, 4, 2, 30, 4, 16, 1e-3),
    },
}


def initial(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The first values of a parameter: a function of its name and shape."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape)
    if name.startswith("e."):
        values = drawn
    elif len(shape) > 1:
        values = drawn * math.sqrt(3 / math.prod(shape[1:]))
    else:
        values = 0.1 * drawn + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
    return values.astype(np.float32)


def losses(case: Case, framework: str) -> list[float]:
    """The loss before each of the steps."""
    library = importlib.import_module(framework)
    nn, optim = importlib.import_module(f"{framework}.nn"), importlib.import_module(f"{framework}.optim")
    F = importlib.import_module(f"{framework}.nn.functional")
    network = case.build(nn, F, **case.sizes)
    state = {name: initial(name, tuple(p.shape)) for name, p in network.named_parameters()}
    tensor = library.from_numpy if framework == "torch" else library.asarray
    network.load_state_dict({name: tensor(values) for name, values in state.items()})
    if case.optimizer == "sgd":
        optimizer = optim.SGD(network.parameters(), lr=case.lr, momentum=0.9)
    else:
        optimizer = optim.Adam(network.parameters(), lr=case.lr)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    call = step if framework == "torch" else library.compile(step)
    return [float(call(tensor(x), tensor(y)).item()) for x, y in case.batches()]


def difference(found: list[float], expected: list[float]) -> float:
    """The largest, relative to what was expected, or to a hundredth of the first loss where that is more."""
    floor = 0.01 * abs(expected[0])
    return max(abs(a - b) / max(abs(b), floor) for a, b in zip(found, expected, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Loss curves in PyTorch and in Runnel.")
    parser.add_argument("--framework", choices=("torch", "runnel"), default="runnel")
    parser.add_argument("--size", choices=sorted(CASES), default="full")
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES["full"]), default=sorted(CASES["full"]))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the losses")
    parser.add_argument("--against", type=Path, metavar="FILE", help="losses to compare with")
    options = parser.parse_args()
    expected = json.loads(options.against.read_text()) if options.against else {}
    curves = {}
    for name in options.cases:
        curves[name] = losses(CASES[options.size][name], options.framework)
        told = f"{name:8} {options.size}: {curves[name][0]:.5f} to {curves[name][-1]:.5f} in {STEPS} steps"
        if name in expected:
            told += f", largest relative difference {difference(curves[name], expected[name]):.1e}"
        print(told, flush=True)
    if options.json:
        options.json.write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    main()
