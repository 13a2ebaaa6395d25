"""Images in files, read and written by Pillow."""

from __future__ import annotations

import enum
import io
import os
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms.images import pillow, to_pil_image
from runnel.core.errors import ArgumentError
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor

Path = str | os.PathLike[str]


class ImageReadMode(enum.Enum):
    """The channels of an image that is read."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def read_image(path: Path, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """Return the image in a file: uint8 (C, H, W)."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """Return the image in a file, or in a uint8 tensor with a file's bytes: uint8 (C, H, W)."""
    if isinstance(input, str | os.PathLike):
        input = read_file(input)
    name = mode if isinstance(mode, str) else mode.name
    with pillow("Image").open(io.BytesIO(input.numpy().tobytes())) as image:
        upright = pillow("ImageOps").exif_transpose(image) if apply_exif_orientation else image
        if name in _MODES:
            upright = upright.convert(_MODES[name])
        elif upright.mode not in ("L", "LA", "RGB", "RGBA"):
            upright = upright.convert("RGB")
        pixels = np.array(upright)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return asarray(np.ascontiguousarray(pixels.transpose(2, 0, 1)), copy=False)


decode_png = decode_jpeg = decode_image


def read_file(path: Path) -> Tensor:
    """Return the bytes of a file: uint8 (N,)."""
    return asarray(np.fromfile(path, np.uint8), copy=False)


def write_file(filename: Path, data: Any) -> None:
    """Write a uint8 tensor (N,) as a file."""
    data.numpy().tofile(filename)


def _encoded(image: Any, kind: str, **options: Any) -> Tensor:
    if image.numpy().dtype != np.uint8:
        raise ArgumentError(f"[encode_{kind}] input must be uint8 (C, H, W); got {image.dtype}.")
    stream = io.BytesIO()
    to_pil_image(image).save(stream, kind, **options)
    return asarray(np.frombuffer(stream.getvalue(), np.uint8))


def encode_png(input: Any, compression_level: int = 6) -> Tensor:
    """Return the bytes of a PNG file of a uint8 image (C, H, W)."""
    return _encoded(input, "png", compress_level=compression_level)


def encode_jpeg(input: Any, quality: int = 75) -> Tensor:
    """Return the bytes of a JPEG file of a uint8 image (C, H, W)."""
    return _encoded(input, "jpeg", quality=quality)


def write_png(input: Any, filename: Path, compression_level: int = 6) -> None:
    """Write a uint8 image (C, H, W) as a PNG file."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Any, filename: Path, quality: int = 75) -> None:
    """Write a uint8 image (C, H, W) as a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))


def get_image_backend() -> str:
    """Return "PIL", the library that reads images."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Raise ArgumentError unless ``backend`` is "PIL"."""
    if backend != "PIL":
        raise ArgumentError(f"[set_image_backend] backend must be 'PIL'; got {backend!r}.")


def disable_beta_transforms_warning() -> None:
    """Do nothing: these transforms do not warn."""
