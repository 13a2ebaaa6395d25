"""Model-agnostic meta-learning: a start from which one step learns a sine.

    python examples/gallery/maml.py [--quick] [--picture maml.png]

C. Finn, P. Abbeel and S. Levine, "Model-agnostic meta-learning for fast adaptation of deep networks", 2017. The loss
after a step of gradient descent is differentiated through that step (a gradient of a gradient), for many tasks at
once (`rn.vmap`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim

WIDTH, TASKS, EXAMPLES, RATE = 40, 25, 10, 0.02
Weights = dict[str, rn.Tensor]


def train(steps: int) -> dict[str, Any]:
    hidden = nn.Linear(1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
    model = nn.Sequential(*hidden, nn.Linear(WIDTH, 1))
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    def error(weights: Weights, x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        return ((rn.functional_call(model, weights, x) - y) ** 2).mean()

    def adapted(weights: Weights, x: rn.Tensor, y: rn.Tensor) -> Weights:
        gradients = rn.grad(error)(weights, x, y)
        return {name: weights[name] - RATE * gradient for name, gradient in gradients.items()}

    def error_after(weights: Weights, amplitude: rn.Tensor, phase: rn.Tensor, x: rn.Tensor) -> rn.Tensor:
        y = amplitude * rn.sin(x + phase)
        return error(adapted(weights, x[:EXAMPLES], y[:EXAMPLES]), x[EXAMPLES:], y[EXAMPLES:])

    @rn.compile
    def step() -> rn.Tensor:
        optimizer.zero_grad()
        amplitude, phase = 0.5 + 2 * rn.rand(TASKS), np.pi * rn.rand(TASKS)
        x = 10 * rn.rand(TASKS, 2 * EXAMPLES, 1) - 5
        weights = dict(model.named_parameters())
        loss = rn.vmap(error_after, in_axes=(None, 0, 0, 0))(weights, amplitude, phase, x).mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step()) for _ in range(steps)]
    x = rn.linspace(-5, 5, 100)[:, None]
    y = 1.5 * rn.sin(x + 1.0)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    few = slice(5, 100, 10)
    after = adapted(weights, x[few], y[few])
    curves = {
        "the task": y,
        "before the step": rn.functional_call(model, weights, x),
        "after one step": rn.functional_call(model, after, x),
    }
    reached: dict[str, Any] = {
        "first losses": np.mean(losses[:10]),
        "last losses": np.mean(losses[-50:]),
        "a task's error before": error(weights, x, y),
        "and after one step": error(after, x, y),
    }
    return {"reached": {name: float(value) for name, value in reached.items()}, "x": x, "curves": curves}


def draw(axes: Any, x: rn.Tensor, curves: dict[str, rn.Tensor]) -> None:
    for name, curve in curves.items():
        axes.plot(x.numpy(), curve.numpy(), label=name)
    axes.legend()


if __name__ == "__main__":
    run(__doc__, train, steps=4000, quick=10, draw=draw)
