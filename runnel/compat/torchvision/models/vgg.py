"""VGG: stacks of 3 × 3 convolutions."""

from __future__ import annotations

from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor


class VGG(nn.Module):
    """K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015."""

    def __init__(
        self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            *(nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(dropout)),
            *(nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(dropout)),
            nn.Linear(4096, num_classes),
        )
        for module in self.modules() if init_weights else ():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# channels of the convolutions; M is a maximum over 2 × 2 pixels
cfgs: dict[str, list[Any]] = {
    "A": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "B": [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "D": [64, 64, "M", 128, 128, "M", *[256] * 3, "M", *[512] * 3, "M", *[512] * 3, "M"],
    "E": [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}
_LETTERS = {"vgg11": "A", "vgg13": "B", "vgg16": "D", "vgg19": "E"}


def make_layers(cfg: list[Any], batch_norm: bool = False) -> nn.Sequential:
    """Return the convolutions of a VGG."""
    layers: list[nn.Module] = []
    channels = 3
    for size in cfg:
        if size == "M":
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers.append(nn.Conv2d(channels, size, 3, padding=1))
        layers += [nn.BatchNorm2d(size)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = size
    return nn.Sequential(*layers)


def _vgg(name: str, **options: Any) -> VGG:
    letter, norm = _LETTERS[name.removesuffix("_bn")], name.endswith("_bn")
    return VGG(make_layers(cfgs[letter], norm), **options)


vgg11, vgg13, vgg16, vgg19 = (constructor(name, _vgg) for name in _LETTERS)
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (constructor(f"{name}_bn", _vgg) for name in _LETTERS)
