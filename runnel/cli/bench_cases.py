"""The cases of ``runnel bench``: networks, data and training as in the peers' scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel import nn, ops, optim
from runnel.cli import bench_models as models
from runnel.core.records import record
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor

Draw = Callable[[np.random.Generator], np.ndarray]


def numbers(*shape: int) -> Draw:
    return lambda rng: rng.random(shape, np.float32)


def labels(below: int, *shape: int) -> Draw:
    return lambda rng: rng.integers(0, below, shape)


@record
class Case:
    """A network and an input; with targets and an optimizer it is trained, without it is evaluated."""

    network: Callable[[], Any]
    x: Draw
    y: Draw | None = None
    optimizer: Callable[[Any], optim.Optimizer] | None = None

    def prepared(self) -> Prepared:
        """The network with initial values, its data, and the step that is timed."""
        random.manual_seed(0)
        network, rng = self.network(), np.random.default_rng(0)
        data = tuple(asarray(draw(rng)) for draw in (self.x, self.y) if draw is not None)
        flops = 2 * work(network.products(*data[0].shape), self.optimizer is not None)
        if self.optimizer is None:
            return Prepared(evaluation(network.eval()), data, network, flops)
        return Prepared(training(network, self.optimizer(network.parameters())), data, network, flops)


@record
class Prepared:
    """What is ready to run: ``step(*data)``, and the floating-point operations of its products."""

    step: Callable[..., Tensor]
    data: tuple[Tensor, ...]
    network: nn.Module
    flops: int


def training(network: nn.Module, optimizer: optim.Optimizer) -> Callable[..., Tensor]:
    """zero_grad, forward, loss, backward and the optimizer's step."""

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = ops.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def evaluation(network: nn.Module) -> Callable[..., Tensor]:
    """Forward alone."""

    def step(x: Tensor) -> Tensor:
        outputs: Tensor = network(x).detach()
        return outputs

    return step


def work(products: list[int], trained: bool) -> int:
    """Multiply-adds of a step: forward, by weights, and by inputs but the network's own."""
    return 3 * sum(products) - products[0] if trained else sum(products)


def sgd(parameters: Any) -> optim.Optimizer:
    return optim.SGD(parameters, 0.01, momentum=0.9)


def adam(parameters: Any) -> optim.Optimizer:
    return optim.Adam(parameters, 1e-3)


CASES = {
    "mlp_tiny_b8": Case(lambda: models.MLP(4, 16, 16, 3), numbers(8, 4), labels(3, 8), sgd),
    "mlp_b32": Case(lambda: models.MLP(784, 256, 128, 10), numbers(32, 784), labels(10, 32), adam),
    "mlp_b256": Case(lambda: models.MLP(784, 1024, 1024, 10), numbers(256, 784), labels(10, 256), adam),
    "cnn_b64": Case(models.CNN, numbers(64, 3, 32, 32), labels(10, 64), sgd),
    "gru_b64": Case(models.GRU, labels(30000, 64, 150), labels(2, 64), adam),
    "encoder_b8_t128": Case(lambda: models.Encoder(256, 4, 4, 1000), labels(1000, 8, 128), labels(1000, 8 * 128), adam),
    "resnet50_b1": Case(models.ResNet50, numbers(1, 3, 224, 224)),
    "resnet50_b32": Case(models.ResNet50, numbers(32, 3, 224, 224)),
    "bert_base_b1_t128": Case(lambda: models.Encoder(768, 12, 12, 1000), labels(1000, 1, 128)),
}
