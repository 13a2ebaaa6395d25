"""EfficientNet: inverted residuals with squeeze-and-excitation, wider, deeper and larger together."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from runnel import nn
from runnel.compat.torchvision.models.mobilenetv2 import make_divisible
from runnel.compat.torchvision.models.weights import constructor
from runnel.compat.torchvision.ops.misc import Conv2dNormActivation, SqueezeExcitation, StochasticDepth

Layer = Callable[..., nn.Module]


class MBConv(nn.Module):
    """A block: ``fused`` ones have one convolution in place of a 1 × 1 one and one of single channels."""

    def __init__(
        self,
        channels: tuple[int, int],
        expand_ratio: float,
        kernel: int,
        stride: int,
        fused: bool,
        stochastic_depth_prob: float,
        norm_layer: Layer,
    ) -> None:
        super().__init__()
        before, after = channels
        inner = make_divisible(before * expand_ratio, 8)
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        project: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": None}
        layers: list[nn.Module] = []
        if fused and inner == before:
            layers.append(Conv2dNormActivation(before, after, kernel, stride, **options))
        elif fused:
            layers.append(Conv2dNormActivation(before, inner, kernel, stride, **options))
            layers.append(Conv2dNormActivation(inner, after, 1, **project))
        else:
            layers += [] if inner == before else [Conv2dNormActivation(before, inner, 1, **options)]
            layers.append(Conv2dNormActivation(inner, inner, kernel, stride, groups=inner, **options))
            layers.append(SqueezeExcitation(inner, max(1, before // 4), partial(nn.SiLU, inplace=True)))
            layers.append(Conv2dNormActivation(inner, after, 1, **project))
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.use_res_connect = stride == 1 and before == after
        self.out_channels = after

    def forward(self, input: Any) -> Any:
        result = self.block(input)
        return self.stochastic_depth(result) + input if self.use_res_connect else result


Stage = tuple[bool, float, int, int, int, int, int]  # fused, ratio, kernel, stride, channels before, after, blocks


class EfficientNet(nn.Module):
    """M. Tan, Q. Le, "EfficientNet", 2019, and "EfficientNetV2", 2021."""

    def __init__(
        self,
        stages: list[Stage],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Layer | None = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = [Conv2dNormActivation(3, stages[0][4], 3, 2, **options)]
        total, count = sum(stage[-1] for stage in stages), 0
        for fused, ratio, kernel, stride, before, after, blocks in stages:
            made = []
            for number in range(blocks):
                probability = stochastic_depth_prob * count / total
                channels, step = (before, after) if number == 0 else (after, after), stride if number == 0 else 1
                made.append(MBConv(channels, ratio, kernel, step, fused, probability, norm_layer))
                count += 1
            layers.append(nn.Sequential(*made))
        last = stages[-1][5]
        final = last_channel or 4 * last
        self.features = nn.Sequential(*layers, Conv2dNormActivation(last, final, 1, **options))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(final, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                bound = 1 / math.sqrt(module.out_features)
                nn.init.uniform_(module.weight, -bound, bound)
            else:
                continue
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


_FIRST: Final[list[Stage]] = [
    *((False, 1, 3, 1, 32, 16, 1), (False, 6, 3, 2, 16, 24, 2), (False, 6, 5, 2, 24, 40, 2)),
    *((False, 6, 3, 2, 40, 80, 3), (False, 6, 5, 1, 80, 112, 3), (False, 6, 5, 2, 112, 192, 4)),
    (False, 6, 3, 1, 192, 320, 1),
]
# factors of width and depth, dropout
_SCALES: Final = {
    "efficientnet_b0": (1.0, 1.0, 0.2),
    "efficientnet_b1": (1.0, 1.1, 0.2),
    "efficientnet_b2": (1.1, 1.2, 0.3),
    "efficientnet_b3": (1.2, 1.4, 0.3),
    "efficientnet_b4": (1.4, 1.8, 0.4),
    "efficientnet_b5": (1.6, 2.2, 0.4),
    "efficientnet_b6": (1.8, 2.6, 0.5),
    "efficientnet_b7": (2.0, 3.1, 0.5),
}
_SECOND: Final[dict[str, tuple[list[Stage], float]]] = {
    "efficientnet_v2_s": (
        [
            *((True, 1, 3, 1, 24, 24, 2), (True, 4, 3, 2, 24, 48, 4), (True, 4, 3, 2, 48, 64, 4)),
            *((False, 4, 3, 2, 64, 128, 6), (False, 6, 3, 1, 128, 160, 9), (False, 6, 3, 2, 160, 256, 15)),
        ],
        0.2,
    ),
    "efficientnet_v2_m": (
        [
            *((True, 1, 3, 1, 24, 24, 3), (True, 4, 3, 2, 24, 48, 5), (True, 4, 3, 2, 48, 80, 5)),
            *((False, 4, 3, 2, 80, 160, 7), (False, 6, 3, 1, 160, 176, 14), (False, 6, 3, 2, 176, 304, 18)),
            (False, 6, 3, 1, 304, 512, 5),
        ],
        0.3,
    ),
    "efficientnet_v2_l": (
        [
            *((True, 1, 3, 1, 32, 32, 4), (True, 4, 3, 2, 32, 64, 7), (True, 4, 3, 2, 64, 96, 7)),
            *((False, 4, 3, 2, 96, 192, 10), (False, 6, 3, 1, 192, 224, 19), (False, 6, 3, 2, 224, 384, 25)),
            (False, 6, 3, 1, 384, 640, 7),
        ],
        0.4,
    ),
}


def _times(factor: float, channels: int) -> int:
    return make_divisible(channels * factor, 8)


def _build(name: str, **options: Any) -> EfficientNet:
    if name in _SECOND:
        stages, dropout = _SECOND[name]
        defaults: dict[str, Any] = {"norm_layer": partial(nn.BatchNorm2d, eps=1e-3), "last_channel": 1280}
    else:
        width, depth, dropout = _SCALES[name]
        wider = partial(_times, width)
        stages = [(*row[:4], wider(row[4]), wider(row[5]), math.ceil(row[6] * depth)) for row in _FIRST]
        large = name[-1] in "567"
        defaults = {"norm_layer": partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)} if large else {}
    return EfficientNet(stages, **{"dropout": dropout} | defaults | options)


(efficientnet_b0, efficientnet_b1, efficientnet_b2, efficientnet_b3) = (
    constructor(name, _build) for name in list(_SCALES)[:4]
)
(efficientnet_b4, efficientnet_b5, efficientnet_b6, efficientnet_b7) = (
    constructor(name, _build) for name in list(_SCALES)[4:]
)
efficientnet_v2_s, efficientnet_v2_m, efficientnet_v2_l = (constructor(name, _build) for name in _SECOND)
