"""NumPy arrays and scalars as arguments and in closures, changed between calls."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as rn
from tests.compile.adversarial.inputs import warm, x
from tests.compile.adversarial.worlds import Case, Cases, tensor

CASES = Cases()
case = CASES.case


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


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


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
