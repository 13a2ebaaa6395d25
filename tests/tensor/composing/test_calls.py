"""Programs of compositions, and what surrounds such calls: transforms, hooks, errors, threads, memory."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends.host import memory
from runnel.core import switches
from runnel.core.errors import GradientError, NonFiniteError
from runnel.core.switches import RESOLVED, State
from runnel.nn import functional as F
from runnel.tensor import composing, eager


@pytest.fixture(autouse=True)
def none_compiled() -> Iterator[None]:
    composing.clear()
    yield


@pytest.fixture
def single_ops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the ops that run by themselves."""
    names: list[str] = []
    execute = eager.execute

    def counted(op: Any, tensors: Any, attrs: Any) -> Any:
        names.append(op.name)
        return execute(op, tensors, attrs)

    monkeypatch.setattr(RESOLVED, "state", State())
    monkeypatch.setattr(eager, "execute", counted)
    return names


def floats(*shape: int) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


LOGITS, LABELS = floats(6, 5), rn.asarray(np.array([0, 4, 2, 1, 3, 0]))


def test_a_call_is_one_program(single_ops: list[str]) -> None:
    by_program = F.cross_entropy(LOGITS, LABELS)
    assert composing.known_programs() == 1
    assert by_program.numpy() == F.cross_entropy(LOGITS[:, ::1].contiguous(), LABELS).numpy()
    assert single_ops == [] and composing.known_programs() == 1
    other = F.cross_entropy(LOGITS, LABELS, label_smoothing=0.1)
    assert composing.known_programs() == 2 and other.numpy() != by_program.numpy()


def test_one_record_of_the_tape_stands_for_the_whole_function() -> None:
    x = LOGITS.detach().requires_grad_()
    loss = F.cross_entropy(x, LABELS)
    assert loss._record is not None
    assert {id(y) for y in loss._record.inputs} == {id(x)}


def test_programs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composing, "PROGRAMS", 4)
    for n in range(1, 40):
        F.softmax(rn.ones((n, 3)))
    assert composing.known_programs() <= 2 * composing.PROGRAMS


def test_programs_keep_no_argument_alive() -> None:
    x = floats(64, 64) * 2
    storage = weakref.ref(x._storage)
    F.gelu(x)
    assert composing.known_programs() == 1
    del x
    gc.collect()
    assert storage() is None


def test_calls_leave_no_memory_in_use() -> None:
    x = floats(64, 64).requires_grad_()
    F.gelu(x).sum().backward()
    before = memory.statistics().live
    for _ in range(20):
        x.grad = None
        F.gelu(x).sum().backward()
    gc.collect()
    assert memory.statistics().live <= before + x.aval.nbytes


def test_dtypes_values_and_signs_of_zero_are_told_apart() -> None:
    x = floats(4, 3)
    for slope in (0.0, -0.0, 0, 1, True, 1.0):
        for _ in range(2):
            expected = np.where(x.numpy() > 0, x.numpy(), x.numpy() * np.float32(slope))
            assert F.leaky_relu(x, slope).numpy().tobytes() == expected.tobytes()


def test_a_list_that_changes_later_changes_no_call() -> None:
    x, shape = floats(2, 3, 4), [3, 4]
    whole = F.layer_norm(x, shape).numpy()
    shape.pop(0)
    np.testing.assert_array_equal(F.layer_norm(x, (3, 4)).numpy(), whole)
    assert not np.array_equal(F.layer_norm(x, shape).numpy(), whole)


def bits(*values: rn.Tensor) -> list[bytes]:
    return [x.numpy().tobytes() for x in values]


LAYOUTS: list[Any] = [
    lambda x: x.permute(0, 3, 1, 2),
    lambda x: x.permute(3, 1, 0, 2),
    lambda x: x.permute(0, 3, 1, 2)[:, 1:],
    lambda x: x[:, ::2, 1:],
    lambda x: x.flip(1),
    lambda x: x[:1].expand(3, -1, -1, -1),
]


@pytest.mark.parametrize("like", LAYOUTS)
@pytest.mark.parametrize("fn", [F.gelu, lambda x: F.softmax(x, 1), lambda x: F.normalize(x, dim=2)])
def test_operands_of_any_layout_run_as_programs(like: Any, fn: Any, single_ops: list[str]) -> None:
    base, seed = floats(2, 3, 4, 5), floats(*like(floats(2, 3, 4, 5)).shape)

    def run() -> tuple[Any, list[bytes]]:
        leaf = base.detach().requires_grad_()
        out = fn(like(leaf))
        out.backward(seed)
        return out.strides, bits(out, leaf.grad)

    with switches.override(eager=True):
        by_ops = run()
    count = len(single_ops)
    single_ops.clear()
    assert run() == by_ops
    assert len(single_ops) < count


@pytest.mark.parametrize("like", LAYOUTS)
@pytest.mark.parametrize(
    "fn", [F.gelu, lambda x: F.softmax(x, 1), lambda x: F.batch_norm(x, None, None, training=True)]
)
def test_gradients_of_all_readers_are_summed_in_the_order_of_single_ops(like: Any, fn: Any) -> None:
    base = floats(2, 3, 4, 5)

    def run() -> list[bytes]:
        leaf = base.detach().requires_grad_()
        x = like(leaf)
        (first,) = rn.autograd.grad((fn(x) * x).sum(), leaf, create_graph=True)
        (first * first).sum().backward()
        assert leaf.grad is not None
        return bits(first, leaf.grad)

    with switches.override(eager=True):
        by_ops = run()
    assert run() == by_ops


def test_transforms_and_compiled_functions_see_the_ops() -> None:
    x, y = floats(3, 4), floats(3, 4) * 0.5
    expected = rn.jvp(F.softmax, (x,), (y,)), rn.vmap(F.softmax)(x), rn.compile(F.softmax)(x)
    F.softmax(x)
    F.softmax(x[0])
    results = rn.jvp(F.softmax, (x,), (y,)), rn.vmap(F.softmax)(x), rn.compile(F.softmax)(x)
    for a, b in zip((*expected[0], *expected[1:]), (*results[0], *results[1:]), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_no_grad_gives_no_tape_and_others_do() -> None:
    x = floats(3, 4).requires_grad_()
    F.gelu(x)
    with rn.no_grad():
        assert not F.gelu(x).requires_grad
    assert F.gelu(x).requires_grad
    assert not F.gelu(x.detach()).requires_grad


def test_gradients_of_parameters_accumulate_and_the_tape_is_freed() -> None:
    weight = rn.Parameter(np.ones((2, 4), np.float32))
    x = floats(3, 4)
    loss = F.linear(x, weight).sum()
    loss.backward()
    assert weight.grad is not None
    once = weight.grad.numpy().copy()
    with pytest.raises(GradientError, match="freed"):
        loss.backward()
    kept = F.linear(x, weight).sum()
    kept.backward(retain_graph=True)
    kept.backward()
    np.testing.assert_array_equal(weight.grad.numpy(), once * 3)


def test_a_parameter_that_changes_later_does_not_change_the_tape() -> None:
    x = floats(3, 4).requires_grad_()
    weight = rn.Parameter(np.ones((2, 4), np.float32))
    out = F.linear(x, weight)
    weight.assign(weight * 5)
    out.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full((3, 4), 2, np.float32))


def test_hooks_see_gradients_before_and_after() -> None:
    x = floats(3, 4).requires_grad_()
    seen: list[str] = []
    middle = F.gelu(x)
    middle.register_hook(lambda g: seen.append("middle"))
    x.register_hook(lambda g: g * 2)
    middle.sum().backward()
    doubled = x.grad
    assert doubled is not None and seen == ["middle"]
    plain = x.detach().requires_grad_()
    F.gelu(plain).sum().backward()
    assert plain.grad is not None
    np.testing.assert_array_equal(doubled.numpy(), plain.grad.numpy() * 2)


def test_errors_name_the_op_and_the_values() -> None:
    wrong = rn.asarray(np.array([0, 4, 2, 7, 3, 0]))
    with pytest.raises(IndexError) as by_ops:
        F.cross_entropy(LOGITS, wrong)
    F.cross_entropy(LOGITS, LABELS)
    with pytest.raises(IndexError) as by_program:
        F.cross_entropy(LOGITS, wrong)
    assert str(by_program.value) == str(by_ops.value)


def test_checks_for_nans_find_the_op() -> None:
    x = rn.asarray(np.array([[-1.0, 2.0]], np.float32))
    rn.norm(x, 0.5)
    rn.std(x)
    logits = rn.asarray(np.full((1, 2), 3e38, np.float32))
    rn.mean(logits)
    with switches.override(check_nans=True), pytest.raises(NonFiniteError, match=r"\[sum\]"):
        rn.mean(logits)


def test_autocast_has_programs_of_its_own() -> None:
    x, weight = floats(3, 4), floats(2, 4)
    plain = F.linear(x, weight)
    with rn.autocast():
        low = F.linear(x, weight)
        distance = F.normalize(x.astype(rn.bfloat16))
    assert (plain.dtype, low.dtype) == (rn.float32, rn.bfloat16)
    assert distance.dtype is not F.normalize(x.astype(rn.bfloat16)).dtype


def test_threads_get_results_of_their_own() -> None:
    F.softmax(floats(4, 5))
    inputs = [floats(4, 5) * float(i + 1) for i in range(4)]
    expected = [F.softmax(x).numpy().tobytes() for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        x = inputs[number].detach().requires_grad_()
        for _ in range(100):
            if F.softmax(x).numpy().tobytes() != expected[number]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_keep_the_order_of_axes_of_their_operands() -> None:
    x = floats(2, 3, 4).permute(1, 0, 2)
    assert {F.gelu(x).strides for _ in range(6)} == {x.strides}
