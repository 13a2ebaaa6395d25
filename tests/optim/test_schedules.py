"""Fifty epochs of each schedule as PyTorch has them, states that PyTorch saved halfway, and going on to the bit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from runnel import nn, optim
from tests.optim import cases
from tests.optim.recorded import recorded, schedule


def optimizer() -> optim.SGD:
    groups = [{"params": nn.Parameter(np.ones(2)), "lr": lr} for lr in (0.1, 0.5)]
    return optim.SGD(groups, momentum=0.9)


def step(result: Any, epoch: int) -> None:
    result.step(cases.metric(epoch)) if isinstance(result, optim.lr_scheduler.ReduceLROnPlateau) else result.step()


def pytorchs(state: Any) -> Any:
    """A state as PyTorch has it: JSON made words of the numbers of epochs."""
    if isinstance(state, dict):
        return {int(key) if key.isdigit() else key: pytorchs(value) for key, value in state.items()}
    return [pytorchs(item) for item in state] if isinstance(state, list) else state


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_fifty_epochs(name: str) -> None:
    reference = recorded()["schedules"][name]
    target = optimizer()
    result = schedule(target, *cases.SCHEDULES[name])
    rates, momenta = [], []
    for epoch in range(cases.STEPS):
        rates.append(result.get_last_lr())
        momenta.append([group["momentum"] for group in target.param_groups])
        step(result, epoch)
    np.testing.assert_allclose(rates, reference["rates"], rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(momenta, np.broadcast_to(reference["momenta"], np.shape(momenta)), rtol=1e-12)


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_pytorchs_state_is_loaded_and_resumed(name: str) -> None:
    reference = recorded()["schedules"][name]
    if reference["state"].get("best") in (None, float("inf")) and "best" in reference["state"]:
        pytest.skip("JSON holds no infinity")
    target = optimizer()
    result = schedule(target, *cases.SCHEDULES[name])
    result.load_state_dict(pytorchs(reference["state"]))
    for epoch in range(20, cases.STEPS):
        np.testing.assert_allclose(result.get_last_lr(), reference["rates"][epoch], rtol=1e-11, atol=1e-15)
        step(result, epoch)


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_saved_halfway_and_resumed_to_the_bit(name: str) -> None:
    first, second = optimizer(), optimizer()
    one = schedule(first, *cases.SCHEDULES[name])
    for epoch in range(13):
        step(one, epoch)
    saved, of_optimizer = one.state_dict(), first.state_dict()
    retained = copy.deepcopy(saved)
    two = schedule(second, *cases.SCHEDULES[name])
    two.load_state_dict(saved)
    second.load_state_dict(of_optimizer)
    for epoch in range(13, 40):
        step(one, epoch)
        step(two, epoch)
        assert one.get_last_lr() == two.get_last_lr()
        assert dict(first.param_groups[1]).keys() == dict(second.param_groups[1]).keys()
    assert saved == retained


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o, s: s.SequentialLR(o, [s.ConstantLR(o)], [3]), "milestones must be 0 increasing epochs"),
        (lambda o, s: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []), "has no metric"),
        (lambda o, s: s.ChainedScheduler([s.ConstantLR(o), s.ConstantLR(optimizer())]), "must have the same optimizer"),
        (lambda o, s: s.OneCycleLR(o, 0.1), "must get total_steps, or epochs and steps_per_epoch"),
        (lambda o, s: s.CyclicLR(optim.Adagrad(nn.Parameter(np.ones(2))), 0.1, 0.2), "Adagrad, which has neither"),
        (lambda o, s: s.CyclicLR(o, [0.1], 0.2), "one for each of 2 groups"),
        (lambda o, s: s.LambdaLR(o, [abs]), "one for each of 2 groups"),
        (lambda o, s: s.StepLR(o, 2, last_epoch=3), 'the groups have no "initial_lr"'),
        (lambda o, s: s.ReduceLROnPlateau(o, factor=1.0), r"factor must be less than 1"),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(optimizer(), optim.lr_scheduler)
