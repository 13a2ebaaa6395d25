"""Properties that all optimizers share: arguments, groups, state, saving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import CaptureWarning, GradientError, SideEffectError
from runnel.tensor.variable import STATE_VERSION


def parameter(n: int = 3) -> nn.Parameter:
    return nn.Parameter(np.ones(n, np.float32), name="p")


def stepped(optimizer: optim.Optimizer, p: nn.Parameter, times: int) -> None:
    for i in range(times):
        p.grad = rn.asarray(np.cos(np.arange(p.size, dtype=np.float32) + i))
        optimizer.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.SGD([]), "params must not be empty"),
        (lambda: optim.SGD([1.0]), "must be .*Parameters.*got float"),
        (lambda: optim.SGD([parameter()], lr=-1), "lr must be at least 0"),
        (lambda: optim.SGD([parameter()], lr=1, nesterov=True), "nesterov must have a positive momentum"),
        (lambda: optim.Adam([parameter()], betas=(0.9, 1.0)), "betas must be in"),
        (lambda: optim.Adam([{"params": [parameter()], "momentum": 1}]), "has no hyper-parameter momentum"),
        (lambda: optim.SGD([p := parameter(), p]), "is already in a group"),
    ],
)
def test_arguments_are_checked(make: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()  # type: ignore[operator]


def test_zero_grad_closure_and_wrong_gradients() -> None:
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)

    def closure() -> float:
        p.grad = rn.ones((3,))
        return 5.0

    assert optimizer.step(closure) == 5.0
    optimizer.zero_grad(set_to_none=False)
    assert (p.grad.numpy() == 0).all()
    optimizer.zero_grad()
    assert p.grad is None
    assert optimizer.step() is None
    with pytest.raises(GradientError, match=r"Parameter 'p' was given a gradient of shape \(1,\)"):
        p.grad = rn.ones((1,))
    assert p.grad is None


def test_changing_a_group_ticks_the_clock_and_makes_missing_state() -> None:
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)
    assert optimizer.state[p] == {}
    before = STATE_VERSION.now
    optimizer.param_groups[0]["momentum"] = 0.9
    assert STATE_VERSION.now > before
    assert list(optimizer.state[p]) == ["momentum_buffer"]


def test_functions_that_change_groups_run_eagerly() -> None:
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.param_groups[0]["lr"] = 0.5
        return x + 1

    with pytest.warns(CaptureWarning, match="'lr' of a group is set; set it between calls, or step a schedule"):
        assert step(rn.ones((2,))).tolist() == [2.0, 2.0]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_groups_cannot_be_changed_in_a_loop() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)

    def step(carry: rn.Tensor, x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        optimizer.param_groups[0]["lr"] = 0.5
        return carry, x

    with pytest.raises(SideEffectError, match="'lr' was set in a loop"):
        rn.scan(step, rn.ones(()), rn.ones(3))
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_the_rate_read_in_a_compiled_function_comes_from_the_call() -> None:
    optimizer = optim.Adam([parameter()], lr=0.1)

    @rn.compile
    def scaled(x: rn.Tensor) -> rn.Tensor:
        return x * optimizer.param_groups[0]["lr"] + optimizer.param_groups[0]["betas"][0]

    for lr in (0.1, 0.3):
        optimizer.param_groups[0]["lr"] = lr
        np.testing.assert_array_equal(scaled(rn.ones((2,))).numpy(), np.float32(lr) + np.float32(0.9))
    assert scaled.statistics["traces"] == 1


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad])
def test_training_resumes_to_the_bit(kind: type[optim.Optimizer]) -> None:
    options = {"lr": 0.1, "momentum": 0.9} if kind is optim.SGD else {"lr": 0.1}
    p, q = parameter(), parameter()
    one = kind([p], **options)  # type: ignore[arg-type]
    stepped(one, p, 3)
    saved, value = one.state_dict(), p.numpy().copy()
    stepped(one, p, 4)

    two = kind([q], lr=9.0)  # type: ignore[call-arg]
    q.assign(value)
    two.load_state_dict(saved)
    for i in range(3):  # the gradients of the first three steps again do not matter; only the state does
        assert two.param_groups[0]["lr"] == 0.1, i
    stepped(two, q, 4)
    np.testing.assert_array_equal(p.numpy(), q.numpy())
    assert one.state_dict()["param_groups"] == two.state_dict()["param_groups"]


def test_saved_state_has_torch_form() -> None:
    p = parameter()
    optimizer = optim.Adam([p], lr=0.1)
    stepped(optimizer, p, 2)
    saved = optimizer.state_dict()
    assert set(saved) == {"state", "param_groups"}
    assert set(saved["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert saved["state"][0]["step"].item() == 2
    assert saved["param_groups"][0]["params"] == [0]


@pytest.mark.parametrize("kind", [optim.SGD, optim.LBFGS])
def test_hooks_of_steps(kind: Any) -> None:
    p, log = nn.Parameter(np.ones(2, np.float32)), list[Any]()
    optimizer = kind([p], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append(("before", p.tolist(), args[0] is o)))
    with optimizer.register_step_post_hook(lambda o, args, kwargs: log.append(("after", len(args), kwargs))):
        optimizer.step(closure)
        first.remove()
        optimizer.step(closure=closure)
    optimizer.step(closure)
    assert [entry[0] for entry in log] == ["before", "after", "after"] and log[0] == ("before", [1, 1], True)
    assert log[1] == ("after", 2, {}) and list(log[2][2]) == ["closure"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o,), {"closure": lambda: "changed"}))
    assert kind is optim.LBFGS or optimizer.step() == "changed"


def test_parameters_that_are_no_floats_stay() -> None:
    p, mask = nn.Parameter(np.ones(2, np.float32)), nn.Parameter(rn.asarray([True, False]), requires_grad=False)
    optimizer = optim.Adam([p, mask])
    p.sum().backward()
    optimizer.step()
    assert mask.tolist() == [True, False] and p.tolist() != [1, 1]
