"""Every kernel of whole training steps compiles for every target, whether it runs here or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nest_harness import machine_code

import runnel as rn
from runnel import nn, optim
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.core import switches
from runnel.core.records import replace
from runnel.loops.ir import Kernel
from runnel.nn import functional as F


class Convolutional(nn.Module):
    """Winograd and direct convolutions, depthwise ones, strides, norms, pooling and dropout."""

    def __init__(self) -> None:
        self.c1, self.c2 = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 24, 3, padding=1)
        self.c3, self.c4 = nn.Conv2d(24, 24, 3, stride=2, groups=24), nn.Conv2d(24, 8, 1)
        self.norm, self.out = nn.BatchNorm2d(24), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        x = F.dropout(F.relu(F.max_pool2d(self.c2(F.relu(self.c1(x))), 2)), 0.25, self.training)
        return self.out(F.adaptive_avg_pool2d(self.c4(self.norm(self.c3(x))), 1).flatten(1))


class Recurrent(nn.Module):
    """An embedding and a GRU."""

    def __init__(self) -> None:
        self.e, self.g, self.out = nn.Embedding(50, 9), nn.GRU(9, 11, batch_first=True), nn.Linear(11, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.g(self.e(x))[0][:, -1])


class Attentive(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        self.e, self.out = nn.Embedding(50, 12), nn.Linear(12, 4)
        self.t = nn.TransformerEncoderLayer(12, 2, 20, 0.1, "gelu", batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.out(self.t(self.e(x))[:, 0])


def images(rng: np.random.Generator) -> Any:
    return rng.normal(size=(4, 3, 16, 16)).astype("float32")


def words(rng: np.random.Generator) -> Any:
    return rng.integers(0, 50, (4, 7))


def kernels_of(network: Callable[[], nn.Module], draw: Callable[[np.random.Generator], Any]) -> list[Kernel]:
    rng = np.random.default_rng(0)
    model = network()
    optimizer = optim.Adam(model.parameters(), 1e-3)

    @rn.compile
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    plan = step.program(rn.asarray(draw(rng)), rn.asarray(rng.integers(0, 4, 4))).plan
    return list({call.kernel.name: call.kernel for call in plan.calls}.values())


@pytest.mark.parametrize(
    ("network", "draw"),
    [(Convolutional, images), (Recurrent, words), (Attentive, words)],
    ids=["cnn", "gru", "encoder"],
)
def test_kernels_of_training_steps_compile_everywhere(network: Any, draw: Any) -> None:
    with switches.override(verify=True):
        kernels = kernels_of(network, draw)
    assert len(kernels) > 10
    texts: set[str] = set()
    others = [row for row in target.TARGETS if row.name != target.host().name]  # for which all other tests compile
    for row in reversed(others):  # of machines that share a text, the least
        quick = replace(row, effort=1)  # it selects instructions as with more effort
        for text in [nest.emit_kernel(kernel, row) for kernel in kernels]:
            if text not in texts:
                texts.add(text)
                assert machine_code(text, quick)
