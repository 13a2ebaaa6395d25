"""Inception version 3: convolutions of several sizes side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor, imagenet_to_halves
from runnel.nn import functional as F
from runnel.ops.shapes.pieces import concat


class InceptionOutputs(NamedTuple):
    """The results while training: of the network, and of the classifier in its middle."""

    logits: Any
    aux_logits: Any


class BasicConv2d(nn.Module):
    """A convolution, batch normalization and a ReLU."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Any) -> Any:
        return F.relu(self.bn(self.conv(x)))


def _conv(before: int, after: int, kernel: Any = 1, stride: int = 1, padding: Any = 0) -> BasicConv2d:
    return BasicConv2d(before, after, kernel_size=kernel, stride=stride, padding=padding)


def _row(before: int, after: int, width: int = 7) -> BasicConv2d:
    return _conv(before, after, (1, width), padding=(0, width // 2))


def _column(before: int, after: int, width: int = 7) -> BasicConv2d:
    return _conv(before, after, (width, 1), padding=(width // 2, 0))


class InceptionA(nn.Module):
    """Convolutions of 1 × 1, 5 × 5 and twice 3 × 3 pixels, and averages."""

    def __init__(self, in_channels: int, pool_features: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(in_channels, 64)
        self.branch5x5_1 = _conv(in_channels, 48)
        self.branch5x5_2 = _conv(48, 64, 5, padding=2)
        self.branch3x3dbl_1 = _conv(in_channels, 64)
        self.branch3x3dbl_2 = _conv(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = _conv(96, 96, 3, padding=1)
        self.branch_pool = _conv(in_channels, pool_features)

    def forward(self, x: Any) -> Any:
        twice = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        pooled = self.branch_pool(F.avg_pool2d(x, 3, 1, 1))
        return concat([self.branch1x1(x), self.branch5x5_2(self.branch5x5_1(x)), twice, pooled], axis=1)


class InceptionB(nn.Module):
    """Half the width and height: convolutions of 3 × 3 pixels, once and twice, and maxima."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3 = _conv(in_channels, 384, 3, 2)
        self.branch3x3dbl_1 = _conv(in_channels, 64)
        self.branch3x3dbl_2 = _conv(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = _conv(96, 96, 3, 2)

    def forward(self, x: Any) -> Any:
        twice = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return concat([self.branch3x3(x), twice, F.max_pool2d(x, 3, 2)], axis=1)


class InceptionC(nn.Module):
    """Convolutions of 7 × 7 pixels as rows and columns, once and twice, and averages."""

    def __init__(self, in_channels: int, channels_7x7: int) -> None:
        super().__init__()
        inner = channels_7x7
        self.branch1x1 = _conv(in_channels, 192)
        self.branch7x7_1 = _conv(in_channels, inner)
        self.branch7x7_2 = _row(inner, inner)
        self.branch7x7_3 = _column(inner, 192)
        self.branch7x7dbl_1 = _conv(in_channels, inner)
        self.branch7x7dbl_2 = _column(inner, inner)
        self.branch7x7dbl_3 = _row(inner, inner)
        self.branch7x7dbl_4 = _column(inner, inner)
        self.branch7x7dbl_5 = _row(inner, 192)
        self.branch_pool = _conv(in_channels, 192)

    def forward(self, x: Any) -> Any:
        once = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        twice = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        twice = self.branch7x7dbl_5(self.branch7x7dbl_4(twice))
        return concat([self.branch1x1(x), once, twice, self.branch_pool(F.avg_pool2d(x, 3, 1, 1))], axis=1)


class InceptionD(nn.Module):
    """Half the width and height: convolutions of 3 × 3 pixels, one after 7 × 7, and maxima."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3_1 = _conv(in_channels, 192)
        self.branch3x3_2 = _conv(192, 320, 3, 2)
        self.branch7x7x3_1 = _conv(in_channels, 192)
        self.branch7x7x3_2 = _row(192, 192)
        self.branch7x7x3_3 = _column(192, 192)
        self.branch7x7x3_4 = _conv(192, 192, 3, 2)

    def forward(self, x: Any) -> Any:
        seven = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x))))
        return concat([self.branch3x3_2(self.branch3x3_1(x)), seven, F.max_pool2d(x, 3, 2)], axis=1)


class InceptionE(nn.Module):
    """Convolutions of 3 × 3 pixels as a row beside a column, and averages."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(in_channels, 320)
        self.branch3x3_1 = _conv(in_channels, 384)
        self.branch3x3_2a = _row(384, 384, 3)
        self.branch3x3_2b = _column(384, 384, 3)
        self.branch3x3dbl_1 = _conv(in_channels, 448)
        self.branch3x3dbl_2 = _conv(448, 384, 3, padding=1)
        self.branch3x3dbl_3a = _row(384, 384, 3)
        self.branch3x3dbl_3b = _column(384, 384, 3)
        self.branch_pool = _conv(in_channels, 192)

    def forward(self, x: Any) -> Any:
        once = self.branch3x3_1(x)
        twice = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        sides = [self.branch3x3_2a(once), self.branch3x3_2b(once), self.branch3x3dbl_3a(twice)]
        sides += [self.branch3x3dbl_3b(twice), self.branch_pool(F.avg_pool2d(x, 3, 1, 1))]
        return concat([self.branch1x1(x), *sides], axis=1)


class InceptionAux(nn.Module):
    """The classifier in the middle."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv0 = _conv(in_channels, 128)
        self.conv1 = _conv(128, 768, 5)
        self.conv1.stddev = 0.01
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x: Any) -> Any:
        x = self.conv1(self.conv0(F.avg_pool2d(x, 5, 3)))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


class Inception3(nn.Module):
    """C. Szegedy et al., "Rethinking the Inception architecture for computer vision", 2016, for 299 × 299 pixels."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: Any = None,
        init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        default = (BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux)
        conv, a, b, c, d, e, aux = inception_blocks or default
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(3, 2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(3, 2)
        self.Mixed_5b, self.Mixed_5c, self.Mixed_5d = a(192, 32), a(256, 64), a(288, 64)
        self.Mixed_6a = b(288)
        self.Mixed_6b, self.Mixed_6c, self.Mixed_6d, self.Mixed_6e = (c(768, n) for n in (128, 160, 160, 192))
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a, self.Mixed_7b, self.Mixed_7c = d(768), e(1280), e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights is None or init_weights:
            for module in self.modules():
                if isinstance(module, nn.Conv2d | nn.Linear):
                    nn.init.trunc_normal_(module.weight, 0.0, float(getattr(module, "stddev", 0.1)), -2, 2)

    def forward(self, x: Any) -> Any:
        x = imagenet_to_halves(x) if self.transform_input else x
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        middle = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.avgpool(self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))))
        x = self.fc(self.dropout(x).flatten(1))
        return InceptionOutputs(x, middle) if self.training and self.aux_logits else x


inception_v3 = constructor("inception_v3", lambda _, **options: Inception3(**options))
