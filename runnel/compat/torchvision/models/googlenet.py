"""GoogLeNet: the first network of Inception blocks, here with batch normalization."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel import nn
from runnel.compat.torchvision.models.inception import BasicConv2d
from runnel.compat.torchvision.models.weights import constructor, imagenet_to_halves
from runnel.nn import functional as F
from runnel.ops.shapes.pieces import concat


class GoogLeNetOutputs(NamedTuple):
    """The results while training: of the network, and of both classifiers in its middle."""

    logits: Any
    aux_logits2: Any
    aux_logits1: Any


class Inception(nn.Module):
    """Four branches side by side: 1 × 1, 3 × 3 and 3 × 3 pixels, and maxima."""

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int, pool_proj: int
    ) -> None:
        super().__init__()
        self.branch1 = BasicConv2d(in_channels, ch1x1, kernel_size=1)
        self.branch2, self.branch3 = (
            nn.Sequential(
                BasicConv2d(in_channels, inner, kernel_size=1), BasicConv2d(inner, after, kernel_size=3, padding=1)
            )
            for inner, after in ((ch3x3red, ch3x3), (ch5x5red, ch5x5))
        )
        pool = nn.MaxPool2d(3, 1, 1, ceil_mode=True)
        self.branch4 = nn.Sequential(pool, BasicConv2d(in_channels, pool_proj, kernel_size=1))

    def forward(self, x: Any) -> Any:
        return concat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], axis=1)


class InceptionAux(nn.Module):
    """A classifier in the middle."""

    def __init__(self, in_channels: int, num_classes: int, dropout: float = 0.7) -> None:
        super().__init__()
        self.conv = BasicConv2d(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Any) -> Any:
        x = self.conv(F.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


# channels before a block and of its branches
_BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


class GoogLeNet(nn.Module):
    """C. Szegedy et al., "Going deeper with convolutions", 2015."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: Any = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        conv, block, aux = blocks or (BasicConv2d, Inception, InceptionAux)
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        for name, channels in _BLOCKS.items():
            if name in ("4a", "5a"):
                setattr(self, f"maxpool{int(name[0]) - 1}", nn.MaxPool2d(3 if name == "4a" else 2, 2, ceil_mode=True))
            setattr(self, f"inception{name}", block(*channels))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights is None or init_weights:
            for module in self.modules():
                if isinstance(module, nn.Conv2d | nn.Linear):
                    nn.init.trunc_normal_(module.weight, 0.0, 0.01, -2, 2)

    def forward(self, x: Any) -> Any:
        x = imagenet_to_halves(x) if self.transform_input else x
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.inception4a(self.maxpool3(self.inception3b(self.inception3a(x))))
        first = self.aux1(x) if self.aux1 is not None and self.training else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        second = self.aux2(x) if self.aux2 is not None and self.training else None
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        x = self.fc(self.dropout(self.avgpool(x).flatten(1)))
        return GoogLeNetOutputs(x, second, first) if self.training and self.aux_logits else x


googlenet = constructor("googlenet", lambda _, **options: GoogLeNet(**options))
