"""Ragged values: made, taken apart, indexed, joined; what they refuse."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import AxisError, DTypeError, ShapeError, UnsupportedError
from runnel.nn import functional as F

ROWS = [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]


def example() -> rn.Ragged:
    return rn.ragged(ROWS)


def test_ways_to_make_one() -> None:
    x = example()
    same = [
        rn.Ragged([1.0, 2, 3, 4, 5, 6], [0, 2, 3, 6]),
        rn.Ragged(np.arange(1.0, 7), np.array([0, 2, 3, 6], np.int32)),
        rn.Ragged.from_lengths(rn.arange(1.0, 7), [2, 1, 3]),
        rn.Ragged.from_padded([[1.0, 2, 0], [3, 0, 0], [4, 5, 6]], [2, 1, 3]),
        rn.ragged([rn.asarray(row) for row in ROWS]),
        rn.ragged([np.array(row) for row in ROWS], rn.float32),
    ]
    assert all(y.tolist() == ROWS for y in same) and len(x) == 3 and x.total == 6 and x.ndim == 2
    assert x.offsets.tolist() == [0, 2, 3, 6] and x.lengths.tolist() == [2, 1, 3] and x.dtype is rn.float32
    assert x.padded(-1).tolist() == [[1, 2, -1], [3, -1, -1], [4, 5, 6]] and x.padded(length=4).shape == (3, 4)
    assert [row.tolist() for row in x] == ROWS == [row.tolist() for row in x.unbind()]
    assert repr(x) == "Ragged(3 rows, values=float32[6])"


def test_arrow_arrays_are_values_and_offsets() -> None:
    arrow = pytest.importorskip("pyarrow")
    lists = arrow.array([[1, 2], [], [3]])
    assert rn.Ragged(lists.values.to_numpy(), lists.offsets.to_numpy()).tolist() == [[1, 2], [], [3]]


def test_containers(tmp_path: Path) -> None:
    x = example()
    rn.save({"x": x}, tmp_path / "x.rn")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), rn.load(tmp_path / "x.rn")["x"]):
        assert isinstance(y, rn.Ragged) and y.tolist() == ROWS
    doubled = rn.vmap(lambda w: (x * w).sum(1))(rn.asarray([1.0, 2.0]))
    assert doubled.tolist() == [[3, 3, 15], [6, 6, 30]]
    gradient = rn.grad(lambda values: (rn.Ragged(values, x.offsets) ** 2).sum(1).sum())(x.values)
    assert gradient.tolist() == [2, 4, 6, 8, 10, 12]


def test_indexing() -> None:
    x = example()
    assert x[0].tolist() == ROWS[0] and x[-1].tolist() == ROWS[2] and x[2, 1:].tolist() == [5, 6]
    picked = [x[[2, 0]], x[rn.asarray([2, 0])], x[::-2], x[np.array([True, False, True])][::-1]]
    assert all(y.tolist() == [ROWS[2], ROWS[0]] for y in picked)
    assert x[:, :2].tolist() == [[1, 2], [3], [4, 5]] and x[:, ::-1].tolist() == [[2, 1], [3], [6, 5, 4]]
    assert rn.cat([x, x * 2]).tolist() == [*ROWS, [2, 4], [6], [8, 10, 12]]
    assert rn.cat([rn.zeros((3, 1)), x], 1).tolist() == [[0, 1, 2], [0, 3], [0, 4, 5, 6]]


def test_dense_operands_belong_to_rows() -> None:
    x, column = example(), rn.asarray([[10.0], [20.0], [30.0]])
    assert (x + column).tolist() == [[11, 12], [23], [34, 35, 36]] == (column.numpy() + x).tolist()
    memory = rn.asarray(np.random.default_rng(0).normal(size=(3, 4, 6)).astype(np.float32))
    y = x.unsqueeze(-1) * rn.ones(6)
    together = F.scaled_dot_product_attention(y, memory, memory)
    for i, row in enumerate(y):
        expected = F.scaled_dot_product_attention(row[None], memory[i : i + 1], memory[i : i + 1])
        np.testing.assert_array_equal(together[i].numpy(), expected[0].numpy())


def test_two_ragged_axes() -> None:
    words = rn.ragged([[[1, 2], [3]], [[4, 5, 6]], []], axes=2)
    rn.manual_seed(0)
    letters = nn.Embedding(7, 4)
    vectors = letters(words).mean(2)
    assert words.ndim == 3 and vectors.tolist()[0][1] == letters(rn.asarray([3]))[0].tolist()
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    attended, _ = attention(vectors, vectors, vectors)
    assert attended.lengths.tolist() == [2, 1, 0] and words.padded().shape == (3, 2, 3)
    assert rn.softmax(words.float() * 0, 2).tolist()[0] == [[0.5, 0.5], [1.0]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_rows_are_bags(mode: str) -> None:
    rn.manual_seed(0)
    bag = nn.EmbeddingBag(20, 4, mode=mode)
    rows = [np.array([3, 1, 3]), np.array([7]), np.array([0, 19])]
    actual = bag(rn.ragged(rows)).numpy()
    for row, vector in zip(rows, actual, strict=True):
        np.testing.assert_array_equal(vector, bag(rn.asarray(row[None]))[0].numpy())


def test_losses_are_means_over_elements() -> None:
    x, y = rn.ragged([np.eye(3, dtype=np.float32), np.ones((1, 3), np.float32)]), rn.ragged([[0, 1, 2], [2]])
    each = F.cross_entropy(x, y, reduction="none")
    total, count = F.cross_entropy(x, y, reduction="sum"), x.total
    assert isinstance(each, rn.Ragged) and each.lengths.tolist() == [3, 1]
    np.testing.assert_allclose(F.cross_entropy(x, y).item(), total.item() / count, rtol=1e-6)
    np.testing.assert_allclose(nn.CrossEntropyLoss()(x, y).item(), each.values.numpy().mean(), rtol=1e-6)


EMPTY: dict[str, tuple[Any, Any]] = {
    "sum": (lambda x: x.sum(1), [1, 0, 5]),
    "mean": (lambda x: x.mean(1), [1, np.nan, 2.5]),
    "softmax": (lambda x: rn.softmax(x, 1).sum(1), [1, 0, 1]),
    "log-sum-exp": (lambda x: rn.logsumexp(x * 0, 1), [0, -np.inf, np.log(2)]),
    "shift": (lambda x: x[:, 1:].sum(1), [0, 0, 3]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_rows_and_batches(name: str) -> None:
    function, expected = EMPTY[name]
    np.testing.assert_allclose(function(rn.ragged([[1.0], [], [2.0, 3.0]])).numpy(), expected, rtol=1e-6)
    assert function(rn.ragged([], rn.float32)).shape == (0,)
    assert function(rn.ragged([[], []], rn.float32)).shape == (2,)


def test_layers_take_empty_batches() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    for lengths in ([], [0, 0]):
        x = rn.Ragged.from_lengths(rn.zeros((0, 4)), lengths)
        assert layer(x).values.shape == (0, 4) and nn.Conv1d(4, 2, 3, padding=1)(x).lengths.tolist() == lengths


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "decreasing": (lambda: rn.Ragged([1, 2, 3], [0, 2, 1, 3]), AxisError, r"ascend from 0 .* 3; got \[0, 2, 1, 3\]"),
    "outside": (lambda: rn.Ragged([1, 2, 3], [0, 2, 4]), AxisError, "offsets must ascend"),
    "late": (lambda: rn.Ragged([1, 2, 3], [1, 3]), AxisError, "offsets must ascend"),
    "floats": (lambda: rn.Ragged([1, 2], [0.0, 2.0]), DTypeError, "offsets must be integers"),
    "matrix": (lambda: rn.Ragged([1, 2], [[0, 2]]), ShapeError, "vector"),
    "none": (lambda: rn.Ragged([1, 2], []), ShapeError, "vector of one integer or more"),
    "features": (lambda: rn.ragged([np.ones((1, 2)), np.ones((1, 3))]), ShapeError, "only in their first axis"),
    "padded": (lambda: rn.Ragged.from_padded(np.ones((2, 3)), [1, 4]), ShapeError, "from 0 to length"),
    "lengths": (lambda: example() + rn.ragged([[1.0], [2, 3], [4, 5, 6]]), ShapeError, "rows of the same lengths"),
    "dense": (lambda: example() + rn.ones(3), ShapeError, "size 1 along the ragged axis"),
    "rows": (lambda: example().sum(0), UnsupportedError, r"must be 1 or more here; got 0"),
    "running": (lambda: example().cumsum(1), UnsupportedError, r"must be 2 or more here; got 1"),
    "shape": (lambda: example().reshape(2, 3), UnsupportedError, r"\[reshape\] x must not be ragged here; compute"),
    "layer": (lambda: nn.Conv2d(1, 1, 3)(example()), UnsupportedError, r"\[Conv2d\] x must not be ragged"),
    "size": (lambda: example().shape, UnsupportedError, "has no shape"),
    "mask": (
        lambda: F.scaled_dot_product_attention(*[example().unsqueeze(-1)] * 3, attn_mask=rn.ones((3, 3))),
        UnsupportedError, "no mask",
    ),
    "index": (lambda: example()[5], AxisError, "index 5 lies outside the 3 rows"),
    "no third": (lambda: example()[:, 2], ShapeError, "must not be shorter than 3; row 0 of 3 is"),
    "largest of none": (lambda: rn.max(rn.ragged([[1.0], []]), 1), ShapeError, r"\[max\] rows .* row 1 of 2 is"),
    "window": (lambda: nn.MaxPool1d(3)(example().unsqueeze(-1)), ShapeError, "as long as a window; row 1"),
    "written": (lambda: example().add_(1), UnsupportedError, "must not be changed in place"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_error(name: str) -> None:
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_programs_check_offsets_before_anything_changes() -> None:
    total = rn.Variable(rn.zeros(2))

    @rn.compile
    def add(values: rn.Tensor, offsets: rn.Tensor) -> None:
        total.assign(total + rn.Ragged(values, offsets).sum(1))

    add(rn.ones(4), rn.asarray([0, 1, 4]))
    for offsets in ([0, 5, 4], [0, 2, 5], [1, 2, 4], [0, 2, 3], [0, -1, 4]):
        with pytest.raises(AxisError, match="Nothing was changed"):
            add(rn.ones(4), rn.asarray(offsets))
    assert total.tolist() == [1, 3]
    greatest = rn.compile(lambda x: rn.max(x, 1))
    with pytest.raises(AxisError, match="ragged_length"):
        greatest(rn.ragged([[1.0], [], [2.0, 3.0]]))
