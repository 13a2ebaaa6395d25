"""A Variable changes, values do not: what was read before an update keeps its values, and costs a copy only then."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import optim
from runnel.tensor.variable import Variable

N = 48  # large enough for a separate block of memory

Read = Callable[[Variable], Any]
Update = Callable[[Variable], None]

READS: dict[str, Read] = {
    "tensor": lambda v: v.read(),
    "value": lambda v: v.value,
    "detached": lambda v: v.detach(),
    "detached value": lambda v: v.value.detach(),
    "row": lambda v: v[1],
    "strided slice": lambda v: v[1::3, ::2],
    "transposed": lambda v: v.T,
    "reshaped": lambda v: v.value.reshape(-1),
    "numpy": lambda v: v.numpy(),
    "numpy slice": lambda v: v.numpy()[2:, 1::2],
    "numpy of a slice": lambda v: v[3].numpy(),
    "array protocol": lambda v: np.asarray(v),
    "dlpack": lambda v: np.from_dlpack(v.value),
    "memoryview": lambda v: memoryview(v.numpy()),
    "another Variable": lambda v: Variable(v),
    "assigned to another Variable": lambda v: _assigned(v),
    "state_dict": lambda v: {"v": v.value}["v"],
    "tensor()": lambda v: rn.tensor(v),
    "held by a tape": lambda v: v * v,
}


def _assigned(v: Variable) -> Variable:
    other = Variable(np.zeros(v.shape, np.float32))
    other.assign(v)
    return other


def eager_assign(v: Variable) -> None:
    v.assign(v * 0.5 + 1.0)


def eager_setitem(v: Variable) -> None:
    v[1:3] = v[1:3] * 0.5 + 7.0


def optimizer_step(v: Variable) -> None:
    opt = optim.SGD([v], lr=0.25, momentum=0.5)
    for _ in range(3):
        v.grad = rn.ones(v.shape)
        opt.step()


def compiled_step(v: Variable) -> None:
    @rn.compile
    def step() -> None:
        v.assign(v * 0.5 + 1.0)

    for _ in range(3):
        step()


def compiled_training(v: Variable) -> None:
    opt = optim.Adam([v], lr=0.1)

    @rn.compile
    def step(x: rn.Tensor) -> rn.Tensor:
        opt.zero_grad()
        loss = ((v * x) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        step(rn.ones((N, N)))


UPDATES: dict[str, Update] = {
    "assign": eager_assign,
    "setitem": eager_setitem,
    "optimizer": optimizer_step,
    "compiled": compiled_step,
    "compiled training": compiled_training,
}


def fresh() -> Variable:
    return Variable(np.random.default_rng(0).standard_normal((N, N)).astype(np.float32), requires_grad=True, name="v")


VIEWS = {"detached", "row", "strided slice", "transposed"}  # of the Variable; others show what was read


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("read", READS)
def test_views_follow_and_readings_keep_their_values(read: str, update: str) -> None:
    v = fresh()
    UPDATES[update](v)  # so that programs have been bound to its memory before it is read
    reference = READS[read](v)
    before = np.array(reference)
    start = v.numpy().copy()
    UPDATES[update](v)
    np.testing.assert_array_equal(np.array(reference), np.array(READS[read](v)) if read in VIEWS else before)
    assert not np.array_equal(v.numpy(), start)


@pytest.mark.parametrize("update", ["assign", "optimizer", "compiled"])
def test_a_tape_computes_with_the_values_it_was_recorded_with(update: str) -> None:
    v = fresh()
    UPDATES[update](v)
    start = v.numpy().copy()
    loss = (v * v).sum()
    UPDATES[update](v)
    v.grad = None
    loss.backward()
    np.testing.assert_array_equal(v.grad.numpy(), start + start)


def address(v: Variable) -> int:
    return v._tensor.address


@pytest.fixture
def stepped() -> Iterator[tuple[Variable, Callable[[], None]]]:
    v = fresh()

    @rn.compile
    def step() -> None:
        v.assign(v * 0.5 + 1.0)

    for _ in range(3):
        step()
    yield v, step


@pytest.mark.parametrize("read", [name for name in READS if name != "held by a tape"])
def test_a_copy_is_made_exactly_while_a_handle_lives(read: str, stepped: tuple[Variable, Callable[[], None]]) -> None:
    v, step = stepped
    at = address(v)
    reference = READS[read](v)
    del reference
    gc.collect(1)  # what it holds is young
    step()
    assert address(v) == at, "nobody holds the old value: it is updated in place"
    reference = READS[read](v)
    step()
    shares = read not in ("another Variable",)  # that one has separate memory from the start
    assert (address(v) != at) is shares
    at = address(v)
    step()
    if read not in VIEWS:  # which follow
        assert address(v) == at, "the handle has the old memory: the new one is the Variable's alone"
    del reference


def test_other_programs_bound_to_a_variable_are_no_handles(stepped: tuple[Variable, Callable[[], None]]) -> None:
    v, step = stepped
    look = rn.compile(lambda x: (v * x).sum())
    opt = optim.SGD([v], lr=0.5)
    x = rn.ones((N, N))
    for _ in range(3):
        look(x), v.tolist(), step()
        v.grad = x
        opt.step()
    at = address(v)
    for _ in range(3):
        look(x), v.tolist(), step()
        opt.step()
    assert address(v) == at


def test_programs_see_memory_that_was_exchanged(stepped: tuple[Variable, Callable[[], None]]) -> None:
    v, step = stepped
    look = rn.compile(lambda: v.sum() / v.size)
    for value in (3.0, -1.0, 8.0):
        v.assign(np.full((N, N), value, np.float32))
        assert look().item() == value
        reference = v.numpy()
        step()
        assert look().item() == 0.5 * value + 1.0
        assert reference[0, 0] == value


def test_memory_that_others_own_is_never_written(stepped: tuple[Variable, Callable[[], None]]) -> None:
    """Of an array that a tensor shares, nobody can tell who else looks at it; it may even be mapped read-only."""
    v, step = stepped
    mine = np.full((N, N), 4.0, np.float32)
    mine.flags.writeable = False
    v.assign(rn.asarray(mine, copy=False))
    step()
    assert mine[0, 0] == 4.0 and v.numpy()[0, 0] == 3.0
    theirs = np.full((N, N), 2.0, np.float32)
    v.assign(rn.from_dlpack(theirs))
    opt = optim.SGD([v], lr=1.0)
    v.grad = rn.ones((N, N))
    opt.step()
    assert theirs[0, 0] == 2.0 and v.numpy()[0, 0] == 1.0


def test_small_results_that_share_a_slab_are_apart() -> None:
    """Small results of a program are cut from one block: a Variable that took one must not change the others."""
    v, w = Variable(np.zeros(2, np.float32)), Variable(np.zeros(2, np.float32))
    make = rn.compile(lambda x: (x + 1.0, x + 2.0))
    step = rn.compile(lambda: v.assign(v * 10.0))
    x = rn.asarray(np.zeros(2, np.float32))
    for _ in range(100):
        a, b = make(x)
        v.assign(a)
        w.assign(b)
        step()
        assert (v.tolist(), w.tolist(), a.tolist(), b.tolist()) == ([10.0] * 2, [2.0] * 2, [1.0] * 2, [2.0] * 2)


def test_two_variables_with_one_value_go_their_ways() -> None:
    v, w = fresh(), fresh()
    w.assign(v)
    step = rn.compile(lambda: v.assign(v + 1.0))
    for _ in range(3):
        before = w.numpy().copy()
        step()
        np.testing.assert_array_equal(w.numpy(), before)
    np.testing.assert_allclose(v.numpy(), w.numpy() + 3.0, atol=1e-5)


def test_tensor_makes_another_handle() -> None:
    x = rn.asarray([1.0, 2.0])
    y = rn.tensor(x)
    y[0] = 5.0
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [5.0, 2.0]
    with_tape = rn.tensor([1.0], requires_grad=True)
    assert not rn.tensor(with_tape).requires_grad and with_tape.requires_grad


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.sampled_from(["read", "slice", "numpy", "drop", "step", "assign", "optimizer", "look"]), max_size=24)
)
def test_any_order_of_reading_and_updating(actions: list[str]) -> None:
    v = fresh()
    opt = optim.SGD([v], lr=0.25)
    step = rn.compile(lambda: v.assign(v * 0.5 + 1.0))
    look = rn.compile(lambda: v * 1.0)
    model = v.numpy().copy()
    reference: list[tuple[Any, np.ndarray]] = []
    for action in actions:
        if action == "read":
            reference.append((v.read(), model.copy()))
        elif action == "slice":
            reference.append((v[2:9], model[2:9].copy()))
        elif action == "numpy":
            reference.append((v.numpy(), model.copy()))
        elif action == "drop":
            del reference[: len(reference) // 2 + 1]
        elif action == "step":
            step()
            model = model * np.float32(0.5) + np.float32(1.0)
        elif action == "assign":
            model = model + np.float32(1.0)
            v.assign(v + 1.0)
        elif action == "optimizer":
            v.grad = rn.ones(v.shape)
            opt.step()
            model = model - np.float32(0.25)
        else:
            np.testing.assert_array_equal(look().numpy(), model)
        for handle, values in reference:
            if isinstance(handle, rn.Tensor) and handle.shape == (7, N):
                values = model[2:9]
            np.testing.assert_array_equal(np.asarray(handle), values)
    np.testing.assert_array_equal(v.numpy(), model)
