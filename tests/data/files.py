"""Small data sets as files, in the formats of the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TRAINING_BATCHES = 5


def cifar_images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images whose class can be learnt: a dark image with a bright row for the label, under noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(np.uint8)
    images = rng.integers(0, 60, (count, 3, 32, 32), dtype=np.uint8)
    images[np.arange(count), :, 3 * labels + 1] = 250
    return images, labels


def cifar_batches(per_batch: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    names = [*(f"train_{n}" for n in range(1, TRAINING_BATCHES + 1)), "test"]
    return {name: cifar_images(per_batch, seed) for seed, name in enumerate(names)}


def write_packed_cifar(folder: Path, batches: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    for name, (images, labels) in batches.items():
        x = images.copy()
        x[:, 0] -= images[:, 1]
        x[:, 2] -= images[:, 1]
        x[:, :, 1:] -= x[:, :, :-1].copy()
        x[..., 1:] -= x[..., :-1].copy()
        np.savez_compressed(folder / f"{name}.npz", x=x, y=labels)


def binary_cifar(images: np.ndarray, labels: np.ndarray) -> bytes:
    return np.concatenate([labels[:, None], images.reshape(len(images), -1)], axis=1).tobytes()


def binary_name(name: str) -> str:
    return "test_batch.bin" if name == "test" else f"data_batch_{name.removeprefix('train_')}.bin"


Reviews = dict[str, tuple[list[list[int]], np.ndarray]]


def reviews(count: int, longest: int = 200, ranks: int = 40000) -> Reviews:
    """Reviews whose label can be learnt: those that were liked hold only even ranks."""
    rng = np.random.default_rng(0)
    results: Reviews = {}
    for split in ("train", "test"):
        labels = rng.integers(0, 2, count).astype(np.uint8)
        lengths = rng.integers(1, longest, count)
        drawn = [rng.integers(1, ranks // 2, n) * 2 - label for n, label in zip(lengths, labels, strict=True)]
        results[split] = [words.tolist() for words in drawn], labels
    return results


def write_imdb(folder: Path, result: Reviews) -> None:
    results: dict[str, np.ndarray] = {}
    for split, (texts, labels) in result.items():
        results[f"{split}_tok"] = np.array([rank for text in texts for rank in text], np.uint32)
        results[f"{split}_off"] = np.cumsum([0, *map(len, texts)]).astype(np.uint32)
        results[f"{split}_y"] = labels
    np.savez(folder / "imdb_tokens.npz", **results)  # type: ignore[arg-type]
