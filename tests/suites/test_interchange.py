"""NumPy and DLPack in and out, and tensors as values: no handle sees what another one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import runnel as rn
from runnel import ops
from runnel.core import dtypes as dt
from runnel.core.errors import AxisError, CaptureError, GradientError, ShapeError, SideEffectError
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced, same_bits
from tests.suites.inputs import LAYOUTS


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", dt.ALL, ids=lambda d: d.name)
def test_numpy_sees_the_same_memory_read_only(dtype: dt.DType) -> None:
    x = rn.asarray(np.arange(6).reshape(2, 3).astype(dtype.numpy))
    view_of_memory = np.asarray(x)
    assert view_of_memory.dtype == dtype.numpy and view_of_memory.ctypes.data == x.address
    if not dtype.is_complex:  # NumPy cuts these, and copies
        assert np.asarray(x[1:, ::2]).ctypes.data == x.address + 3 * dtype.itemsize
    with pytest.raises(ValueError, match="read-only"):
        view_of_memory[0, 0] = 1
    assert np.array(x).flags.writeable and np.array(x).ctypes.data != x.address


def test_what_numpy_asks_for() -> None:
    x = rn.asarray(floats(2, 3))
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(np.float64, copy=False)
    assert (np.ones((2, 3), np.float32) + x).dtype is rn.float32, "the tensor's operator, not NumPy's"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_view_of_numpy_is_copied_unless_it_is_shared(layout: str) -> None:
    source = LAYOUTS[layout](floats(3, 4))
    before = source.copy()
    copied, saved = rn.asarray(source), rn.asarray(source, copy=False)
    if source.flags.writeable:
        source[0, 0] += 1
    assert same_bits(copied.numpy(), before) and same_bits(saved.numpy(), source)
    assert copied.is_dense


def test_dtypes_of_python_numbers() -> None:
    assert rn.asarray([1.5, 2]).dtype is rn.float32 and rn.asarray([1, 2]).dtype is rn.int64
    assert rn.asarray(True).dtype is rn.bool_ and rn.asarray([np.float64(1.0)], "int8").dtype is rn.int8
    assert rn.asarray(np.float64(2.0)).dtype is rn.float64
    with pytest.raises(TypeError, match="complex256"):
        rn.asarray(np.ones(2, np.clongdouble))
    big = rn.asarray(np.arange(3, dtype=">i4"))
    assert big.tolist() == [0, 1, 2] and big.dtype is rn.int32


def test_dlpack_both_ways() -> None:
    source = floats(3, 4)
    shared = rn.from_dlpack(source)
    assert shared.address == source.ctypes.data
    assert rn.from_dlpack(source.T).strides == (1, 4)
    x = rn.asarray(source)
    back = np.from_dlpack(x.T)
    assert back.shape == (4, 3) and same_bits(np.ascontiguousarray(back), np.ascontiguousarray(source.T))
    assert x.__dlpack_device__() == (1, 0)
    assert rn.asarray(x[1:]).address == x.address + 16


def test_memory_outlives_its_first_owner() -> None:
    view = rn.asarray(floats(1000)).reshape(10, 100)[3:7, ::5].numpy()
    rn.asarray(floats(1000)) + 1.0  # something that could take the memory
    assert same_bits(view, floats(1000).reshape(10, 100)[3:7, ::5])


def test_augmented_assignment_writes_in_place() -> None:
    x = rn.asarray(floats(3))
    other = x
    view_of_memory = np.asarray(x)
    x += 1.0
    x *= 2.0
    assert other is x and same_bits(view_of_memory, floats(3))
    assert same_bits(x.numpy(), (floats(3) + 1) * 2)


keys = st.one_of(
    st.integers(-4, 3),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-6, 6))] * 2, st.sampled_from([None, 1, 2, 3, -1, -2])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(keys, max_size=2), st.integers(0, 2), st.booleans())
def test_items_are_set_as_in_numpy(given_keys: list[Any], kind: int, with_ellipsis: bool) -> None:
    key = (*given_keys[:1], ..., *given_keys[1:]) if with_ellipsis else tuple(given_keys)
    expected = floats(4, 4)
    x = rn.asarray(expected)
    view, view_of_memory = x[1:], np.asarray(x)
    shape = expected[key].shape
    value = [np.float32(7), np.arange(np.prod(shape)).reshape(shape).astype(np.float32), floats(*shape[-1:])][kind]
    expected[key] = value
    x[key] = value
    assert same_bits(x.numpy(), expected)
    assert same_bits(view_of_memory, floats(4, 4)) and same_bits(view.numpy(), expected[1:])


def test_items_chosen_by_truths() -> None:
    x = rn.asarray(floats(3, 4))
    expected = floats(3, 4)
    x[x < 0] = 0.0
    expected[expected < 0] = 0.0
    assert same_bits(x.numpy(), expected)
    x[np.array([[True], [False], [True]])] = rn.asarray([1, 2, 3, 4])
    assert x.tolist()[0] == [1, 2, 3, 4] == x.tolist()[2]
    x[0, 0] = 2**40
    assert x.dtype is rn.float32 and x[0, 0].item() == 2.0**40


def test_items_that_do_not_fit() -> None:
    x = rn.asarray(floats(3, 4))
    with pytest.raises(ShapeError, match=r"shape \(3,\).*shape \(2, 4\)"):
        x[1:] = np.ones(3, np.float32)
    with pytest.raises(ShapeError, match=r"\(2, 4\)"):
        x[1] = np.ones((2, 4), np.float32)
    with pytest.raises(AxisError, match="index 3 lies outside axis 0"):
        x[3] = 1.0
    with pytest.raises(AxisError, match="integers, slices"):
        x["a"] = 1.0
    assert same_bits(x.numpy(), floats(3, 4)), "a refused assignment changes nothing"


def test_items_of_variables_and_constants() -> None:
    v = Variable(np.zeros(3, np.float32))
    old = v.read()
    v[1:] = 5.0
    assert v.tolist() == [0, 5, 5] and old.tolist() == [0, 0, 0]
    with pytest.raises(CaptureError, match="Variable"):
        v.read()[0] = 1.0


def test_gradients_through_items() -> None:
    a = rn.tensor(floats(4), requires_grad=True)
    b = rn.tensor(floats(2), requires_grad=True)
    x = a * 3.0
    x[1:3] = b * 5.0
    (x * x).sum().backward()
    expected = 2 * 9 * floats(4)
    expected[1:3] = 0
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), 2 * 25 * floats(2), rtol=1e-6)
    with pytest.raises(GradientError, match="leaf"):
        a[0] = 1.0


def test_backward_uses_the_values_of_the_time() -> None:
    w = rn.tensor(floats(3), requires_grad=True)
    x = rn.asarray(floats(3))
    y = (w * x).sum()
    x[0] = 9.0
    z = (w * x).sum()
    y.backward()
    assert same_bits(w.grad.numpy(), floats(3))
    w.grad = None
    z.backward()
    assert w.grad.tolist()[0] == 9.0


def test_items_set_in_a_trace() -> None:
    def fn(x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        y = x * 2.0
        old = y
        y = y + 0.0
        y[::2, 1] = x.sum(1)[::2]
        y[-1] = 3.0
        return y, old

    x = rn.asarray(floats(5, 7))
    expected = fn(x)
    for actual, want in zip(Traced(fn, (x,))(x), expected, strict=True):
        assert same_bits(actual, want.numpy())

    outside = rn.asarray(floats(3))

    def bad(x: rn.Tensor) -> rn.Tensor:
        outside[0] = x.sum()
        return x

    with pytest.raises(SideEffectError, match="from outside"):
        Traced(bad, (x,))
    assert same_bits(outside.numpy(), floats(3))


def test_views_follow_and_copies_keep() -> None:
    for function, is_view in (
        (lambda x: x + 0.0, False),
        (lambda x: x[:], True),
        (lambda x: x.reshape(4), True),
        (lambda x: x.T, True),
        (lambda x: ops.broadcast_to(x, (3, 2, 2)), True),
        (lambda x: x.clone(), False),
        (lambda x: x[[0, 1]], False),
    ):
        x = rn.asarray(floats(2, 2))
        other = function(x)
        before = other.numpy().copy()
        x[0, 0] = x[0, 0] + 1.0
        assert same_bits(other.numpy(), function(x).numpy() if is_view else before)
