"""CIFAR-100: 60,000 colour images of 32×32 pixels in a hundred classes (A. Krizhevsky, "Learning multiple layers of
features from tiny images", 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runnel.data.cifar_binary import MIRRORS, classification, members, read_binary
from runnel.data.classification import Classification
from runnel.data.download import Folder, cache_folder, fetch, file_in, folder_of

ARCHIVE = "cifar-100-binary.tar.gz"
CHECKSUM = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"  # SHA-256 of the archive as it comes
_PARTS = ("train.bin", "test.bin")
_CLASSES = 100
_LABELS = 2  # bytes: one of 20 coarse classes, and the class


def cifar100(
    folder: Folder | None = None,
    *,
    scaled: bool = True,
    mirrors: Sequence[str] = MIRRORS,
    checksum: str = CHECKSUM,
    cache: Path | None = None,
) -> Classification:
    """CIFAR-100, images (N, 3, 32, 32) with pixels in [0, 1], float32; or as they come, uint8, for transforms.

    Args:
        folder: holds ``train.bin`` and ``test.bin`` of the binary version. By default that which ``RUNNEL_DATA_DIR``
            names, if it has them; else they are downloaded once, the checksum verified, and kept in the user's cache
            folder.
        scaled: whether pixels are floats.
        mirrors, checksum, cache: where to download from, what to expect, where to keep it.
    """
    place = folder_of("cifar100", folder, *_names(_PARTS[0]))
    if place is not None:
        contents = {part: file_in(place, "cifar100", *_names(part)).read_bytes() for part in _PARTS}
    else:
        archive = fetch(ARCHIVE, checksum, mirrors, cache_folder("cifar100", cache), unpack=False)
        contents = members(archive, ARCHIVE, _PARTS)
    training, testing = (read_binary(content, part, _LABELS) for part, content in contents.items())
    return classification("cifar100", training, testing, _CLASSES, scaled)


def _names(part: str) -> tuple[str, ...]:
    """What the file of a part may be called: those of CIFAR-10 have other names."""
    return f"cifar-100-binary/{part}", part
