"""DenseNet: each layer reads the outputs of all layers before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.ops.shapes.pieces import concat


class _DenseLayer(nn.Module):
    """A 1 × 1 and a 3 × 3 convolution of the outputs before it, joined."""

    def __init__(self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float, _: bool) -> None:
        super().__init__()
        inner = bn_size * growth_rate
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, inner, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(inner, growth_rate, 3, padding=1, bias=False)
        self.drop_rate = float(drop_rate)

    def forward(self, input: Any) -> Any:
        x = input if hasattr(input, "shape") else concat(list(input), axis=1)
        x = self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))
        return nn.functional.dropout(x, self.drop_rate, self.training) if self.drop_rate > 0 else x


class _DenseBlock(nn.ModuleDict):
    """Layers whose outputs are joined."""

    def __init__(
        self,
        num_layers: int,
        num_input_features: int,
        bn_size: int,
        growth_rate: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        for i in range(num_layers):
            channels = num_input_features + i * growth_rate
            layer = _DenseLayer(channels, growth_rate, bn_size, drop_rate, memory_efficient)
            self.add_module(f"denselayer{i + 1}", layer)

    def forward(self, init_features: Any) -> Any:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return concat(features, axis=1)


class _Transition(nn.Sequential):
    """A 1 × 1 convolution and averages of 2 × 2 pixels."""

    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, 1, bias=False)
        self.pool = nn.AvgPool2d(2, 2)


class DenseNet(nn.Module):
    """G. Huang et al., "Densely connected convolutional networks", 2017. ``memory_efficient`` changes nothing here."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, num_init_features, 7, 2, 3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(num_init_features))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        channels = num_init_features
        for number, layers in enumerate(block_config, 1):
            block = _DenseBlock(layers, channels, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{number}", block)
            channels += layers * growth_rate
            if number < len(block_config):
                self.features.add_module(f"transition{number}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        x = nn.functional.relu(self.features(x))
        return self.classifier(nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


# growth rate, layers of the blocks, channels of the first convolution
_SIZES = {
    "densenet121": (32, (6, 12, 24, 16), 64),
    "densenet161": (48, (6, 12, 36, 24), 96),
    "densenet169": (32, (6, 12, 32, 32), 64),
    "densenet201": (32, (6, 12, 48, 32), 64),
}
densenet121, densenet161, densenet169, densenet201 = (
    constructor(name, lambda name, **options: DenseNet(*_SIZES[name], **options)) for name in _SIZES
)
