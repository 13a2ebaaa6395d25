"""Refusals: a clear sentence with the value received, and nothing half-done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.backends.host.layout import CANCELLED
from runnel.compiler.schedule import partition
from runnel.core.errors import AxisError, DTypeError, GradientError, RunnelError, ShapeError
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced

X = rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
I = rn.asarray(np.arange(3))  # noqa: E741
B = rn.asarray(np.array([True, False, True]))

REFUSED: dict[str, tuple[Callable[[], Any], type[RunnelError], str]] = {
    "ranks that do not broadcast": (lambda: X + rn.ones(3), ShapeError, r"\(3, 4\) and \(3,\).*sizes 4 and 3"),
    "shapes that do not broadcast": (lambda: X + rn.ones((3, 3)), ShapeError, r"\(3, 4\) and \(3, 3\).*sizes 4 and 3"),
    "matrix sizes": (lambda: X @ X, ShapeError, r"\(3, 4\).*\(3, 4\)"),
    "a size that does not divide": (lambda: X.reshape(5, -1), ShapeError, r"\(3, 4\)"),
    "too many elements": (lambda: X.reshape(13), ShapeError, r"\(3, 4\).*13"),
    "concat ranks": (lambda: ops.concat([X, X[0]]), ShapeError, r"\(3, 4\) and \(4,\)"),
    "concat sizes": (lambda: ops.concat([X, X[:, :2]]), ShapeError, "axis 0"),
    "stack shapes": (lambda: ops.stack([X, X.T]), ShapeError, r"\(3, 4\) and \(4, 3\)"),
    "split sizes": (lambda: ops.split(X, [1, 1], 0), ShapeError, r"\(1, 1\).*3"),
    "broadcast to fewer axes": (lambda: ops.broadcast_to(X, (4,)), ShapeError, r"\(3, 4\)"),
    "labels of another shape": (lambda: ops.cross_entropy(X, I[:2]), ShapeError, r"\(2,\).*\(3, 4\)"),
    "embedding of nothing": (lambda: ops.take(rn.zeros((0, 2)), I, 0), AxisError, "outside axis 0"),
    "max of nothing": (lambda: rn.zeros((0, 2)).max(0), ShapeError, r"\(0, 2\)"),
    "axis": (lambda: X.sum(2), AxisError, "axis 2.*2 dimensions"),
    "negative axis": (lambda: X.mean(-3), AxisError, "axis -3"),
    "axis twice": (lambda: X.sum((0, -2)), AxisError, "twice"),
    "index": (lambda: X[3], AxisError, r"index 3 .*axis 0.*\(3, 4\)"),
    "too many indices": (lambda: X[0, 0, 0], AxisError, r"\(3, 4\)"),
    "bool arithmetic": (lambda: ops.negative(B), DTypeError, "bool"),
    "bits of floats": (lambda: X & 1, DTypeError, "float32"),
    "labels that are floats": (lambda: ops.nll_loss(X, X[:, 0]), DTypeError, "float32"),
    "indices that are floats": (lambda: ops.take(X, X[0], 0), DTypeError, "float32"),
    "backward of a matrix": (lambda: rn.tensor([[1.0, 2.0]], requires_grad=True).backward(), GradientError, "seed"),
    "backward of a constant": (lambda: X.sum().backward(), GradientError, "requires_grad_"),
    "gradient of integers": (lambda: rn.tensor([1], requires_grad=True), GradientError, "int64"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_what_was_received(what: str) -> None:
    call, error, pattern = REFUSED[what]
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert re.match(r"\[\w+\] .*\.$", str(caught.value), re.S), "names the op, and is a sentence"


INDEXED: dict[str, Callable[[rn.Tensor], rn.Tensor]] = {
    "embedding": lambda i: ops.embedding(X, i),
    "take": lambda i: ops.take(X, i, 1),
    "take_along_axis": lambda i: ops.take_along_axis(X.T, ops.broadcast_to(i, (4, i.size)), 1),
    "scatter_add": lambda i: ops.scatter_add(i, rn.ones((i.size, 2)), 3),
    "index_add": lambda i: ops.index_add(X, 0, i, rn.ones((i.size, 4))),
}


@pytest.mark.parametrize("name", ["embedding", "take", "scatter_add", "index_add"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_eager_indices_out_of_range(name: str, dtype: str) -> None:
    good = rn.asarray(np.array([2, 0, 1, 2]), dtype)
    INDEXED[name](good)
    with pytest.raises(
        AxisError, match=r"2 of 4 indices lie outside \[0, [34]\): 9, 100\.|index 100 lies outside axis [01]"
    ):
        INDEXED[name](rn.asarray(np.array([2, 9, 1, 100]), dtype))


def test_eager_negative_indices() -> None:
    assert ops.take(X, rn.asarray([-1, -3]), 0).tolist() == [X[2].tolist(), X[0].tolist()]
    with pytest.raises(AxisError, match="index -4 lies outside axis 0"):
        ops.take(X, rn.asarray([-1, -4]), 0)
    with pytest.raises(AxisError, match="index -1 lies outside axis 0"):
        ops.embedding(X, rn.asarray([0, -1]))


def test_unsigned_indices_beyond_int64() -> None:
    with pytest.raises(AxisError, match="18446744073709551615"):
        ops.embedding(X, rn.asarray(np.array([0, 2**64 - 1], np.uint64)))


def test_indices_in_any_layout() -> None:
    room = np.zeros((6, 9), np.int64)
    for shared in (room[::2, ::3], room.T[1:4, ::2], np.broadcast_to(room[:1], (5, 9)), room[::-1, ::-1]):
        table = rn.asarray(np.arange(8, dtype=np.float32))
        assert ops.embedding(table, rn.asarray(shared, copy=False)).numpy().sum() == 0
        if shared.flags.writeable:
            shared[-1, -1] = 8
            with pytest.raises(AxisError, match="index 8 lies outside axis 0"):
                ops.embedding(table, rn.asarray(shared, copy=False))
            shared[-1, -1] = 0


@pytest.fixture
def split_everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    yield


def stateful() -> tuple[Callable[..., Any], list[Variable]]:
    """A step that changes state before, beside and after it looks at its indices; some are computed from state."""
    count = Variable(np.zeros(40, np.float32))
    table = Variable(np.ones((6, 3), np.float32), requires_grad=True)

    def step(i: rn.Tensor, x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        count.assign(count + 1.0)
        rows = ops.embedding(table, i)
        (rows * rows).sum().backward()
        table.assign(table.detach() - 0.125 * table.grad)
        table.grad = None
        late = ops.cast(count.read().sum() * 0.0, rn.int64) + i
        return rows * 2.0, ops.take(x, late, 0)

    return step, [count, table]


@pytest.mark.usefixtures("split_everything")
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_a_program_with_a_bad_index_changes_nothing(threads: int, fuse: bool) -> None:
    eager, expected = stateful()
    compiled, actual = stateful()
    x = rn.asarray(np.arange(7, dtype=np.float32))
    good = np.random.default_rng(0).integers(0, 6, 100)
    program = Traced(compiled, (rn.asarray(good), x), threads=threads, fuse=fuse)
    for place, bad in ((None, 0), (0, 6), (99, -7), (50, 2**40), (None, 0)):
        indices = good.copy()
        if place is None:
            for e, f in zip(eager(rn.asarray(indices), x), program(rn.asarray(indices), x), strict=True):
                np.testing.assert_array_equal(e.numpy(), f)
        else:
            indices[place] = bad
            with pytest.raises(AxisError, match=rf"shape \(100,\) lies outside \[0, 6\).*{re.escape(__file__)}"):
                program(rn.asarray(indices), x)
        for e, f in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(e.numpy(), f._tensor.numpy())


@pytest.mark.usefixtures("split_everything")
@pytest.mark.parametrize("threads", [1, 3])
def test_indices_computed_from_a_variable_that_is_updated(threads: int) -> None:
    """The new value is needed for the indices, so it may not be in the Variable before they are checked."""
    position = Variable(np.zeros(33, np.int64))

    def step(x: rn.Tensor) -> rn.Tensor:
        position.assign(position + 1)
        return ops.embedding(x, position.read())

    x = rn.asarray(np.arange(3, dtype=np.float32))
    program = Traced(step, (x,), threads=threads)
    assert program(x)[0].tolist() == [1.0] * 33 and program(x)[0].tolist() == [2.0] * 33
    with pytest.raises(AxisError, match=r"\[0, 3\)"):
        program(x)
    assert position._tensor.tolist() == [2] * 33


def test_constant_indices_are_checked_when_planned() -> None:
    good = Traced(lambda x: ops.embedding(x, rn.asarray([2, 0])), (X,))
    assert good.plan.bounded == [] and good(X)[0].tolist() == [X[2].tolist(), X[0].tolist()]
    with pytest.raises(AxisError, match="index 3 lies outside axis 0"):
        Traced(lambda x: ops.embedding(x, rn.asarray([3])), (X,))(X)


def test_a_cancelled_program_says_so() -> None:
    program = Traced(lambda x: x + 1.0, (X,))
    program.program.pool.cancel()
    with pytest.raises(RunnelError, match="cancelled"):
        program(X)
    assert program.program.error(CANCELLED) is not None
    assert program(X)[0][0, 0] == 1.0
