"""Gradient modes: what is recorded, for whom, and that compiled functions know."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import SideEffectError

OFF: dict[str, Callable[[], Any]] = {
    "no_grad": rn.no_grad, "inference_mode": rn.inference_mode, "set_grad_enabled": lambda: rn.set_grad_enabled(False)
}  # fmt: skip


def leaf() -> rn.Tensor:
    return rn.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("name", OFF)
def test_blocks(name: str) -> None:
    a = leaf()
    with OFF[name]():
        assert not rn.is_grad_enabled() and not (a * 2).requires_grad
        with rn.enable_grad():
            assert (a * 2).requires_grad
            with OFF[name]():
                assert not (a * 2).requires_grad
        with pytest.raises(ZeroDivisionError), rn.enable_grad():
            raise ZeroDivisionError
        assert not rn.is_grad_enabled() and not a[0].requires_grad and not a.clone().requires_grad
        assert not rn.stack([a, a]).requires_grad and not nn.Linear(2, 2)(a).requires_grad
    assert rn.is_grad_enabled() and (a * 2).requires_grad


def test_one_object_nests() -> None:
    off = rn.no_grad()
    with off:
        with off, rn.enable_grad(), off:
            assert not rn.is_grad_enabled()
        assert not rn.is_grad_enabled()
    assert rn.is_grad_enabled()
    with rn.inference_mode(False):
        assert rn.is_grad_enabled()


def test_setting_the_mode() -> None:
    rn.set_grad_enabled(False)
    assert not rn.is_grad_enabled()
    rn.set_grad_enabled(True)
    with rn.set_grad_enabled(False):
        assert not rn.is_grad_enabled()
    assert rn.is_grad_enabled()

    @rn.set_grad_enabled(False)
    def mode() -> bool:
        return rn.is_grad_enabled()

    assert rn.is_grad_enabled() and not mode()


@pytest.mark.parametrize("decorate", [rn.no_grad, rn.no_grad(), rn.inference_mode, rn.inference_mode()])
def test_decorators(decorate: Any) -> None:
    @decorate
    def mode(x: int) -> tuple[int, bool]:
        """What it says."""
        return x, rn.is_grad_enabled()

    @decorate
    def steps() -> Iterator[bool]:
        got = yield rn.is_grad_enabled()
        assert got == "sent" and not rn.is_grad_enabled()
        try:
            yield rn.is_grad_enabled()
        except KeyError:
            yield rn.is_grad_enabled()
        return "end"

    @decorate
    async def later() -> bool:
        await asyncio.sleep(0)
        return rn.is_grad_enabled()

    assert mode(3) == (3, False) and mode.__doc__ == "What it says."
    walk = steps()
    assert next(walk) is False and rn.is_grad_enabled()
    assert walk.send("sent") is False and rn.is_grad_enabled()
    assert walk.throw(KeyError()) is False and rn.is_grad_enabled()
    with pytest.raises(StopIteration, match="end"):
        next(walk)
    assert not asyncio.run(later()) and rn.is_grad_enabled()
    with pytest.raises(TypeError, match="must be a function"):
        decorate(nn.Linear)


def test_modes_belong_to_threads_and_tasks() -> None:
    recorded: list[bool] = []
    with rn.no_grad():
        thread = threading.Thread(target=lambda: recorded.append(rn.is_grad_enabled()))
        thread.start()
        thread.join()

    async def one() -> bool:
        with rn.no_grad():
            await asyncio.sleep(0.001)
            return rn.is_grad_enabled()

    async def other() -> bool:
        await asyncio.sleep(0)
        return rn.is_grad_enabled()

    async def both() -> list[bool]:
        return await asyncio.gather(one(), other())

    assert recorded == [True] and asyncio.run(both()) == [False, True]


def test_transforms_record_inside_any_mode() -> None:
    a = leaf()

    def cube(x: rn.Tensor) -> rn.Tensor:
        return (x**3).sum()

    def half(x: rn.Tensor) -> rn.Tensor:
        with rn.no_grad():
            constant = x * 2
        return (x * constant).sum()

    with rn.no_grad():
        gradient = rn.grad(cube)(a)
        second = rn.grad(lambda x: rn.grad(cube)(x).sum())(a)
        value, pull = rn.vjp(cube, a)
        assert pull(1.0)[0].tolist() == [3.0, 12.0] and not value.requires_grad
    assert gradient.tolist() == [3.0, 12.0] and second.tolist() == [6.0, 12.0] and not gradient.requires_grad
    assert rn.grad(half)(a).tolist() == [2.0, 4.0]
    assert rn.compile(rn.grad(half))(rn.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    loss = cube(a)
    with rn.no_grad():
        loss.backward()
    assert a.grad is not None and a.grad.tolist() == [3.0, 12.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_modes_in_bodies(compiled: bool) -> None:
    xs = rn.asarray([0.5, 2.0, 3.0])

    def step(carry: rn.Tensor, x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        with rn.no_grad():
            constant = carry * 2
        return carry * x + constant, carry

    def loss(c: rn.Tensor) -> rn.Tensor:
        return rn.scan(step, c, xs)[0].sum() + rn.cond(c.sum() > 0, rn.no_grad(lambda c: c.sum()), lambda c: c.sum(), c)

    gradient = rn.grad(loss)
    actual = (rn.compile(gradient) if compiled else gradient)(rn.asarray([1.0, 2.0]))
    assert actual.tolist() == [3.0, 3.0]


def test_checkpoints_keep_the_mode() -> None:
    a = leaf()
    with rn.no_grad():
        assert not rn.checkpoint(lambda x: x * 2, a).requires_grad
    loss = rn.checkpoint(lambda x: (x * x).sum(), a)
    with rn.no_grad():
        loss.backward()
    assert a.grad is not None and a.grad.tolist() == [2.0, 4.0]


def test_compiled_functions_are_guarded_by_the_mode() -> None:
    layer = nn.Linear(2, 3)
    w = rn.tensor(np.ones((3, 2), np.float32), requires_grad=True)
    forward = rn.compile(lambda x: layer(x) @ w)
    x = rn.ones((4, 2))
    for _ in range(3):
        with rn.no_grad():
            plain = forward(x)
            assert not plain.requires_grad and not forward(w[:, :2]).requires_grad
        tracked = forward(x)
        assert tracked.requires_grad and np.array_equal(tracked.numpy(), plain.numpy())
    tracked.sum().backward()
    assert w.grad is not None and layer.weight.grad is not None
    assert forward.statistics["traces"] == 3, "one for each mode, and one for the other shape"


def test_a_compiled_function_gives_the_mode_back() -> None:
    def bad(x: rn.Tensor) -> rn.Tensor:
        rn.set_grad_enabled(False)
        return x

    with pytest.raises(SideEffectError, match="gradient mode"):
        rn.compile(bad)(rn.ones(2))
    assert rn.is_grad_enabled()
