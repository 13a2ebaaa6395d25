"""CIFAR-10: 60,000 colour images of 32×32 pixels in ten classes (A. Krizhevsky, "Learning multiple layers of features
from tiny images", 2009)."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.core.surface import offered
from runnel.data.classification import Classification
from runnel.data.download import fetch
from runnel.data.npz import arrays
from runnel.data.places import Folder, cache_folder, file_in

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARCHIVE = "cifar-10-binary.tar.gz"
CHECKSUM = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"  # SHA-256 of the archive as it comes
MIRRORS = ("https://www.cs.toronto.edu/~kriz",)
# The binary format: for each image a byte of label, then 1,024 bytes each of red, green and blue.
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
# (a batch of the binary format, the same as packed differences)
_TRAINING = tuple((f"data_batch_{n}.bin", f"train_{n}.npz") for n in range(1, 6))
_TESTING = ("test_batch.bin", "test.npz")


@offered("data")
def cifar10(
    folder: Folder | None = None,
    *,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> Classification:
    """CIFAR-10 with pixels in [0, 1], of shape (N, 3, 32, 32).

    Args:
        folder: holds the files of the binary version, or npz files ``train_1`` to ``train_5`` and ``test`` with arrays
            ``x`` (see :func:`read_packed`) and ``y``. By default the binary version is downloaded once, its checksum
            verified, and kept in the user's cache folder.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
    """
    if folder is not None:
        parts = [_from_folder(folder, names) for names in (*_TRAINING, _TESTING)]
    else:
        archive = fetch(ARCHIVE, checksum, mirrors, cache_folder("cifar10", cache), unpack=False)
        parts = [read_binary(content, name) for name, content in _members(archive).items()]
    *training, (test_x, test_y) = parts
    train_x, train_y = (np.concatenate(each) for each in zip(*training, strict=True))
    return Classification("cifar10", _scaled(train_x), _labels(train_y), _scaled(test_x), _labels(test_y))


def read_binary(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels in a file of the binary version. ``name`` is for messages."""
    if not content or len(content) % _RECORD:
        raise RunnelError(f"[cifar10] '{name}' has {len(content)} bytes, no multiple of {_RECORD}.")
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    return records[:, 1:].reshape(-1, *_SHAPE), records[:, 0]


def read_packed(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels in an npz file that stores differences, which compress better, all modulo 256: red and blue
    less green, then each pixel less the one to its left, then less the one above."""
    members = arrays(path, "x", "y")
    differences, labels = members["x"], members["y"]
    if differences.dtype != np.uint8 or differences.shape[1:] != _SHAPE or labels.shape != differences.shape[:1]:
        raise RunnelError(f"[cifar10] '{path}' has images {differences.shape} and labels {labels.shape}.")
    pixels = np.cumsum(np.cumsum(differences, axis=3, dtype=np.uint8), axis=2, dtype=np.uint8)
    pixels[:, 0] += pixels[:, 1]
    pixels[:, 2] += pixels[:, 1]
    return pixels, labels


def _from_folder(folder: Folder, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    binary, packed = names
    path = file_in(folder, "cifar10", binary, f"cifar-10-batches-bin/{binary}", packed)
    return read_packed(path) if path.suffix == ".npz" else read_binary(path.read_bytes(), str(path))


def _members(archive: bytes) -> dict[str, bytes]:
    """The batches in the archive, training first."""
    names = [binary for binary, _ in (*_TRAINING, _TESTING)]
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for entry in files:
                content = files.extractfile(entry) if Path(entry.name).name in names else None
                if content is not None:
                    contents[Path(entry.name).name] = content.read()
    except tarfile.TarError as error:
        raise RunnelError(f"[cifar10] {ARCHIVE} is no intact archive: {error}.") from None
    missing = [name for name in names if name not in contents]
    if missing:
        raise RunnelError(f"[cifar10] {ARCHIVE} has no {', '.join(missing)}.")
    return {name: contents[name] for name in names}


def _scaled(images: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = images.astype(np.float32)
    scaled /= 255
    return scaled


def _labels(labels: np.ndarray) -> np.ndarray:
    if labels.max() >= len(CLASSES):
        raise RunnelError(f"[cifar10] a label is {labels.max()}; there are {len(CLASSES)} classes.")
    return labels.astype(np.int64)
