"""How quickly a DataLoader gives batches, beside PyTorch's, and how much it slows a training step down.

    python benchmarks/loading.py [--data-dir DIR] [--peer PYTHON] [--rounds 5]

Both loaders read CIFAR-10's training images with the augmentation that is usual for it: a crop of 32×32 pixels after 4
were added at each side, a mirror image half of the time, and normalized channels. Two forms are measured:

* ``own``: transforms of the library, as its users write them; PyTorch's are made of its tensor functions, as
  torchvision's are, one image after the other;
* ``samples``: the same data set in both, whose ``__getitem__`` augments in NumPy.

Sides alternate, each in a separate process, and the best rate of all rounds counts. The step comes from the case
``cnn_b64``, alternating between batches in memory and batches of a loader.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
BATCH, PADDING = 64, 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)
WORKERS = (0, 1, 2)


class Samples:
    """Images augmented in NumPy, one at a time: any loader can read it."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images = np.pad(images, ((0, 0), (0, 0), (PADDING,) * 2, (PADDING,) * 2))
        self.labels = labels
        self.mean, self.std = (np.array(x, np.float32).reshape(3, 1, 1) for x in (MEAN, STD))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        top, left, mirrored = np.random.randint(0, (2 * PADDING + 1, 2 * PADDING + 1, 2))
        image = self.images[index, :, top : top + 32, left : left + 32]
        image = image[:, :, ::-1] if mirrored else image
        return (image.astype(np.float32) / np.float32(255) - self.mean) / self.std, int(self.labels[index])


def runnel_loader(images: np.ndarray, labels: np.ndarray, form: str, workers: int) -> Any:
    """Runnel's loader."""
    from runnel.data import ArrayDataset, DataLoader, transforms as T

    steps = [T.RandomCrop(32, padding=PADDING), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    data: Any = ArrayDataset(images, labels, T.Compose(steps)) if form == "own" else Samples(images, labels)
    return DataLoader(data, BATCH, shuffle=True, num_workers=workers, drop_last=True)


def torch_loader(images: np.ndarray, labels: np.ndarray, form: str, workers: int) -> Any:
    """PyTorch's loader."""
    import torch
    from torch.nn.functional import pad
    from torch.utils.data import DataLoader, Dataset

    class Own(Dataset):  # type: ignore[type-arg]
        def __init__(self) -> None:
            self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
            self.mean, self.std = (torch.tensor(x).view(3, 1, 1) for x in (MEAN, STD))

        def __len__(self) -> int:
            return len(self.labels)

        def __getitem__(self, index: int) -> Any:
            image = pad(self.images[index], (PADDING,) * 4)
            top = int(torch.randint(0, 2 * PADDING + 1, (1,)))
            left = int(torch.randint(0, 2 * PADDING + 1, (1,)))
            image = image[:, top : top + 32, left : left + 32]
            if torch.rand(1) < 0.5:
                image = image.flip(-1)
            return image.to(torch.float32).div(255).sub_(self.mean).div_(self.std), self.labels[index]

    data = Own() if form == "own" else Samples(images, labels)
    return DataLoader(data, BATCH, shuffle=True, num_workers=workers, drop_last=True)  # type: ignore[arg-type]


def rate(loader: Any, seconds: float) -> float:
    """Samples a second, once the first batches are there."""
    count, begun = 0, 0.0
    while True:
        for number, _ in enumerate(loader):
            if number == 8 and not begun:
                begun = time.perf_counter()
            elif begun:
                count += BATCH
            if begun and time.perf_counter() - begun > seconds:
                return count / (time.perf_counter() - begun)


def measured_side(library: str, form: str, workers: int, arrays: str, seconds: float) -> None:
    """Print the rate of one loader."""
    content = np.load(arrays)
    make = runnel_loader if library == "runnel" else torch_loader
    print(json.dumps(rate(make(content["x"], content["y"], form, workers), seconds)))


def measured_step(arrays: str, workers: int, rounds: int) -> None:
    """Print the milliseconds of a step with batches in memory and with batches of a loader."""
    import runnel as rn
    from runnel.cli.bench_cases import CASES

    step = rn.compile(CASES["cnn_b64"].prepared().step)
    content = np.load(arrays)
    ready = [(x, y) for _, (x, y) in zip(range(8), runnel_loader(content["x"], content["y"], "own", 0), strict=False)]
    loader = iter(runnel_loader(content["x"], content["y"], "own", workers))
    times: dict[str, list[float]] = {"ready": [], "loaded": []}
    for number in range(rounds + 3):
        for side in ("ready", "loaded") if number % 2 else ("loaded", "ready"):
            begun = time.perf_counter()
            for at in range(8):
                x, y = ready[at] if side == "ready" else next(loader)
                loss = step(x, y)
            float(loss)
            if number >= 3:
                times[side].append((time.perf_counter() - begun) / 8 * 1e3)
    ratios = [loaded / base for loaded, base in zip(times["loaded"], times["ready"], strict=True)]
    print(json.dumps({side: min(ms) for side, ms in times.items()} | {"paired": float(np.median(ratios))}))


def child(python: str, *arguments: Any) -> Any:
    """Return the last output of a separate process."""
    command = [python, str(HERE), "--child", *map(str, arguments)]
    environment = {"PYTHONPATH": str(HERE.parents[1])} if python == sys.executable else {}
    done = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", metavar="DIR", help="folder of CIFAR-10; without it, it is downloaded")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, *rest = options.child
        if kind == "step":
            measured_step(rest[0], int(rest[1]), int(rest[2]))
        else:
            measured_side(kind, rest[0], int(rest[1]), rest[2], float(rest[3]))
        return 0
    from runnel.data import cifar10

    data = cifar10(options.data_dir, scaled=False)
    with tempfile.TemporaryDirectory() as folder:
        arrays = f"{folder}/cifar10.npz"
        np.savez(arrays, x=data.train_x, y=data.train_y)
        sides = {"runnel": sys.executable} | ({"torch": options.peer} if options.peer else {})
        print(f"| transforms | workers | {', samples/s | '.join(sides)}, samples/s | ratio |")
        print("| --- | ---: |" + " ---: |" * (len(sides) + 1))
        for form in ("own", "samples"):
            for workers in WORKERS:
                best = dict.fromkeys(sides, 0.0)
                for number in range(options.rounds):
                    for side in sorted(sides, reverse=bool(number % 2)):
                        figure = child(sides[side], side, form, workers, arrays, options.seconds)
                        best[side] = max(best[side], figure)
                ratio = best["runnel"] / best["torch"] if "torch" in best else float("nan")
                figures = " | ".join(f"{figure:,.0f}" for figure in best.values())
                print(f"| {form} | {workers} | {figures} | {ratio:.2f} |", flush=True)
        print("\n| workers | step, ms | with the loader, ms | median of pairs |\n| ---: | ---: | ---: | ---: |")
        for workers in WORKERS:
            figures = child(sys.executable, "step", arrays, workers, options.rounds * 2)
            print(
                f"| {workers} | {figures['ready']:.1f} | {figures['loaded']:.1f} | {figures['paired']:.3f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
