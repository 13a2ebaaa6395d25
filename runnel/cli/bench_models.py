"""The networks of ``runnel bench``, equal layer by layer to those of the peers' scripts.

Each knows ``products(*shape)``: the multiply-adds of the matrix products and convolutions of its layers for an input of
that shape, as they are defined, whatever algorithm computes them. An embedding has none.
"""

from __future__ import annotations

import itertools
from typing import Any

from runnel import nn
from runnel.nn import functional as F


class MLP(nn.Sequential):
    """Dense layers with ReLU in between."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        layers: list[nn.Module] = []
        for a, b in itertools.pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        super().__init__(*layers[:-1])

    def products(self, batch: int, features: int) -> list[int]:
        return [batch * a * b for a, b in itertools.pairwise(self.sizes)]


class CNN(nn.Module):
    """The convolutional network of the Rosetta benchmark on CIFAR-10."""

    def __init__(self) -> None:
        self.c1, self.c2 = nn.Conv2d(3, 50, 3, padding=1), nn.Conv2d(50, 50, 3, padding=1)
        self.c3, self.c4 = nn.Conv2d(50, 100, 3, padding=1), nn.Conv2d(100, 100, 3, padding=1)
        self.f1, self.f2 = nn.Linear(6400, 512), nn.Linear(512, 10)

    def forward(self, x: Any) -> Any:
        x = F.dropout(F.relu(F.max_pool2d(self.c2(F.relu(self.c1(x))), 2)), 0.25, self.training)
        x = F.dropout(F.relu(F.max_pool2d(self.c4(F.relu(self.c3(x))), 2)), 0.25, self.training)
        return self.f2(F.dropout(F.relu(self.f1(x.flatten(1))), 0.5, self.training))

    def products(self, batch: int, channels: int, height: int, width: int) -> list[int]:
        pixels, halved = batch * height * width, batch * (height // 2) * (width // 2)
        convolutions = [pixels * channels * 50, pixels * 50 * 50, halved * 50 * 100, halved * 100 * 100]
        return [*(9 * n for n in convolutions), batch * 6400 * 512, batch * 512 * 10]


class GRU(nn.Module):
    """The recurrent network of the Rosetta benchmark on IMDB."""

    def __init__(self) -> None:
        self.e, self.g, self.o = nn.Embedding(30000, 125), nn.GRU(125, 100, batch_first=True), nn.Linear(100, 2)

    def forward(self, x: Any) -> Any:
        return self.o(self.g(self.e(x))[0][:, -1])

    def products(self, batch: int, length: int) -> list[int]:
        return [0, batch * length * 125 * 300, batch * length * 100 * 300, batch * 100 * 2]


class Encoder(nn.Module):
    """A transformer's encoder with a dense layer over the vocabulary behind it."""

    def __init__(self, width: int, heads: int, layers: int, vocabulary: int) -> None:
        self.width, self.layers, self.vocabulary = width, layers, vocabulary
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
        self.e, self.o = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.t = nn.TransformerEncoder(layer, layers)

    def forward(self, x: Any) -> Any:
        return self.o(self.t(self.e(x))).flatten(0, 1)

    def products(self, batch: int, length: int) -> list[int]:
        words, d = batch * length, self.width
        layer = [words * d * 3 * d, 2 * words * length * d, words * d * d, words * d * 4 * d, words * 4 * d * d]
        return [0, *layer * self.layers, words * d * self.vocabulary]


def normalized(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    """A convolution without bias, and the normalization behind it."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """To few channels, across the image, to many, and the input added; the stride is the 3×3 convolution's."""

    def __init__(self, inputs: int, middle: int, stride: int) -> None:
        self.a, self.b = normalized(inputs, middle, 1, 1), normalized(middle, middle, 3, stride)
        self.c = normalized(middle, 4 * middle, 1, 1)
        same = stride == 1 and inputs == 4 * middle
        self.s = nn.Identity() if same else normalized(inputs, 4 * middle, 1, stride)

    def forward(self, x: Any) -> Any:
        return F.relu(self.s(x) + self.c(F.relu(self.b(F.relu(self.a(x))))))


STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels in the middle, blocks, stride of the first


class ResNet50(nn.Sequential):
    """The features before the last layer (K. He et al., "Deep residual learning for image recognition", 2015)."""

    def __init__(self) -> None:
        blocks, inputs = [], 64
        for middle, count, stride in STAGES:
            for n in range(count):
                blocks.append(Bottleneck(inputs, middle, stride if n == 0 else 1))
                inputs = 4 * middle
        stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        super().__init__(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def products(self, batch: int, channels: int, height: int, width: int) -> list[int]:
        counts = [batch * (height // 2) * (width // 2) * channels * 64 * 49]
        pixels, inputs = batch * (height // 4) * (width // 4), 64
        for middle, count, stride in STAGES:
            for n in range(count):
                before, pixels = pixels, pixels // (stride**2 if n == 0 else 1)
                counts += [before * inputs * middle, pixels * 9 * middle**2, pixels * middle * 4 * middle]
                counts += [pixels * inputs * 4 * middle] if n == 0 else []
                inputs = 4 * middle
        return counts
