"""MNIST and data sets in its format."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from runnel.compat.torchvision.datasets.folder import Function, VisionDataset, missing
from runnel.compat.torchvision.transforms.images import pillow
from runnel.data import classification
from runnel.data.download import fetch, read_idx as images_in
from runnel.tensor.creation import asarray


def read_idx(path: Path) -> np.ndarray:
    """Return the array in a file of MNIST's format, compressed or not."""
    return images_in(path.read_bytes(), str(path))


class MNIST(VisionDataset):
    """MNIST: images "L" of 28 × 28 pixels of ten digits. Attributes: ``data`` uint8 (N, 28, 28) and ``targets``.

    Its four idx files, compressed or not, are below ``root``, at best in ``root/MNIST/raw``.
    """

    mirrors: ClassVar[Sequence[str]] = classification.MIRRORS
    checksums: ClassVar[Mapping[str, str] | None] = classification.CHECKSUMS
    unpacks: ClassVar[bool] = True  # the checksums are for uncompressed files
    parts: ClassVar[Mapping[bool, str]] = {True: "train", False: "t10k"}
    classes: ClassVar[list[str]] = [
        f"{i} - {name}"
        for i, name in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    ]

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Function = None,
        target_transform: Function = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        prefix = self.parts[bool(train)]
        self.data, self.targets = (
            asarray(self._read(f"{prefix}-{part}", download)) for part in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
        self.targets = self.targets.long()

    @property
    def raw_folder(self) -> str:
        """Return the folder of the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Return the number of each class."""
        return {name: number for number, name in enumerate(self.classes)}

    def _read(self, name: str, download: bool) -> np.ndarray:
        places = [
            self.raw_folder,
            os.path.join(self.root, type(self).__name__),
            self.root,
            os.path.join(self.root, "raw"),
        ]
        for place in places:
            for ending in ("", ".gz"):
                for each in (name, name.replace("-idx", ".idx")):
                    path = Path(place, each + ending)
                    if path.is_file():
                        return read_idx(path)
        if not download or self.checksums is None:
            raise missing(type(self).__name__, self.raw_folder, f"{name}.gz")
        content = fetch(f"{name}.gz", self.checksums[name], self.mirrors, Path(self.raw_folder), unpack=self.unpacks)
        return images_in(content, name)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = pillow("Image").fromarray(self.data[index].numpy())
        return self._changed(image, int(self.targets[index]))

    def __len__(self) -> int:
        return int(self.data.shape[0])

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Fashion-MNIST: images of clothes in MNIST's format."""

    mirrors = classification.FASHION_MIRRORS
    checksums = classification.FASHION_CHECKSUMS
    unpacks = False
    classes: ClassVar[list[str]] = [
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
    ]


class KMNIST(MNIST):
    """Kuzushiji-MNIST: images of Japanese characters in MNIST's format."""

    checksums = None
    classes: ClassVar[list[str]] = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class QMNIST(MNIST):
    """MNIST's training or test set with reconstructed test images, in MNIST's format, from its files."""

    checksums = None
    parts: ClassVar[Mapping[bool, str]] = {True: "qmnist-train", False: "qmnist-test"}


class EMNIST(MNIST):
    """EMNIST: letters and digits. ``split`` is "byclass", "bymerge", "balanced", "letters", "digits" or "mnist"."""

    checksums = None
    _merged: ClassVar[set[str]] = set("cijklmopsuvwxyz")
    _every: ClassVar[set[str]] = set(string.digits + string.ascii_letters)
    classes_split_dict: ClassVar[dict[str, list[str]]] = {
        "byclass": sorted(_every),
        "bymerge": sorted(_every - _merged),
        "balanced": sorted(_every - _merged),
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: Any, split: str, train: bool = True, **kwargs: Any) -> None:
        if split not in self.classes_split_dict:
            raise ValueError(f"[EMNIST] split must be one of {', '.join(self.classes_split_dict)}; got {split!r}.")
        self.split = split
        self.parts = {True: f"emnist-{split}-train", False: f"emnist-{split}-test"}  # type: ignore[misc]
        self.classes = self.classes_split_dict[split]  # type: ignore[misc]
        super().__init__(root, train, **kwargs)
