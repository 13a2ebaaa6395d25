"""Trainings that are killed at random moments and continued, beside one that runs through: equal to the bit?

    python benchmarks/resume.py [--kills 50] [--seed 0]

A process trains with a Checkpoint, and a random time after its first step a thread of it sends it SIGKILL, wherever it
is: in a program, in the middle of writing a state or a line of a log, in the validation. The next process continues.
When one comes to its end, the final state (model, optimizer, schedule, random numbers, metrics, history, callbacks) and
the logs are compared with a training run without interruption, byte for byte. The last line is JSON; the exit status is
1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

EPOCHS = 40
MOST = 0.5  # seconds that a process trains before it is killed
EARLY = 0.1  # share of the processes whose time begins before their first step: they are killed as they start


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50, help="how many processes are killed")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--train", nargs=2, metavar=("FOLDER", "SECONDS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.train:
        train(Path(chosen.train[0]), float(chosen.train[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = measured(Path(folder), chosen.kills, random.Random(chosen.seed))
    print(json.dumps(report))
    return int(not report["equal"])


def measured(folder: Path, kills: int, moments: random.Random) -> dict[str, Any]:
    """Trainings one after another, each killed and continued, until so many processes have been killed."""
    run(folder / "whole", 0)
    expected = outcome(folder / "whole")
    killed, runs, steps, equal = 0, 0, set(), True
    while killed < kills:
        place = folder / f"run{runs}"
        while killed < kills and run(place, moment(moments)) == -signal.SIGKILL:
            killed += 1
            steps.add(last_step(place))
        run(place, 0)
        equal = equal and outcome(place) == expected
        runs += 1
    return {"kills": killed, "trainings": runs, "continued from": len(steps), "equal": equal}


def run(folder: Path, seconds: float) -> int:
    """Train in a separate process; return its exit status."""
    command = [sys.executable, __file__, "--train", str(folder), str(seconds)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(result.stderr)
    return result.returncode


def moment(moments: random.Random) -> float:
    """When to kill: seconds after the first step, or if negative, after the start."""
    seconds = moments.uniform(0.001, MOST)
    return -seconds if moments.random() < EARLY else seconds


def last_step(folder: Path) -> str:
    return max((path.name for path in (folder / "states").glob("step-*")), default="")


def outcome(folder: Path) -> dict[str, bytes]:
    """Everything that the training has written, but for the states in between."""
    return {name: (folder / name).read_bytes() for name in ("final.state", "steps.jsonl", "epochs.csv")}


def train(folder: Path, seconds: float) -> None:
    """Train, and unless ``seconds`` is 0 kill this process at that :func:`moment`."""
    import runnel as rn
    from runnel import data, nn, optim, train

    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    samples = data.TensorDataset(rn.asarray(x), rn.asarray(y))
    rn.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    trainer = train.Trainer(
        model,
        nn.CrossEntropyLoss(),
        optimizer,
        metrics=["accuracy", "auroc"],
        scheduler=optim.CosineAnnealingLR(optimizer, EPOCHS),
        clip_norm=1.0,
        accumulate=2,
        callbacks=[
            train.EarlyStopping("val_loss", patience=EPOCHS, restore_best=True),
            train.JSONLines(folder / "steps.jsonl", every_steps=1),
            train.CSVLog(folder / "epochs.csv"),
            train.Checkpoint(folder / "states", every_steps=2, best="val_loss"),
        ],
        progress=False,
    )
    batches = data.DataLoader(samples, 16, shuffle=True)
    timer = threading.Timer(abs(seconds), os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True

    class StartsTimer(train.Callback):
        def on_step_end(self, trainer: Any, logs: Any) -> None:
            if not timer.is_alive() and seconds > 0:
                timer.start()

    trainer.callbacks.insert(0, StartsTimer())
    if seconds < 0:
        timer.start()
    trainer.fit(batches, EPOCHS, validation=batches, resume=folder / "states")
    rn.save(trainer.state_dict(), folder / "final.state")


if __name__ == "__main__":
    raise SystemExit(main())
