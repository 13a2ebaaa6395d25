"""The binary format of CIFAR-10 and CIFAR-100: for each image a byte or two of labels, then 1,024 bytes each of red,
green and blue."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from runnel.core.errors import RunnelError
from runnel.data.classification import Classification

MIRRORS = ("https://www.cs.toronto.edu/~kriz",)
SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


def read_binary(content: bytes, name: str, labels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 3, 32, 32) and, of the ``labels`` bytes of labels, the last one. ``name`` is for messages."""
    record = labels + _PIXELS
    if not content or len(content) % record:
        raise RunnelError(f"[cifar] '{name}' has {len(content)} bytes, no multiple of {record}.")
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    return records[:, labels:].reshape(-1, *SHAPE), records[:, labels - 1]


def members(archive: bytes, name: str, names: Sequence[str]) -> dict[str, bytes]:
    """The files ``names`` in an archive, in this order."""
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
    """The data set of images and labels: pixels in [0, 1] or as they come, labels int64 below ``classes``."""
    (train_x, train_y), (test_x, test_y) = (
        (_pixels(images, scaled), _checked(name, labels, classes)) for images, labels in (training, testing)
    )
    return Classification(name, train_x, train_y, test_x, test_y)


def _pixels(images: np.ndarray, scaled: bool) -> np.ndarray:
    """Pixels in [0, 1], float32; or as they come, uint8."""
    if not scaled:
        return np.ascontiguousarray(images)
    floats: np.ndarray = images.astype(np.float32)
    floats /= 255
    return floats


def _checked(name: str, labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels int64, each below ``classes``."""
    if labels.max() >= classes:
        raise RunnelError(f"[{name}] a label is {labels.max()}; there are {classes} classes.")
    return labels.astype(np.int64)
