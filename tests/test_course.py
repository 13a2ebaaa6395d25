"""The modules of examples/course: the two assignments' facts, with data and programs of our own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.data.real import folder_of

COURSE = Path(__file__).resolve().parents[1] / "examples" / "course"
MODULES = ("autodiff", "tvm", "dlsys", "dlsys.autodiff", "dlsys.tvm_op", "mnist")


@pytest.fixture(scope="module")
def course() -> Iterator[Any]:
    """The modules, imported as a student's script would, by their short names."""
    before = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    sys.path.insert(0, str(COURSE))
    try:
        first, device, _, second, kernels, mnist = map(importlib.import_module, MODULES)
        yield SimpleNamespace(first=first, tvm=device, second=second, kernels=kernels, mnist=mnist)
    finally:
        sys.path.remove(str(COURSE))
        for name in MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(before)


# The first assignment -------------------------------------------------------------------------------------------------

A, B, C = (n * np.ones(3) for n in (2.0, 3.0, 5.0))
EXPRESSIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Callable[..., Any]]]] = {
    "itself": (lambda a, b, c: a, lambda a, b, c: a, [lambda a, b, c: 1 + 0 * a]),
    "constants": (lambda a, b, c: 5 + 3 * a, lambda a, b, c: 5 + 3 * a, [lambda a, b, c: 3 + 0 * a]),
    "sum": (lambda a, b, c: a + b, lambda a, b, c: a + b, [lambda a, b, c: 1 + 0 * a] * 2),
    "product": (lambda a, b, c: a * b, lambda a, b, c: a * b, [lambda a, b, c: b, lambda a, b, c: a]),
    "all": (
        lambda a, b, c: a + b * c * a,
        lambda a, b, c: a + b * c * a,
        [lambda a, b, c: 1 + b * c, lambda a, b, c: c * a, lambda a, b, c: b * a],
    ),
    "twice": (
        lambda a, b, c: (a * a + b + 3) * (a * a + b + 3) + b,
        lambda a, b, c: (a * a + b + 3) ** 2 + b,
        [lambda a, b, c: 4 * a * (a * a + b + 3), lambda a, b, c: 2 * (a * a + b + 3) + 1],
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_and_their_gradients(name: str, course: Any) -> None:
    ad = course.first
    expression, value, slopes = EXPRESSIONS[name]
    inputs = [ad.Variable(name=name) for name in "abc"]
    y = expression(*inputs)
    assert isinstance(y, ad.Node)
    results = ad.Executor([y, *ad.gradients(y, inputs[: len(slopes)])]).run(
        feed_dict=dict(zip(inputs, (A, B, C), strict=True))
    )
    for result, expected in zip(results, [value(A, B, C), *[slope(A, B, C) for slope in slopes]], strict=True):
        assert isinstance(result, np.ndarray) and result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)


def test_gradients_of_gradients_and_of_missing_ones(course: Any) -> None:
    ad = course.first
    a, b = ad.Variable("a"), ad.Variable("b")
    y = a * a + a * b
    by_a, by_b = ad.gradients(y, [a, b])
    second = ad.gradients(by_a, [a, b])
    (nothing,) = ad.gradients(by_b, [b])
    values = ad.Executor([y, by_a, by_b, *second, nothing]).run({a: A, b: B})
    expected = [A * A + A * B, 2 * A + B, A, 2 + 0 * A, 1 + 0 * A, 0 * A]
    for value, right in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, right)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_products_of_matrices(left: bool, right: bool, course: Any) -> None:
    ad = course.first
    a, b = np.arange(6).reshape(3, 2), np.arange(8).reshape(2, 4) - 3
    x, y = ad.Variable("x"), ad.Variable("y")
    product = ad.matmul_op(x, y, left, right)
    value, by_x, by_y = ad.Executor([product, *ad.gradients(product, [x, y])]).run(
        {x: a.T if left else a, y: b.T if right else b}
    )
    ones = np.ones((3, 4))
    np.testing.assert_array_equal(value, a @ b)
    np.testing.assert_array_equal(by_x, (ones @ b.T).T if left else ones @ b.T)
    np.testing.assert_array_equal(by_y, (a.T @ ones).T if right else a.T @ ones)


# The second assignment ------------------------------------------------------------------------------------------------


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64))
    return e / e.sum(1, keepdims=True)


def convolution(x: np.ndarray, f: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), f.shape[2:], axis=(2, 3))
    return np.einsum("ncyxrs,mcrs->nmyx", windows, f)


KERNELS: dict[str, tuple[str, tuple[Any, ...], list[tuple[int, ...]], Callable[..., np.ndarray]]] = {
    "sum": ("elemwise_add", ((50, 20),), [(50, 20)] * 2, lambda a, b: a + b),
    "product": ("elemwise_mul", ((50, 20),), [(50, 20)] * 2, lambda a, b: a * b),
    "sum with a number": ("elemwise_add_by_const", ((30, 7), 1.25), [(30, 7)], lambda a: a + 1.25),
    "product with a number": ("elemwise_mul_by_const", ((30, 7), 1.25), [(30, 7)], lambda a: a * 1.25),
    "relu": ("relu", ((30, 7),), [(30, 7)], lambda a: np.maximum(a, 0)),
    "gradient of relu": ("relu_gradient", ((30, 7),), [(30, 7)] * 2, lambda a, g: (a > 0) * g),
    "a @ b": ("matrix_mul", ((9, 5), False, (5, 8), False), [(9, 5), (5, 8)], lambda a, b: a @ b),
    "aᵀ @ b": ("matrix_mul", ((5, 9), True, (5, 8), False), [(5, 9), (5, 8)], lambda a, b: a.T @ b),
    "a @ bᵀ": ("matrix_mul", ((9, 5), False, (8, 5), True), [(9, 5), (8, 5)], lambda a, b: a @ b.T),
    "aᵀ @ bᵀ": ("matrix_mul", ((5, 9), True, (8, 5), True), [(5, 9), (8, 5)], lambda a, b: a.T @ b.T),
    "convolution": ("conv2d", ((2, 3, 8, 9), (4, 3, 5, 5)), [(2, 3, 8, 9), (4, 3, 5, 5)], convolution),
    "softmax": ("matrix_softmax", ((20, 30),), [(20, 30)], softmax),
    "cross-entropy": (
        "matrix_softmax_cross_entropy",
        ((20, 30),),
        [(20, 30)] * 2,
        lambda y, weights: np.mean(-np.sum(weights * np.log(softmax(y)), axis=1), keepdims=True),
    ),
    "sum over axis 0": (
        "reduce_sum_axis_zero",
        ((200, 6, 5),),
        [(200, 6, 5)],
        lambda a: a.sum(axis=0, dtype=np.float32),
    ),
    "broadcast": ("broadcast_to", ((4, 3), (5, 4, 3)), [(4, 3)], lambda a: np.broadcast_to(a, (5, 4, 3))),
    "step": ("sgd_update", ((30, 7), 0.1), [(30, 7)] * 2, lambda x, g: x - np.float32(0.1) * g),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, course: Any) -> None:
    make, arguments, shapes, expected = KERNELS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]
    right = expected(*arrays)
    nd = course.tvm.nd
    output = nd.array(np.full(right.shape, np.nan, np.float32), ctx=course.tvm.context("llvm", 0))
    kernel = getattr(course.kernels, f"make_{make}")(*arguments, "llvm", "llvm", make)
    kernel(*[nd.array(x) for x in arrays], output)
    assert output.asnumpy().dtype == np.float32
    np.testing.assert_allclose(output.asnumpy(), right, rtol=1e-5, atol=1e-6)


def test_rows_are_added_in_their_order(course: Any) -> None:
    """The same bits as NumPy's sum over axis 0, which adds row by row."""
    x = np.random.default_rng(0).uniform(-5, 5, (500, 40)).astype(np.float32)
    output = course.tvm.nd.array(np.zeros(40, np.float32))
    course.kernels.make_reduce_sum_axis_zero(x.shape, "llvm", "llvm", "sum")(course.tvm.nd.array(x), output)
    np.testing.assert_array_equal(output.asnumpy(), x.sum(axis=0))


def test_kernels_are_for_their_shapes_and_write_in_place(course: Any) -> None:
    nd = course.tvm.nd
    x, g = nd.array(np.ones(3, np.float32)), nd.array(np.full(3, 2, np.float32))
    update = course.kernels.make_sgd_update((3,), 0.5, "llvm", "llvm", "update")
    update(x, g, x)
    assert x.asnumpy().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="the kernel update is for float32 arrays of shapes"):
        update(x, nd.array(np.ones(4, np.float32)), x)
    with pytest.raises(ValueError, match="takes no values of shape"):
        x.copyfrom(np.ones(4))
    x.copyfrom(np.arange(3.0))
    assert x.asnumpy().tolist() == [0, 1, 2] and x.dtype == "float32"
    with pytest.raises(ValueError, match="'cuda'"):
        course.tvm.context("cuda", 0)
    assert course.tvm.context("llvm", 0) == course.tvm.cpu(0) != course.tvm.cpu(1)


def test_an_executor_trains_a_network(course: Any) -> None:
    ad, nd = course.second, course.tvm.nd
    rng = np.random.default_rng(0)
    x, labels, w, b = (ad.Variable(name=name) for name in ("x", "labels", "w", "b"))
    product = ad.matmul_op(x, w)
    scores = ad.relu_op(product + ad.broadcastto_op(b, product))
    loss = ad.softmaxcrossentropy_op(scores, labels)
    executor = ad.Executor([loss, *ad.gradients(loss, [w, b]), ad.softmax_op(scores)], ctx=course.tvm.cpu(0))
    for rows in (6, 4):
        values = [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 5), (5, 3), (3,))]
        truth = np.eye(3, dtype=np.float32)[rng.integers(0, 3, rows)]
        feeds = {node: nd.array(v) for node, v in zip((x, w, b, labels), (*values, truth), strict=True)}
        result = executor.run(feeds, convert_to_numpy_ret_vals=True)
        expected = by_hand(*values, truth)
        for value, right in zip(result, expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-6)
        assert result[0].shape == (1,)
        np.testing.assert_allclose(ad.softmax_func(values[0]), softmax(values[0]), rtol=1e-5)
        assert isinstance(executor.run(feeds)[0], course.tvm.ndarray.NDArray)
    with pytest.raises(ValueError, match="nodes are computed on"):
        ad.Executor([loss], ctx=course.tvm.cpu(1))


def by_hand(x: np.ndarray, w: np.ndarray, b: np.ndarray, truth: np.ndarray) -> list[np.ndarray]:
    """The loss, which is a mean; its gradients, which the course takes of the sum; and the probabilities."""
    hidden = x @ w + b
    shares = softmax(np.maximum(hidden, 0))
    slope = (shares - truth) * (hidden > 0)
    loss = np.mean(-np.sum(truth * np.log(shares), axis=1), keepdims=True)
    return [loss, x.T @ slope, slope.sum(axis=0), shares]


def test_missing_digits_are_reported_in_a_sentence(
    course: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["mnist.py", "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match="has no file"):
        course.mnist.main()


@pytest.mark.suite
@pytest.mark.usefixtures("usual_effort")
@pytest.mark.parametrize(("model", "epochs", "least"), [("logistic", 4, 0.91), ("layers", 2, 0.91)])
def test_digits_are_learned(model: str, epochs: int, least: float, course: Any) -> None:
    assert course.mnist.train(model, str(folder_of("mnist")), epochs) >= least
