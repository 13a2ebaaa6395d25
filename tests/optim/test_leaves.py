"""Optimizers of tensors that require gradients: the same numbers as of Parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import optim
from runnel.core.errors import CaptureWarning, GradientError

START = np.array([1.0, -2.0, 3.0], np.float32)


def loss_of(x: Any) -> rn.Tensor:
    return ((x - 1) ** 2 * rn.asarray([1.0, 2.0, 3.0])).sum()


def trajectory(make: Any, x: Any, steps: int = 4) -> list[list[float]]:
    optimizer = make([x])
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(x).backward()
        optimizer.step()
        values.append(x.tolist())
    return values


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.1)])
def test_tensors_move_as_parameters_do(make: Any) -> None:
    x = rn.tensor(START, requires_grad=True)
    assert trajectory(make, x) == trajectory(make, rn.nn.Parameter(START))
    assert x.is_leaf and x.requires_grad


def test_the_state_of_a_tensor_is_found_by_the_tensor() -> None:
    x = rn.tensor(START, requires_grad=True)
    optimizer = optim.Adam([x])
    loss_of(x).backward()
    optimizer.step()
    assert optimizer.state[x].keys() == {"exp_avg", "exp_avg_sq"} and len(optimizer.state) == 1


def test_lbfgs_gives_the_closure_present_values() -> None:
    def run(x: Any) -> list[float]:
        optimizer = optim.LBFGS([x], max_iter=5, line_search_fn="strong_wolfe")

        def closure() -> rn.Tensor:
            optimizer.zero_grad()
            loss = loss_of(x)
            loss.backward()
            return loss

        optimizer.step(closure)
        return x.tolist()  # type: ignore[no-any-return]

    assert run(rn.tensor(START, requires_grad=True)) == run(rn.nn.Parameter(START))


def test_writes_between_steps_count() -> None:
    x = rn.tensor(START, requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    x.grad = rn.ones(3)
    optimizer.step()
    with rn.no_grad():
        x.fill_(5.0)
    optimizer.step()
    assert x.tolist() == [4.0] * 3
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is not None and x.grad.tolist() == [0.0] * 3
    optimizer.zero_grad()
    assert x.grad is None


def test_a_compiled_step_runs_eagerly_and_says_so() -> None:
    def run(wrap: Any) -> list[float]:
        x = rn.tensor(START, requires_grad=True)
        optimizer = optim.SGD([x], lr=0.1, momentum=0.9)

        def step() -> rn.Tensor:
            optimizer.zero_grad()
            loss = loss_of(x)
            loss.backward()
            optimizer.step()
            return loss

        run_step = wrap(step)
        for _ in range(3):
            run_step()
        return x.tolist()  # type: ignore[no-any-return]

    with pytest.warns(CaptureWarning, match="requires a gradient, is changed in place"):
        compiled = run(rn.compile)
    assert compiled == run(lambda step: step)


def test_tensors_without_accumulated_gradients_are_refused() -> None:
    x = rn.tensor(START, requires_grad=True)
    with pytest.raises(GradientError, match="was computed"):
        optim.SGD([x * 2], lr=0.1)
    with pytest.raises(GradientError, match="has requires_grad=False"):
        optim.SGD([rn.ones(2)], lr=0.1)
    with pytest.raises(ValueError, match="already in a group"):
        optim.SGD([x, x], lr=0.1)
    with pytest.raises(TypeError, match="got Tensor"):
        optim.SGD(x, lr=0.1)
