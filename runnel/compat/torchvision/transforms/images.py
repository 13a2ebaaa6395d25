"""Kinds of images, Pillow's and tensors (..., C, H, W): their sizes, and conversions between them."""

from __future__ import annotations

import enum
import importlib
from typing import Any

import numpy as np

from runnel.compat.functions.creation import get_default_dtype
from runnel.core import dtypes
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, RunnelError, ShapeError
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


class InterpolationMode(enum.Enum):
    """How pixels between pixels are computed."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_NUMBERS = {  # in Pillow
    InterpolationMode.NEAREST: 0,
    InterpolationMode.NEAREST_EXACT: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}


def as_mode(interpolation: Any) -> InterpolationMode:
    """Return an interpolation that is a mode, its name, or Pillow's number."""
    if isinstance(interpolation, str):
        return InterpolationMode(interpolation)
    if isinstance(interpolation, int):
        return next(mode for mode, number in _NUMBERS.items() if number == interpolation)
    if not isinstance(interpolation, InterpolationMode):
        raise ArgumentError(f"[interpolation] must be an InterpolationMode; got {interpolation!r}.")
    return interpolation


def in_pillow(interpolation: Any) -> int:
    """Return Pillow's number of an interpolation."""
    return _NUMBERS[as_mode(interpolation)]


def pillow(part: str) -> Any:
    """Return Pillow's module ``part``; RunnelError with the remedy if Pillow is not installed."""
    try:
        return importlib.import_module(f"PIL.{part}")
    except ImportError:
        raise RunnelError("[torchvision] these images are Pillow's: pip install 'runnel[data]'") from None


def is_pillow(image: Any) -> bool:
    """Return True for an image of Pillow, False for a tensor; TypeError for anything else."""
    if isinstance(image, ArrayMethods):
        return False
    if hasattr(image, "getbands"):
        return True
    raise TypeError(f"an image must be one of Pillow's or a tensor; got {short_repr(image)}.")


def get_dimensions(img: Any) -> list[int]:
    """Return [channels, height, width]."""
    if is_pillow(img):
        return [len(img.getbands()), img.height, img.width]
    return [1 if img.ndim == 2 else img.shape[-3], img.shape[-2], img.shape[-1]]


def get_image_size(img: Any) -> list[int]:
    """Return [width, height]."""
    return get_dimensions(img)[:0:-1]


def get_size(img: Any) -> list[int]:
    """Return [height, width]."""
    return get_dimensions(img)[1:]


def get_image_num_channels(img: Any) -> int:
    """Return the number of channels."""
    return get_dimensions(img)[0]


def pil_to_tensor(pic: Any) -> Tensor:
    """Return the pixels of a Pillow image, unscaled: (C, H, W)."""
    if isinstance(pic, ArrayMethods) or not is_pillow(pic):
        raise TypeError(f"[pil_to_tensor] pic must be a Pillow image; got {short_repr(pic)}.")
    pixels = np.array(pic, copy=True)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return asarray(np.ascontiguousarray(pixels.transpose(2, 0, 1)), copy=False)


def to_tensor(pic: Any) -> Tensor:
    """Return a Pillow image or an array (H, W, C) as a tensor (C, H, W); uint8 pixels are scaled to [0, 1]."""
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"[to_tensor] pic must have 2 or 3 axes; got {pic.ndim}.")
        pixels = pic[:, :, None] if pic.ndim == 2 else pic
    elif isinstance(pic, ArrayMethods) or not hasattr(pic, "getbands"):
        raise TypeError(f"[to_tensor] pic must be a Pillow image or an array; got {short_repr(pic)}.")
    else:
        kind = {"I": np.int32, "I;16": np.uint16, "I;16B": np.uint16, "F": np.float32}.get(pic.mode, np.uint8)
        pixels = np.array(pic, kind, copy=True)
        pixels = 255 * pixels if pic.mode == "1" else pixels
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    if pixels.dtype == np.uint8:
        pixels = pixels.astype(get_default_dtype().numpy)
        pixels /= 255
    return asarray(pixels, copy=False)


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """Return a tensor (C, H, W) or an array (H, W, C) as a Pillow image; float pixels in [0, 1] are scaled to 255."""
    if isinstance(pic, ArrayMethods):
        if pic.ndim not in (2, 3):
            raise ValueError(f"[to_pil_image] pic must have 2 or 3 axes; got {pic.ndim}.")
        pixels = pic.numpy(force=True)
        pixels = pixels[None] if pixels.ndim == 2 else pixels
        if pixels.dtype.kind == "f" and mode != "F":
            pixels = (pixels * 255).astype(np.uint8)
        pixels = pixels.transpose(1, 2, 0)
    elif isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"[to_pil_image] pic must have 2 or 3 axes; got {pic.ndim}.")
        pixels = pic[:, :, None] if pic.ndim == 2 else pic
    else:
        raise TypeError(f"[to_pil_image] pic must be a tensor or an array; got {short_repr(pic)}.")
    channels = pixels.shape[2]
    if channels > 4:
        raise ShapeError(f"[to_pil_image] pic must have at most 4 channels; got {channels}.")
    if channels == 1:
        pixels = pixels[:, :, 0]
        kinds = {np.uint8: "L", np.int16: "I;16", np.uint16: "I;16", np.int32: "I", np.float32: "F"}
        default = kinds.get(pixels.dtype.type)
    else:
        default = {2: "LA", 3: "RGB", 4: "RGBA"}[channels] if pixels.dtype == np.uint8 else None
    several = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
    allowed: tuple[str | None, ...] = several.get(channels, (default,))
    if default is None:
        raise TypeError(f"[to_pil_image] pixels of {pixels.dtype} are not supported by Pillow.")
    if mode is not None and mode not in allowed:
        raise ValueError(f"[to_pil_image] mode must be one of {allowed} for this image; got {mode!r}.")
    image = pillow("Image").fromarray(np.ascontiguousarray(pixels))
    if mode is None or mode == image.mode:
        return image
    return pillow("Image").frombytes(mode, image.size, image.tobytes())  # the pixels are in this mode already


def convert_image_dtype(image: Any, dtype: Any = dtypes.float32) -> Any:
    """Return a tensor of another dtype, its values scaled: [0, 1] of floats is [0, largest] of integers."""
    after, before = dtypes.as_dtype(dtype), image.dtype
    if after == before:
        return image
    if before.is_inexact:
        if after.is_inexact:
            return image.to(after)
        largest = np.iinfo(after.numpy).max
        if (before == dtypes.float32 and after.itemsize >= 4) or (before == dtypes.float64 and after.itemsize >= 8):
            raise RunnelError(f"[convert_image_dtype] {before} cannot be scaled to {after} without overflow.")
        return (image * (largest + 1.0 - 1e-3)).to(after)
    largest_before = int(np.iinfo(before.numpy).max)
    if after.is_inexact:
        return image.to(after) / largest_before
    largest = int(np.iinfo(after.numpy).max)
    if largest < largest_before:
        return (image // ((largest_before + 1) // (largest + 1))).to(after)
    return image.to(after) * ((largest + 1) // (largest_before + 1))


def pair(size: Any, name: str = "size") -> tuple[int, int]:
    """Return a size as (height, width)."""
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if len(sizes) not in (1, 2):
        raise ArgumentError(f"[{name}] must be a number of pixels or (height, width); got {size!r}.")
    return (int(sizes[0]), int(sizes[-1]))


def fill_of(fill: Any, channels: int) -> list[float] | None:
    """Return the value of each channel outside an image."""
    if fill is None:
        return None
    values = [float(fill)] * channels if isinstance(fill, int | float) else [float(v) for v in fill]
    return values * channels if len(values) == 1 else values


def fill_in_pillow(fill: Any, img: Any, name: str = "fillcolor") -> dict[str, Any]:
    """Return the fill as Pillow's argument: one number, or a tuple for each band."""
    bands = len(img.getbands())
    if fill is None:
        return {name: None}
    if isinstance(fill, int | float):
        return {name: fill if bands == 1 else (int(fill),) * bands}
    values = tuple(fill)
    if len(values) == 1:
        values *= bands
    if len(values) != bands:
        raise ArgumentError(f"[fill] must have 1 or {bands} elements; got {len(values)}.")
    return {name: values[0] if bands == 1 else tuple(int(v) for v in values)}
