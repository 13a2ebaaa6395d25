"""SqueezeNet."""

from __future__ import annotations

from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.ops.shapes.pieces import concat


class Fire(nn.Module):
    """A 1 × 1 convolution, then 1 × 1 and 3 × 3 convolutions side by side."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        x = self.squeeze_activation(self.squeeze(x))
        sides = [self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))]
        return concat(sides, axis=1)


class SqueezeNet(nn.Module):
    """F. Iandola et al., "SqueezeNet", 2016, of ``version`` "1_0" or "1_1"."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in ("1_0", "1_1"):
            raise ValueError(f"[SqueezeNet] version must be '1_0' or '1_1'; got {version!r}.")
        self.num_classes = num_classes
        sizes = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
        first = nn.Conv2d(3, 96, 7, 2) if version == "1_0" else nn.Conv2d(3, 64, 3, 2)
        pools = (0, 3, 7) if version == "1_0" else (0, 2, 4)  # before these
        layers: list[nn.Module] = [first, nn.ReLU(inplace=True)]
        channels = first.out_channels
        for number, (squeeze, expand) in enumerate(sizes):
            layers += [nn.MaxPool2d(3, 2, ceil_mode=True)] if number in pools else []
            layers.append(Fire(channels, squeeze, expand, expand))
            channels = 2 * expand
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is last:
                    nn.init.normal_(module.weight, 0.0, 0.01)
                else:
                    nn.init.kaiming_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.features(x)).flatten(1)


squeezenet1_0, squeezenet1_1 = (
    constructor(f"squeezenet{version}", lambda name, **options: SqueezeNet(name[-3:], **options))
    for version in ("1_0", "1_1")
)
