"""Data sets for classification: MNIST, Fashion-MNIST and scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.download import Folder, cache_folder, fetch, file_in, folder_of, read_idx


class Classification(NamedTuple):
    """Inputs (N, ...), float32 for numbers and int32 for words, and labels int64 (N,)."""

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    @property
    def classes(self) -> int:
        return int(self.train_y.max()) + 1

    def batches(self, size: int, generator: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all training samples shuffled, in batches of ``size``; an incomplete last batch is dropped."""
        order = generator.permutation(len(self.train_y))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield self.train_x[chosen], self.train_y[chosen]


def digits(test_share: float = 0.2, seed: int = 0) -> Classification:
    """Return scikit-learn's 1,797 handwritten digits (8×8 pixels in [0, 1]), split at random by ``seed``.

    E. Alpaydin, C. Kaynak, 1998 (UCI).
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise RunnelError("The digits are a part of scikit-learn: pip install 'runnel[demo]'") from None
    bunch = load_digits()
    x = (bunch.data / 16).astype(np.float32)
    y = bunch.target.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(y))
    test_count = round(len(y) * test_share)
    test, train = order[:test_count], order[test_count:]
    return Classification("digits", x[train], y[train], x[test], y[test])


PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# SHA-256 of the uncompressed files.
CHECKSUMS: Mapping[str, str] = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# SHA-256 of the compressed files.
FASHION_CHECKSUMS: Mapping[str, str] = {
    "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
)


def mnist(
    folder: Folder | None = None,
    *,
    scaled: bool = True,
    mirrors: Sequence[str] = MIRRORS,
    checksums: Mapping[str, str] = CHECKSUMS,
    cache: Path | None = None,
) -> Classification:
    """Return MNIST: float32 (N, 784) with pixels in [0, 1], or uint8 images (N, 1, 28, 28) for transforms.

    Args:
        folder: has the four idx files, compressed or not. The default is the folder in ``RUNNEL_DATA_DIR`` if it has
            them; else they are downloaded once, verified, and kept in the user's cache folder.
        scaled: return float pixels.
        mirrors, checksums, cache: where to download from, the expected SHA-256 of the uncompressed files, where to keep
            them.
    """
    return _read("mnist", folder, scaled, mirrors, checksums, cache, unpack=True)


def fashion_mnist(
    folder: Folder | None = None,
    *,
    scaled: bool = True,
    mirrors: Sequence[str] = FASHION_MIRRORS,
    checksums: Mapping[str, str] = FASHION_CHECKSUMS,
    cache: Path | None = None,
) -> Classification:
    """Return Fashion-MNIST: float32 (N, 784) with pixels in [0, 1], or uint8 images (N, 1, 28, 28).

    Classes are T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag and ankle boot.

    Args:
        folder, scaled, mirrors, cache: as in :func:`mnist`.
        checksums: SHA-256 of the compressed files.
    """
    return _read("fashion_mnist", folder, scaled, mirrors, checksums, cache, unpack=False)


def _read(
    name: str,
    folder: Folder | None,
    scaled: bool,
    mirrors: Sequence[str],
    checksums: Mapping[str, str],
    cache: Path | None,
    *,
    unpack: bool,
) -> Classification:
    """Read or download a data set; ``unpack`` says that checksums are for the uncompressed files."""
    place = folder_of(name, folder, *_names(PARTS[0]))
    if place is not None:
        parts = [_from_folder(name, place, part) for part in PARTS]
    else:
        kept = cache_folder(name, cache)
        contents = [fetch(f"{part}.gz", checksums[part], mirrors, kept, unpack=unpack) for part in PARTS]
        parts = [read_idx(content, part) for content, part in zip(contents, PARTS, strict=True)]
    train_x, train_y, test_x, test_y = parts
    for images, labels in ((train_x, train_y), (test_x, test_y)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise RunnelError(f"[{name}] images of shape {images.shape} and labels of shape {labels.shape} do not fit.")
    pixels = _scaled if scaled else _images
    return Classification(name, pixels(train_x), train_y.astype(np.int64), pixels(test_x), test_y.astype(np.int64))


def _names(part: str) -> tuple[str, ...]:
    """Return the possible names of a part's file."""
    return f"{part}.gz", part, part.replace("-idx", ".idx")


def _from_folder(name: str, folder: Folder, part: str) -> np.ndarray:
    path = file_in(folder, name, *_names(part))
    return read_idx(path.read_bytes(), str(path))


def _scaled(images: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = images.reshape(len(images), -1).astype(np.float32) / 255
    return scaled


def _images(images: np.ndarray) -> np.ndarray:
    return images[:, None]
