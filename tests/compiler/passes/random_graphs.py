"""Random small graphs over the ops that the passes treat specially, and a comparison that sees every bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from runnel.core.dtypes import DType, bool_, float16, float32, float64, int32, int64
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.ops.conversion import cast_p, stop_gradient_p
from runnel.ops.elementwise.arithmetic import abs_p, add_p, div_p, maximum_p, minimum_p, mul_p, neg_p, sub_p
from runnel.ops.elementwise.comparison import lt_p, not_p, where_p
from runnel.ops.elementwise.exponential import exp_p, sqrt_p
from runnel.ops.reductions.primitives import max_p, prod_p
from runnel.ops.shapes.broadcasting import broadcast_p, sum_p
from runnel.ops.shapes.pieces import concat_p, slice_p
from runnel.ops.shapes.views import permute_p, reshape_p

from ...graph.build import argument, constant, op, variable

SHAPES = [(2, 3), (3, 2), (1, 3), (2, 1), (1, 1)]
DTYPES = [float32, float64, float16, int32, int64]
SPECIAL = [-0.0, 0.0, 1.0, -1.0, 0.5, np.inf, np.nan, 3.0]

Draw = Callable[[st.SearchStrategy[Any]], Any]


def arrays(draw: Draw, shape: tuple[int, ...], dtype: DType) -> Any:
    """Values of which many are special."""
    count = int(np.prod(shape))
    if dtype.is_float:
        return np.array(draw(st.lists(st.sampled_from(SPECIAL), min_size=count, max_size=count)), dtype.numpy).reshape(
            shape
        )
    return np.array(draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count)), dtype.numpy).reshape(shape)


@st.composite
def graphs(draw: Draw) -> tuple[Graph, list[Any]]:
    """A graph and a value for each of its inputs."""
    inputs = [argument(*draw(st.sampled_from(SHAPES)), dtype=draw(st.sampled_from(DTYPES))) for _ in range(2)]
    state = variable(2, 3)
    inputs.append(state)
    nodes = list(inputs)
    for _ in range(draw(st.integers(0, 3))):
        dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
        nodes.append(constant(arrays(draw, shape, dtype), dtype))
    for _ in range(draw(st.integers(1, 14))):
        nodes.append(draw(st.sampled_from(STEPS))(draw, nodes))
    read = {x for node in nodes for x in node.inputs}
    outputs = [n for n in nodes if n not in read] + draw(st.lists(st.sampled_from(nodes), max_size=4))
    final = op(cast_p, _shaped(draw(st.sampled_from(nodes)), (2, 3)), dtype=float32)
    return Graph(inputs, outputs, {state: final}), [arrays(draw, n.aval.shape, n.aval.dtype) for n in inputs]


def _pick(draw: Draw, nodes: list[Value]) -> Value:
    return draw(st.sampled_from(nodes))  # type: ignore[no-any-return]


def _number(draw: Draw, nodes: list[Value]) -> Value:
    return draw(st.sampled_from([n for n in nodes if n.aval.dtype is not bool_]))  # type: ignore[no-any-return]


def _float(draw: Draw, nodes: list[Value]) -> Value:
    return draw(st.sampled_from([n for n in nodes if n.aval.dtype.is_float]))  # type: ignore[no-any-return]


def _shaped(x: Value, shape: tuple[int, ...]) -> Value:
    """``x``, or as much of it as fits, in ``shape``."""
    sizes = tuple(min(n, extent) for n, extent in zip(x.aval.shape, shape, strict=True))
    sizes = tuple(1 if size < extent else size for size, extent in zip(sizes, shape, strict=True))
    return op(broadcast_p, op(slice_p, x, starts=(0, 0), sizes=sizes, steps=(1, 1)), shape=shape)


def _unary(draw: Draw, nodes: list[Value]) -> Value:
    return op(draw(st.sampled_from([neg_p, abs_p, stop_gradient_p])), _number(draw, nodes))


def _neutral(draw: Draw, nodes: list[Value]) -> Value:
    x = _number(draw, nodes)
    binary = draw(st.sampled_from([add_p, sub_p, mul_p]))
    filled = constant(np.full((1, 1), draw(st.sampled_from([0, 1, -0.0]))), x.aval.dtype)
    other = op(broadcast_p, filled, shape=x.aval.shape) if draw(st.booleans()) else filled
    return op(binary, *((x, other) if draw(st.booleans()) else (other, x)))


def _binary(draw: Draw, nodes: list[Value]) -> Value:
    x = _number(draw, nodes)
    y = op(cast_p, _shaped(_pick(draw, nodes), x.aval.shape), dtype=x.aval.dtype) if draw(st.booleans()) else x
    return op(draw(st.sampled_from([add_p, sub_p, mul_p, maximum_p, minimum_p])), x, y)


def _of_floats(draw: Draw, nodes: list[Value]) -> Value:
    x = _float(draw, nodes)
    one = constant(np.full((1, 1), draw(st.sampled_from([1, 2]))), x.aval.dtype)
    return draw(st.sampled_from([op(exp_p, x), op(sqrt_p, x), op(div_p, x, one)]))  # type: ignore[no-any-return]


def _view(draw: Draw, nodes: list[Value]) -> Value:
    x = _pick(draw, nodes[-6:])
    m, n = x.aval.shape
    reversed_ = op(slice_p, x, starts=(m - 1, 0), sizes=(m, n), steps=(-1, 1))
    whole = op(slice_p, x, starts=(0, 0), sizes=(m, n), steps=(1, 1))
    views = [
        op(reshape_p, x, shape=(n, m)),
        op(reshape_p, op(reshape_p, x, shape=(m * n,)), shape=(m, n)),
        op(permute_p, x, axes=(1, 0)),
        op(permute_p, x, axes=(0, 1)),
        op(broadcast_p, x, shape=(m, n)),
        reversed_,
        whole,
        op(concat_p, x, axis=0),
    ]
    return draw(st.sampled_from(views))  # type: ignore[no-any-return]


def _cast(draw: Draw, nodes: list[Value]) -> Value:
    x = _pick(draw, nodes)
    wide = op(cast_p, x, dtype=draw(st.sampled_from([*DTYPES, bool_])))
    return op(cast_p, wide, dtype=x.aval.dtype) if draw(st.booleans()) else wide


def _choice(draw: Draw, nodes: list[Value]) -> Value:
    x = _number(draw, nodes)
    condition = op(lt_p, x, op(neg_p, x))
    return op(where_p, op(not_p, condition), x, x if draw(st.booleans()) else op(abs_p, x))


def _reduction(draw: Draw, nodes: list[Value]) -> Value:
    x = _number(draw, nodes)
    wide = op(cast_p, x, dtype=int64 if x.aval.dtype.is_integer else float64)
    axes = draw(st.sampled_from([(0,), (1,), (0, 1)]))
    return op(draw(st.sampled_from([sum_p, prod_p, max_p])), wide, axes=axes)


STEPS = [_unary, _neutral, _binary, _of_floats, _view, _cast, _choice, _reduction]


def bits(array: Any) -> Any:
    """An array's bits, every NaN alike."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.dtype, array.shape, np.ascontiguousarray(array).tobytes()
