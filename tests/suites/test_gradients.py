"""First and second derivatives of native tensors in float64 against central differences along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.core.dispatch import apply
from runnel.core.dtypes import float64
from runnel.core.tables import Op
from runnel.tensor import tape
from tests.ops.records import RECORDS, sample
from tests.ops.values import flat
from tests.suites.functions import FUNCTIONS
from tests.suites.inputs import NAMES
from tests.suites.test_eager import avals_of

Array = np.ndarray[Any, Any]
STEP = 1e-5


def leaf(array: Array) -> rn.Tensor:
    tensor = rn.asarray(array)
    return tensor.requires_grad_() if tensor.dtype is rn.float64 else tensor


def weighted(function: Callable[..., Any], inputs: Sequence[rn.Tensor]) -> rn.Tensor:
    """The sum of the results, weighted so that no two elements could be exchanged."""
    out = function(*inputs)
    weights = np.cos(np.arange(out.size, dtype=np.float64)).reshape(out.shape) + 0.5
    return (out * rn.asarray(weights)).sum()


def slope(function: Callable[..., Any], arrays: Sequence[Array], directions: Sequence[Array], *, graph: bool) -> Any:
    """The derivative of the weighted sum along ``directions``, as a tensor, and the leaves."""
    leaves = [leaf(a) for a in arrays]
    total = weighted(function, leaves)
    if not total.requires_grad:
        return rn.asarray(np.float64(0.0)), leaves
    seed = rn.asarray(np.float64(1.0))
    actual = tape.cotangents([total], [seed], create_graph=graph)
    result = rn.asarray(np.float64(0.0))
    for x, d in zip(leaves, directions, strict=True):
        if id(x) in actual:
            result = result + (actual[id(x)][1] * rn.asarray(d)).sum()
    return result, leaves


def difference(function: Callable[[Sequence[Array]], float], arrays: Sequence[Array], along: Sequence[Array]) -> float:
    def moved(step: float) -> float:
        return function([a + step * d if a.dtype == np.float64 else a for a, d in zip(arrays, along, strict=True)])

    return (8 * (moved(STEP) - moved(-STEP)) - (moved(2 * STEP) - moved(-2 * STEP))) / (12 * STEP)


def directions(arrays: Sequence[Array], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(a.shape) if a.dtype == np.float64 else np.zeros(a.shape) for a in arrays]


def check_derivatives(function: Callable[..., Any], arrays: Sequence[Array]) -> None:
    along, other = directions(arrays, seed=1), directions(arrays, seed=11)
    first, _ = slope(function, arrays, along, graph=False)
    expected = difference(lambda xs: weighted(function, [rn.asarray(x) for x in xs]).item(), arrays, along)
    np.testing.assert_allclose(first.item(), expected, rtol=1e-7, atol=1e-7)
    again, leaves = slope(function, arrays, along, graph=True)
    assert again.item() == first.item(), "a gradient is the same to the bit with and without create_graph"
    actual = 0.0
    if again.requires_grad:
        second = tape.cotangents([again], [rn.asarray(np.float64(1.0))])
        for x, d in zip(leaves, other, strict=True):
            if id(x) in second:
                actual += float((second[id(x)][1].numpy() * d).sum())
    expected = difference(lambda xs: slope(function, xs, along, graph=False)[0].item(), arrays, other)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


DIFFERENTIABLE = [
    n
    for n in NAMES
    if RECORDS[n].smooth
    and float64 in RECORDS[n].dtypes
    and avals_of(Op.registry[n], sample(RECORDS[n], RECORDS[n].cases[0], float64), RECORDS[n].cases[0][1])[
        -1
    ].dtype.is_float
]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_of_ops(name: str) -> None:
    op, record = Op.registry[name], RECORDS[name]
    for shapes, attrs in record.cases:
        arrays = sample(record, (shapes, attrs), float64, seed=21)
        if avals_of(op, arrays, attrs)[-1].size:
            check_derivatives(lambda *xs, attrs=attrs: flat(apply(op, *xs, **attrs)), arrays)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_functions(name: str) -> None:
    check_derivatives(*FUNCTIONS[name])


def gradient(function: Callable[..., Any], *values: Any) -> list[Any]:
    """The gradients of the sum of a function by its arguments, through ``backward()``."""
    leaves = [rn.tensor(np.array(v, np.float64), requires_grad=True) for v in values]
    function(*leaves).sum().backward()
    actual = [None if x.grad is None else x.grad.tolist() for x in leaves]
    return actual if len(actual) > 1 else actual[0]


NAN, INF = float("nan"), float("inf")

KINKS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "abs": (ops.abs, [0.0, -0.0, -2.0], [0.0, 0.0, -1.0]),
    "relu": (ops.relu, [0.0, -1.0, 2.0], [0.0, 0.0, 1.0]),
    "leaky_relu": (ops.leaky_relu, [0.0, 1.0], [0.01, 1.0]),
    "relu6": (ops.relu6, [0.0, 6.0, 3.0], [0.0, 0.0, 1.0]),
    "hardtanh": (ops.hardtanh, [1.0, -1.0, 0.5], [0.0, 0.0, 1.0]),
    "maximum": (lambda x: ops.maximum(x, 1.0), [1.0, 2.0, 0.0], [0.5, 1.0, 0.0]),
    "minimum": (lambda x: ops.minimum(x, 1.0), [1.0, 2.0, 0.0], [0.5, 0.0, 1.0]),
    "clip": (lambda x: ops.clip(x, 0.0, 1.0), [0.0, 1.0, 2.0, -1.0], [1.0, 1.0, 0.0, 0.0]),
    "max of ties": (ops.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    "min of ties": (lambda x: ops.min(x, 0), [1.0, 1.0, 3.0, 1.0], [1 / 3, 1 / 3, 0.0, 1 / 3]),
    "max of rows of ties": (lambda x: ops.max(x, 1), [[2.0, 2.0], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]),
    "norm of zeros": (ops.norm, [0.0, 0.0], [0.0, 0.0]),
    "prod with a zero": (ops.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "prod with zeros": (ops.prod, [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]),
    "sqrt at zero": (ops.sqrt, [0.0, 4.0], [INF, 0.25]),
    "sign": (lambda x: ops.sign(x) + x, [0.0, 2.0], [1.0, 1.0]),
    "floor": (lambda x: ops.floor(x) + x, [1.0, 2.5], [1.0, 1.0]),
    "pow 0 at zero": (lambda x: ops.pow(x, 0) + x, [0.0], [1.0]),
    "pow 1 at zero": (lambda x: ops.pow(x, 1), [0.0], [1.0]),
    "softplus": (ops.softplus, [0.0, 1000.0, -1000.0], [0.5, 1.0, 0.0]),
    "log_sigmoid": (ops.log_sigmoid, [1000.0, -1000.0], [0.0, 1.0]),
    "l1_loss": (lambda x: ops.l1_loss(x, rn.zeros(2, "float64"), reduction="sum"), [0.0, 2.0], [0.0, 1.0]),
    "where hides a NaN": (lambda x: ops.where(x > 0, x, 0.0), [NAN, 1.0], [0.0, 1.0]),
    "stop_gradient": (lambda x: ops.stop_gradient(x) * x, [3.0], [3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_gradients_at_kinks(name: str) -> None:
    function, at, expected = KINKS[name]
    assert gradient(function, at) == expected


def test_gradients_of_ties_between_two_tensors() -> None:
    assert gradient(ops.maximum, [1.0, 2.0], [1.0, 0.0]) == [[0.5, 1.0], [0.5, 0.0]]
    assert gradient(ops.pow, [0.0, 2.0], [2.0, 0.0]) == [[0.0, 0.0], [0.0, float(np.log(2.0))]]


def test_a_tensor_used_twice_and_accumulation() -> None:
    x = rn.tensor([1.0, 2.0], requires_grad=True)
    (x * x + x).sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [9.0, 15.0]


def test_gradients_of_gradients_by_backward() -> None:
    x = rn.tensor(2.0, "float64", requires_grad=True)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.backward(create_graph=True)
    second = x.grad
    x.grad = None
    second.backward()
    assert (first.item(), second.item(), x.grad.item()) == (12.0, 12.0, 6.0)
