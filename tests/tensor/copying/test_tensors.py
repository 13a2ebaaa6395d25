"""Copies of tensors and Variables: every dtype and layout, what survives, and how much memory goes along."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core import dtypes
from runnel.core.errors import CaptureWarning, GradientError
from runnel.tensor.variable import Variable
from tests.tensor.copying.described import described, overlap
from tests.tensor.copying.test_every_class import WAYS

DEEP: dict[str, Callable[[Any], Any]] = WAYS


def grid(dtype: dtypes.DType = dtypes.float32, *shape: int) -> rn.Tensor:
    shape = shape or (4, 6)
    return rn.asarray(np.arange(np.prod(shape)).reshape(shape) % 2 if dtype.kind == "bool" else _numbers(shape), dtype)


def _numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape)).reshape(shape)


VIEWS: dict[str, Callable[[rn.Tensor], rn.Tensor]] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "rows": lambda x: x[1:3],
    "steps": lambda x: x[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-2],
    "permuted": lambda x: x.reshape(2, 2, 3, 2).permute(2, 0, 3, 1),
    "broadcast": lambda x: rn.broadcast_to(x[0], (1000, 6)),
    "scalar": lambda x: x[2, 3],
    "empty": lambda x: x[4:],
    "read-only": lambda x: rn.asarray(x.numpy(), copy=False),
    "foreign": lambda x: rn.from_dlpack(np.ascontiguousarray(x.numpy())) if x.dtype.kind != "float" else x,
    "foreign columns": lambda x: rn.asarray(x.numpy()[:, ::2], copy=False),
    "foreign backwards": lambda x: rn.asarray(x.numpy()[::-1], copy=False),
    "of a large one": lambda x: rn.asarray(np.tile(x.numpy(), (2000, 1)))[17],
}


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_every_dtype_and_layout(dtype: dtypes.DType) -> None:
    for name, view in VIEWS.items():
        x = view(grid(dtype))
        for way, copied in DEEP.items():
            y = copied(x)
            assert y.dtype is dtype and y.shape == x.shape, (name, way)
            np.testing.assert_array_equal(y.numpy(), x.numpy(), err_msg=f"{name}, {way}")
            assert not overlap(x, y), (name, way)
            assert y.is_transposed == x.is_transposed, (name, way)


def test_the_bits_of_odd_numbers_survive() -> None:
    odd = np.array([np.nan, -np.nan, -0.0, np.inf, 1e-45], np.float32)
    odd.view(np.uint32)[1] ^= 0x155
    for copied in DEEP.values():
        assert copied(rn.asarray(odd)).numpy().tobytes() == odd.tobytes()


def test_views_of_one_block_stay_views_of_one_block() -> None:
    x = grid()
    for copied in DEEP.values():
        whole, turned, part = copied((x, x.T, x[1:, 2:4]))
        assert turned.address == whole.address and part.address == whole.address + 8 * 4
        one, two = copied([x[:3], x[2:]])
        assert two.address == one.address + 12 * 4


def test_a_small_part_of_a_large_block_goes_alone() -> None:
    large = rn.zeros(1 << 20)
    assert len(pickle.dumps(large[:10])) < 1000
    assert len(pickle.dumps(rn.broadcast_to(large[:1], (1000, 1000)))) < 1000
    assert copy.deepcopy(large[5:10])._storage.nbytes == 20
    assert len(pickle.dumps([large[:2000], large[2000:]])) < 5_000_000


def test_small_results_of_a_program_take_no_others_along() -> None:
    """They are cut from one block, of which the rest holds other results or nothing yet."""
    make = rn.compile(lambda x: (x + 1.0, x * 2.0))
    one, two = make(rn.asarray(np.float32(3.0)))
    assert one._storage is two._storage
    assert copy.deepcopy(one)._storage.nbytes == 4
    assert pickle.dumps(one) == pickle.dumps(rn.asarray(np.float32(4.0)))
    actual = copy.deepcopy([one, two])
    assert [x.item() for x in actual] == [4.0, 6.0]


def test_a_shallow_copy_is_another_handle_on_the_same_tape() -> None:
    w = rn.tensor([1.0, 2.0], requires_grad=True)
    h = w * 3.0
    other = copy.copy(h)
    assert other is not h and other.address == h.address
    other[0] = 7.0
    assert h.tolist() == [3.0, 6.0] and other.tolist() == [7.0, 6.0]
    copy.copy(h).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_what_hangs_on_a_tape_is_not_copied_deeply() -> None:
    w = rn.tensor([1.0, 2.0], requires_grad=True)
    h = w * 3.0
    for thing in (h, [h], {"loss": h.sum()}):
        with pytest.raises(GradientError, match=r"copy x\.detach\(\)"):
            copy.deepcopy(thing)
    assert copy.deepcopy(h.detach()).tolist() == [3.0, 6.0]
    actual = pickle.loads(pickle.dumps(h))
    assert actual.requires_grad and actual.tolist() == [3.0, 6.0]
    actual.sum().backward()
    assert actual.grad.tolist() == [1.0, 1.0] and w.grad is None, "a separate leaf"


def test_gradients_flags_and_attributes_survive() -> None:
    w = rn.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    w.note = ["mine"]
    for copied in DEEP.values():
        actual = copied(w)
        assert actual.requires_grad and actual.grad.tolist() == [2.0, 4.0] and actual.note == ["mine"]
        assert actual.note is not w.note and not overlap(actual.grad, w.grad)
        (actual * actual).sum().backward()
        assert actual.grad.tolist() == [4.0, 8.0] and w.grad.tolist() == [2.0, 4.0]


def test_a_copy_of_a_variables_value_is_a_plain_tensor() -> None:
    v = Variable(np.zeros(3, np.float32))
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        actual = copied(v.value)
        actual[0] = 5.0
        assert actual.tolist() == [5, 0, 0] and v.tolist() == [0, 0, 0]


class Scaled(nn.Parameter):
    """A Parameter with attributes in a dict."""

    def __init__(self, value: Any, scale: float) -> None:
        super().__init__(value)
        self.scale = scale


class Counted(nn.Parameter):
    """A Parameter with attributes in slots, one of which may be missing."""

    __slots__ = ("__private", "count", "missing")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.count = [1]
        self.__private = 5

    @property
    def private(self) -> int:
        return self.__private


def test_subclasses_of_parameters_keep_what_they_added() -> None:
    p, q = Scaled(np.ones(3, np.float32), 0.5), Counted(np.ones(2, np.float32))
    p.friend, p.requires_grad, p.name = q, False, "mine"
    for copied in DEEP.values():
        actual = copied(p)
        assert type(actual) is Scaled and (actual.scale, actual.requires_grad, actual.name) == (0.5, False, "mine")
        assert type(actual.friend) is Counted and actual.friend.count == [1] and actual.friend.private == 5
        assert actual.friend.count is not q.count and not hasattr(actual.friend, "missing")
        assert weakref.ref(actual)() is actual


def test_variables_that_had_one_value_go_their_ways() -> None:
    """An assignment lets two Variables share a block until one changes; their copies must part in the same way."""
    v, w = Variable(np.zeros(1000, np.float32)), Variable(np.zeros(1000, np.float32))
    w.assign(v)
    for copied in DEEP.values():
        a, b = copied((v, w))
        step = rn.compile(lambda a=a: a.assign(a + 1.0))
        step()
        step()
        assert (a.numpy() == 2).all() and (b.numpy() == 0).all() and (v.numpy() == 0).all()


def test_a_shallow_copy_of_a_variable_changes_alone() -> None:
    v = Variable(np.zeros(1000, np.float32), name="v")
    w = copy.copy(v)
    for variable, other in ((v, w), (w, v)):
        before = other.numpy().copy()
        step = rn.compile(lambda variable=variable: variable.assign(variable + 1.0))
        step()
        np.testing.assert_array_equal(other.numpy(), before)
    assert w.name == "v" and (v.numpy() == 1).all() and (w.numpy() == 1).all()


def test_a_copy_outlives_its_original() -> None:
    """Memory that is freed is handed out again; a copy that kept an address would see the new values."""
    retained = []
    for i in range(20):
        x = rn.asarray(np.full(3000, i, np.float32))
        retained.append((i, copy.deepcopy({"x": x, "v": Variable(x)}), pickle.loads(pickle.dumps(x[5:]))))
        del x
    for i, actual, part in retained:
        assert (actual["x"].numpy() == i).all() and (actual["v"].numpy() == i).all() and (part.numpy() == i).all()


def test_a_pickle_does_not_change_while_its_buffers_wait() -> None:
    v = Variable(np.zeros(10_000, np.float32))
    step = rn.compile(lambda: v.assign(v + 1.0))
    step()
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(v, 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and all(memoryview(b).readonly for b in buffers)
    step()
    assert (pickle.loads(data, buffers=buffers).numpy() == 1).all() and (v.numpy() == 2).all()


def test_equal_tensors_have_equal_pickles() -> None:
    """A cache by pickles, as in joblib, finds equal objects again."""
    one, two = rn.asarray(np.ones((3, 4), np.float32)), rn.ones((3, 4)) * 1.0
    two.numpy()
    assert pickle.dumps(one) == pickle.dumps(two)


def test_the_parts_of_the_core_are_one_object_each() -> None:
    x = grid()
    for thing in (x.dtype, x.aval, x.device):
        for copied in (copy.copy, *DEEP.values()):
            assert copied(thing) is thing


def test_copies_in_a_compiled_function() -> None:
    v = Variable(np.zeros(3, np.float32))

    @rn.compile
    def doubled(x: rn.Tensor, scale: float) -> rn.Tensor:
        return copy.deepcopy([x, copy.copy(x)])[1] * 2.0 + copy.deepcopy(scale)

    assert doubled(rn.ones((3,)), 0.5).tolist() == [2.5] * 3
    with pytest.warns(CaptureWarning, match=r"dumps\(\) is written in C"):
        rn.compile(lambda x: pickle.dumps(x))(rn.ones((3,)))
    assert rn.compile(lambda x: copy.deepcopy(v) + x)(rn.ones((3,))).tolist() == [1.0] * 3  # eagerly


def test_descriptions_tell_copies_apart() -> None:
    """The tests stand on ``described``: it must see a changed bit, flag, name and what is shared."""
    x = rn.asarray([1.0, 2.0])
    p = nn.Parameter(x.numpy(), name="p")
    others = [nn.Parameter(x.numpy(), name="q"), nn.Parameter(x.numpy(), requires_grad=False, name="p")]
    assert all(described(p) != described(other) for other in others)
    assert described([x, x]) != described([x, rn.asarray([1.0, 2.0])])
    assert described(rn.asarray([0.0])) != described(rn.asarray([-0.0]))
