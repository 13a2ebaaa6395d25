"""NumPy arrays among the arguments and on objects: NumPy computes with them what it computes in eager mode, at each call.

A row of a table is a function of a tensor and an array. Arrays of each dtype come as arguments, twice each, and lie on
an object that is changed in between; results, arrays and dtypes are those of eager calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.worlds import call, story, tensor

DTYPES: Final = (np.float64, np.float32, np.uint8, np.int64)


def _last(*values: Any) -> Any:
    return values[-1]


def _rows_written(x: Any, a: Any) -> Any:
    for row in a:
        row[0] = 8
    return x * a[0, 1]


def _view_written(x: Any, a: Any) -> Any:
    b = a.reshape(-1)
    b[0] = 4
    return x * b[1]


def _copy_written(x: Any, a: Any) -> Any:
    b = a * 2
    b[0] = 4
    b += 1
    return x * b[0, 0] + rn.asarray(b.astype(np.float32))[0]


def _copy_read_first(x: Any, a: Any) -> Any:
    b = a.astype(np.float32)
    y = x + rn.asarray(b)[0]
    b[0] = 4
    return y + rn.asarray(b)[0]


def _filled(x: Any, a: Any) -> Any:
    b = np.empty_like(a)
    b[:] = a
    return x + b[0].sum()


def _shape_set(x: Any, a: Any) -> Any:
    a.shape = (3, 2)
    return x


READS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "mean": lambda x, a: x * a.mean(),
    "normalized": lambda x, a: rn.asarray((a - a.mean()) / (a.std() + 1e-8)),
    "scaled": lambda x, a: rn.asarray(a / 255.0),
    "sum": lambda x, a: x + np.sum(a),
    "item": lambda x, a: x * a[0, 1],
    "float": lambda x, a: x * float(a[0, 1]) + a.item(2),
    "int": lambda x, a: x[: int(a[0, 1])] * int(a[0, 2]),
    "cast": lambda x, a: x + a.astype("float32")[0],
    "iterated": lambda x, a: [x * v for v in a[0]],
    "rows": lambda x, a: [x * row.mean() for row in a],
    "python": lambda x, a: x * sum(a[0]) + max(a[1]) + len(a),
    "lists": lambda x, a: x * a.tolist()[0][1],
    "kinds": lambda x, a: (x, isinstance(a, np.ndarray), type(a).__name__, str(a.dtype), a.dtype.kind, a.shape),
    "masks": lambda x, a: (x[a[0] > 1], rn.where(rn.asarray(a[0] > 1), x, -x), rn.asarray(a[a > 1])),
    "positions": lambda x, a: (x[np.flatnonzero(a[0] > 0)], x[int(a[0].argmax())]),
    "operators": lambda x, a: (x + a[0], a[0] * x, x - a[1], a[1] / x),
    "returned": lambda x, a: (x, a, a.copy(), a * 2, a.mean(), a.T),
    "decisions": lambda x, a: x * (2 if a[0, 0] > 1 else 3) + bool(a.any()),
    "keys": lambda x, a: x * {a[0, 0]: 2.0}[a[0, 0]],
    "text": lambda x, a: (x, f"{a[0, 1]:.1f}", str(a[0])),
    "functions": lambda x, a: (np.clip(a, 0, 2), np.stack([a, a]), np.split(a, 2), np.unique(a > 2), np.argsort(a[0])),
}
WRITES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "item": lambda x, a: _last(operator.setitem(a, 0, 7), x),
    "item by its method": lambda x, a: _last(a.__setitem__(0, 7), x),
    "in place": lambda x, a: _last(operator.iadd(a, 1), x),
    "in place by its method": lambda x, a: _last(a.__iadd__(1), x),
    "at": lambda x, a: _last(np.add.at(a, 0, 1), x),
    "out by place": lambda x, a: _last(np.add(a, 1, a), x),
    "out by name": lambda x, a: _last(np.add(a, 1, out=a), x),
    "out in a tuple": lambda x, a: _last(np.add(a, 1, out=(a,)), x),
    "out of a sum": lambda x, a: _last(np.sum(a, 1, None, a[:, 0]), x),
    "sorted": lambda x, a: _last(np.ndarray.sort(a), x),
    "copied to": lambda x, a: _last(np.copyto(dst=a, src=2), x),
    "flat": lambda x, a: _last(operator.setitem(a.flat, 0, 5), x),
    "rows": _rows_written,
    "views": _view_written,
    "a copy": _copy_written,
    "a copy that was read": _copy_read_first,
    "an empty one": _filled,
    "shape": _shape_set,
}


class Holder:
    def __init__(self, dtype: Any) -> None:
        self.a = (np.arange(6) + 1).astype(dtype).reshape(2, 3)


def _outcomes(function: Callable[[Any, Any], Any], compile: Callable[[Any], Any], dtype: Any) -> Any:
    def make() -> Any:
        holder = Holder(dtype)
        arrays = [(np.arange(6) + start).astype(dtype).reshape(2, 3) for start in (0, 0, 3)]

        def one(x: Any, *a: Any) -> Any:
            return function(x, a[0] if a else holder.a)

        def changed() -> None:
            holder.a[0, 0] = 100

        x = tensor(1.0, -2.0, 3.0)
        steps = [call(x, a) for a in arrays] + [call(x), call(x), changed, call(x), call(x)]
        return one, steps, lambda: holder.a

    return story(make, compile)


@pytest.mark.parametrize("name", READS)
@pytest.mark.filterwarnings("ignore::runnel.core.errors.CaptureWarning")
def test_reads(name: str) -> None:
    for dtype in DTYPES:
        eager, _ = _outcomes(READS[name], lambda function: function, dtype)
        compiled, _ = _outcomes(READS[name], rn.compile, dtype)
        assert [one.seen for one in compiled] == [one.seen for one in eager], dtype
        assert not any(one.told for one in compiled)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy from 2.5 on
@pytest.mark.filterwarnings("ignore::runnel.core.errors.CaptureWarning")
def test_writes(name: str) -> None:
    eager, _ = _outcomes(WRITES[name], lambda function: function, np.float64)
    compiled, _ = _outcomes(WRITES[name], rn.compile, np.float64)
    assert [one.seen for one in compiled] == [one.seen for one in eager]


@pytest.mark.parametrize("name", ["mean", "normalized", "scaled", "item", "float", "cast", "rows", "operators"])
def test_other_values_are_no_reason_to_trace(name: str) -> None:
    function = rn.compile(READS[name])
    x = tensor(1.0, -2.0, 3.0)
    for start in range(8):
        function(x, (np.arange(6.0) + start).reshape(2, 3))
    assert function.statistics["traces"] == 1, function.retraces
