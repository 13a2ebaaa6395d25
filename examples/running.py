"""Options, epochs with a progress bar, and the final report, which all examples share."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import runnel as rn
from runnel.core.errors import RunnelError
from runnel.train.callbacks import Progress

Batch = tuple[Any, Any]  # arrays, or trees of tensors


def options(description: str | None, epochs: int, arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, taken apart."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the data set; without it it is downloaded")
    parser.add_argument("--epochs", type=int, help=f"passes over the training examples ({epochs})")
    parser.add_argument("--quick", action="store_true", help="200 steps and a part of the test: about a minute")
    parser.add_argument("--seed", type=int, default=0, help="of initial values, order of examples and dropout")
    parser.add_argument("--json", action="store_true", help="end with the figures as one line of JSON")
    chosen = parser.parse_args(arguments)
    chosen.epochs = max(1, chosen.epochs or (1 if chosen.quick else epochs))
    chosen.steps = 200 if chosen.quick else None
    rn.manual_seed(chosen.seed)
    return chosen


@dataclass
class Training:
    """Runs a step over epochs and keeps the times. Losses stay tensors until an epoch ends."""

    name: str
    step: Callable[..., Any]
    steps: int | None = None  # at most so many in an epoch
    first_step_s: float = 0.0
    epoch_s: list[float] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def epoch(self, batches: Iterable[Batch], per_epoch: int) -> float:
        """One pass; gives the mean loss. ``per_epoch`` is how many batches there are."""
        per_epoch = min(per_epoch, self.steps or per_epoch)
        losses: list[Any] = []
        note = ""
        start = time.perf_counter()
        with Progress(f"{self.name}, epoch {len(self.epoch_s) + 1}", per_epoch) as bar:
            for _, (x, y) in zip(range(per_epoch), batches, strict=False):
                begun = time.perf_counter()
                losses.append(
                    self.step(*(a if not isinstance(a, np.ndarray) else rn.asarray(a, copy=False) for a in (x, y)))
                )
                self.step_ms.append(1e3 * (time.perf_counter() - begun))
                if len(losses) % 50 == 1:
                    note = f"loss {losses[-1].item():.3f}"
                bar.advance(1, note)
        self.epoch_s.append(time.perf_counter() - start)
        if len(self.epoch_s) == 1 and self.step_ms:
            self.first_step_s = self.step_ms.pop(0) / 1e3
        self.losses.append(float(np.mean([loss.item() for loss in losses])) if losses else float("nan"))
        return self.losses[-1]

    def report(self, as_json: bool, **reached: Any) -> None:
        """Print what was reached, and what it took."""
        figures: dict[str, Any] = {
            **reached,
            "epoch_losses": [round(loss, 4) for loss in self.losses],
            "epoch_seconds": [round(seconds, 2) for seconds in self.epoch_s],
            "first_step_s": round(self.first_step_s, 3),
            "ms_per_step": round(statistics.median(self.step_ms), 3) if self.step_ms else None,
        }
        print("\n".join(f"{name.replace('_', ' '):16} {value}" for name, value in figures.items()))
        if as_json:
            print(json.dumps({"example": self.name, **figures}))


def accuracy(labels: Callable[..., Any], x: np.ndarray, y: np.ndarray, batch: int = 1000) -> float:
    """The share of examples for which ``labels`` finds the right class."""
    right = 0
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        right += int((labels(rn.asarray(x[part])).numpy() == y[part]).sum())
    return right / max(len(y), 1)


def run(main: Callable[[], None]) -> None:
    """Call ``main``; an error that Runnel explains is one sentence, not a traceback."""
    try:
        main()
    except RunnelError as error:
        raise SystemExit(str(error)) from None
