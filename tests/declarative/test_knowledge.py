"""Facts known before a run: shapes and dtypes, forwards and backwards."""

from __future__ import annotations

from typing import Any

import pytest

import runnel as rn
import runnel.declarative as dg
from runnel.core.errors import ShapeError

F = rn.nn.functional


def test_shapes_come_of_the_ops_rules() -> None:
    x = dg.placeholder(shape=(None, 3))
    assert (x @ dg.placeholder(shape=(3, 5))).shape == (None, 5)
    assert x.sum(axis=0).shape == (3,)
    assert x.reshape(-1).shape == (None,)
    assert rn.concat([x, x], axis=1).shape == (None, 6)
    assert (x + x[:, :1]).shape == (None, 3)
    assert x.T.shape == (3, None)
    assert F.conv2d(dg.placeholder(shape=(None, 1, 8, None)), dg.placeholder(shape=(4, 1, 3, 3))).shape == (
        None,
        4,
        6,
        None,
    )
    values, indices = rn.topk(x, 2)
    assert (values.shape, indices.dtype) == ((None, 2), rn.int64)
    assert (x > 0).dtype is rn.bool_
    unknown = dg.placeholder()
    assert (unknown.shape, unknown.ndim, rn.exp(unknown).shape, rn.exp(unknown).dtype) == (None, None, None, rn.float32)
    assert dg.placeholder(None).dtype is None
    assert (dg.placeholder(None, (2,)) + 1).shape == (2,)


def test_sizes_that_can_only_be_one_are_inferred_backwards() -> None:
    x = dg.placeholder(shape=(None, None), name="x")
    w = dg.placeholder(shape=(4, 5), name="w")
    b = dg.placeholder(shape=(None,), name="b")
    y = x @ w + b
    known = dg.infer(y, {x: (8, None)})
    assert known[x].shape == (8, 4)
    assert known[y].shape == (8, 5)
    assert x.shape == (None, None)
    with pytest.raises(ShapeError):
        dg.infer(y, {x: (8, 3)})
    with pytest.raises(ShapeError, match=r"'x', declared at .*, is"):
        dg.infer(y, {x: (8,)})


def dense(x: Any, w: Any, *, hidden: int) -> Any:
    return x @ w.T


@dg.infers_inputs(dense)
def weights(x: Any, w: Any, *, hidden: int) -> dict[int, Any]:
    return {} if x.shape is None else {1: (hidden, x.shape[1])}


def test_shapes_of_parameters_follow_from_data() -> None:
    x = dg.placeholder()
    layers: list[Any] = [dg.Variable(name=f"w{i}") for i in range(2)]
    y = dg.call(dense, rn.relu(dg.call(dense, x, layers[0], hidden=7)), layers[1], hidden=2)
    assert y.shape is None
    known = dg.infer(y, {x: (5, 3)})
    assert [known[w].shape for w in layers] == [(7, 3), (2, 7)]
    assert known[y].shape == (5, 2)


def test_dtypes_are_inferred_backwards() -> None:
    x, w = dg.placeholder(None, (2, 3)), dg.placeholder("float64", (3, 1))
    known = dg.infer(x @ w)
    assert known[x].dtype is rn.float64


def test_variables_follow_what_is_assigned() -> None:
    v = dg.Variable()
    known = dg.infer([v.assign(dg.placeholder(shape=(2, 3)))])
    assert known[v].shape == (2, 3)
