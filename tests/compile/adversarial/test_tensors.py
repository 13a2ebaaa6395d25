"""Tensors as arguments, in closures and in containers, changed between calls."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize("one", CASES)
def test_as_python(one: Case) -> None:
    one.run()
