"""NumPy's functions on tensors: the values are NumPy's, the results tensors; eager, compiled and on the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.compat import numpy_protocols
from runnel.core.errors import ArgumentError

FUNCTIONS: dict[str, Callable[..., list[Any]]] = {
    "reductions": lambda a, b, s: [
        np.all(a > 0), np.any(a > 1, axis=0), np.amax(a, 1), np.max(a, axis=0, keepdims=True), np.min(a), np.amin(a, 0),
        np.argmax(a), np.argmin(a, axis=1), np.count_nonzero(a > 0, axis=0), np.mean(a), np.mean(a, axis=(0, 1)),
        np.mean(a, 1, keepdims=True), np.sum(a, 0), np.prod(a, 1), np.std(a), np.std(a, 0, ddof=1), np.var(a, 1),
        np.nansum(a, 0), np.nanmean(a), np.quantile(a, 0.3), np.quantile(a, [0.2, 0.5], axis=1),
    ],
    "order": lambda a, b, s: [
        np.sort(a), np.sort(a, 0), np.sort(a, kind="stable"), np.argsort(a, axis=None), np.cumsum(a), np.cumprod(a, 0),
    ],
    "joining": lambda a, b, s: [
        np.concatenate([a, b]), np.concatenate((a, b), 1), np.concatenate([a, b], axis=None), np.stack([a, b], -1),
        np.hstack([a, b]), np.vstack([a, b]), np.dstack([a, b]), np.tile(a, (2, 1)), np.repeat(a, 2, 1),
        np.repeat(a, 2),
    ],
    "shapes": lambda a, b, s: [
        np.broadcast_to(a, (2, 3, 4)), np.expand_dims(a, 1), np.flip(a), np.flip(a, 1), np.moveaxis(a, 0, 1),
        np.ravel(a), np.reshape(a, (4, 3)), np.reshape(a, -1), np.roll(a, 2), np.roll(a, 1, 1), np.rot90(a),
        np.squeeze(a[:1]), np.swapaxes(a, 0, 1), np.ones_like(a), np.zeros_like(a, dtype="float64"),
    ],
    "elements": lambda a, b, s: [
        np.clip(a, -1, 1), np.clip(a, None, b), np.isclose(a, b, atol=1.0), np.nan_to_num(np.log(a)), np.round(a),
        np.round(a, 1),
        np.where(a > 0, a, b), np.take(a, [0, 2], 0), np.take(a, [0, 5]), np.diff(a, 2),
        np.diff(a, 1, 0), np.trapezoid(a, dx=0.5), np.take_along_axis(a, np.argsort(a, 1), 1),
    ],
    "matrices": lambda a, b, s: [
        np.dot(a, s), np.dot(a[0], s[0]), np.inner(a, b), np.vdot(a[0], b[0]), np.outer(a[0], b[1]), np.kron(a, s),
        np.tensordot(a, s, 1), np.diag(s, 1), np.diag(s[0]), np.diagonal(a), np.trace(s), np.tril(s), np.triu(s, 1),
        np.einsum("ij,ij->i", a, b), np.linalg.inv(s), np.linalg.det(s), np.linalg.norm(a), np.linalg.norm(a, axis=1),
        np.linalg.solve(s, s[:, :2]), np.trace(np.stack([a, b])), np.trace(np.stack([a, b]), 1, 2, 0),
    ],
    "universal": lambda a, b, s: [
        np.exp(a), np.add(a, b), np.absolute(a), np.power(abs(a), b), np.matmul(a, s), np.add(a, b, dtype="float64"),
        np.add.reduce(a), np.add.reduce(a, 1), np.multiply.reduce(a, axis=1, keepdims=True),
        np.maximum.reduce(a, axis=None),
        np.add.accumulate(a, axis=1), np.add.outer(a, b), np.logical_and.reduce(a > 0), *np.divmod(a, b),
    ],
}  # fmt: skip


def operands() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (3, 4), (4, 4))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of logarithms below 0
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_numpys_and_results_are_tensors(name: str, compiled: bool) -> None:
    function = FUNCTIONS[name]
    expected = function(*operands())
    results = (rn.compile(function) if compiled else function)(*map(rn.asarray, operands()))
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        assert isinstance(result, rn.Tensor) and result.shape == np.shape(value)
        np.testing.assert_allclose(result.numpy(), value, rtol=2e-5, atol=1e-5)


def test_mixed_operands_and_gradients() -> None:
    x = rn.tensor([1.0, 2.0], requires_grad=True)
    (np.ones(2, np.float32) * np.exp(x) + np.mean(np.concatenate([x, np.zeros(2, np.float32)]))).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]) + 0.5, rtol=1e-6)
    v = rn.Variable(rn.asarray([0.0, 1.0]))
    assert np.array_equal(np.add(v, 1).numpy(), [1, 2])


def test_numpys_arrays_take_results() -> None:
    array = np.ones(2, np.float32)
    same = array
    array += rn.asarray([1.0, 2.0])
    assert array is same and array.tolist() == [2.0, 3.0]
    out = np.zeros(2)
    assert np.add(rn.asarray([1.0, 2.0]), 1, out=out) is out and out.tolist() == [2.0, 3.0]


def test_what_has_no_equal_here_is_numpys_on_the_values() -> None:
    x = rn.asarray(operands()[0])
    assert np.shape(x) == (3, 4) and np.ndim(x) == 2 and len(np.where(x > 0)) == 2
    assert np.median(x) == np.median(x.numpy()) and np.percentile([x, x], 10) == np.percentile([x.numpy()] * 2, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.add(x, x, out=x), r"\[numpy.add\] out= must be a NumPy array"),
        (lambda x: np.add.at(x, [0], 1), r"\[numpy.add.at\] has no meaning for tensors"),
        (lambda x: np.spacing(x), r"\[numpy.spacing\] there is no such function"),
        (lambda x: np.add(x, 1, where=np.array([True, False])), r"\[numpy.add\] takes no where="),
        (lambda x: np.sum(x, where=np.array([True, False])), r"\[numpy.sum\] takes no where="),
        (lambda x: np.subtract.reduce(x), r"\[numpy.subtract.reduce\] exists for add"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), "there is no such function"),
    ],
)
def test_refusals(call: Callable[[rn.Tensor], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(rn.asarray([1.0, 2.0]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, initial=1), lambda x: np.prod(x, initial=0), lambda x: np.max(x, initial=0),
        lambda x: np.amin(x, initial=False), lambda x: np.sum(x, where=False), lambda x: np.std(x, mean=0),
        lambda x: np.multiply.reduce(x, initial=0), lambda x: np.add.reduce(x, where=False),
        lambda x: np.exp(x, where=False), lambda x: np.ravel(x, "K"), lambda x: np.reshape(x, (2, 1), order="A"),
        lambda x: np.array_equal(x, x, equal_nan=True), lambda x: np.ones_like(x, shape=0),
        lambda x: np.nan_to_num(x, copy=False), lambda x: np.add(x, 1, dtype="int32"),
    ],
)  # fmt: skip
def test_options_that_change_the_result_are_refused(call: Callable[[Any], Any]) -> None:
    """Not only those that look like no default: 0 and False are values, too."""
    with pytest.raises(ArgumentError, match=r"^\[numpy\..*(takes no|another kind)"):
        call(rn.asarray([1.0, 2.0]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, where=True, initial=np._NoValue), lambda x: np.mean(x, dtype=None, out=None),
        lambda x: np.exp(x, where=True, casting="same_kind", order="F"), lambda x: np.ravel(x, "C"),
        lambda x: np.ones_like(x, order="F", subok=False), lambda x: np.add.reduce(x, 0, None, None, False, None, True),
    ],
)  # fmt: skip
def test_options_that_change_nothing_are_accepted(call: Callable[[Any], Any]) -> None:
    array = np.array([1.0, 2.0], np.float32)
    result = call(rn.asarray(array))
    assert isinstance(result, rn.Tensor)
    np.testing.assert_allclose(result.numpy(), call(array), rtol=1e-6)


def test_every_function_of_the_table_exists_on_both_sides() -> None:
    for name in numpy_protocols.FUNCTIONS:
        assert callable(numpy_protocols._ours(name.rpartition("=")[2]))
        assert numpy_protocols._numpys(name) is not None or np.lib.NumpyVersion(np.__version__) < "2.0.0", name


@pytest.mark.parametrize("other", [None, "text", object(), [1.0]])
def test_comparison_with_values_that_are_not_numbers(other: Any) -> None:
    x = rn.asarray([1.0, 2.0])
    for kind in (x, rn.Variable(x)):
        assert (kind == other) is False and (kind != other) is True and (other == kind) is False
    assert rn.compile(lambda x: (x == other, x != other, x + 1))(x)[:2] == (False, True)


def test_dlpack_without_a_copy_shares_memory_with_consumers_of_the_old_protocol() -> None:
    x = rn.asarray(operands()[0])

    class Old:
        def __dlpack__(self, **options: Any) -> Any:
            return x.T.__dlpack__(copy=False)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    shared = np.from_dlpack(Old())
    assert shared.ctypes.data == x.address and np.array_equal(shared, x.T.numpy())
    assert not x.numpy().flags.writeable
