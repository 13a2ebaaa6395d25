"""MobileNet version 3: inverted residuals with squeeze-and-excitation and hard swish."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.mobilenetv2 import initialize, make_divisible
from runnel.compat.torchvision.models.weights import constructor
from runnel.compat.torchvision.ops.misc import Conv2dNormActivation, SqueezeExcitation

Layer = Callable[..., nn.Module]


class InvertedResidualConfig:
    """The sizes of a block. ``activation`` is "RE" for ReLU or "HS" for hard swish."""

    def __init__(
        self,
        input_channels: int,
        kernel: int,
        expanded_channels: int,
        out_channels: int,
        use_se: bool,
        activation: str,
        stride: int,
        dilation: int,
        width_mult: float,
    ) -> None:
        sizes = (input_channels, expanded_channels, out_channels)
        self.input_channels, self.expanded_channels, self.out_channels = (
            self.adjust_channels(size, width_mult) for size in sizes
        )
        self.kernel, self.use_se, self.use_hs = kernel, use_se, activation == "HS"
        self.stride, self.dilation = stride, dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        """Return the channels of a network ``width_mult`` times as wide."""
        return make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """A convolution to more channels, one of single channels, their scales, and a convolution back."""

    def __init__(self, cnf: InvertedResidualConfig, norm_layer: Layer, se_layer: Layer | None = None) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError(f"[InvertedResidual] stride must be 1 or 2; got {cnf.stride}.")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        inner = cnf.expanded_channels
        options: dict[str, Any] = {
            "norm_layer": norm_layer,
            "activation_layer": nn.Hardswish if cnf.use_hs else nn.ReLU,
        }
        layers: list[nn.Module] = []
        if inner != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, inner, 1, **options))
        stride = 1 if cnf.dilation > 1 else cnf.stride
        options["dilation"] = cnf.dilation
        layers.append(Conv2dNormActivation(inner, inner, cnf.kernel, stride, groups=inner, **options))
        if cnf.use_se:
            se_layer = se_layer or partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)
            layers.append(se_layer(inner, make_divisible(inner // 4, 8)))
        after = cnf.out_channels
        layers.append(Conv2dNormActivation(inner, after, 1, norm_layer=norm_layer, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.out_channels, self._is_cn = after, cnf.stride > 1

    def forward(self, input: Any) -> Any:
        return self.block(input) + input if self.use_res_connect else self.block(input)


class MobileNetV3(nn.Module):
    """A. Howard et al., "Searching for MobileNetV3", 2019."""

    def __init__(
        self,
        inverted_residual_setting: list[InvertedResidualConfig],
        last_channel: int,
        num_classes: int = 1000,
        block: Layer | None = None,
        norm_layer: Layer | None = None,
        dropout: float = 0.2,
        **_: Any,
    ) -> None:
        super().__init__()
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.Hardswish}
        first, last = inverted_residual_setting[0].input_channels, inverted_residual_setting[-1].out_channels
        self.features = nn.Sequential(
            Conv2dNormActivation(3, first, 3, 2, **options),
            *(block(setting, norm_layer) for setting in inverted_residual_setting),
            Conv2dNormActivation(last, 6 * last, 1, **options),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        inner = (nn.Linear(6 * last, last_channel), nn.Hardswish(inplace=True), nn.Dropout(dropout, inplace=True))
        self.classifier = nn.Sequential(*inner, nn.Linear(last_channel, num_classes))
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# input channels, kernel, inner channels, channels, squeeze-and-excitation, activation, stride
_BLOCKS: dict[str, tuple[Any, ...]] = {
    "mobilenet_v3_large": (
        *((16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 72, 24, False, "RE", 1)),
        *((24, 5, 72, 40, True, "RE", 2), (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1)),
        *((40, 3, 240, 80, False, "HS", 2), (80, 3, 200, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1)),
        *((80, 3, 184, 80, False, "HS", 1), (80, 3, 480, 112, True, "HS", 1), (112, 3, 672, 112, True, "HS", 1)),
        *((112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1), (160, 5, 960, 160, True, "HS", 1)),
    ),
    "mobilenet_v3_small": (
        *((16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1)),
        *((24, 5, 96, 40, True, "HS", 2), (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1)),
        *((40, 5, 120, 48, True, "HS", 1), (48, 5, 144, 48, True, "HS", 1), (48, 5, 288, 96, True, "HS", 2)),
        *((96, 5, 576, 96, True, "HS", 1), (96, 5, 576, 96, True, "HS", 1)),
    ),
}


def _build(
    name: str, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False, **options: Any
) -> MobileNetV3:
    rows = _BLOCKS[name]
    tail = len(rows) - 3  # blocks that may be narrower, and dilated instead of strided
    settings = []
    for number, (before, kernel, inner, after, *rest, stride) in enumerate(rows):
        late = number >= tail
        narrow = 2 if late and reduced_tail else 1
        before //= narrow if number > tail else 1
        inner //= narrow if number > tail else 1
        dilation = 2 if late and dilated else 1
        sizes = (before, kernel, inner, after // narrow, *rest, stride, dilation, width_mult)
        settings.append(InvertedResidualConfig(*sizes))
    last = (1280 if name.endswith("large") else 1024) // (2 if reduced_tail else 1)
    return MobileNetV3(settings, InvertedResidualConfig.adjust_channels(last, width_mult), **options)


mobilenet_v3_large, mobilenet_v3_small = (constructor(name, _build) for name in _BLOCKS)
