"""Folders of images, read by Pillow."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.core.errors import FileError, RunnelError
from runnel.data.datasets import Dataset

Path = str | os.PathLike[str]
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def read_image(path: Path, mode: str = "RGB") -> np.ndarray:
    """Return the image in a file as uint8 (channels, height, width), in a Pillow mode: "RGB", "L" for gray, "RGBA".

    FileError if the file is truncated, not an image, or claims more pixels than ``PIL.Image.MAX_IMAGE_PIXELS``.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise RunnelError("[read_image] images are read by Pillow: pip install 'runnel[data]'") from None
    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            opened = Image.open(path)
        with opened as image:
            if image.width * image.height > (Image.MAX_IMAGE_PIXELS or math.inf):
                raise ValueError(
                    f"it claims {image.width} × {image.height} pixels; set PIL.Image.MAX_IMAGE_PIXELS if that is true"
                )
            pixels = np.array(image.convert(mode))
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise FileError(f"[read_image] '{os.fspath(path)}' is no image that can be read: {error}.") from error
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


class ImageFolder(Dataset[tuple[Any, Any]]):
    """The images below ``root/CLASS/``, with the number of their class, in alphabetical order.

    Sample i is (``transform(loader(path))``, ``target_transform(number)``).

    Args:
        root: the folder.
        transform, target_transform: functions of one image and of one number.
        loader: reads a file; by default :func:`read_image`.
        is_valid_file: selects image files; by default those with a usual extension.

    Attributes: ``classes`` (their names), ``class_to_idx``, ``samples`` (pairs of path and number), ``targets``.
    FileError for a folder without classes, or a class without images.
    """

    def __init__(
        self,
        root: Path,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[str], Any] = read_image,
        is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:
        self.root = os.fspath(root)
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader
        is_image = is_valid_file or (lambda path: path.lower().endswith(ENDINGS))
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileError(f"[ImageFolder] '{self.root}' has no folders; each class is one, with its images.")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples: list[tuple[str, int]] = []
        for name, number in self.class_to_idx.items():
            paths = [
                os.path.join(folder, file)
                for folder, _, files in os.walk(os.path.join(self.root, name))
                for file in files
                if is_image(os.path.join(folder, file))
            ]
            if not paths:
                raise FileError(f"[ImageFolder] class {name!r} of '{self.root}' has no images ({', '.join(ENDINGS)}).")
            self.samples += [(path, number) for path in sorted(paths)]
        self.targets = [number for _, number in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, number = self.samples[index]
        image = self.loader(path)
        image = image if self.transform is None else self.transform(image)
        return image, number if self.target_transform is None else self.target_transform(number)
