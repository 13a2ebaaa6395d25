"""Test programs within a memory budget: the same bits, a report of recomputed values, refusal before a run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.compiler import rematerialization
from runnel.core.errors import MemoryBudgetError, RunnelError
from runnel.ops.conversion import optimization_barrier_p
from tests.compiler.harness import same_bits

pytestmark = pytest.mark.suite


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        self.norm = nn.LayerNorm(size)
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        return x + self.drop(self.down(rn.gelu(self.up(self.norm(x)))))


def training(budget: Any = None, depth: int = 2) -> tuple[nn.Module, Any]:
    rn.manual_seed(1)
    net = nn.Sequential(*[Block(16) for _ in range(depth)], nn.Linear(16, 4))
    opt = optim.AdamW(net.parameters(), lr=1e-2)

    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        opt.zero_grad()
        loss = rn.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    return net, rn.compile(step, memory_budget=budget)


def data(rows: int = 64) -> tuple[rn.Tensor, rn.Tensor]:
    rng = np.random.default_rng(0)
    return rn.asarray(rng.standard_normal((rows, 16)).astype(np.float32)), rn.asarray(rng.integers(0, 4, rows))


@functools.cache
def needed(depth: int = 2) -> int:
    report = training(None, depth)[1].program(*data()).memory
    assert report.counted == report.peak + report.outputs
    return int(report.counted)


def trained(net: nn.Module, step: Any) -> list[np.ndarray]:
    rn.manual_seed(2)
    losses = [step(*data()) for _ in range(3)]
    return [x.numpy() for x in (*losses, *net.parameters())]


@functools.cache
def trained_without() -> list[np.ndarray]:
    return trained(*training())


@pytest.mark.parametrize("part", [0.8, 0.5])
def test_a_budget_is_kept_and_changes_no_bit(part: float) -> None:
    budget = int(part * needed())
    net, step = training(budget)
    inspection = step.program(*data())
    report = inspection.memory
    assert report.counted <= budget == report.budget
    assert report.recomputed
    assert report.extra_seconds > 0
    assert all(r.bytes > 0 and r.seconds > 0 for r in report.recomputed)
    assert any(node.op is optimization_barrier_p for node in inspection.plan.graph.nodes)
    assert "computed again" in str(report)
    assert report.as_json()["recomputed"][0]["op"] == report.recomputed[0].op
    assert inspection.passes[-1][0] == "memory_budget"
    for a, b in zip(trained_without(), trained(net, step), strict=True):
        assert same_bits(a, b)


def test_cheap_values_go_first() -> None:
    """For a little memory, only pointwise work is repeated: no more products than without a budget."""
    report = training(int(0.93 * needed()))[1].program(*data())
    plain = training()[1].program(*data())
    products = [
        sum(call.kernel.name.startswith("contract") for call in inspection.plan.calls) for inspection in (plain, report)
    ]
    assert report.memory.recomputed
    assert products[0] == products[1]


def test_enough_memory_changes_nothing() -> None:
    budget = needed()
    report = training(budget)[1].program(*data()).memory
    assert report.recomputed == []
    assert report.counted == budget == report.budget


def test_deep_networks_need_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments alone, as for programs of many calls: as few as fit; values stored in place in padded ones, too."""
    monkeypatch.setattr(rematerialization, "ONE_BY_ONE", 0)
    depth = 24
    extra = []
    for part in (0.6, 0.4):
        budget = int(part * needed(depth))
        report = training(budget, depth)[1].program(*data()).memory
        assert report.counted <= budget
        extra.append(report.extra_seconds)
    assert 0 < extra[0] <= extra[1]


def test_values_in_padded_arrays_are_computed_again() -> None:
    layers = [layer for _ in range(8) for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())]
    net = nn.Sequential(*layers)

    def compiled(budget: Any) -> Any:
        return rn.compile(
            rn.grad(lambda weights, x: (rn.functional_call(net, weights, x) ** 2).sum()), memory_budget=budget
        )

    inputs = dict(net.named_parameters()), rn.randn(4, 4, 32, 32)
    plain = compiled(None)
    small = compiled(int(0.5 * plain.program(*inputs).memory.counted))
    assert small.program(*inputs).memory.recomputed
    for name, value in small(*inputs).items():
        assert same_bits(value.numpy(), plain(*inputs)[name].numpy())


def test_what_cannot_fit_is_refused_before_it_runs() -> None:
    net, step = training(2000, depth=1)
    before = [p.numpy().copy() for p in net.parameters()]
    with pytest.raises(MemoryBudgetError, match=r"needs at least \d+ bytes .* memory_budget allows 2000") as caught:
        step(*data())
    assert isinstance(caught.value, (MemoryError, RunnelError))
    for a, p in zip(before, net.parameters(), strict=True):
        assert same_bits(a, p.numpy())
    smallest = caught.value.smallest
    assert 2000 < smallest < 0.8 * needed(1)
    assert training(smallest, depth=1)[1].program(*data()).memory.counted <= smallest


def test_results_count() -> None:
    x = rn.asarray(np.ones(1000, np.float32))
    with pytest.raises(MemoryBudgetError):
        rn.compile(lambda x: x + 1.0, memory_budget=3999)(x)
    assert rn.compile(lambda x: x + 1.0, memory_budget=4000)(x).tolist()[0] == 2.0


def test_forms_of_a_budget() -> None:
    x = rn.tensor([1.0])
    for budget, expected in (("1GB", 1 << 30), ("512MB", 1 << 29), ("4096", 4096), (4096, 4096)):
        fn = rn.compile(lambda x: x * 2.0, memory_budget=budget)
        assert fn.program(x).memory.budget == expected
        assert fn(x).tolist() == [2.0]
    decorated = rn.compile(memory_budget="1MB")(lambda x: x + 1.0)
    assert decorated.program(x).memory.budget == 1 << 20
    assert rn.compile(rn.compile(lambda x: x - 1.0), memory_budget=64).program(x).memory.budget == 64


@pytest.mark.parametrize("budget", ["much", "", 0, -5, 1.5, True])
def test_what_is_no_budget(budget: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="memory_budget"):
        rn.compile(lambda x: x, memory_budget=budget)
