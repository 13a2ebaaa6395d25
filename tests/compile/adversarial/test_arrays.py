"""Tensors, NumPy arrays and scalars as arguments, in closures and containers, changed between calls."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, Cases, call, tensor

CASES = Cases()
case = CASES.case


def warm(*args: Any, **kwargs: Any) -> list[Any]:
    return [call(*args, **kwargs)] * 3


def x() -> rn.Tensor:
    return tensor(1.0, -2.0, 3.0, 0.5)


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


# NumPy ----------------------------------------------------------------------------------------------------------------


@case
def array_argument():
    a = array(1, 2, 3, 4)
    return (lambda a: rn.sin(rn.asarray(a)) * 2), [*warm(a), lambda: a.fill(3), *warm(a), *warm(a[::-1]), *warm(a[:2])]


@case
def array_argument_and_tensor():
    a = array(1, 2, 3, 4)
    return (lambda x, a: x * a + a), [
        *warm(x(), a),
        lambda: a.__setitem__(0, 9),
        *warm(x(), a),
        *warm(x(), a.astype(np.float64)),
        *warm(x(), a[::-1]),
    ]


@case
def array_in_a_closure():
    a = array(1, 2, 3, 4)
    return (lambda x: x * a), [*warm(x()), lambda: a.__setitem__(0, 9), *warm(x())]


@case
def view_in_a_closure():
    a = array(1, 2, 3, 4, 5, 6, 7, 8)
    view = a[::2]
    return (lambda x: x * view), [*warm(x()), lambda: a.__setitem__(2, 9), *warm(x())]


@case
def array_in_a_closure_computed():
    a = array(1, 2, 3, 4)
    return (lambda x: x * (a * 2 + 1).astype(np.float32)), [*warm(x()), lambda: a.__setitem__(0, 9), *warm(x())]


@case
def view_made_inside():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    return (lambda x: x * a[1] + a.T[:, 0]), [*warm(x()), lambda: a.__setitem__((1, 1), 9), *warm(x())]


@case
def array_dtype_and_shape():
    holder = [array(1, 2, 3, 4)]
    return (lambda x: x * holder[0].ndim if holder[0].dtype == np.float32 else x), [
        *warm(x()),
        lambda: holder.__setitem__(0, np.ones((2, 2))),
        *warm(x()),
    ]


@case
def array_flags():
    holder = [np.ones((3, 4), np.float32)]
    return (lambda x: x * 2 if holder[0].flags.c_contiguous else x), [
        *warm(x()),
        lambda: holder.__setitem__(0, np.ones((4, 3), np.float32).T),
        *warm(x()),
    ]


@case
def array_strides():
    holder = [np.ones((3, 4), np.float32)]
    return (lambda x: x * holder[0].strides[0]), [
        *warm(x()),
        lambda: holder.__setitem__(0, np.ones((4, 3), np.float32).T),
        *warm(x()),
    ]


@case
def array_writeable():
    a = array(1, 2)
    return (lambda x: x * 2 if a.flags.writeable else x), [
        *warm(x()),
        lambda: setattr(a.flags, "writeable", False),
        *warm(x()),
    ]


@case(eager="memory of an array")
def array_base():
    a = array(1, 2, 3, 4)
    holder = [a[:2]]
    return (lambda x: x * 2 if holder[0].base is a else x), [
        *warm(x()),
        lambda: holder.__setitem__(0, array(1, 2)),
        *warm(x()),
    ]


@case
def array_identity():
    a, b = array(1, 2, 3, 4), array(1, 2, 3, 4)
    return (lambda p, q: rn.asarray(p) * 2 if p is q else rn.asarray(p) * 3), [*warm(a, a), *warm(a, b), *warm(b, b)]


@case
def array_of_objects():
    a = np.array([2.0, tensor(1, 2, 3, 4)], dtype=object)
    return (lambda x: x * a[0] + a[1]), [*warm(x()), lambda: a.__setitem__(0, 3.0), *warm(x())]


@case
def array_subclass():
    class Named(np.ndarray):
        gain = 2.0

    a = array(1, 2, 3, 4).view(Named)
    return (lambda x: x * a.gain), [*warm(x()), lambda: setattr(a, "gain", 3.0), *warm(x())]


@case
def structured_array():
    a = np.array([(1.0, 2)], dtype=[("scale", "f4"), ("n", "i4")])
    return (lambda x: x * float(a["scale"][0])), [*warm(x()), lambda: a["scale"].fill(4), *warm(x())]


@case
def scalar_arguments():
    return (lambda x, s: x * s), [
        *warm(x(), np.float32(2)),
        *warm(x(), np.float64(2)),
        *warm(x(), np.float32(3)),
        *warm(x(), np.int64(3)),
        *warm(x(), np.bool_(True)),
        *warm(x(), np.float32(-0.0)),
    ]


@case
def scalar_in_a_closure():
    holder = {"s": np.float32(2)}
    return (lambda x: x * holder["s"]), [
        *warm(x()),
        lambda: holder.update(s=np.float32(3)),
        *warm(x()),
        lambda: holder.update(s=np.float64(3)),
        *warm(x()),
    ]


@case
def zero_dimensional_array():
    s = np.array(2.0, np.float32)
    return (lambda x: x * s if s > 1 else x), [*warm(x()), lambda: s.fill(3), *warm(x()), lambda: s.fill(0), *warm(x())]


@case
def array_in_a_dict_argument():
    a = array(1, 2, 3, 4)
    return (lambda b: rn.asarray(b["x"]) * b["y"][0]), [
        *warm({"x": a, "y": [a]}),
        lambda: a.fill(2),
        *warm({"x": a, "y": [a]}),
        *warm({"x": a, "y": [a + 1]}),
    ]


@case
def array_loop():
    a = np.array([1, 3])
    return (lambda x: sum((x * int(n) for n in a), start=x)), [*warm(x()), lambda: a.fill(2), *warm(x())]


@case
def array_as_index():
    i = np.array([0, 2])
    return (lambda x: x[i] * 2), [*warm(x()), lambda: i.__setitem__(1, 3), *warm(x())]


@case
def array_boolean_mask():
    m = np.array([True, False, True, True])
    return (lambda x: rn.where(rn.asarray(m), x, 0.0)), [*warm(x()), lambda: m.__setitem__(1, True), *warm(x())]


@case
def boolean_argument():
    m = np.array([True, False, True, True])
    return (lambda x, m: rn.where(m, x, 0.0)), [*warm(x(), m), lambda: m.__setitem__(1, True), *warm(x(), m)]


@case
def array_to_list():
    a = np.array([1.0, 2.0])
    return (lambda x: x * max(a.tolist())), [*warm(x()), lambda: a.fill(7), *warm(x())]


@case(eager="view of something")
def memoryview_of_an_array():
    a = array(1, 2, 3, 4)
    m = memoryview(a)
    return (lambda x: x * m[0]), [*warm(x()), lambda: a.fill(7), *warm(x())]


@case
def array_iterator():
    a = np.arange(4)
    return (lambda x: x + sum(int(v) for v in np.nditer(a))), [*warm(x()), lambda: a.fill(7), *warm(x())]


@case(eager="from outside")
def array_written_inside():
    a = array(0, 0, 0, 0)

    def f(x):
        a[0] = a[0] + 1
        return x * float(a[0])

    return f, [*warm(x())], lambda: a


@case(eager="changed in place")
def array_written_through_a_view():
    a = array(0, 0, 0, 0)

    def f(x):
        v = a[1:]
        v += 1
        return x * float(a[1])

    return f, [*warm(x())], lambda: a


@case
def array_made_inside():
    def f(x):
        a = np.zeros(4, np.float32)
        a[1:3] = 2
        a += 1
        return x * a, a

    return f, warm(x())


@case
def numpy_dtypes_as_arguments():
    return (lambda x, d: x.astype(d)), [
        *warm(x(), rn.float64),
        *warm(x(), rn.int32),
        *warm(x(), np.float16),
        *warm(x(), np.dtype("float64")),
        *warm(x(), "float32"),
    ]


@case
def numpy_random_state_unused():
    g = np.random.default_rng(1)
    return (lambda x, g: x * 2), [*warm(x(), g), lambda: g.normal(), *warm(x(), g)]


# Tensors --------------------------------------------------------------------------------------------------------------


@case
def tensor_in_a_closure():
    a = tensor(1, 2, 3, 4)

    def set_it() -> None:
        nonlocal a
        a = tensor(5, 6, 7, 8)

    def widen() -> None:
        nonlocal a
        a = rn.ones((2, 4))

    return (lambda x: x * a), [*warm(x()), set_it, *warm(x()), lambda: a.mul_(2), *warm(x()), widen, *warm(x())]


SCALE = tensor(1, 2, 3, 4)


@case
def tensor_in_a_global():
    before = SCALE
    return (lambda x: x * SCALE), [
        *warm(x()),
        lambda: globals().update(SCALE=tensor(4, 4, 4, 4)),
        *warm(x()),
        lambda: globals().update(SCALE=2.0),
        *warm(x()),
        lambda: globals().update(SCALE=before),
    ]


@case
def tensors_in_a_list():
    parts = [tensor(1, 2), tensor(3, 4)]
    return (lambda x: sum(p * x[0] for p in parts)), [
        *warm(x()),
        lambda: parts.append(tensor(1, 1)),
        *warm(x()),
        lambda: parts.__setitem__(0, tensor(7, 7)),
        *warm(x()),
        parts.pop,
        *warm(x()),
    ]


@case
def tensor_written_in_place():
    a = tensor(1, 2, 3, 4)
    return (lambda x: x * a), [
        *warm(x()),
        lambda: a.__setitem__(0, 9.0),
        *warm(x()),
        lambda: a.add_(1),
        *warm(x()),
        lambda: a.copy_(tensor(0, 0, 1, 1)),
        *warm(x()),
    ]


@case
def argument_written_in_place_outside():
    a = tensor(1, 2, 3, 4)
    return (lambda a: a * 2), [*warm(a), lambda: a.add_(1), *warm(a)]


@case
def argument_written_in_place_inside():
    def f(x):
        x.add_(1)
        x[0] = 5.0
        return x * 2

    a = tensor(1, 2, 3, 4)
    return f, [*warm(a)], lambda: a


@case
def captured_tensor_written_inside():
    a = tensor(0, 0, 0, 0)

    def f(x):
        a.add_(x)
        return a * 2

    return f, [*warm(x())], lambda: a


@case
def tensor_rebound_in_a_cell():
    total = tensor(0, 0, 0, 0)

    def f(x):
        nonlocal total
        total = total + x
        return total

    return f, [*warm(x())], lambda: total


@case
def tensor_identity():
    a, b = x(), x()
    return (lambda p, q: p * 2 if p is q else p * 3 + q), [*warm(a, a), *warm(a, b), *warm(b, a), *warm(b, b)]


@case
def tensor_identity_with_captured():
    a = x()
    return (lambda p: p * 2 if p is a else p * 3), [*warm(a), *warm(x()), *warm(a)]


@case
def tensor_in_a_list_by_identity():
    a = x()
    saved = [a]
    return (lambda p: p * 2 if any(p is k for k in saved) else p * 3), [
        *warm(a),
        *warm(x()),
        lambda: saved.clear(),
        *warm(a),
    ]


@case
def ids_in_a_dict():
    a, b = x(), x()
    known = {id(a): 2.0}
    return (lambda p: p * known.get(id(p), 1.0)), [*warm(a), *warm(b), lambda: known.update({id(b): 5.0}), *warm(b)]


@case
def requires_grad_of_an_argument():
    a = rn.tensor([1.0, 2.0], requires_grad=True)
    return (lambda p: p * 2 if p.requires_grad else p * 3), [
        *warm(a),
        *warm(tensor(1, 2)),
        lambda: a.requires_grad_(False),
        *warm(a),
    ]


@case
def requires_grad_of_a_captured():
    a = rn.tensor([1.0, 2.0])
    return (lambda p: p * a), [*warm(tensor(1, 2)), lambda: a.requires_grad_(True), *warm(tensor(1, 2))]


@case
def gradient_of_an_argument():
    def f(p):
        with rn.enable_grad():
            (p * p).sum().backward()
        return p.grad * 2

    a = rn.tensor([1.0, 2.0], requires_grad=True)
    return f, [*warm(a), lambda: setattr(a, "grad", None), *warm(a)], lambda: a


@case
def gradient_of_a_tensor_read():
    a = rn.tensor([1.0, 2.0], requires_grad=True)
    with rn.enable_grad():
        (a * a).sum().backward()
    return (lambda p: p * (a.grad if a.grad is not None else 1.0)), [
        *warm(tensor(1, 2)),
        lambda: setattr(a, "grad", tensor(5, 5)),
        *warm(tensor(1, 2)),
        lambda: setattr(a, "grad", None),
        *warm(tensor(1, 2)),
    ]


@case
def variable_in_a_closure():
    v = rn.Variable(np.ones(4, np.float32), name="v")
    return (lambda p: p * v), [*warm(x()), lambda: v.assign(array(1, 2, 3, 4)), *warm(x())], lambda: v


@case
def variable_in_a_list_replaced():
    vs = [rn.Variable(np.ones(4, np.float32), name="v")]
    return (lambda p: p * vs[0]), [
        *warm(x()),
        lambda: vs.__setitem__(0, rn.Variable(np.full(4, 2, np.float32), name="w")),
        *warm(x()),
        lambda: vs.__setitem__(0, tensor(1, 2, 3, 4)),
        *warm(x()),
    ]


@case
def variable_updated_inside():
    v = rn.Variable(np.zeros(4, np.float32), name="v")

    def f(p):
        v.assign(v * 0.5 + p)
        return v.read() * 2

    return f, [*warm(x()), lambda: v.assign(array(9, 9, 9, 9)), *warm(x())], lambda: v


@case
def variables_swapped():
    a, b = rn.Variable(np.zeros(4, np.float32), name="a"), rn.Variable(np.ones(4, np.float32), name="b")

    def f(a, b, p):
        a.assign(b + p)
        b.assign(a * 2)
        return a.read()

    return f, [*warm(a, b, x()), *warm(b, a, x()), *warm(a, a, x())], lambda: (a, b)


@case
def variable_name_read():
    v = rn.Variable(np.ones(4, np.float32), name="v")
    return (lambda p: p * 2 if v.name == "v" else p * 3), [*warm(x()), lambda: setattr(v, "name", "w"), *warm(x())]


@case
def weak_scalars():
    a = rn.asarray(2.0)
    return (lambda p, s: p * s), [
        *warm(rn.asarray(np.ones(2, np.float16)), a),
        *warm(rn.asarray(np.ones(2, np.float16)), rn.asarray(np.float64(2))),
    ]


@case
def empty_and_scalar_tensors():
    return (lambda p: (p.sum(), p.shape, p.ndim, len(p.shape))), [
        *warm(rn.zeros((0, 3))),
        *warm(rn.zeros(())),
        *warm(rn.zeros((2, 0))),
    ]


@case
def transposed_and_sliced_arguments():
    a = rn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    return (lambda p: p @ p.T), [*warm(a), *warm(a[:, :3]), *warm(a.T), *warm(a[1:]), *warm(a[::2])]


@case
def result_is_an_argument():
    a = x()
    return (lambda p: (p, [p], {"p": p})), [*warm(a)], lambda: a


@case
def result_fed_back():
    last: list[Any] = [x()]

    def f(p):
        last[0] = last[0] * 0.5 + p
        return last[0]

    return f, [*warm(x()), lambda: last.__setitem__(0, tensor(0, 0, 0, 0)), *warm(x())], lambda: last


# Structures -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Batch:
    x: Any
    scale: float = 2.0
    name: str = "train"

    def scaled(self) -> Any:
        return self.x * self.scale


class Pair(NamedTuple):
    a: Any
    b: Any

    @property
    def total(self) -> Any:
        return self.a + self.b


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@case
def dataclass_argument():
    b = Batch(x())
    return (lambda b: b.scaled() + len(b.name)), [
        *warm(b),
        lambda: setattr(b, "scale", 4.0),
        *warm(b),
        *warm(Batch(x(), 5.0, "test")),
    ]


@case
def dataclass_result():
    return (lambda b: dataclasses.replace(b, x=b.x * 2, name=b.name + "!")), [
        *warm(Batch(x())),
        *warm(Batch(x(), 3.0, "v")),
    ]


@case
def named_tuple_both_ways():
    return (lambda p: Pair(p.total, p.a - p.b)._replace(b=p.b)), [*warm(Pair(x(), x())), *warm(Pair(x(), 2.0))]


@case
def enum_argument():
    return (lambda p, m: (p * 2, m) if m is Mode.FAST else (p * 3, m.value)), [
        *warm(x(), Mode.FAST),
        *warm(x(), Mode.SLOW),
    ]


@case
def match_on_config():
    def f(p, config):
        match config:
            case {"kind": "scale", "by": by}:
                return p * by
            case {"kind": "shift", **rest}:
                return p + len(rest)
            case Batch(scale=s):
                return p - s
            case [first, *others]:
                return p * first + len(others)
            case _:
                return p

    config = {"kind": "scale", "by": 2.0}
    return f, [
        *warm(x(), config),
        lambda: config.update(by=3.0),
        *warm(x(), config),
        lambda: config.update(kind="shift"),
        *warm(x(), config),
        *warm(x(), Batch(None)),
        *warm(x(), [2.0, 1, 1]),
        *warm(x(), None),
    ]


@case
def floats_that_vary():
    return (lambda p, s: p * s), [
        call(x(), s) for s in (0.5, 0.25, 0.125, 2, 2.0, True, -0.0, float("nan"), float("inf"))
    ]


@case
def floats_looked_at():
    def f(p, s):
        return p * s if s > 0.3 else p + int(s * 10) + (type(s) is float)

    return f, [call(x(), s) for s in (0.5, 0.25, 0.5, 0.25, 1)]


@case
def floats_formatted():
    return (lambda p, s: (p * s, f"{s:.2f}", str(s), round(s, 1), [s, {s: s}])), [
        call(x(), s) for s in (0.5, 0.25, 0.5)
    ]


@case
def float_returned():
    return (lambda p, s: (s, s * 2, -s, p.shape[0] * s, type(s).__name__, s.is_integer())), [
        call(x(), s) for s in (0.5, 0.25, 2.0)
    ]


@case
def float_in_containers():
    return (lambda p, o: p * o["lr"] + o["b"][1]), [
        call(x(), {"lr": s, "b": (0.9, s)}) for s in (0.5, 0.25, 0.5, 0.125)
    ]


@case
def integers_strings_none():
    def f(p, n=2, mode="sum", axis=None, *, keep=False):
        y = getattr(p.reshape(2, 2) * n, mode)(axis=axis, keepdims=keep)
        return y

    return f, [
        call(x()),
        call(x(), 3),
        call(x(), 3, "mean"),
        call(x(), axis=0),
        call(x(), axis=0, keep=True),
        call(x(), 2, keep=True),
        call(x()),
    ]


@case
def keyword_order():
    def f(**kwargs):
        y = 0.0
        for name, value in kwargs.items():
            y = y * 2 + value * len(name)
        return y

    return f, [*warm(a=x(), bb=x() * 3), *warm(bb=x() * 3, a=x())]


@case
def star_arguments():
    return (lambda *xs, **named: sum(xs) + sum(named.values()) + len(xs)), [
        *warm(x()),
        *warm(x(), x()),
        *warm(x(), k=x()),
        *warm(x(), k=2.0),
    ]


@case
def shapes_everywhere():
    def f(p):
        n, m = p.shape
        q = p.reshape(m, n) if n < m else p
        return q / (n * m) + q.shape[0] // 2, p.shape, f"{p.shape}", p.shape[-1] ** 0.5, tuple(reversed(p.shape))

    return f, [*warm(rn.ones((2, 3))), *warm(rn.ones((3, 2))), *warm(rn.ones((4, 4)))]


@case
def early_return_by_shape():
    return (lambda p: p if p.shape[0] < 3 else p[:3] * 2), [*warm(x()), *warm(x()[:2])]


@case
def dtype_comparisons():
    return (lambda p: p * 2 if p.dtype == rn.float32 else p.astype(rn.float32)), [
        *warm(x()),
        *warm(x().astype(rn.float64)),
        *warm(x().astype(rn.int32)),
    ]


@case
def device_strings():
    return (lambda p: p.to("cpu") * 2 if str(p.device) == "cpu" else p), [*warm(x())]


@case
def reductions_of_python():
    return (lambda xs: (functools.reduce(lambda a, b: a * 2 + b, xs), sum(xs), list(itertools.accumulate(xs)))), [
        *warm([x(), x()]),
        *warm([x(), x(), x()]),
    ]


@case
def sorted_by_key():
    return (lambda xs: rn.concat(sorted(xs, key=lambda t: -t.shape[0]))), [
        *warm([x()[:1], x(), x()[:2]]),
        *warm([x(), x()[:2]]),
    ]


@case
def zip_map_filter():
    return (
        lambda xs, ws: list(
            map(lambda t: t * 2, filter(lambda t: t.ndim == 1, (a * w for a, w in zip(xs, ws, strict=False))))
        )
    ), [*warm([x(), x()], [1.0, 2.0]), *warm([x(), x()], [x(), rn.ones((4, 4))])]


@case
def deque_of_tensors():
    history: Any = collections.deque(maxlen=3)

    def f(p):
        history.append(p * 2)
        return sum(history)

    return f, [*warm(x()), *warm(x()), history.clear, *warm(x())], lambda: history


@case
def user_dict_and_defaultdict():
    table: Any = collections.UserDict(scale=2.0)
    counts: Any = collections.defaultdict(lambda: 3.0)
    return (
        (lambda p: p * table["scale"] + counts["new"]),
        [*warm(x()), lambda: table.update(scale=5.0), *warm(x()), lambda: counts.update(new=1.0), *warm(x())],
        lambda: (dict(table), dict(counts)),
    )


@case
def set_of_names():
    names = {"a", "b"}
    return (lambda d: sum(v for k, v in d.items() if k in names)), [
        *warm({"a": x(), "c": x()}),
        lambda: names.add("c"),
        *warm({"a": x(), "c": x()}),
    ]


@case
def nested_argument_identity():
    a = [x()]
    return (lambda p, q: p[0] * 2 if p is q else p[0] + q[0]), [*warm(a, a), *warm(a, [x()]), *warm([x()], a)]


@case
def subclass_of_list_and_dict():
    class Rows(list[Any]):
        factor = 2.0

        def total(self) -> Any:
            return sum(self) * self.factor

    r = Rows([x(), x()])
    return (lambda r: r.total()), [
        *warm(r),
        lambda: setattr(r, "factor", 3.0),
        *warm(r),
        lambda: r.append(x()),
        *warm(r),
    ]


@pytest.mark.parametrize("one", CASES)
def test_arrays(one: Case) -> None:
    one.run()
