"""The base of data sets of images, and data sets of folders and of random images."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms.images import pillow, to_pil_image
from runnel.core.errors import RunnelError
from runnel.data.datasets import Dataset
from runnel.tensor.creation import asarray

Path = str | os.PathLike[str]
Function = Callable[..., Any] | None

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class StandardTransform:
    """A transform of images and one of targets, as one of pairs."""

    def __init__(self, transform: Function = None, target_transform: Function = None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class VisionDataset(Dataset[Any]):
    """Samples (image, target), either changed together by ``transforms`` or each by its function."""

    def __init__(
        self,
        root: Path | None = None,
        transforms: Function = None,
        transform: Function = None,
        target_transform: Function = None,
    ) -> None:
        self.root = os.path.expanduser(os.fspath(root)) if root is not None else ""
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError(f"[{type(self).__name__}] pass transforms, or transform and target_transform, not both.")
        self.transform, self.target_transform = transform, target_transform
        separate = StandardTransform(transform, target_transform)
        self.transforms = transforms or (separate if transform or target_transform else None)

    def __len__(self) -> int:
        raise NotImplementedError

    def _changed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if isinstance(self.transforms, StandardTransform) or self.transforms is None:
            return StandardTransform(self.transform, self.target_transform)(image, target)
        changed: tuple[Any, Any] = self.transforms(image, target)
        return changed

    def extra_repr(self) -> str:
        """Return a line of text for the printed data set."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"    Number of datapoints: {len(self)}"]
        lines += [f"    Root location: {self.root}"] if self.root else []
        lines += [f"    {line}" for line in self.extra_repr().splitlines()]
        return "\n".join(lines)


def missing(name: str, root: str, files: str) -> RunnelError:
    """Return the error for a data set whose files are not found."""
    return RunnelError(f"[{name}] the files are not below '{root}'; put {files} there.")


def pil_loader(path: Path) -> Any:
    """Return the image in a file, as Pillow's RGB image."""
    with open(path, "rb") as file, pillow("Image").open(file) as image:
        return image.convert("RGB")


default_loader = pil_loader


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Return True if a name ends in one of ``extensions``."""
    return filename.lower().endswith(extensions)


def is_image_file(filename: str) -> bool:
    """Return True if a name ends as files of images do."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: Path) -> tuple[list[str], dict[str, int]]:
    """Return the folders of a folder, in alphabetical order, and their numbers."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"[find_classes] '{os.fspath(directory)}' has no folders; each class must be one.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory: Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: Any = None,
    is_valid_file: Any = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Return (path, number of the class) of the files below the folders of the classes."""
    numbers = find_classes(directory)[1] if class_to_idx is None else class_to_idx
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("[make_dataset] pass either extensions or is_valid_file.")
    is_valid = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions))
    samples: list[tuple[str, int]] = []
    for name in sorted(numbers):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            paths = (os.path.join(folder, file) for file in sorted(files))
            samples += [(path, numbers[name]) for path in paths if is_valid(path)]
        if len(samples) == before and not allow_empty:
            raise FileNotFoundError(f"[make_dataset] the folder of class {name!r} has no valid files.")
    return samples


class DatasetFolder(VisionDataset):
    """The files below ``root/CLASS/``, read by ``loader``, with the numbers of their classes."""

    def __init__(
        self,
        root: Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Function = None,
        target_transform: Function = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.loader, self.extensions = loader, extensions
        self.targets = [number for _, number in self.samples]

    find_classes = staticmethod(find_classes)
    make_dataset = staticmethod(make_dataset)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, number = self.samples[index]
        return self._changed(self.loader(path), number)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """The images below ``root/CLASS/``, with the numbers of their classes."""

    def __init__(
        self,
        root: Path,
        transform: Function = None,
        target_transform: Function = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples


class FakeData(VisionDataset):
    """Normal random images with random classes, functions of the sample's number."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Function = None,
        target_transform: Function = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not 0 <= index < self.size:
            raise IndexError(f"[FakeData] index must be from 0 to {self.size - 1}; got {index}.")
        rng = np.random.default_rng(index + self.random_offset)
        image = rng.standard_normal(self.image_size, np.float32)
        return self._changed(to_pil_image(asarray(image)), int(rng.integers(self.num_classes)))

    def __len__(self) -> int:
        return self.size
