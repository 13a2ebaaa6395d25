"""Policies of augmentation: AutoAugment, RandAugment, TrivialAugment and AugMix, as tables of operations."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from runnel.compat.torchvision.transforms import colors, images, warping
from runnel.compat.torchvision.transforms.fixed import draw, draw_integer, is_tensor
from runnel.compat.torchvision.transforms.images import InterpolationMode, get_dimensions
from runnel.core.errors import ArgumentError
from runnel.data.randomness import sample_rng
from runnel.nn.module import Module

NEAREST = InterpolationMode.NEAREST
BILINEAR = InterpolationMode.BILINEAR

_COLORS = {
    "AutoContrast": lambda img, m: colors.autocontrast(img),
    "Brightness": lambda img, m: colors.adjust_brightness(img, 1.0 + m),
    "Color": lambda img, m: colors.adjust_saturation(img, 1.0 + m),
    "Contrast": lambda img, m: colors.adjust_contrast(img, 1.0 + m),
    "Equalize": lambda img, m: colors.equalize(img),
    "Identity": lambda img, m: img,
    "Invert": lambda img, m: colors.invert(img),
    "Posterize": lambda img, m: colors.posterize(img, int(m)),
    "Sharpness": lambda img, m: colors.adjust_sharpness(img, 1.0 + m),
    "Solarize": lambda img, m: colors.solarize(img, m),
}


def _applied(img: Any, name: str, magnitude: float, interpolation: Any, fill: Any) -> Any:
    """Return the image after one operation."""
    if name in _COLORS:
        return _COLORS[name](img, magnitude)
    if name == "Rotate":
        return warping.rotate(img, magnitude, interpolation, fill=fill)
    shear, shift, center = [0.0, 0.0], [0, 0], None
    axis = 0 if name[-1] == "X" else 1
    if name.startswith("Shear"):
        shear[axis], center = math.degrees(math.atan(magnitude)), [0, 0]
    else:
        shift[axis] = int(magnitude)
    return warping.affine(img, 0.0, shift, 1.0, shear, interpolation, fill, center)


# operation: (magnitude of the first bin, of the last one, whether its sign is random)
_STANDARD = {
    "Identity": None,
    "ShearX": (0.0, 0.3, True),
    "ShearY": (0.0, 0.3, True),
    "TranslateX": ("width", 150.0 / 331.0, True),
    "TranslateY": ("height", 150.0 / 331.0, True),
    "Rotate": (0.0, 30.0, True),
    "Brightness": (0.0, 0.9, True),
    "Color": (0.0, 0.9, True),
    "Contrast": (0.0, 0.9, True),
    "Sharpness": (0.0, 0.9, True),
    "Posterize": ("bits", 4, False),
    "Solarize": (255.0, 0.0, False),
    "AutoContrast": None,
    "Equalize": None,
    "Invert": None,
}
_RANDOM = {name: row for name, row in _STANDARD.items() if name != "Invert"}
_WIDE = _RANDOM | {
    "ShearX": (0.0, 0.99, True),
    "ShearY": (0.0, 0.99, True),
    "TranslateX": (0.0, 32.0, True),
    "TranslateY": (0.0, 32.0, True),
    "Rotate": (0.0, 135.0, True),
    **dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), (0.0, 0.99, True)),
    "Posterize": ("bits", 6, False),
}
_MIXED = ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Posterize", "Solarize", "AutoContrast", "Equalize"]
_ALL_MIXED = [*_MIXED, "Brightness", "Color", "Contrast", "Sharpness"]


def _magnitude(row: Any, number: int, bins: int, height: int, width: int) -> float:
    """Return the magnitude of bin ``number``."""
    if row is None:
        return 0.0
    kind, high, _ = row
    if kind == "bits":
        return float(8 - round(number / ((bins - 1) / high)))
    sizes = {"width": width, "height": height}
    low, high = (0.0, high * sizes[kind]) if kind in sizes else (kind, high)
    return float(np.linspace(low, high, bins, dtype=np.float32)[number])


class AutoAugmentPolicy(enum.Enum):
    """The data set that a policy was learned on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# E. Cubuk et al., "AutoAugment: learning augmentation strategies from data", 2019: operation, probability, bin.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
Posterize 0.4 8 Rotate 0.6 9 | Solarize 0.6 5 AutoContrast 0.6 - | Equalize 0.8 - Equalize 0.6 -
Posterize 0.6 7 Posterize 0.6 6 | Equalize 0.4 - Solarize 0.2 4 | Equalize 0.4 - Rotate 0.8 8
Solarize 0.6 3 Equalize 0.6 - | Posterize 0.8 5 Equalize 1.0 - | Rotate 0.2 3 Solarize 0.6 8
Equalize 0.6 - Posterize 0.4 6 | Rotate 0.8 8 Color 0.4 0 | Rotate 0.4 9 Equalize 0.6 -
Equalize 0.0 - Equalize 0.8 - | Invert 0.6 - Equalize 1.0 - | Color 0.6 4 Contrast 1.0 8
Rotate 0.8 8 Color 1.0 2 | Color 0.8 8 Solarize 0.8 7 | Sharpness 0.4 7 Invert 0.6 -
ShearX 0.6 5 Equalize 1.0 - | Color 0.4 0 Equalize 0.6 - | Equalize 0.4 - Solarize 0.2 4
Solarize 0.6 5 AutoContrast 0.6 - | Invert 0.6 - Equalize 1.0 - | Color 0.6 4 Contrast 1.0 8
Equalize 0.8 - Equalize 0.6 -
""",
    AutoAugmentPolicy.CIFAR10: """
Invert 0.1 - Contrast 0.2 6 | Rotate 0.7 2 TranslateX 0.3 9 | Sharpness 0.8 1 Sharpness 0.9 3
ShearY 0.5 8 TranslateY 0.7 9 | AutoContrast 0.5 - Equalize 0.9 - | ShearY 0.2 7 Posterize 0.3 7
Color 0.4 3 Brightness 0.6 7 | Sharpness 0.3 9 Brightness 0.7 9 | Equalize 0.6 - Equalize 0.5 -
Contrast 0.6 7 Sharpness 0.6 5 | Color 0.7 7 TranslateX 0.5 8 | Equalize 0.3 - AutoContrast 0.4 -
TranslateY 0.4 3 Sharpness 0.2 6 | Brightness 0.9 6 Color 0.2 8 | Solarize 0.5 2 Invert 0.0 -
Equalize 0.2 - AutoContrast 0.6 - | Equalize 0.2 - Equalize 0.6 - | Color 0.9 9 Equalize 0.6 -
AutoContrast 0.8 - Solarize 0.2 8 | Brightness 0.1 3 Color 0.7 0 | Solarize 0.4 5 AutoContrast 0.9 -
TranslateY 0.9 9 TranslateY 0.7 9 | AutoContrast 0.9 - Solarize 0.8 3 | Equalize 0.8 - Invert 0.1 -
TranslateY 0.7 9 AutoContrast 0.9 -
""",
    AutoAugmentPolicy.SVHN: """
ShearX 0.9 4 Invert 0.2 - | ShearY 0.9 8 Invert 0.7 - | Equalize 0.6 - Solarize 0.6 6
Invert 0.9 - Equalize 0.6 - | Equalize 0.6 - Rotate 0.9 3 | ShearX 0.9 4 AutoContrast 0.8 -
ShearY 0.9 8 Invert 0.4 - | ShearY 0.9 5 Solarize 0.2 6 | Invert 0.9 - AutoContrast 0.8 -
Equalize 0.6 - Rotate 0.9 3 | ShearX 0.9 4 Solarize 0.3 3 | ShearY 0.8 8 Invert 0.7 -
Equalize 0.9 - TranslateY 0.6 6 | Invert 0.9 - Equalize 0.6 - | Contrast 0.3 3 Rotate 0.8 4
Invert 0.8 - TranslateY 0.0 2 | ShearY 0.7 6 Solarize 0.4 8 | Invert 0.6 - Rotate 0.8 4
ShearY 0.3 7 TranslateX 0.9 3 | ShearX 0.1 6 Invert 0.6 - | Solarize 0.7 2 TranslateY 0.6 7
ShearY 0.8 4 Invert 0.8 - | ShearX 0.7 9 TranslateY 0.8 3 | ShearY 0.8 5 AutoContrast 0.7 -
ShearX 0.7 2 Invert 0.1 -
""",
}


class _Policy(Module):
    """The base of the policies."""

    def __init__(self, interpolation: Any, fill: Any) -> None:
        super().__init__()
        self.interpolation = images.as_mode(interpolation)
        self.fill = fill

    def _apply_op(self, img: Any, name: str, row: Any, number: int, bins: int) -> Any:
        """Return the image after an operation with the magnitude of a bin, its sign drawn if it has one."""
        _, h, w = get_dimensions(img)
        magnitude = _magnitude(row, number, bins, h, w)
        if row is not None and row[2] and draw_integer(2):
            magnitude = -magnitude
        return _applied(img, name, magnitude, self.interpolation, self.fill)


class AutoAugment(_Policy):
    """Two operations of a policy that was learned (E. Cubuk et al., "AutoAugment", 2019)."""

    def __init__(
        self, policy: Any = AutoAugmentPolicy.IMAGENET, interpolation: Any = NEAREST, fill: Any = None
    ) -> None:
        super().__init__(interpolation, fill)
        if policy not in _POLICIES:
            raise ValueError(f"[AutoAugment] policy must be an AutoAugmentPolicy; got {policy!r}.")
        self.policy = policy
        words = [pair.split() for pair in _POLICIES[policy].replace("\n", "|").split("|") if pair.strip()]
        self.policies = [tuple((n, float(p), 0 if b == "-" else int(b)) for n, p, b in (w[:3], w[3:])) for w in words]

    def forward(self, img: Any) -> Any:
        for name, p, number in self.policies[draw_integer(len(self.policies))]:
            if draw() <= p:
                img = self._apply_op(img, name, _STANDARD[name], number, 10)
        return img

    def extra_repr(self) -> str:
        return f"policy={self.policy}, fill={self.fill}"


class RandAugment(_Policy):
    """``num_ops`` random operations of one magnitude (E. Cubuk et al., "RandAugment", 2020)."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins
        if not 0 <= magnitude < num_magnitude_bins:
            raise ArgumentError(f"[RandAugment] magnitude must be below num_magnitude_bins; got {magnitude}.")

    def forward(self, img: Any) -> Any:
        for _ in range(self.num_ops):
            name = list(_RANDOM)[draw_integer(len(_RANDOM))]
            img = self._apply_op(img, name, _RANDOM[name], self.magnitude, self.num_magnitude_bins)
        return img

    def extra_repr(self) -> str:
        return f"num_ops={self.num_ops}, magnitude={self.magnitude}, num_magnitude_bins={self.num_magnitude_bins}"


class TrivialAugmentWide(_Policy):
    """One random operation of random magnitude (S. Müller, F. Hutter, "TrivialAugment", 2021)."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = NEAREST, fill: Any = None) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img: Any) -> Any:
        name = list(_WIDE)[draw_integer(len(_WIDE))]
        number = draw_integer(self.num_magnitude_bins)
        return self._apply_op(img, name, _WIDE[name], number, self.num_magnitude_bins)

    def extra_repr(self) -> str:
        return f"num_magnitude_bins={self.num_magnitude_bins}"


class AugMix(_Policy):
    """A random mixture of chains of operations (D. Hendrycks et al., "AugMix", 2020)."""

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = BILINEAR,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"[AugMix] severity must be from 1 to 10; got {severity}.")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def forward(self, img: Any) -> Any:
        pixels = img if is_tensor(img) else images.pil_to_tensor(img)
        rng = sample_rng()
        share = float(rng.beta(self.alpha, self.alpha))
        weights = rng.dirichlet([self.alpha] * self.mixture_width)
        names = _ALL_MIXED if self.all_ops else _MIXED
        mixed = pixels.float() * share
        for weight in weights:
            changed = pixels
            for _ in range(self.chain_depth if self.chain_depth > 0 else 1 + draw_integer(3)):
                name = names[draw_integer(len(names))]
                row = ("width" if name[-1] == "X" else "height", 1 / 3, True) if "Trans" in name else _STANDARD[name]
                number = draw_integer(self.severity)
                changed = self._apply_op(changed, name, row, number, 10)
            mixed = mixed + changed.float() * ((1 - share) * float(weight))
        mixed = mixed.to(pixels.dtype)
        return mixed if is_tensor(img) else images.to_pil_image(mixed, mode=img.mode)

    def extra_repr(self) -> str:
        return f"severity={self.severity}, mixture_width={self.mixture_width}, alpha={self.alpha}"
