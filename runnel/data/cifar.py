"""CIFAR-10 and CIFAR-100: 60,000 color images of 32×32 pixels in ten or a hundred classes.

A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009. In the binary format, each image is a byte
or two of labels and 1,024 bytes each of red, green and blue.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.classification import Classification
from runnel.data.download import Folder, arrays, cache_folder, fetch, file_in, folder_of

MIRRORS = ("https://www.cs.toronto.edu/~kriz",)
SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


def read_binary(content: bytes, name: str, labels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return images (N, 3, 32, 32) and the last of the ``labels`` label bytes. ``name`` is for messages."""
    record = labels + _PIXELS
    if not content or len(content) % record:
        raise RunnelError(f"[cifar] '{name}' has {len(content)} bytes, no multiple of {record}.")
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    return records[:, labels:].reshape(-1, *SHAPE), records[:, labels - 1]


def members(archive: bytes, name: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return the files ``names`` of an archive, in this order."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for entry in files:
                content = files.extractfile(entry) if Path(entry.name).name in names else None
                if content is not None:
                    contents[Path(entry.name).name] = content.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise RunnelError(f"[cifar] {name} is no intact archive: {error}.") from None
    missing = [each for each in names if each not in contents]
    if missing:
        raise RunnelError(f"[cifar] {name} has no {', '.join(missing)}.")
    return {each: contents[each] for each in names}


def classification(
    name: str,
    training: tuple[np.ndarray, np.ndarray],
    testing: tuple[np.ndarray, np.ndarray],
    classes: int,
    scaled: bool,
) -> Classification:
    """Return the data set, with float or uint8 pixels and int64 labels below ``classes``."""
    (train_x, train_y), (test_x, test_y) = (
        (_pixels(images, scaled), _checked(name, labels, classes)) for images, labels in (training, testing)
    )
    return Classification(name, train_x, train_y, test_x, test_y)


def _pixels(images: np.ndarray, scaled: bool) -> np.ndarray:
    if not scaled:
        return np.ascontiguousarray(images)
    floats: np.ndarray = images.astype(np.float32)
    floats /= 255
    return floats


def _checked(name: str, labels: np.ndarray, classes: int) -> np.ndarray:
    if labels.max() >= classes:
        raise RunnelError(f"[{name}] a label is {labels.max()}; there are {classes} classes.")
    return labels.astype(np.int64)


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
    """Return CIFAR-10: images (N, 3, 32, 32), float32 with pixels in [0, 1], or uint8 for transforms.

    Args:
        folder: has the files of the binary version, or npz files ``train_1`` to ``train_5`` and ``test`` with arrays
            ``x`` (see :func:`read_packed`) and ``y``. The default is the folder in ``RUNNEL_DATA_DIR`` if it has them;
            else the binary version is downloaded once, verified, and kept in the user's cache folder.
        scaled: return float pixels.
        mirrors, checksum, cache: where to download from, the expected SHA-256, where to keep the file.
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
    """Return images and labels in an npz file of differences, which compress better.

    Modulo 256, red and blue are stored less green, then each pixel less its left neighbor, then less the one above.
    """
    members = arrays(path, "x", "y")
    differences, labels = members["x"], members["y"]
    if differences.dtype != np.uint8 or differences.shape[1:] != SHAPE or labels.shape != differences.shape[:1]:
        raise RunnelError(f"[cifar10] '{path}' has images {differences.shape} and labels {labels.shape}.")
    images = np.cumsum(np.cumsum(differences, axis=3, dtype=np.uint8), axis=2, dtype=np.uint8)
    images[:, 0] += images[:, 1]
    images[:, 2] += images[:, 1]
    return images, labels


def _names(names: tuple[str, str]) -> tuple[str, ...]:
    """Return the possible names of a batch's file."""
    binary, packed = names
    return binary, f"cifar-10-batches-bin/{binary}", packed


def _from_folder(folder: Folder, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    path = file_in(folder, "cifar10", *_names(names))
    return read_packed(path) if path.suffix == ".npz" else read_binary(path.read_bytes(), str(path))


ARCHIVE_100 = "cifar-100-binary.tar.gz"
CHECKSUM_100 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"  # SHA-256 of the archive as it comes
_PARTS = ("train.bin", "test.bin")
_CLASSES_100 = 100
_LABELS = 2  # bytes: one of 20 coarse classes, and the class


def cifar100(
    folder: Folder | None = None,
    *,
    scaled: bool = True,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM_100,
    cache: Path | None = None,
) -> Classification:
    """Return CIFAR-100: images (N, 3, 32, 32), float32 with pixels in [0, 1], or uint8 for transforms.

    Args:
        folder: has ``train.bin`` and ``test.bin`` of the binary version. The default is the folder in
            ``RUNNEL_DATA_DIR`` if it has them; else they are downloaded once, verified, and kept in the user's cache
            folder.
        scaled: return float pixels.
        mirrors, checksum, cache: where to download from, the expected SHA-256, where to keep the file.
    """
    place = folder_of("cifar100", folder, *_names_100(_PARTS[0]))
    if place is not None:
        contents = {part: file_in(place, "cifar100", *_names_100(part)).read_bytes() for part in _PARTS}
    else:
        archive = fetch(ARCHIVE_100, checksum, mirrors, cache_folder("cifar100", cache), unpack=False)
        contents = members(archive, ARCHIVE_100, _PARTS)
    training, testing = (read_binary(content, part, _LABELS) for part, content in contents.items())
    return classification("cifar100", training, testing, _CLASSES_100, scaled)


def _names_100(part: str) -> tuple[str, ...]:
    """Return the possible names of a part's file."""
    return f"cifar-100-binary/{part}", part
