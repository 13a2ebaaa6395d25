"""Test random networks: a compiled forward with backward() outside returns the bits of the eager step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import nn, ops, optim
from tests.tensor.differentiable.programs import bits, numbers

WIDTH = 4


class Residual(nn.Module):
    def __init__(self, inner: nn.Module, is_stopped: bool) -> None:
        self.inner = inner
        self.is_stopped = is_stopped

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        y = self.inner(x)
        return (x.detach() if self.is_stopped else x) + y


class Gated(nn.Module):
    def __init__(self, shared: nn.Module) -> None:
        self.shared = shared
        self.gate = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        halves = ops.split(self.shared(x), 2, axis=1)
        return ops.sigmoid(self.gate(x)) * ops.concat([halves[1], halves[0] * 2.0], axis=1) + self.shared(x * 0.5)


class Counting(nn.Module):
    """Keeps a running mean, and something else on itself."""

    def __init__(self) -> None:
        self.mean = rn.Variable(np.zeros(WIDTH, np.float32))
        self.calls, self.last = 0, None

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        self.calls += 1
        self.last = x.detach().sum()
        if self.training:
            self.mean.assign(self.mean.value * 0.5 + x.detach().mean(axis=0) * 0.5)
        return x - self.mean.value


def layer(kind: str, earlier: list[nn.Module]) -> nn.Module:
    if kind == "again" and earlier:
        return earlier[0]
    makers: dict[str, Callable[[], nn.Module]] = {
        "linear": lambda: nn.Linear(WIDTH, WIDTH), "relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh,
        "norm": lambda: nn.LayerNorm(WIDTH), "batch norm": lambda: nn.BatchNorm1d(WIDTH),
        "dropout": lambda: nn.Dropout(0.25), "counting": Counting,
        "residual": lambda: Residual(nn.Linear(WIDTH, WIDTH), is_stopped=False),
        "stopped": lambda: Residual(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), is_stopped=True),
        "gated": lambda: Gated(next((x for x in earlier if isinstance(x, nn.Linear)), nn.Linear(WIDTH, WIDTH))),
    }  # fmt: skip
    return makers.get(kind, nn.Identity)()


KINDS = (
    "linear", "relu", "gelu", "tanh", "norm", "batch norm", "dropout", "counting", "residual", "stopped", "gated",
    "again",
)  # fmt: skip


def trained(
    kinds: list[str], steps: list[int], with_input: bool, with_penalty: bool, compiles: Callable[..., Any]
) -> Any:
    rn.manual_seed(3)
    layers: list[nn.Module] = []
    for kind in kinds:
        layers.append(layer(kind, layers))
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 2))
    for i, p in enumerate(model.parameters()):
        p.assign(p.value * 0.5 + numbers(i, *p.shape) * 0.5)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    forward = compiles(lambda x: (model(x), x.mean(axis=0)))
    results: list[Any] = []
    for i, calls in enumerate(steps):
        model.train(i % 3 != 2)
        optimizer.zero_grad()
        x = numbers(i, 3, WIDTH)
        x.requires_grad = with_input
        losses = [((scores**2).mean(), mean) for scores, mean in [forward(x * (j + 1.0)) for j in range(calls)]]
        total = sum(loss + mean.sum() * 0.1 for loss, mean in losses)
        if with_penalty:
            total.backward(create_graph=True)
            first = [p.grad for p in model.parameters() if p.grad is not None]
            optimizer.zero_grad()
            x.grad = None
            (total + sum((g * g).sum() for g in first) * 0.01).backward()
        else:
            total.backward(retain_graph=calls == 1)
            if calls == 1:
                losses[0][0].backward()
        optimizer.step()
        results += [total.detach(), x.grad]
    return bits([results, [v.numpy() for v in model.state_dict().values()]])


@pytest.mark.filterwarnings("ignore:.*op by op")
@settings(max_examples=18, deadline=None, derandomize=True)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
    steps=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    with_input=st.booleans(),
    with_penalty=st.booleans(),
)
def test_same_bits(kinds: list[str], steps: list[int], with_input: bool, with_penalty: bool) -> None:
    eager = trained(kinds, steps, with_input, with_penalty, lambda f: f)
    assert trained(kinds, steps, with_input, with_penalty, rn.compile) == eager
