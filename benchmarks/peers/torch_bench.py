"""Training and inference steps of the benchmark cases in PyTorch: eager, channels-last, compiled, and bfloat16.

    python torch_bench.py [CASE ...]

Needs torch (the CPU build will do). ``THREADS=n`` sets the number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from measuring import THREADS, chosen, report


class MLP(nn.Sequential):
    def __init__(self, *sizes: int) -> None:
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        super().__init__(*layers[:-1])


class CNN(nn.Module):
    """The network for CIFAR-10 of the Rosetta collection."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 50, 3, padding=1), nn.Conv2d(50, 50, 3, padding=1)
        self.c3, self.c4 = nn.Conv2d(50, 100, 3, padding=1), nn.Conv2d(100, 100, 3, padding=1)
        self.f1, self.f2 = nn.Linear(6400, 512), nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(F.relu(F.max_pool2d(self.c2(F.relu(self.c1(x))), 2)), 0.25, self.training)
        x = F.dropout(F.relu(F.max_pool2d(self.c4(F.relu(self.c3(x))), 2)), 0.25, self.training)
        return self.f2(F.dropout(F.relu(self.f1(x.flatten(1))), 0.5, self.training))


class GRU(nn.Module):
    """The network for IMDB of the Rosetta collection."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30000, 125)
        self.gru = nn.GRU(125, 100, batch_first=True)
        self.output = nn.Linear(100, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.gru(self.embedding(x))[0][:, -1])


class Encoder(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, words: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.output = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.encoder(self.embedding(x))).flatten(0, 1)


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()

        def normalized(inputs: int, outputs: int, size: int, stride: int) -> nn.Sequential:
            convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outputs))

        self.a, self.b = normalized(inputs, width, 1, 1), normalized(width, width, 3, stride)
        self.c = normalized(width, 4 * width, 1, 1)
        same = stride == 1 and inputs == 4 * width
        self.shortcut = nn.Identity() if same else normalized(inputs, 4 * width, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.shortcut(x) + self.c(F.relu(self.b(F.relu(self.a(x))))))


class ResNet50(nn.Sequential):
    """ResNet-50 up to its 2,048 features after the global average pool."""

    def __init__(self) -> None:
        blocks: list[nn.Module] = []
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for number in range(count):
                blocks.append(Bottleneck(inputs, width, stride if number == 0 else 1))
                inputs = 4 * width
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        super().__init__(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def ints(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


TRAIN: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, torch.Tensor]], str]] = {
    "mlp_tiny_b8": (lambda: MLP(4, 16, 16, 3), lambda: (torch.randn(8, 4), ints(3, 8)), "sgd"),
    "mlp_b32": (lambda: MLP(784, 256, 128, 10), lambda: (torch.randn(32, 784), ints(10, 32)), "adam"),
    "mlp_b256": (lambda: MLP(784, 1024, 1024, 10), lambda: (torch.randn(256, 784), ints(10, 256)), "adam"),
    "cnn_b64": (CNN, lambda: (torch.rand(64, 3, 32, 32), ints(10, 64)), "sgd"),
    "gru_b64": (GRU, lambda: (ints(30000, 64, 150), ints(2, 64)), "adam"),
    "encoder_b8_t128": (lambda: Encoder(256, 4, 4, 1000), lambda: (ints(1000, 8, 128), ints(1000, 1024)), "adam"),
}
INFER: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "resnet50_b1": (ResNet50, lambda: torch.rand(1, 3, 224, 224)),
    "resnet50_b32": (ResNet50, lambda: torch.rand(32, 3, 224, 224)),
    "bert_base_b1_t128": (lambda: Encoder(768, 12, 12, 1000), lambda: ints(1000, 1, 128)),
}


def train_step(model: Any, x: torch.Tensor, y: torch.Tensor, kind: str, bf16: bool = False) -> Callable[[], Any]:
    """Return a whole training step: forward, cross-entropy, backward, update."""
    adam = kind == "adam"
    parameters = model.parameters()
    optimizer = torch.optim.Adam(parameters, 1e-3) if adam else torch.optim.SGD(parameters, 0.01, momentum=0.9)

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def inference_step(model: Any, x: torch.Tensor, bf16: bool = False) -> Callable[[], Any]:
    model.eval()

    def step() -> Any:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return model(x)

    return step


def configurations(has_convolutions: bool) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield each configuration's name, and whether it uses channels-last memory, torch.compile, bfloat16."""
    yield "eager", {}
    if has_convolutions:
        yield "channels_last", {"channels_last": True}
    yield "compile", {"channels_last": has_convolutions, "compiled": True}
    yield "bf16", {"channels_last": has_convolutions, "bf16": True}


def step_of(case: str, channels_last: bool = False, compiled: bool = False, bf16: bool = False) -> Callable[[], Any]:
    """Return the step of a case in one configuration, with the same weights and data in each."""
    torch.manual_seed(0)
    if case in TRAIN:
        make, draw, kind = TRAIN[case]
        model, (x, y) = make(), draw()
    else:
        make, draw_inputs = INFER[case]
        model, x = make(), draw_inputs()
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    called = torch.compile(model) if compiled else model
    if case in TRAIN:
        return train_step(called, x, y, kind, bf16)
    model.eval()
    return inference_step(called, x, bf16)


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    peer = f"torch {torch.__version__}"
    for case in chosen(peer, [*TRAIN, *INFER]):
        for config, options in configurations(case.startswith(("cnn", "resnet"))):
            report(peer, case, config, lambda case=case, options=options: step_of(case, **options))  # type: ignore[misc]
