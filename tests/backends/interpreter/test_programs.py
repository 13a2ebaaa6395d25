"""Compiled programs on the interpreter: plans of several threads, loops, branches, attention, training, with the CPU's
bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.compiler.schedule import partition
from runnel.core import switches

pytestmark = pytest.mark.suite


Step = Callable[[str], list[Any]]


@pytest.fixture(autouse=True)
def split_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs are split among threads too."""
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    monkeypatch.setattr(partition, "WORTH_A_WAVE", 0.0)


def drawn(device: str, *shape: int, seed: int = 0, dtype: Any = np.float32) -> rn.Tensor:
    return rn.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype), device=device)


def scanned(device: str) -> list[Any]:
    w, xs, h = drawn(device, 5, 5), drawn(device, 4, 3, 5, seed=1), drawn(device, 3, 5, seed=2)

    @rn.compile
    def step(w: Any, xs: Any, h: Any) -> Any:
        last, ys = rn.scan(lambda h, x: ((h @ w + x).tanh(), h.sum(1)), h, xs)
        return last, ys

    return [*step(w, xs, h)]


def folded(device: str) -> list[Any]:
    """A recurrence over trees, and its gradient."""
    order = rn.Order.of([[-1, -1], [0, -1], [-1, -1], [1, 2], [2, 1], [4, 0]])
    order = rn.Order(*(x.to(device) for x in order))

    @rn.compile
    def step(w: Any, xs: Any) -> Any:
        def loss(w: Any, xs: Any) -> Any:
            return rn.recur(lambda h, x: (h[0] @ w + h[1] * x).tanh(), rn.ones(5, device=device), order, xs).sum()

        return rn.grad(loss, (0, 1))(w, xs)

    return [*step(drawn(device, 5, 5), drawn(device, 6, 5, seed=1))]


def looped(device: str) -> list[Any]:
    @rn.compile
    def step(x: Any) -> Any:
        return rn.while_loop(lambda c: c[0].sum() < 100.0, lambda c: (c[0] * 1.5 + 1.0, c[1] + 1), (x, x.sum() * 0))

    return [*step(drawn(device, 7))]


def branched(device: str) -> list[Any]:
    @rn.compile
    def step(x: Any) -> Any:
        return rn.cond(x.sum() > 0, lambda x: (x.exp(), x[::-1]), lambda x: (x * 2, x[::-1] - 1), x)

    x = drawn(device, 9)
    return [*step(x), *step(-x)]


def attended(device: str) -> list[Any]:
    """Attention with dropout and a mask, and its gradients."""
    rn.manual_seed(3)
    q, k, v = (drawn(device, 1, 2, 12, 8, seed=s).requires_grad_() for s in range(3))

    @rn.compile
    def step(q: Any, k: Any, v: Any) -> Any:
        out = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.3, is_causal=True)
        return (
            out,
            *rn.grad(lambda *x: (nn.functional.scaled_dot_product_attention(*x) ** 2).sum(), (0, 1, 2))(q, k, v),
        )

    return [*step(q, k, v)]


def sorted_(device: str) -> list[Any]:
    @rn.compile
    def step(x: Any) -> Any:
        return rn.sort(x), rn.argsort(x), *rn.topk(x, 3)

    return [*step(drawn(device, 4, 19))]


def random_numbers(device: str) -> list[Any]:
    rn.manual_seed(7)

    @rn.compile
    def step(x: Any) -> Any:
        return rn.dropout(x, 0.4), rn.randn(5, device=device), rn.randint(0, 9, (6,), device=device)

    return [*step(drawn(device, 8)), *step(drawn(device, 8))]


def halves(device: str) -> list[Any]:
    """Products of bfloat16, in pairs where the target has them."""

    @rn.compile
    def step(x: Any, y: Any) -> Any:
        return x @ y, (x.float() @ y.float()).astype("bfloat16")

    x, y = (drawn(device, 9, 9, seed=s).astype("bfloat16") for s in (1, 2))
    return [*step(x, y)]


def host(device: str) -> list[Any]:
    """Ops that NumPy carries out in the middle of a program, and callbacks."""
    printed: list[float] = []

    @rn.compile
    def step(x: Any) -> Any:
        y = rn.pure_callback(lambda a: np.sqrt(a * a), rn.ShapeDtypeStruct(x.shape, "float32"), x) + 1
        rn.debug.callback(lambda a: printed.append(float(a)), y.sum())
        return y, rn.linalg.qr(y @ y.mT)[1].abs()

    results = [*step(drawn(device, 4, 4))]
    assert printed
    return [*results, rn.tensor(printed[-1:])]


def trained(device: str) -> list[Any]:
    """A small network with a convolution, normalization, dropout and Adam: three compiled steps and an eager one."""
    rn.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(36, 3),
    ).to(device)  # fmt: skip
    rn.manual_seed(1)  # the initial values were drawn on the CPU, and each device has a separate stream
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    x, y = drawn(device, 4, 2, 6, 6), rn.tensor([0, 1, 2, 1], device=device)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = rn.compile(step)
    losses = [compiled(x, y) for _ in range(3)]
    return [*losses, step(x, y), *(p.value for p in model.parameters()), *(b.value for b in model.buffers())]


STEPS: tuple[Step, ...] = (
    scanned, folded, looped, branched, attended, sorted_, random_numbers, halves, host, trained
)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("step", STEPS)
def test_programs_have_the_bits_of_the_cpu(step: Step, threads: int) -> None:
    with switches.override(num_threads=threads):
        cpu, interpreter = step("cpu"), step("interpreter")
    assert len(cpu) == len(interpreter)
    for x, y in zip(cpu, interpreter, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()


def test_the_derivative_of_a_compiled_function() -> None:
    """backward() outside: the tape of a compiled call, and gradients of gradients."""

    def gradients(device: str) -> list[bytes]:
        layer = nn.Linear(3, 2)
        layer.weight.assign(np.arange(6).reshape(2, 3) / 7)
        layer.bias.assign([0.5, -0.5])
        layer.to(device)
        forward = rn.compile(lambda x: layer(x).tanh())
        for _ in range(2):
            (forward(drawn(device, 4, 3)) ** 2).sum().backward()
        second = rn.grad(lambda x: (rn.grad(lambda x: ops.exp(x).sum())(x) ** 2).sum())(drawn(device, 3))
        return [x.numpy().tobytes() for x in (layer.weight.grad, layer.bias.grad, second)]

    assert gradients("cpu") == gradients("interpreter")
