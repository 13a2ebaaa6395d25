"""CIFAR, and others with color images in one file: SVHN, STL-10."""

from __future__ import annotations

import importlib
import pickle
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from runnel.compat.torchvision.datasets.folder import Function, VisionDataset, missing
from runnel.compat.torchvision.transforms.images import pillow
from runnel.core.errors import RunnelError
from runnel.data import cifar
from runnel.data.download import fetch


class CIFAR10(VisionDataset):
    """CIFAR-10: images "RGB" of 32 × 32 pixels. Attributes: ``data`` uint8 (N, 32, 32, 3), ``targets``, ``classes``.

    ``root`` has the Python version of the files, in their archive or its folder.
    """

    base_folder: ClassVar[str] = "cifar-10-batches-py"
    filename: ClassVar[str] = "cifar-10-python.tar.gz"
    sha256: ClassVar[str] = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    files: ClassVar[Mapping[bool, Sequence[str]]] = {
        True: [f"data_batch_{i}" for i in range(1, 6)],
        False: ["test_batch"],
    }
    meta: ClassVar[tuple[str, str]] = ("batches.meta", "label_names")
    key: ClassVar[str] = "labels"

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
        folder = Path(self.root, self.base_folder)
        archive = Path(self.root, self.filename)
        if not folder.is_dir() and not archive.is_file():
            if not download:
                raise missing(type(self).__name__, self.root, f"{self.filename}, or pass download=True to get it,")
            fetch(self.filename, self.sha256, cifar.MIRRORS, Path(self.root), unpack=False)
        if not folder.is_dir():
            with tarfile.open(archive) as files:
                files.extractall(self.root, filter="data")
        batches = [_numbers(folder / name) for name in self.files[bool(train)]]
        pixels = np.concatenate([batch["data"] for batch in batches])
        self.data = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self.targets = [int(label) for batch in batches for label in batch[self.key]]
        self.classes = _numbers(folder / self.meta[0])[self.meta[1]]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(pillow("Image").fromarray(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """CIFAR-100: as CIFAR-10, with a hundred classes."""

    base_folder = "cifar-100-python"
    filename = "cifar-100-python.tar.gz"
    sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
    files: ClassVar[Mapping[bool, Sequence[str]]] = {True: ["train"], False: ["test"]}
    meta = ("meta", "fine_label_names")
    key = "fine_labels"


class _Numbers(pickle.Unpickler):
    """Reads dictionaries of numbers, texts and NumPy arrays, and no other objects."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.partition(".")[0], name) in {("numpy", n) for n in ("_reconstruct", "ndarray", "dtype", "scalar")}:
            module = module.replace("numpy.core", "numpy._core")
            return getattr(importlib.import_module(module), name)
        if (module, name) == ("_codecs", "encode"):
            return getattr(importlib.import_module(module), name)
        raise RunnelError(f"[CIFAR] a batch must have only arrays; got an object of {module}.{name}.")


def _numbers(path: Path) -> Any:
    """Return what a batch of CIFAR's Python version has."""
    if not path.is_file():
        raise missing("CIFAR", str(path.parent), path.name)
    with path.open("rb") as file:
        return _Numbers(file, encoding="latin1").load()


class SVHN(VisionDataset):
    """Street-view house numbers: images of 32 × 32 pixels, from ``SPLIT_32x32.mat``; SciPy reads it."""

    def __init__(
        self,
        root: Any,
        split: str = "train",
        transform: Function = None,
        target_transform: Function = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        if split not in ("train", "test", "extra"):
            raise ValueError(f"[SVHN] split must be 'train', 'test' or 'extra'; got {split!r}.")
        self.split = split
        path = Path(self.root, f"{split}_32x32.mat")
        if not path.is_file():
            raise missing("SVHN", self.root, f"{path.name} of http://ufldl.stanford.edu/housenumbers")
        try:
            content = importlib.import_module("scipy.io").loadmat(path)
        except ImportError:
            raise RunnelError("[SVHN] SciPy reads these files: pip install scipy") from None
        self.data = content["X"].transpose(3, 2, 0, 1)
        self.labels = content["y"].astype(np.int64).squeeze() % 10  # the digit 0 has label 10

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(pillow("Image").fromarray(self.data[index].transpose(1, 2, 0)), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"


class STL10(VisionDataset):
    """STL-10: images of 96 × 96 pixels, from the folder ``stl10_binary`` of its archive."""

    classes: ClassVar[list[str]] = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]

    def __init__(
        self,
        root: Any,
        split: str = "train",
        folds: int | None = None,
        transform: Function = None,
        target_transform: Function = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        parts = {
            "train": ["train"],
            "test": ["test"],
            "unlabeled": ["unlabeled"],
            "train+unlabeled": ["train", "unlabeled"],
        }
        if split not in parts:
            raise ValueError(f"[STL10] split must be one of {', '.join(parts)}; got {split!r}.")
        self.split = split
        folder = Path(self.root, "stl10_binary")
        if not folder.is_dir():
            raise missing("STL10", self.root, "the folder stl10_binary of stl10_binary.tar.gz")
        pixels = [np.fromfile(folder / f"{part}_X.bin", np.uint8).reshape(-1, 3, 96, 96) for part in parts[split]]
        self.data = np.concatenate(pixels).transpose(0, 1, 3, 2)
        labels = [
            np.full(len(own), -1) if part == "unlabeled" else np.fromfile(folder / f"{part}_y.bin", np.uint8) - 1
            for part, own in zip(parts[split], pixels, strict=True)
        ]
        self.labels = np.concatenate(labels).astype(np.int64)
        if folds is not None:
            lines = (folder / "fold_indices.txt").read_text().splitlines()
            rows = np.array(lines[folds].split(), np.int64)
            self.data, self.labels = self.data[rows], self.labels[rows]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._changed(pillow("Image").fromarray(self.data[index].transpose(1, 2, 0)), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)
