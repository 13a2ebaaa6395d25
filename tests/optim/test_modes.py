"""The golden rule for training: compiled, eager in one program and eager op by op give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core import switches
from runnel.core.errors import RunnelError
from runnel.nn.parameter import Parameter

pytestmark = pytest.mark.suite


CASES: list[tuple[Any, dict[str, Any]]] = [
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.Adam, {"lr": 0.01}),
    (optim.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.01}),
    (optim.AdamW, {"lr": 0.01}),
    (optim.RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True}),
    (optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    (optim.Adadelta, {}),
    (optim.Adafactor, {"lr": 0.05}),
    (optim.Adamax, {"lr": 0.01}),
    (optim.ASGD, {"lr": 0.1, "lambd": 0.1, "t0": 2}),
    (optim.LAMB, {"lr": 0.01}),
    (optim.Lion, {"lr": 0.01}),
    (optim.NAdam, {"lr": 0.01}),
    (optim.RAdam, {"lr": 0.01, "betas": (0.9, 0.99)}),
    (optim.Rprop, {"lr": 0.01}),
    (optim.Shampoo, {"lr": 0.1, "momentum": 0.5}),
]
X = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 8)


def training_step(model: nn.Module, optimizer: optim.Optimizer) -> Callable[[rn.Tensor, rn.Tensor], rn.Tensor]:
    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss: rn.Tensor = rn.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(kind: Any, options: dict[str, Any], mode: str) -> list[np.ndarray]:
    rn.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = kind(model.parameters(), **options)
    step = training_step(model, optimizer)
    call: Any = rn.compile(step) if mode == "compiled" else step
    recorded: list[np.ndarray] = []
    with switches.override(eager=mode == "op by op"):
        for i in range(5):
            recorded.append(call(rn.asarray(X), rn.asarray(Y)).numpy())
            optimizer.param_groups[0]["lr"] *= 0.7
            if i == 3 and "weight_decay" in optimizer.defaults:
                optimizer.param_groups[0]["weight_decay"] = 0.05
    return [*recorded, *(p.numpy() for p in model.parameters())]


@pytest.mark.parametrize(("kind", "options"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_same_bits_in_every_mode(kind: Any, options: dict[str, Any]) -> None:
    slow = train(kind, options, "op by op")
    fused = train(kind, options, "eager")
    compiled = train(kind, options, "compiled")
    for a, b, c in zip(slow, fused, compiled, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_a_schedule_compiles_nothing_again_but_a_new_term_does() -> None:
    layer = nn.Linear(12, 3)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    step = rn.compile(training_step(layer, optimizer))
    traces = []
    for name, value in (("lr", 0.1), ("lr", 0.05), ("weight_decay", 0.1), ("weight_decay", 0.2), ("lr", 0.01)):
        optimizer.param_groups[0][name] = value
        step(rn.asarray(X), rn.asarray(Y))
        traces.append(step.statistics["traces"] - (traces[0] if traces else 0))
    assert traces[1:] == [0, 1, 1, 1]


def test_an_earlier_reading_keeps_its_value() -> None:
    p = nn.Parameter(np.ones(4, np.float32))
    optimizer = optim.SGD([p], lr=1.0)
    for _ in range(3):
        reading = p.read()
        before = reading.numpy().copy()
        p.grad = rn.ones((4,))
        optimizer.step()
        np.testing.assert_array_equal(reading.numpy(), before)
        np.testing.assert_array_equal(p.numpy(), before - 1)


def test_eager_and_compiled_steps_may_alternate() -> None:
    def run(modes: str) -> np.ndarray:
        rn.manual_seed(0)
        layer = nn.Linear(12, 3)
        step = training_step(layer, optim.Adam(layer.parameters(), lr=0.05))
        compiled = rn.compile(step)
        for mode in modes:
            (compiled if mode == "c" else step)(rn.asarray(X), rn.asarray(Y))
        return layer.weight.numpy()

    np.testing.assert_array_equal(run("ececcee"), run("eeeeeee"))


def test_non_contiguous_gradients_and_other_dtypes() -> None:
    p = nn.Parameter(np.zeros((2, 3), np.float64))
    optimizer = optim.SGD([p], lr=1.0)
    p.grad = rn.asarray(np.arange(6.0).reshape(3, 2)).T
    optimizer.step()
    np.testing.assert_array_equal(p.numpy(), -np.arange(6.0).reshape(3, 2).T)
    p.grad = rn.asarray(np.ones((2, 3), np.float32)).astype(rn.float64)
    optimizer.step()
    np.testing.assert_array_equal(p.numpy(), -np.arange(6.0).reshape(3, 2).T - 1)


def test_a_step_that_was_stopped_says_so() -> None:
    p = Parameter(np.ones(3, np.float32))
    opt = optim.SGD([p], lr=0.5)
    p.grad = rn.ones(3)
    opt.step()
    (step,) = opt._programs._programs
    step.__globals__["make"].__self__.cancel()
    with pytest.raises(RunnelError, match="cancelled"):
        opt.step()
    assert p.tolist() == [0.5] * 3, "nothing was changed"
    opt.step()
    assert p.tolist() == [0.0] * 3


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"}])
def test_muon_has_the_same_bits_in_every_mode(options: dict[str, Any]) -> None:
    def run(mode: str) -> list[np.ndarray]:
        p = [Parameter(np.cos(np.arange(n * 24.0)).reshape(n, -1).astype(np.float32)) for n in (4, 12)]
        optimizer = optim.Muon(p, lr=0.1, **options)

        def step(x: rn.Tensor) -> None:
            optimizer.zero_grad()
            (rn.matmul(rn.tanh(rn.matmul(x, p[0])), rn.ones((24, 1))) + rn.sum(p[1] ** 4)).sum().backward()
            optimizer.step()

        call: Any = rn.compile(step) if mode == "compiled" else step
        with switches.override(eager=mode == "op by op"):
            for i in range(4):
                call(rn.asarray(X[:, :4]))
                optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
        return [v.numpy() for v in p]

    slow = run("op by op")
    for mode in ("eager", "compiled"):
        for a, b in zip(run(mode), slow, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: optim.lr_scheduler.OneCycleLR(o, 0.4, 20),
        lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 20),
        lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
        lambda o: optim.swa_utils.SWALR(o, 0.01),
    ],
)
def test_schedules_compile_nothing_again(make: Any) -> None:
    layer = nn.Linear(12, 3)
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    schedule = make(optimizer)
    step = rn.compile(training_step(layer, optimizer))
    for i in range(6):
        step(rn.asarray(X), rn.asarray(Y))
        schedule.step()
        if i == 1:
            traces = step.statistics["traces"]
    assert step.statistics["traces"] == traces
