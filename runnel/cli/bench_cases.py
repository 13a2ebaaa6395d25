"""The networks and cases of ``runnel bench``, equal layer by layer to the peers' scripts.

Each network's ``products(*shape)`` returns the multiply-adds of its matrix products and convolutions for an input of
that shape, by definition rather than by the algorithm used. An embedding has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import nn, ops, optim
from runnel.core.records import record
from runnel.nn import functional as F
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor


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
    """A transformer encoder followed by a dense layer over the vocabulary."""

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
    """Return a convolution without bias followed by normalization."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """A block that reduces channels, convolves 3×3 with the stride, expands channels and adds its input."""

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


Draw = Callable[[np.random.Generator], np.ndarray]


def numbers(*shape: int) -> Draw:
    return lambda rng: rng.random(shape, np.float32)


def labels(below: int, *shape: int) -> Draw:
    return lambda rng: rng.integers(0, below, shape)


@record
class Case:
    """A network and an input; trained with targets and an optimizer, otherwise evaluated."""

    network: Callable[[], Any]
    x: Draw
    y: Draw | None = None
    optimizer: Callable[[Any], optim.Optimizer] | None = None

    def prepared(self) -> Prepared:
        """Return the network with initial values, its data, and the step to time."""
        random.manual_seed(0)
        network, rng = self.network(), np.random.default_rng(0)
        data = tuple(asarray(draw(rng)) for draw in (self.x, self.y) if draw is not None)
        flops = 2 * work(network.products(*data[0].shape), self.optimizer is not None)
        if self.optimizer is None:
            return Prepared(evaluation(network.eval()), data, network, flops)
        return Prepared(training(network, self.optimizer(network.parameters())), data, network, flops)


@record
class Prepared:
    """A case ready to run: ``step(*data)``, and the floating-point operations of its products."""

    step: Callable[..., Tensor]
    data: tuple[Tensor, ...]
    network: nn.Module
    flops: int


def training(network: nn.Module, optimizer: optim.Optimizer) -> Callable[..., Tensor]:
    """Return a step: zero_grad, forward, loss, backward and the optimizer's step."""

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = ops.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def evaluation(network: nn.Module) -> Callable[..., Tensor]:
    """Return a step of only the forward pass."""

    def step(x: Tensor) -> Tensor:
        outputs: Tensor = network(x).detach()
        return outputs

    return step


def work(products: list[int], trained: bool) -> int:
    """Return the multiply-adds of a step: forward, gradients of weights, and of inputs except the network's."""
    return 3 * sum(products) - products[0] if trained else sum(products)


def sgd(parameters: Any) -> optim.Optimizer:
    return optim.SGD(parameters, 0.01, momentum=0.9)


def adam(parameters: Any) -> optim.Optimizer:
    return optim.Adam(parameters, 1e-3)


CASES = {
    "mlp_tiny_b8": Case(lambda: MLP(4, 16, 16, 3), numbers(8, 4), labels(3, 8), sgd),
    "mlp_b32": Case(lambda: MLP(784, 256, 128, 10), numbers(32, 784), labels(10, 32), adam),
    "mlp_b256": Case(lambda: MLP(784, 1024, 1024, 10), numbers(256, 784), labels(10, 256), adam),
    "cnn_b64": Case(CNN, numbers(64, 3, 32, 32), labels(10, 64), sgd),
    "gru_b64": Case(GRU, labels(30000, 64, 150), labels(2, 64), adam),
    "encoder_b8_t128": Case(lambda: Encoder(256, 4, 4, 1000), labels(1000, 8, 128), labels(1000, 8 * 128), adam),
    "resnet50_b1": Case(ResNet50, numbers(1, 3, 224, 224)),
    "resnet50_b32": Case(ResNet50, numbers(32, 3, 224, 224)),
    "bert_base_b1_t128": Case(lambda: Encoder(768, 12, 12, 1000), labels(1000, 1, 128)),
}
