"""The least TensorLike that ops can be tested on: an array, a tape, and one reverse sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel import ops
from runnel.core.avals import ShapedArray, aval
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, from_numpy
from runnel.core.tables import Op, abstract_eval, reference, vjp


class ArrayValue(TensorLike):
    """An array that remembers which op made it of what. Every op checks that infer and reference agree."""

    __slots__ = ("array", "attrs", "inputs", "op", "siblings", "weak")

    def __init__(self, array: Any, op: Op | None = None, inputs: tuple[Any, ...] = (), attrs: Any = None) -> None:
        self.array = np.asarray(array)
        self.op = op
        self.inputs = inputs
        self.attrs = attrs or {}
        self.siblings: tuple[ArrayValue, ...] = ()  # all results, of an op of several
        self.weak = False

    @property
    def aval(self) -> ShapedArray:
        return aval(self.array.shape, from_numpy(self.array.dtype))

    @property
    def is_weak(self) -> bool:
        return self.weak

    def apply_op(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        assert all(isinstance(x, ArrayValue) for x in inputs), f"[{op.name}] {inputs}"
        hash(tuple(attrs.items()))
        expected = abstract_eval[op](*(x.aval for x in inputs), **attrs)
        actual = reference[op](*(x.array for x in inputs), **attrs)
        results = tuple(ArrayValue(x, op, inputs, attrs) for x in (actual if op.multiple_results else (actual,)))
        for result, value in zip(results, expected if op.multiple_results else (expected,), strict=True):
            assert result.aval is value, f"[{op.name}] infer says {value}, reference {result.aval}"
            result.siblings = results if op.multiple_results else ()
        return results if op.multiple_results else results[0]

    def lift(self, array: Any, dtype: DType) -> ArrayValue:
        return ArrayValue(np.asarray(array).astype(dtype.numpy))


def grad(out: ArrayValue, *wrt: ArrayValue) -> list[ArrayValue]:
    """The gradients of the sum of ``out``, by the rules of table vjp."""
    order: list[ArrayValue] = []
    visited: set[int] = set()

    def visit(v: ArrayValue) -> None:
        if id(v) not in visited:
            visited.add(id(v))
            for x in v.inputs:
                visit(x)
            order.append(v)

    visit(out)
    cotangents: dict[int, ArrayValue] = {id(out): ArrayValue(np.ones_like(out.array))}
    place = {id(v): i for i, v in enumerate(order)}
    for v in reversed(order):
        g = _cotangent(v, cotangents)
        if v.op is None or g is None or any(place.get(id(x), len(order)) < place[id(v)] for x in v.siblings):
            continue
        more = {"needs_grad": (True,) * len(v.inputs)} if v.siblings else {}
        for x, entry in zip(v.inputs, vjp[v.op](g, v.siblings or v, *v.inputs, **more, **v.attrs), strict=True):
            if entry is None or not x.dtype.is_float:
                continue
            c = entry() if callable(entry) else entry
            assert c.aval is x.aval, f"[{v.op.name}] cotangent {c.aval} of input {x.aval}"
            known = cotangents.get(id(x))
            cotangents[id(x)] = c if known is None else ArrayValue(known.array + c.array)
    return [cotangents.get(id(w), ArrayValue(np.zeros_like(w.array))) for w in wrt]


def _cotangent(v: ArrayValue, cotangents: dict[int, ArrayValue]) -> Any:
    """Return the argument of a rule of table vjp for ``v``, or for all results of its op; None if there is none."""
    if not v.siblings:
        return cotangents.get(id(v))
    actual = tuple(cotangents.get(id(x)) for x in v.siblings)
    return None if all(c is None for c in actual) else actual


def listed(op: Op, result: Any) -> list[Any]:
    """The results of an op, one or several."""
    return list(result) if op.multiple_results else [result]


def flat(result: Any) -> Any:
    """The floating results of an op as one tensor."""
    if not isinstance(result, tuple):
        return result
    floats = [x for x in result if x.dtype.is_float]
    return floats[0] if len(floats) == 1 else ops.concat([ops.reshape(x, (-1,)) for x in floats])


def numeric_grad(function: Any, arrays: list[Any], i: int, step: float = 1e-6) -> Any:
    """Central differences of sum(function(*arrays)) in arrays[i], in float64."""
    result = np.zeros(arrays[i].shape)
    for place in np.ndindex(arrays[i].shape):
        ends = []
        for h in (step, -step):
            moved = [a.copy() for a in arrays]
            moved[i][place] += h
            ends.append(float(np.sum(function(*(ArrayValue(a) for a in moved)).array)))
        result[place] = (ends[0] - ends[1]) / (2 * step)
    return result


def check_grad(function: Any, *arrays: Any, rtol: float = 1e-5, atol: float = 1e-7) -> None:
    """The gradients by rule and by differences agree, for a weighted sum of the result (weights catch permutations)."""
    inputs = [np.array(a) for a in arrays]
    shape = function(*(ArrayValue(a) for a in inputs)).shape
    weights = ArrayValue(np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape) + 0.5)

    def weighted(*values: Any) -> Any:
        return ops.multiply(function(*values), weights)

    values = [ArrayValue(a) for a in inputs]
    floats = [i for i, a in enumerate(inputs) if a.dtype == np.float64]
    actual = grad(weighted(*values), *(values[i] for i in floats))
    for i, g in zip(floats, actual, strict=True):
        np.testing.assert_allclose(g.array, numeric_grad(weighted, inputs, i), rtol=rtol, atol=atol)
