"""Transforms without random numbers, and those that combine others."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.compat.torchvision.transforms import colors, images, places
from runnel.compat.torchvision.transforms.images import InterpolationMode
from runnel.core import dtypes
from runnel.core.errors import ShapeError
from runnel.data.randomness import sample_draws
from runnel.nn.module import Module
from runnel.tensor.methods import ArrayMethods


class Compose:
    """A sequence of transforms."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, *inputs: Any) -> Any:
        for transform in self.transforms:
            inputs = (transform(*inputs),)
            inputs = inputs[0] if isinstance(inputs[0], tuple) else inputs
        return inputs[0] if len(inputs) == 1 else inputs

    def __repr__(self) -> str:
        return "\n".join(["Compose(", *(f"    {transform}" for transform in self.transforms), ")"])


class ToTensor:
    """A Pillow image or an array (H, W, C) as a tensor (C, H, W); uint8 pixels are scaled to [0, 1]."""

    def __call__(self, pic: Any) -> Any:
        return images.to_tensor(pic)

    def __repr__(self) -> str:
        return "ToTensor()"


class PILToTensor:
    """A Pillow image as a tensor (C, H, W) with the same numbers."""

    def __call__(self, pic: Any) -> Any:
        return images.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return "PILToTensor()"


class ToPILImage:
    """A tensor (C, H, W) or an array (H, W, C) as a Pillow image, in a ``mode`` that fits the numbers if None."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return images.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"ToPILImage({'' if self.mode is None else f'mode={self.mode}'})"


class Lambda:
    """A function as a transform."""

    def __init__(self, lambd: Callable[..., Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"[Lambda] lambd must be a function; got {type(lambd).__name__}.")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


class ConvertImageDtype(Module):
    """A tensor of another dtype, its values scaled."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtypes.as_dtype(dtype)

    def forward(self, image: Any) -> Any:
        return images.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """``(tensor - mean) / std`` for each channel."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Any) -> Any:
        return places.normalize(tensor, self.mean, self.std, self.inplace)

    def extra_repr(self) -> str:
        return f"mean={self.mean}, std={self.std}"


class Resize(Module):
    """The image of another size: (height, width), or ``size`` pixels on its shorter side."""

    def __init__(
        self,
        size: Any,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = images.as_mode(interpolation)

    def forward(self, img: Any) -> Any:
        return places.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def extra_repr(self) -> str:
        return f"size={self.size}, interpolation={self.interpolation.value}, max_size={self.max_size}"


class CenterCrop(Module):
    """The middle of the image, 0 outside it."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = images.pair(size)

    def forward(self, img: Any) -> Any:
        return places.center_crop(img, self.size)

    def extra_repr(self) -> str:
        return f"size={self.size}"


class FiveCrop(Module):
    """The corners and the middle of the image: a tuple."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = images.pair(size)

    def forward(self, img: Any) -> Any:
        return places.five_crop(img, self.size)


class TenCrop(Module):
    """The five crops of the image and of the flipped image."""

    def __init__(self, size: Any, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size, self.vertical_flip = images.pair(size), vertical_flip

    def forward(self, img: Any) -> Any:
        return places.ten_crop(img, self.size, self.vertical_flip)


class Pad(Module):
    """The image with pixels added at its sides."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        return places.pad(img, self.padding, self.fill, self.padding_mode)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode}"


class Grayscale(Module):
    """The luma of the image, on 1 or 3 equal channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return colors.rgb_to_grayscale(img, self.num_output_channels)


class LinearTransformation(Module):
    """``(flattened image - mean_vector) @ transformation_matrix``, such as whitening."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        super().__init__()
        if transformation_matrix.shape[0] != transformation_matrix.shape[1] != mean_vector.shape[0]:
            raise ShapeError(
                "[LinearTransformation] transformation_matrix must be square, with as many rows as mean_vector."
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, tensor: Any) -> Any:
        flat = tensor.reshape(-1, self.transformation_matrix.shape[0]) - self.mean_vector
        return (flat @ self.transformation_matrix).reshape(tensor.shape)


class RandomTransforms:
    """The base of what chooses among transforms."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError(f"[{type(self).__name__}] transforms must be a sequence; got {type(transforms).__name__}.")
        self.transforms = transforms


class RandomChoice(RandomTransforms):
    """One of the transforms, chosen with probabilities ``p``."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        self.p = [1.0] * len(transforms) if p is None else list(p)

    def __call__(self, *inputs: Any) -> Any:
        shares = list(itertools.accumulate(self.p))
        number = bisect.bisect_right(shares, draw(0.0, shares[-1]))
        return self.transforms[min(number, len(shares) - 1)](*inputs)


class RandomOrder(RandomTransforms):
    """All transforms, in random order."""

    def __call__(self, *inputs: Any) -> Any:
        for i in order(len(self.transforms)):
            inputs = (self.transforms[i](*inputs),)
            inputs = inputs[0] if isinstance(inputs[0], tuple) else inputs
        return inputs[0] if len(inputs) == 1 else inputs


class RandomApply(Module):
    """All transforms with probability ``p``, else none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, *inputs: Any) -> Any:
        if self.p <= draw():
            return inputs[0] if len(inputs) == 1 else inputs
        for transform in self.transforms:
            inputs = (transform(*inputs),)
            inputs = inputs[0] if isinstance(inputs[0], tuple) else inputs
        return inputs[0] if len(inputs) == 1 else inputs


def draw(low: float = 0.0, high: float = 1.0) -> float:
    """Draw a number from [low, high): the sample's in a DataLoader, else the default generator's."""
    return float(sample_draws().uniform(low, high)[0])


def draw_integer(high: int) -> int:
    """Draw an integer from 0 to high - 1."""
    return int(sample_draws().integer(0, high)[0])


def order(count: int) -> list[int]:
    """Draw a random order of ``count`` things."""
    keys = [draw() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def is_tensor(image: Any) -> bool:
    """Return True for tensors."""
    return isinstance(image, ArrayMethods)
