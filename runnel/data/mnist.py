"""MNIST: 70,000 handwritten digits of 28×28 pixels (Y. LeCun, C. Cortes, C. Burges)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.classification import Classification
from runnel.data.download import fetch
from runnel.data.idx import read_idx
from runnel.runtime.objects import user_cache_dir

PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# SHA-256 of the compressed files as the mirrors below serve them.
CHECKSUMS: Mapping[str, str] = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


def mnist(
    folder: str | os.PathLike[str] | None = None,
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
        parts = [_from_folder(Path(folder), part) for part in PARTS]
    else:
        kept = user_cache_dir() / "mnist" if cache is None else cache
        names = [f"{part}.gz" for part in PARTS]
        parts = [read_idx(fetch(name, checksums[name], mirrors, kept), name) for name in names]
    train_x, train_y, test_x, test_y = parts
    for images, labels in ((train_x, train_y), (test_x, test_y)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise RunnelError(f"[mnist] images of shape {images.shape} and labels of shape {labels.shape} do not fit.")
    return Classification("mnist", _pixels(train_x), train_y.astype(np.int64), _pixels(test_x), test_y.astype(np.int64))


def _from_folder(folder: Path, part: str) -> np.ndarray:
    for name in (f"{part}.gz", part, part.replace("-idx", ".idx")):
        path = folder / name
        if path.exists():
            return read_idx(path.read_bytes(), str(path))
    raise RunnelError(f"[mnist] the folder '{folder}' has no file {part}.gz or {part}.")


def _pixels(images: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = images.reshape(len(images), -1).astype(np.float32) / 255
    return scaled
