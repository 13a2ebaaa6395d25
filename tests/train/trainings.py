"""A small training with everything that draws random numbers or keeps state: its pieces, and its state as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn
from runnel import data, nn, optim, train

SAMPLES = 70
BATCH = 16  # 5 batches, the last one short


def arrays(seed: int = 0, count: int = SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 4)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def loader(generator: rn.Generator | None = None, workers: int = 0, batch: int = BATCH) -> data.DataLoader:
    x, y = arrays()
    dataset = data.TensorDataset(rn.asarray(x), rn.asarray(y))
    return data.DataLoader(dataset, batch, shuffle=True, generator=generator, num_workers=workers)


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))


def trainer(seed: int = 1, network: nn.Module | None = None, **options: Any) -> train.Trainer:
    rn.manual_seed(seed)
    network = network or model()
    optimizer = optim.Adam(network.parameters(), lr=0.02)
    schedule = optim.StepLR(optimizer, step_size=2, gamma=0.7)
    options = {"metrics": ["accuracy", "auroc"], "scheduler": schedule, "progress": False, **options}
    return train.Trainer(network, nn.CrossEntropyLoss(), optimizer, **options)


def full(folder: Path, every_steps: int = 3, **options: Any) -> train.Trainer:
    """With all callbacks."""
    callbacks = [
        train.Checkpoint(folder / "states", every_steps=every_steps, keep=2, best="val_loss"),
        train.EarlyStopping("val_accuracy", patience=50, restore_best=True),
        train.JSONLines(folder / "steps.jsonl", every_steps=1),
        train.CSVLog(folder / "epochs.csv"),
    ]
    return trainer(callbacks=callbacks, **options)


def described(value: Any) -> Any:
    """A state as something that is equal only where all bits are."""
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if hasattr(value, "numpy") or isinstance(value, np.ndarray):
        array = np.asarray(value if isinstance(value, np.ndarray) else value.numpy())
        return array.dtype.str, array.shape, array.tobytes()
    return repr(value)


def outcome(trained: train.Trainer, folder: Path) -> Any:
    """Return everything that must not depend on interruptions."""
    logs = [(folder / name).read_bytes() for name in ("steps.jsonl", "epochs.csv")]
    return described(trained.state_dict()), logs
