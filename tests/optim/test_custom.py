"""Optimizers of users: in ops with ``init_state`` and ``update``, and with a ``step`` in PyTorch's style."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn, ops, optim
from runnel.core import switches
from runnel.core.errors import CaptureError

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


class Signed(optim.Optimizer):
    """The sign of a momentum: in ops, with declared state."""

    def __init__(self, params: Any, lr: float = 0.1, momentum: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    def init_state(self, p: Any, group: Any) -> Any:
        return {"buffer": 0.0, "calls": np.zeros(())}

    def update(self, group: Any, active: Any, steps: Any) -> None:
        for _, p, g in active:
            state = self.state[p]
            buffer = state["buffer"].value * group["momentum"] + g
            state["buffer"].assign(buffer)
            state["calls"].assign(state["calls"].value + 1.0)
            p.assign(p.value - ops.sign(buffer) * group["lr"])


class InPyTorchsStyle(optim.Optimizer):
    """An optimizer with a custom step, which makes its state on first use."""

    def __init__(self, params: Any, lr: float = 0.1, momentum: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["calls"] = 0
                    state["buffer"] = rn.zeros_like(p)
                state["calls"] += 1
                state["buffer"] = state["buffer"] * group["momentum"] + p.grad
                p.assign(p.value - ops.sign(state["buffer"]) * group["lr"])
        return loss


def train(kind: Any, mode: str) -> list[np.ndarray]:
    rn.manual_seed(1)
    layer = nn.Linear(4, 2)
    optimizer = kind(layer.parameters())

    def step(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        loss: rn.Tensor = (layer(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    call: Any = rn.compile(step) if mode == "compiled" else step
    with switches.override(eager=mode == "op by op"):
        for i in range(6):
            call(rn.asarray(X))
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
    return [p.numpy() for p in layer.parameters()]


@pytest.mark.parametrize("kind", [Signed, InPyTorchsStyle])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_same_bits_in_every_mode_and_style(kind: Any, mode: str) -> None:
    for a, b in zip(train(kind, mode), train(Signed, "op by op"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_rate_of_a_group_may_change_between_steps() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = Signed([p])
    for lr in (0.5, 0.25):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = rn.ones((3,))
        optimizer.step()
    np.testing.assert_array_equal(p.numpy(), 0.25)
    assert optimizer.state[p]["calls"].item() == 2


@pytest.mark.parametrize("kind", [Signed, InPyTorchsStyle])
def test_saved_in_the_middle_and_resumed_to_the_bit(kind: Any) -> None:
    one, two = (nn.Parameter(np.ones(3, np.float32)) for _ in range(2))
    first, second = kind([one]), kind([two], lr=0.3)

    def step(p: Any, optimizer: Any, t: int) -> None:
        p.grad = rn.asarray(np.cos(np.arange(3, dtype=np.float32) + t))
        optimizer.step()

    for t in range(4):
        step(one, first, t)
    saved = first.state_dict()
    assert saved["state"][0].keys() >= {"calls", "buffer"}
    two.assign(one)
    second.load_state_dict(saved)
    for t in range(4, 8):
        step(one, first, t)
        step(two, second, t)
    np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_a_search_is_not_part_of_a_compiled_function_but_its_closure_is() -> None:
    layer = nn.Linear(4, 1)
    optimizer = optim.LBFGS(layer.parameters(), line_search_fn="strong_wolfe")

    def loss(x: rn.Tensor) -> rn.Tensor:
        optimizer.zero_grad()
        actual: rn.Tensor = ((layer(x) - 3.0) ** 2).mean() + (layer.weight**2).sum()
        actual.backward()
        return actual

    compiled = rn.compile(loss)
    first = float(optimizer.step(lambda: compiled(rn.asarray(X))))
    assert float(loss(rn.asarray(X))) < 0.1 * first
    for p in layer.parameters():
        np.testing.assert_allclose(p.grad.numpy(), 0, atol=1e-4)
    with pytest.raises(CaptureError, match=r"\[LBFGS\] step\(\) cannot be compiled"):
        rn.compile(lambda x: optimizer.step(lambda: loss(x)))(rn.asarray(X))
    with pytest.raises(TypeError, match="must get a function that computes the loss"):
        optimizer.step()
    with pytest.raises(ValueError, match="one group"):
        optimizer.add_param_group({"params": nn.Parameter(np.ones(2, np.float32))})


def test_arguments_of_pytorch_that_say_how_are_taken_or_answered() -> None:
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = torch.optim.Adam([p], foreach=True, fused=False, capturable=True)
    assert optimizer.param_groups[0]["foreach"] is True and isinstance(optimizer, optim.Adam)
    assert (
        repr(torch.optim.RMSprop([p], 0.1, 0.9, 1e-8, 0.0, 0.0, False, False, None, True)).count("maximize=True") == 1
    )
    assert pickle.loads(pickle.dumps(optimizer)).state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    with pytest.raises(ValueError, match=r"\[Adam\] differentiable must be False: a step is not recorded"):
        torch.optim.Adam([p], differentiable=True)
    with pytest.raises(TypeError, match="takes no argument 'foreach'"):
        optim.Adam([p], foreach=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"\[Muon\] params must be matrices; Parameter 'b' has shape \(3,\)"):
        optim.Muon([nn.Parameter(np.ones(3, np.float32), name="b")])
    named = optim.SGD(nn.Linear(2, 2).named_parameters())
    assert len(named.param_groups[0]["params"]) == 2


def test_states_go_through_files(tmp_path: Any) -> None:
    p, q = (nn.Parameter(np.ones((3, 2), np.float32)) for _ in range(2))
    one, two = optim.Adafactor([p]), optim.Adafactor([q], lr=0.5)
    schedules = [optim.lr_scheduler.MultiStepLR(o, [1, 1, 4]) for o in (one, two)]
    for _ in range(2):
        p.grad = rn.ones((3, 2))
        one.step()
        schedules[0].step()
    rn.save({"optimizer": one.state_dict(), "schedule": schedules[0].state_dict()}, tmp_path / "state")
    actual = rn.load(tmp_path / "state")
    two.load_state_dict(actual["optimizer"])
    schedules[1].load_state_dict(actual["schedule"])
    assert two.param_groups[0]["eps"] == (None, 1e-3)
    assert schedules[1].get_last_lr() == schedules[0].get_last_lr()
    assert schedules[1].milestones == {1: 2, 4: 1}


class Read(optim.Optimizer):
    """Reads a global and one of its attributes in its update."""

    def __init__(self, params: Any, outside: Any) -> None:
        super().__init__(params, {"lr": 0.1})
        self.outside = outside
        self.scale = 1.0

    def init_state(self, p: Any, group: Any) -> Any:
        return {"mean": 0.0}

    def update(self, group: Any, active: Any, steps: Any) -> None:
        self.outside["calls"] += 1
        for _, p, g in active:
            mean = self.state[p]["mean"]
            mean.assign(0.9 * mean + g)
            p.assign(p.value - mean * group["lr"] * self.scale * self.outside["k"])


class ReadBefore(optim.SGD):
    """Changes gradients on their way to an update of ours."""

    def __init__(self, params: Any, outside: Any) -> None:
        super().__init__(params, lr=0.1, momentum=0.9)
        self.outside = outside
        self.scale = 1.0

    def update(self, group: Any, active: Any, steps: Any) -> None:
        self.outside["calls"] += 1
        super().update(group, [(i, p, g * self.scale * self.outside["k"]) for i, p, g in active], steps)


@pytest.mark.parametrize("kind", [Read, ReadBefore])
def test_values_that_an_update_reads_may_change(kind: Any) -> None:
    def story(eager: bool) -> list[Any]:
        outside = {"k": 2.0, "calls": 0}
        p = rn.Parameter(rn.asarray(X[0]))
        optimizer = kind([p], outside)
        messages = []
        for i in range(9):
            if i == 3:
                outside["k"] = 5.0
            if i == 5:
                optimizer.scale = 0.5
            if i == 7:
                optimizer.param_groups[0]["lr"] = 0.3
            optimizer.zero_grad()
            (p**2).sum().backward()
            with switches.override(eager=eager):
                optimizer.step()
            assert p.grad is not None
            messages.append((p.numpy().tobytes(), outside["calls"]))
        return messages

    assert story(eager=False) == story(eager=True)


def test_groups_keep_notes_of_the_users_own() -> None:
    p, q = rn.Parameter(rn.ones(2)), rn.Parameter(rn.ones(3))
    groups = [{"params": [p], "name": "decay", "layer": 3}, {"params": [q], "name": "rest"}]
    optimizer = optim.AdamW(groups, lr=0.1)
    optimizer.param_groups[1]["lr_scale"] = 0.5
    for group in optimizer.param_groups:
        group["lr"] = 0.2 * group.get("lr_scale", 1.0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.1]
    saved = optimizer.state_dict()
    assert [group["name"] for group in saved["param_groups"]] == ["decay", "rest"]
    other = optim.AdamW([{"params": [rn.Parameter(rn.ones(2))]}, {"params": [rn.Parameter(rn.ones(3))]}], lr=0.1)
    other.load_state_dict(saved)
    assert other.param_groups[1]["lr_scale"] == 0.5 and other.param_groups[0]["layer"] == 3
    with pytest.raises(AttributeError):
        optimizer.param_groups[0]["params"].append(q)
