"""ConvNeXt: a convolutional network with the sizes of transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.compat.torchvision.ops.misc import Conv2dNormActivation, Permute, StochasticDepth
from runnel.tensor.creation import full

Layer = Callable[..., nn.Module]


class LayerNorm2d(nn.LayerNorm):
    """Layer normalization of the channels of images."""

    def forward(self, x: Any) -> Any:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A convolution of single channels and an MLP over channels, scaled and added to the input."""

    def __init__(
        self, dim: int, layer_scale: float, stochastic_depth_prob: float, norm_layer: Layer | None = None
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim),
            Permute([0, 2, 3, 1]),
            norm_layer(dim),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(full((dim, 1, 1), layer_scale))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Any) -> Any:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class CNBlockConfig:
    """The channels of a stage, those after it, and its number of blocks."""

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels, self.out_channels, self.num_layers = input_channels, out_channels, num_layers


class ConvNeXt(nn.Module):
    """Z. Liu et al., "A ConvNet for the 2020s", 2022."""

    def __init__(
        self,
        block_setting: list[CNBlockConfig],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: Layer | None = None,
        norm_layer: Layer | None = None,
    ) -> None:
        super().__init__()
        block, norm_layer = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        first = block_setting[0].input_channels
        stem: dict[str, Any] = {"padding": 0, "norm_layer": norm_layer, "activation_layer": None, "bias": True}
        layers: list[nn.Module] = [Conv2dNormActivation(3, first, 4, 4, **stem)]
        total, count = sum(setting.num_layers for setting in block_setting), 0
        for setting in block_setting:
            width, blocks = setting.input_channels, []
            for _ in range(setting.num_layers):
                blocks.append(block(width, layer_scale, stochastic_depth_prob * count / (total - 1.0)))
                count += 1
            layers.append(nn.Sequential(*blocks))
            if setting.out_channels is not None:
                layers.append(nn.Sequential(norm_layer(width), nn.Conv2d(width, setting.out_channels, 2, 2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.classifier = nn.Sequential(norm_layer(last), nn.Flatten(1), nn.Linear(last, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)))


# channels and blocks of the stages, probability of stochastic depth
_SIZES = {
    "convnext_tiny": ((96, 192, 384, 768), (3, 3, 9, 3), 0.1),
    "convnext_small": ((96, 192, 384, 768), (3, 3, 27, 3), 0.4),
    "convnext_base": ((128, 256, 512, 1024), (3, 3, 27, 3), 0.5),
    "convnext_large": ((192, 384, 768, 1536), (3, 3, 27, 3), 0.5),
}


def _build(name: str, **options: Any) -> ConvNeXt:
    widths, blocks, probability = _SIZES[name]
    settings = [CNBlockConfig(*sizes) for sizes in zip(widths, (*widths[1:], None), blocks, strict=True)]
    return ConvNeXt(settings, **{"stochastic_depth_prob": probability} | options)


convnext_tiny, convnext_small, convnext_base, convnext_large = (constructor(name, _build) for name in _SIZES)
