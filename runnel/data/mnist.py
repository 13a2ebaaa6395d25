"""MNIST: 70,000 handwritten digits of 28×28 pixels (Y. LeCun, C. Cortes, C. Burges)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.core.surface import offered
from runnel.data.classification import Classification
from runnel.data.download import fetch
from runnel.data.idx import read_idx
from runnel.data.places import Folder, cache_folder, file_in

PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# SHA-256 of the uncompressed files.
CHECKSUMS: Mapping[str, str] = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


@offered("data")
def mnist(
    folder: Folder | None = None,
    *,
    mirrors: Sequence[str] = MIRRORS,
    checksums: Mapping[str, str] = CHECKSUMS,
    cache: Path | None = None,
) -> Classification:
    """MNIST with pixels in [0, 1].

    Args:
        folder: holds the four idx files, compressed or not. By default they are downloaded once, their checksums
            verified, and kept in the user's cache folder.
        mirrors, checksums, cache: where to download from, what to expect, where to keep it.
    """
    if folder is not None:
        parts = [_from_folder(folder, part) for part in PARTS]
    else:
        directory = cache_folder("mnist", cache)
        parts = [read_idx(fetch(f"{part}.gz", checksums[part], mirrors, directory), part) for part in PARTS]
    train_x, train_y, test_x, test_y = parts
    for images, labels in ((train_x, train_y), (test_x, test_y)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise RunnelError(f"[mnist] images of shape {images.shape} and labels of shape {labels.shape} do not fit.")
    return Classification("mnist", _pixels(train_x), train_y.astype(np.int64), _pixels(test_x), test_y.astype(np.int64))


def _from_folder(folder: Folder, part: str) -> np.ndarray:
    path = file_in(folder, "mnist", f"{part}.gz", part, part.replace("-idx", ".idx"))
    return read_idx(path.read_bytes(), str(path))


def _pixels(images: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = images.reshape(len(images), -1).astype(np.float32) / 255
    return scaled
