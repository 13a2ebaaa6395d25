"""Transforms with random numbers. ``get_params`` of a class draws them, as its ``forward`` does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms import colors, images, places, warping
from runnel.compat.torchvision.transforms.fixed import draw, draw_integer, is_tensor, order
from runnel.compat.torchvision.transforms.images import InterpolationMode, get_dimensions, get_image_num_channels
from runnel.core.errors import ArgumentError
from runnel.data.randomness import sample_rng
from runnel.nn.module import Module
from runnel.tensor.creation import asarray

BILINEAR = InterpolationMode.BILINEAR
NEAREST = InterpolationMode.NEAREST


class _WithProbability(Module):
    """A change of the image with probability ``p``; a subclass defines ``changed(img)``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"[{type(self).__name__}] p must be from 0 to 1; got {p!r}.")
        self.p = p

    def forward(self, img: Any) -> Any:
        return self.changed(img) if draw() < self.p else img

    def changed(self, img: Any) -> Any:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"p={self.p}"


class RandomHorizontalFlip(_WithProbability):
    """A flip of left and right with probability ``p``."""

    def changed(self, img: Any) -> Any:
        return places.hflip(img)


class RandomVerticalFlip(_WithProbability):
    """A flip of top and bottom with probability ``p``."""

    def changed(self, img: Any) -> Any:
        return places.vflip(img)


class RandomGrayscale(_WithProbability):
    """The luma, on as many channels as the image has, with probability ``p``."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def changed(self, img: Any) -> Any:
        return colors.rgb_to_grayscale(img, get_image_num_channels(img))


class RandomInvert(_WithProbability):
    """The negative with probability ``p``."""

    def changed(self, img: Any) -> Any:
        return colors.invert(img)


class RandomAutocontrast(_WithProbability):
    """The channels stretched to the whole range with probability ``p``."""

    def changed(self, img: Any) -> Any:
        return colors.autocontrast(img)


class RandomEqualize(_WithProbability):
    """The histograms leveled with probability ``p``."""

    def changed(self, img: Any) -> Any:
        return colors.equalize(img)


class RandomPosterize(_WithProbability):
    """The highest ``bits`` bits with probability ``p``."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def changed(self, img: Any) -> Any:
        return colors.posterize(img, self.bits)


class RandomSolarize(_WithProbability):
    """The pixels from ``threshold`` on inverted with probability ``p``."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def changed(self, img: Any) -> Any:
        return colors.solarize(img, self.threshold)


class RandomAdjustSharpness(_WithProbability):
    """Another sharpness with probability ``p``."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def changed(self, img: Any) -> Any:
        return colors.adjust_sharpness(img, self.sharpness_factor)


class RandomCrop(Module):
    """A random part of the image, after padding."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = images.pair(size)
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """Return (top, left, height, width) of a random part."""
        _, h, w = get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(f"[RandomCrop] size must be at most {(h, w)}, the image's; got {(height, width)}.")
        return draw_integer(h - height + 1), draw_integer(w - width + 1), height, width

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = places.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            for axis in (1, 0):
                missing = self.size[axis] - get_dimensions(img)[1 + axis]
                if missing > 0:
                    sides = [missing, 0] if axis else [0, missing]
                    img = places.pad(img, sides, self.fill, self.padding_mode)
        return places.crop(img, *self.get_params(img, self.size))

    def extra_repr(self) -> str:
        return f"size={self.size}, padding={self.padding}"


class RandomResizedCrop(Module):
    """A part of random area and shape, resized to ``size``."""

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = images.pair(size)
        self.scale, self.ratio, self.antialias = scale, ratio, antialias
        self.interpolation = images.as_mode(interpolation)

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Return (top, left, height, width): ten attempts, then the largest middle part of a shape in ``ratio``."""
        _, height, width = get_dimensions(img)
        for _ in range(10):
            area = height * width * draw(scale[0], scale[1])
            shape = math.exp(draw(math.log(ratio[0]), math.log(ratio[1])))
            w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < w <= width and 0 < h <= height:
                return draw_integer(height - h + 1), draw_integer(width - w + 1), h, w
        w, h = width, height
        if width / height < min(ratio):
            h = round(w / min(ratio))
        elif width / height > max(ratio):
            w = round(h * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        part = self.get_params(img, self.scale, self.ratio)
        return places.resized_crop(img, *part, self.size, self.interpolation, antialias=self.antialias)

    def extra_repr(self) -> str:
        return f"size={self.size}, scale={self.scale}, ratio={self.ratio}, interpolation={self.interpolation.value}"


def _range(name: str, value: Any, center: float = 1.0, bound: tuple[float, float] = (0.0, math.inf)) -> Any:
    """Return a range (low, high) around ``center``, or None if it changes nothing."""
    if isinstance(value, int | float):
        if value < 0:
            raise ValueError(f"[ColorJitter] {name} must be 0 or more; got {value}.")
        low, high = max(center - value, bound[0]) if center else -float(value), center + value
    else:
        low, high = (float(v) for v in value)
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"[ColorJitter] {name} must be a range in {bound}; got {value!r}.")
    return None if low == high == center else (low, high)


class ColorJitter(Module):
    """Random changes of brightness, contrast, saturation and hue, in random order."""

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness = _range("brightness", brightness)
        self.contrast = _range("contrast", contrast)
        self.saturation = _range("saturation", saturation)
        self.hue = _range("hue", hue, 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> tuple[Any, ...]:
        """Return the order of the changes, and the factor of each, None for no change."""
        factors = [None if r is None else draw(*r) for r in (brightness, contrast, saturation, hue)]
        return (asarray(np.array(order(4))), *factors)

    def forward(self, img: Any) -> Any:
        turns, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (colors.adjust_brightness, colors.adjust_contrast, colors.adjust_saturation, colors.adjust_hue)
        for number in turns.tolist():
            if factors[number] is not None:
                img = changes[number](img, factors[number])
        return img

    def extra_repr(self) -> str:
        names = ("brightness", "contrast", "saturation", "hue")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


def _angles(name: str, value: Any) -> list[float]:
    """Return a range of degrees: a number is one to both sides."""
    if isinstance(value, int | float):
        if value < 0:
            raise ValueError(f"[{name}] must be 0 or more, or a range; got {value}.")
        return [-float(value), float(value)]
    return [float(v) for v in value]


class RandomRotation(Module):
    """A rotation by a random angle in degrees, counterclockwise."""

    def __init__(
        self, degrees: Any, interpolation: Any = NEAREST, expand: bool = False, center: Any = None, fill: Any = 0
    ) -> None:
        super().__init__()
        self.degrees = _angles("degrees", degrees)
        self.interpolation = images.as_mode(interpolation)
        self.expand, self.center, self.fill = expand, center, fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Return a random angle."""
        return draw(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return warping.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def extra_repr(self) -> str:
        return f"degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}"


class RandomAffine(Module):
    """A random rotation, translation (shares of the size), scale and shear (degrees)."""

    def __init__(
        self,
        degrees: Any,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Any = None,
        interpolation: Any = NEAREST,
        fill: Any = 0,
        center: Any = None,
    ) -> None:
        super().__init__()
        self.degrees = _angles("degrees", degrees)
        self.shear = None if shear is None else _angles("shear", shear)
        self.translate, self.scale = translate, scale
        self.interpolation = images.as_mode(interpolation)
        self.fill, self.center = fill, center

    @staticmethod
    def get_params(
        degrees: Sequence[float], translate: Any, scale_ranges: Any, shears: Any, img_size: Sequence[int]
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Return (angle, (x, y), scale, (shear of x, shear of y)); ``img_size`` is (width, height)."""
        angle = draw(degrees[0], degrees[1])
        shares = (0.0, 0.0) if translate is None else translate
        shift_x, shift_y = (round(draw(-share * n, share * n)) for share, n in zip(shares, img_size, strict=True))
        scale = 1.0 if scale_ranges is None else draw(scale_ranges[0], scale_ranges[1])
        shear_x = 0.0 if shears is None else draw(shears[0], shears[1])
        shear_y = draw(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, (shift_x, shift_y), scale, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        _, h, w = get_dimensions(img)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, (w, h))
        return warping.affine(img, *drawn, interpolation=self.interpolation, fill=self.fill, center=self.center)

    def extra_repr(self) -> str:
        return f"degrees={self.degrees}, translate={self.translate}, scale={self.scale}, shear={self.shear}"


class RandomPerspective(Module):
    """A random perspective with probability ``p``: the corners move inwards by up to ``distortion_scale`` halves."""

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = BILINEAR, fill: Any = 0
    ) -> None:
        super().__init__()
        self.distortion_scale, self.p, self.fill = distortion_scale, p, fill
        self.interpolation = images.as_mode(interpolation)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """Return the corners and where they move, [x, y] each."""
        reach_x, reach_y = (int(distortion_scale * (n // 2)) + 1 for n in (width, height))
        right, bottom = width - 1, height - 1
        start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
        end = [[abs(x - draw_integer(reach_x)), abs(y - draw_integer(reach_y))] for x, y in start]
        return start, end

    def forward(self, img: Any) -> Any:
        if draw() >= self.p:
            return img
        _, h, w = get_dimensions(img)
        points = self.get_params(w, h, self.distortion_scale)
        return warping.perspective(img, *points, self.interpolation, self.fill)


class RandomErasing(Module):
    """A random rectangle of a tensor filled with ``value``, or normal numbers for "random"."""

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(value, str) and value != "random":
            raise ValueError(f"[RandomErasing] value must be a number, a sequence or 'random'; got {value!r}.")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float], value: Any = None) -> tuple[Any, ...]:
        """Return (top, left, height, width, values), the whole image if ten attempts do not fit."""
        channels, height, width = img.shape[-3:]
        for _ in range(10):
            area = height * width * draw(scale[0], scale[1])
            shape = math.exp(draw(math.log(ratio[0]), math.log(ratio[1])))
            h, w = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < h < height and 0 < w < width:
                if value is None:
                    filled = asarray(sample_rng().standard_normal((channels, h, w), np.float32))
                else:
                    filled = places.erased_value(value, channels)
                return draw_integer(height - h + 1), draw_integer(width - w + 1), h, w, filled
        return 0, 0, height, width, img

    def forward(self, img: Any) -> Any:
        if not is_tensor(img):
            raise TypeError("[RandomErasing] img must be a tensor; put ToTensor() before it.")
        if draw() >= self.p:
            return img
        value = None if isinstance(self.value, str) else self.value
        i, j, h, w, v = self.get_params(img, self.scale, self.ratio, value)
        return places.erase(img, i, j, h, w, v, self.inplace)


class GaussianBlur(Module):
    """A blur with a Gaussian of random width."""

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.sigma = [float(sigma)] * 2 if isinstance(sigma, int | float) else [float(s) for s in sigma]
        if not 0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"[GaussianBlur] sigma must be above 0, or a range (low, high); got {sigma!r}.")

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """Return a random width."""
        return draw(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(*self.sigma)
        return colors.gaussian_blur(img, self.kernel_size, [sigma, sigma])


class ElasticTransform(Module):
    """Smooth random displacements: of ``alpha`` pixels, smoothed by Gaussians of ``sigma``."""

    def __init__(self, alpha: Any = 50.0, sigma: Any = 5.0, interpolation: Any = BILINEAR, fill: Any = 0) -> None:
        super().__init__()
        self.alpha, self.sigma = (
            [float(v)] * 2 if isinstance(v, int | float) else [float(x) for x in v] for v in (alpha, sigma)
        )
        if len(self.alpha) != 2 or len(self.sigma) != 2:
            raise ArgumentError(f"[ElasticTransform] alpha and sigma must be 1 or 2 numbers; got {alpha!r}, {sigma!r}.")
        self.interpolation, self.fill = images.as_mode(interpolation), fill

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Any:
        """Return displacements (1, H, W, 2) in units of half the image."""
        parts = []
        for a, s, n in zip(alpha, sigma, size, strict=True):
            noise = asarray(sample_rng().uniform(-1, 1, (1, 1, *size)).astype(np.float32))
            if s > 0:
                width = int(8 * s + 1)
                width += width % 2 == 0
                noise = colors.gaussian_blur(noise, [width, width], [s, s])
            parts.append(noise.numpy()[0, 0] * a / n)
        return asarray(np.stack(parts, axis=-1)[None])

    def forward(self, tensor: Any) -> Any:
        _, h, w = get_dimensions(tensor)
        displacement = self.get_params(self.alpha, self.sigma, [h, w])
        return warping.elastic_transform(tensor, displacement, self.interpolation, self.fill)
