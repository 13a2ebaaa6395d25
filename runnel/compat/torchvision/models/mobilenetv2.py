"""MobileNet version 2: narrow layers with wide convolutions of single channels between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.compat.torchvision.ops.misc import Conv2dNormActivation

Layer = Callable[..., nn.Module]


def make_divisible(v: float, divisor: int = 8, min_value: int | None = None) -> int:
    """Return the multiple of ``divisor`` near ``v`` that is not below 0.9 of it."""
    rounded = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


def initialize(network: nn.Module) -> None:
    """Draw the first weights of a MobileNet."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class InvertedResidual(nn.Module):
    """A 1 × 1 convolution to more channels, one of single channels, and one back; the input is added if it fits."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: float, norm_layer: Layer = nn.BatchNorm2d
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"[InvertedResidual] stride must be 1 or 2; got {stride}.")
        self.stride, self.out_channels = stride, oup
        self.use_res_connect = stride == 1 and inp == oup
        self._is_cn = stride > 1
        inner = round(inp * expand_ratio)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, inner, 1, **options))
        layers.append(Conv2dNormActivation(inner, inner, stride=stride, groups=inner, **options))
        self.conv = nn.Sequential(*layers, nn.Conv2d(inner, oup, 1, bias=False), norm_layer(oup))

    def forward(self, x: Any) -> Any:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# factor of the inner channels, channels, blocks, stride of the first block
_STAGES = [
    *([1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2]),
    *([6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]),
]


class MobileNetV2(nn.Module):
    """M. Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018."""

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None,
        round_nearest: int = 8,
        block: Layer | None = None,
        norm_layer: Layer | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        channels = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = [Conv2dNormActivation(3, channels, stride=2, **options)]
        for ratio, width, blocks, stride in inverted_residual_setting or _STAGES:
            after = make_divisible(width * width_mult, round_nearest)
            for number in range(blocks):
                layers.append(block(channels, after, 1 if number else stride, ratio, norm_layer=norm_layer))
                channels = after
        layers.append(Conv2dNormActivation(channels, self.last_channel, 1, **options))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


mobilenet_v2 = constructor("mobilenet_v2", lambda _, **options: MobileNetV2(**options))
