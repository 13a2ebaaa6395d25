"""CIFAR-10: 60,000 colour images of 32×32 pixels in ten classes (A. Krizhevsky, "Learning multiple layers of features
from tiny images", 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.cifar_binary import MIRRORS, SHAPE, classification, members, read_binary
from runnel.data.classification import Classification
from runnel.data.download import Folder, arrays, cache_folder, fetch, file_in, folder_of

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARCHIVE = "cifar-10-binary.tar.gz"
CHECKSUM = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"  # SHA-256 of the archive as it comes
# (a batch of the binary format, the same as packed differences)
_TRAINING = tuple((f"data_batch_{n}.bin", f"train_{n}.npz") for n in range(1, 6))
_TESTING = ("test_batch.bin", "test.npz")
_BINARIES = [binary for binary, _ in (*_TRAINING, _TESTING)]


def cifar10(
    folder: Folder | None = None,
    *,
    scaled: bool = True,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> Classification:
    """CIFAR-10, images (N, 3, 32, 32) with pixels in [0, 1], float32; or as they come, uint8, for transforms.

    Args:
        folder: holds the files of the binary version, or npz files ``train_1`` to ``train_5`` and ``test`` with arrays
            ``x`` (see :func:`read_packed`) and ``y``. By default that which ``RUNNEL_DATA_DIR`` names, if it has them;
            else the binary version is downloaded once, its checksum verified, and kept in the user's cache folder.
        scaled: whether pixels are floats.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
    """
    place = folder_of("cifar10", folder, *_names(_TESTING))
    if place is not None:
        parts = [_from_folder(place, names) for names in (*_TRAINING, _TESTING)]
    else:
        archive = fetch(ARCHIVE, checksum, mirrors, cache_folder("cifar10", cache), unpack=False)
        parts = [read_binary(content, name) for name, content in members(archive, ARCHIVE, _BINARIES).items()]
    *training, testing = parts
    images, labels = (np.concatenate(each) for each in zip(*training, strict=True))
    return classification("cifar10", (images, labels), testing, len(CLASSES), scaled)


def read_packed(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels in an npz file that stores differences, which compress better, all modulo 256: red and blue
    less green, then each pixel less the one to its left, then less the one above."""
    members = arrays(path, "x", "y")
    differences, labels = members["x"], members["y"]
    if differences.dtype != np.uint8 or differences.shape[1:] != SHAPE or labels.shape != differences.shape[:1]:
        raise RunnelError(f"[cifar10] '{path}' has images {differences.shape} and labels {labels.shape}.")
    images = np.cumsum(np.cumsum(differences, axis=3, dtype=np.uint8), axis=2, dtype=np.uint8)
    images[:, 0] += images[:, 1]
    images[:, 2] += images[:, 1]
    return images, labels


def _names(names: tuple[str, str]) -> tuple[str, ...]:
    """What the file of a batch may be called."""
    binary, packed = names
    return binary, f"cifar-10-batches-bin/{binary}", packed


def _from_folder(folder: Folder, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    path = file_in(folder, "cifar10", *_names(names))
    return read_packed(path) if path.suffix == ".npz" else read_binary(path.read_bytes(), str(path))
