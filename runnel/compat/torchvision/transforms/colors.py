"""Colors of images: Pillow's by Pillow, tensors' by formulas that work in [0, 1] or in [0, 255]."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms.images import (
    convert_image_dtype,
    get_image_num_channels,
    is_pillow,
    pil_to_tensor,
    pillow,
    to_pil_image,
)
from runnel.core import dtypes
from runnel.core.errors import ArgumentError
from runnel.nn import functional
from runnel.ops.elementwise.arithmetic import maximum, minimum
from runnel.ops.elementwise.comparison import where
from runnel.ops.indexing.gather import take
from runnel.ops.reductions.statistics import clip
from runnel.ops.shapes.pieces import concat, stack
from runnel.ops.sorting.sets import bincount
from runnel.tensor.creation import asarray


def _bound(img: Any) -> float:
    return 1.0 if img.dtype.is_inexact else float(np.iinfo(img.dtype.numpy).max)


def _blend(img: Any, other: Any, ratio: float) -> Any:
    return clip(img * float(ratio) + other * (1.0 - float(ratio)), 0, _bound(img)).to(img.dtype)


def _enhanced(kind: str, img: Any, factor: float) -> Any:
    if factor < 0:
        raise ValueError(f"[adjust_{kind.lower()}] the factor must be 0 or more; got {factor}.")
    return getattr(pillow("ImageEnhance"), kind)(img).enhance(factor)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Return the luma of an image, on 1 or 3 equal channels."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"[rgb_to_grayscale] num_output_channels must be 1 or 3; got {num_output_channels}.")
    if is_pillow(img):
        gray = img.convert("L")
        return gray if num_output_channels == 1 else pillow("Image").merge("RGB", (gray, gray, gray))
    luma = img if img.shape[-3] == 1 else _luma(img)
    return luma.expand(*luma.shape[:-3], 3, *luma.shape[-2:]) if num_output_channels == 3 else luma


def _luma(img: Any) -> Any:
    red, green, blue = (img[..., i : i + 1, :, :] for i in range(3))
    return (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype)


to_grayscale = rgb_to_grayscale


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Multiply the pixels; 1 changes nothing, 0 is black."""
    if is_pillow(img):
        return _enhanced("Brightness", img, brightness_factor)
    return _blend(img, 0.0, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Move the pixels from the mean luma; 1 changes nothing, 0 is gray."""
    if is_pillow(img):
        return _enhanced("Contrast", img, contrast_factor)
    gray = rgb_to_grayscale(img)
    mean = (gray if gray.dtype.is_inexact else gray.float()).mean(axis=(-3, -2, -1), keepdims=True)
    return _blend(img, mean, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Move the pixels from their luma; 1 changes nothing, 0 is gray."""
    if is_pillow(img):
        return _enhanced("Color", img, saturation_factor)
    return img if img.shape[-3] == 1 else _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turn the hue by ``hue_factor`` turns, from -0.5 to 0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"[adjust_hue] hue_factor must be from -0.5 to 0.5; got {hue_factor}.")
    if is_pillow(img):
        if img.mode in ("L", "1", "I", "F"):
            return img
        hue, saturation, value = img.convert("HSV").split()
        turned = np.asarray(hue, np.uint8) + np.uint8(int(hue_factor * 255) % 256)
        bands = (pillow("Image").fromarray(turned), saturation, value)
        return pillow("Image").merge("HSV", bands).convert(img.mode)
    if img.shape[-3] == 1:
        return img
    pixels = convert_image_dtype(img, dtypes.float32) if not img.dtype.is_inexact else img
    return convert_image_dtype(_turned(pixels, hue_factor), img.dtype)


def _turned(pixels: Any, turn: float) -> Any:
    """Turn the hue: a channel of a color of value v and chroma c is v - c max(0, min(k, 4 - k, 1)), with k in [0, 6)
    its distance on the circle of hues (article "HSL and HSV")."""
    red, green, blue = (pixels[..., i : i + 1, :, :] for i in range(3))
    value = maximum(maximum(red, green), blue)
    chroma = value - minimum(minimum(red, green), blue)
    safe = where(chroma > 0, chroma, 1.0)
    hue = where(
        value == red,
        (green - blue) / safe,
        where(value == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    hue = where(chroma > 0, hue, 0.0) + turn * 6.0
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = (hue + offset) % 6.0
        channels.append(value - chroma * clip(minimum(k, 4.0 - k), 0, 1))
    return concat(channels, axis=-3)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """Return ``gain * img ** gamma`` for pixels in [0, 1]."""
    if gamma < 0:
        raise ValueError(f"[adjust_gamma] gamma must be 0 or more; got {gamma}.")
    if is_pillow(img):
        table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)] * 3
        return img.convert("RGB").point(table).convert(img.mode)
    pixels = img if img.dtype.is_inexact else convert_image_dtype(img, dtypes.float32)
    return convert_image_dtype(clip(gain * pixels**gamma, 0, 1), img.dtype)


def invert(img: Any) -> Any:
    """Return the negative."""
    if is_pillow(img):
        return pillow("ImageOps").invert(img)
    return (1.0 - img) if img.dtype.is_inexact else (int(_bound(img)) - img).to(img.dtype)


def posterize(img: Any, bits: int) -> Any:
    """Keep the highest bits of each channel of uint8 pixels."""
    if is_pillow(img):
        return pillow("ImageOps").posterize(img, bits)
    if img.dtype != dtypes.uint8:
        raise TypeError(f"[posterize] img must be of uint8; got {img.dtype}.")
    return img & ((-int(2 ** (8 - bits))) % 256)


def solarize(img: Any, threshold: float) -> Any:
    """Invert the pixels that are at least ``threshold``."""
    if is_pillow(img):
        return pillow("ImageOps").solarize(img, threshold)
    if threshold > _bound(img):
        raise TypeError(f"[solarize] threshold must be at most {_bound(img)}; got {threshold}.")
    return where(img >= threshold, invert(img), img)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Move the pixels from a blurred image; 1 changes nothing, 0 is blurred."""
    if is_pillow(img):
        return _enhanced("Sharpness", img, sharpness_factor)
    h, w = img.shape[-2:]
    if h <= 2 or w <= 2:
        return img
    kernel = np.ones((3, 3), np.float32)
    kernel[1, 1] = 5.0
    kernel /= kernel.sum()
    pixels = (img if img.dtype.is_inexact else img.float()).reshape(-1, 1, h, w)
    inner = functional.conv2d(pixels, asarray(kernel[None, None]).to(pixels.dtype))
    inner = inner if img.dtype.is_inexact else inner.round()
    blurred = concat(
        [
            pixels[:, :, :1],
            concat([pixels[:, :, 1:-1, :1], inner, pixels[:, :, 1:-1, -1:]], axis=3),
            pixels[:, :, -1:],
        ],
        axis=2,
    )
    return _blend(img, blurred.reshape(img.shape), sharpness_factor)


def autocontrast(img: Any) -> Any:
    """Stretch each channel to the whole range."""
    if is_pillow(img):
        return pillow("ImageOps").autocontrast(img)
    bound = _bound(img)
    pixels = img if img.dtype.is_inexact else img.float()
    least, largest = pixels.amin(axis=(-2, -1), keepdims=True), pixels.amax(axis=(-2, -1), keepdims=True)
    is_flat = least == largest
    scale = bound / where(is_flat, bound, largest - least)
    return clip((pixels - where(is_flat, 0.0, least)) * scale, 0, bound).to(img.dtype)


def equalize(img: Any) -> Any:
    """Level the histogram of each channel of uint8 pixels."""
    if is_pillow(img):
        return pillow("ImageOps").equalize(img)
    if img.dtype != dtypes.uint8:
        raise TypeError(f"[equalize] img must be of uint8; got {img.dtype}.")
    channels = [_equalized(channel) for channel in img.reshape(-1, *img.shape[-2:])]
    return stack(channels).reshape(img.shape)


def _equalized(channel: Any) -> Any:
    counts = bincount(channel.reshape(-1).long(), minlength=256).numpy()
    filled = counts[counts != 0]
    step = int(filled[:-1].sum()) // 255
    if step == 0:
        return channel
    table = np.concatenate([[0], (np.cumsum(counts) + step // 2)[:-1] // step]).clip(0, 255).astype(np.uint8)
    return take(asarray(table), channel.long())


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur with a Gaussian of ``sigma``, (x, y) or one number, on a window of ``kernel_size`` pixels, both odd."""
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(k % 2 == 0 or k < 1 for k in sizes):
        raise ValueError(f"[gaussian_blur] kernel_size must be odd, one number or two; got {kernel_size!r}.")
    if sigma is None:
        sigmas = [0.3 * ((k - 1) * 0.5 - 1) + 0.8 for k in sizes]
    else:
        sigmas = [float(sigma)] * 2 if isinstance(sigma, int | float) else [float(s) for s in sigma]
        sigmas = sigmas * (2 // len(sigmas))
    if any(s <= 0 for s in sigmas):
        raise ValueError(f"[gaussian_blur] sigma must be above 0; got {sigma!r}.")
    if is_pillow(img):
        return to_pil_image(gaussian_blur(pil_to_tensor(img), sizes, sigmas), mode=img.mode)
    pixels = img if img.dtype.is_inexact else img.float()
    batch = pixels.reshape(-1, 1, *img.shape[-2:])
    rows, columns = (_gaussian(k, s, pixels.dtype) for k, s in zip(sizes[::-1], sigmas[::-1], strict=True))
    padded = functional.pad(batch, [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2], mode="reflect")
    blurred = functional.conv2d(padded, (rows[:, None] * columns[None, :])[None, None])
    return (blurred if img.dtype.is_inexact else blurred.round()).to(img.dtype).reshape(img.shape)


def _gaussian(size: int, sigma: float, dtype: Any) -> Any:
    places = np.linspace(-(size - 1) / 2, (size - 1) / 2, size)
    weights = np.exp(-0.5 * (places / sigma) ** 2)
    return asarray((weights / weights.sum()).astype(dtype.numpy))


def permute_channels(img: Any, permutation: list[int]) -> Any:
    """Reorder the channels."""
    if len(permutation) != get_image_num_channels(img):
        raise ArgumentError(f"[permute_channels] permutation must have one number a channel; got {permutation}.")
    if is_pillow(img):
        return to_pil_image(permute_channels(pil_to_tensor(img), permutation), mode=img.mode)
    return take(img, asarray(np.array(permutation)), axis=-3)
