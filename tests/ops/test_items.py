"""Keys: any mixture of integers, slices, ``...``, None, arrays and masks, read and written as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import AxisError, CaptureError, DTypeError, ShapeError
from tests.ops.indexing.jets import split
from tests.ops.indexing.programs import random_key

SHAPES = [(4,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (3, 0, 2), ()]
ROWS, COLUMNS = np.array([0, -1, 0]), np.array([[2], [1]])
X = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
KEYS: list[Any] = [
    (slice(None), [1]), ([1], 0), (0, slice(None), ROWS), (ROWS[:2], slice(None), 0), (COLUMNS[:, 0] - 1, COLUMNS),
    (None, COLUMNS - 1, ..., ROWS), X > 7, (slice(None), X[0] > 5), ([0, 1, 1],), True, False, (True, 0), (..., []),
    (slice(None, None, -1), None, ROWS), (X[:, 0, 0] > 5, ROWS[:1]), (np.int64(1), np.array(2)), [[0, 1], [1, 0]],
    (slice(None), range(2)), (ROWS[:2], ..., ROWS[:2]), (0, None, ROWS), (np.array(1), slice(None), np.array(0)),
    (ROWS, slice(None), np.array(0)), (0, ..., ROWS), (0, slice(None), X[0, 0] > 1), (True, slice(None), ROWS - 1, 0),
    (slice(5, 2), ROWS), (..., X[0, 0] > 1), (np.zeros((2, 0), int),),
]  # fmt: skip


def as_tensors(key: Any) -> Any:
    """The key with tensors for arrays."""
    if isinstance(key, tuple):
        return tuple(map(as_tensors, key))
    return rn.asarray(key) if isinstance(key, np.ndarray) else key


def agrees(source: np.ndarray, key: Any, rng: np.random.Generator) -> None:
    """Reading and writing are NumPy's for arrays and for tensors in the key; errors are of the same kind."""
    x = rn.asarray(source)
    first, rest = split(key)
    try:
        expected = source[first][rest]
    except IndexError:
        for k in (key, as_tensors(key)):
            with pytest.raises((IndexError, ShapeError)):
                x[k]
            if not (isinstance(key, np.ndarray) and key.dtype == bool):  # a mask that broadcasts may be written through
                with pytest.raises((IndexError, ShapeError)):
                    x[k] = 0.0
        return
    written = source.copy()
    values = rng.normal(size=expected.shape)
    thin = rng.normal(size=[1 if rng.random() < 0.5 else n for n in expected.shape][int(rng.integers(2)) :])
    for k in (key, as_tensors(key)):
        actual = x[k]
        assert actual.shape == expected.shape and np.array_equal(actual.numpy(), expected), k
        for value in (values, rn.asarray(thin), 2.5):
            y = x.clone()
            y[k] = value
            written[...] = source
            written[first][rest] = value
            assert np.array_equal(y.numpy(), written), (k, np.shape(value))
    assert np.array_equal(x.numpy(), source)


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_keys(number: int) -> None:
    agrees(X, KEYS[number], np.random.default_rng(number))


@pytest.mark.parametrize("seed", range(40))
def test_random_keys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    for _ in range(3):
        agrees(rng.normal(size=shape), random_key(rng, [max(n, 1) for n in shape]), rng)


def test_indices_that_a_program_computes() -> None:
    def read(x: rn.Tensor, i: rn.Tensor, j: rn.Tensor) -> tuple[rn.Tensor, ...]:
        return x[i, j], x[:, j], x[j, :, i], x[i][None, ..., j - j], x[0, j]

    def write(x: rn.Tensor, i: rn.Tensor, j: rn.Tensor) -> rn.Tensor:
        y = x.clone()
        y[i, j] = x[0, 0] * 2
        y[:, i, j] = x[:, j, i] + 1
        y[y > 30] = -1.0
        y[i] *= 3.0
        y[x[:, 0, 0] > 5, 1:] = 0.5
        return y

    x, i, j = rn.asarray(X), rn.asarray([0, 1, -1]), rn.asarray([1, 0, 1])
    for actual, expected in zip(rn.compile(read)(x, i, j), read(x, i, j), strict=True):
        assert np.array_equal(actual.numpy(), expected.numpy())
    by_numpy = X.copy()
    a, b = np.array([0, 1, -1]), np.array([1, 0, 1])
    by_numpy[a, b] = X[0, 0] * 2
    by_numpy[:, a, b] = X[:, b, a] + 1
    by_numpy[by_numpy > 30] = -1.0
    by_numpy[a] *= 3.0
    by_numpy[X[:, 0, 0] > 5, 1:] = 0.5
    compiled = rn.compile(write)
    assert np.array_equal(write(x, i, j).numpy(), by_numpy)
    assert np.array_equal(compiled(x, i, j).numpy(), by_numpy)
    with pytest.raises(AxisError, match=r"outside \[0, 2\).*Nothing was changed"):
        compiled(x, rn.asarray([0, 1, 2]), j)


def test_gradients_add_up_where_elements_are_named_again() -> None:
    i, j, weights = rn.asarray([0, 1, 0, -2]), rn.asarray([2, 0, -1, 2]), rn.asarray([1.0, 2.0, 4.0, 8.0])

    def read(x: rn.Tensor) -> rn.Tensor:
        return (x[i, j] * weights).sum()

    def write(x: rn.Tensor, v: rn.Tensor) -> rn.Tensor:
        y = x * 1.0
        y[i, j] = v
        return (y * y).sum()

    x, v = rn.asarray(np.ones((2, 3))), rn.asarray([1.0, 2.0, 3.0, 4.0])
    expected = np.zeros((2, 3))
    np.add.at(expected, (i.numpy(), j.numpy()), weights.numpy())
    for wrap in (lambda f: f, rn.compile):
        assert np.array_equal(wrap(rn.grad(read))(x).numpy(), expected)
        by_x, by_v = wrap(rn.grad(write, (0, 1)))(x, v)
        assert by_v.tolist() == [0.0, 4.0, 0.0, 8.0], "the last value counts"
        assert by_x.tolist() == [[2.0, 2.0, 0.0], [0.0, 2.0, 2.0]]
    mask = rn.asarray(np.array([[True, False, True], [False, False, True]]))
    assert rn.grad(lambda x: (x[mask] * rn.asarray([1.0, 2.0, 3.0])).sum())(x).tolist() == [[1, 0, 2], [0, 0, 3]]


def test_masks_that_a_program_computes() -> None:
    x = rn.asarray(X)
    with pytest.raises(CaptureError, match=r"\[getitem\] how many elements.*where"):
        rn.compile(lambda x: x[x > 1])(x)

    def replace(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        z = x.clone()
        z[x > 5] = y
        z[:, x[0] > 3] = 1.0
        z[(x > 20).any(axis=2)] = y[0, 0]
        return z

    y = x * 10.0
    assert np.array_equal(rn.compile(replace)(x, y).numpy(), replace(x, y).numpy())
    expected = np.where(X > 5, X * 10, X)
    expected[:, X[0] > 3] = 1.0
    expected[(X > 20).any(axis=2)] = X[0, 0] * 10
    assert np.array_equal(replace(x, y).numpy(), expected)


def test_keys_that_do_not_fit() -> None:
    x = rn.asarray(X)
    cases: list[tuple[Any, type[Exception], str]] = [
        ((slice(None), [0, -4]), AxisError, r"index -4 lies outside axis 1 of shape \(2, 3, 4\)"),
        ((0, rn.asarray([3])), AxisError, r"index 3 lies outside axis 1"),
        (rn.asarray(np.array([2], np.uint8)), AxisError, r"index 2 lies outside axis 0"),
        (np.array([0.5]), DTypeError, "integers or truths; got float64"),
        (np.ones(3, bool), AxisError, r"a mask of shape \(3,\) does not fit the axes from 0"),
        (([0, 1], [0, 1, 2]), ShapeError, r"do not broadcast"),
        ((0, 0, 0, [0]), AxisError, r"4 indices"),
        ("a", AxisError, "integers, slices"),
    ]
    for key, error, message in cases:
        with pytest.raises(error, match=message):
            x[key]
    for key, value in (((0, [3]), 1.0), ([0, 1], np.ones(3)), (X > 3, np.ones(2))):
        with pytest.raises((AxisError, ShapeError)):
            x[key] = value
    assert np.array_equal(x.numpy(), X)


def test_adding_where_elements_are_named_again() -> None:
    x = rn.zeros((3, 2))
    x.index_put_((rn.asarray([0, 0, 2]), rn.asarray([1, 1, 0])), rn.asarray([1.0, 2.0, 4.0]), accumulate=True)
    assert x.tolist() == [[0, 3], [0, 0], [4, 0]]
    with pytest.raises(AxisError, match=r"\[take\] index -4 lies outside axis 0 of shape \(3, 2\)"):
        rn.take(x, rn.asarray([-4]), 0)
