"""Fifty steps of each optimizer as PyTorch makes them, and states that PyTorch saved halfway.

Tolerances are relative to a unit: 1e-10 in float64, 2e-4 in float32; of Muon, whose iterations are in bfloat16, 2e-2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from tests.optim import cases
from tests.optim.recorded import parameters, pytorchs_state, recorded

TOLERANCES = {"Muon": 2e-2}


def step(optimizer: optim.Optimizer, params: list[nn.Parameter], t: int) -> None:
    for p in params:
        p.grad = rn.asarray(cases.gradient(p.numpy().astype(np.float64), t).astype(p.dtype.numpy))
    optimizer.step()


def assert_close(params: list[nn.Parameter], values: list[Any], tolerance: float) -> None:
    for p, expected in zip(params, values, strict=True):
        np.testing.assert_allclose(p.numpy().reshape(-1), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_fifty_steps(name: str, dtype: str) -> None:
    kind, options = cases.OPTIMIZERS[name]
    tolerance = TOLERANCES.get(kind, 1e-10 if dtype == "float64" else 2e-4)
    params = parameters(kind, dtype)
    optimizer = getattr(optim, kind)(params, **options)
    values = dict(zip(cases.SEEN, recorded()["optimizers"][name]["values"], strict=True))
    for t in range(1, cases.STEPS + 1):
        step(optimizer, params, t)
        if t in values:
            assert_close(params, values[t], tolerance)


@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_pytorchs_state_is_loaded_and_resumed(name: str) -> None:
    kind, options = cases.OPTIMIZERS[name]
    reference = recorded()["optimizers"][name]
    values = dict(zip(cases.SEEN, reference["values"], strict=True))
    params = parameters(kind)
    optimizer = getattr(optim, kind)(params)
    for p, value in zip(params, values[20], strict=True):
        p.assign(np.reshape(value, p.shape))
    theirs = pytorchs_state(reference["state"])
    optimizer.load_state_dict(theirs)
    assert all(optimizer.param_groups[0][key] == value for key, value in options.items())
    ours = optimizer.state_dict()
    assert ours["state"].keys() == theirs["state"].keys()
    for number, saved in theirs["state"].items():
        assert {key: value.shape for key, value in ours["state"][number].items()} == {
            key: value.shape for key, value in saved.items()
        }
    assert ours["param_groups"][0].keys() == theirs["param_groups"][0].keys()
    for t in range(21, cases.STEPS + 1):
        step(optimizer, params, t)
    assert_close(params, values[50], TOLERANCES.get(kind, 1e-10))


@pytest.mark.parametrize("name", cases.SEARCHES)
def test_searches(name: str) -> None:
    reference = recorded()["searches"][name]
    params = parameters("LBFGS")
    optimizer = optim.LBFGS(params, **cases.SEARCHES[name])

    def closure() -> rn.Tensor:
        optimizer.zero_grad()
        terms = [(p**4).sum() / 4 - (p * (k + 1.0)).sum() + rn.prod(p[..., :2]) for k, p in enumerate(params)]
        loss = terms[0] + terms[1]
        loss.backward()
        return loss

    for values, loss in zip(reference["values"], reference["losses"], strict=True):
        np.testing.assert_allclose(float(optimizer.step(closure)), loss, rtol=1e-8)
        assert_close(params, values, 1e-7)
    state = optimizer.state[params[0]]
    assert (state["func_evals"], state["n_iter"]) == (reference["func_evals"], reference["n_iter"])
