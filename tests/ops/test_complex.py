"""Complex numbers: NumPy is the oracle, differences measure derivatives, and what has no meaning is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays_of

import runnel as rn
import runnel.compat.torch as torch
from runnel import ops
from runnel.core.errors import DTypeError, GradientError
from tests.ops.complex_checks import check, check_values, drawn, reals

UNARY = (
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "square",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "negative",
    "abs",
    "sign",
    "conj",
    "real",
    "imag",
    "angle",
)
BINARY = ("add", "subtract", "multiply", "divide", "pow")
COMPOSED: dict[str, Callable[..., Any]] = {
    "constants": lambda x: x * (1 + 2j) + 1 - 2j / x,
    "real constants": lambda x: 2.0 * x - x / 3 + 1,
    "sum": lambda x: rn.sum(x, 0),
    "prod": lambda x: rn.prod(x, 1),
    "mean": lambda x: rn.mean(x),
    "cumulative": lambda x: rn.cumsum(x, 1) * rn.cumprod(x, 0),
    "var": lambda x: rn.var(x, 1),
    "norm": lambda x: rn.linalg.vector_norm(x),
    "H": lambda x: x.H,
    "reshape": lambda x: x.reshape(3, 2),
    "slice": lambda x: x[:, ::-2],
    "taken": lambda x: x[rn.asarray([1, 0, 1])],
    "concat": lambda x: rn.concat([x, x * x], 1),
    "pad": lambda x: ops.pad(x, ((1, 0), (0, 2))),
    "roll": lambda x: rn.roll(x, 1, 0),
    "put": lambda x: ops.put(x, (0,), 1j),
    "where": lambda x: rn.where(x.real > 0, x, 2j),
    "spread": lambda x: rn.broadcast_to(x[0], (4, 3)) * 1j,
    "along": lambda x: rn.take_along_axis(x, rn.asarray([[1], [0]]), 1),
    "parts": lambda x: torch.view_as_real(x),
    "back": lambda x: torch.view_as_complex(torch.view_as_real(x * x)),
    "polar": lambda x: torch.polar(rn.abs(x), torch.angle(x)),
    "scan": lambda x: rn.scan(lambda h, row: (h * row + 1j, h), rn.full(3, 1j, dtype="complex128"), x)[0],
    "cond": lambda x: rn.cond(rn.sum(x.real) > 0, lambda y: y * 2j, lambda y: y * y, x),
    "checkpoint": lambda x: rn.checkpoint(lambda y: rn.exp(y) * y, x),
}
PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": rn.matmul,
    "tensordot": lambda x, y: rn.tensordot(x, y, 1),
    "einsum": lambda x, y: rn.einsum("ij,jk", x, y),
    "kron": rn.kron,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name: str) -> None:
    x = drawn(3)
    check_values(getattr(torch, name), getattr(np, name), x)
    check(getattr(torch, name), x)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("with_real", [False, True])
def test_functions_of_two(name: str, with_real: bool) -> None:
    x, y = drawn(2, 3), reals(3, seed=1) if with_real else drawn(3, seed=1)
    check_values(getattr(torch, name), getattr(np, {"pow": "power"}.get(name, name)), x, y)
    check(getattr(torch, name), x, y)


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions(name: str) -> None:
    check(COMPOSED[name], drawn(2, 3))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    check(PRODUCTS[name], drawn(2, 3), drawn(3, 3, seed=1))
    check(PRODUCTS[name], drawn(2, 3), reals(3, 3, seed=1))


def test_the_first_factor_of_vecdot_is_conjugated() -> None:
    x, y = drawn(2, 3), drawn(2, 3, seed=1)
    check_values(rn.vecdot, lambda a, b: (a.conj() * b).sum(-1), x, y)


def test_a_pair_of_floats_is_a_complex_number() -> None:
    check_values(rn.complex, lambda x, y: x + 1j * y, reals(3), reals(3, seed=1))
    check(rn.complex, reals(3), reals(3, seed=1))


NUMBERS = st.complex_numbers(max_magnitude=1e3, min_magnitude=1e-3)
SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@settings(max_examples=60, deadline=None)
@given(x=arrays_of.arrays(np.complex128, SHAPES, elements=NUMBERS), name=st.sampled_from((*UNARY, "isnan", "isfinite")))
def test_any_shape_is_as_in_numpy(x: np.ndarray[Any, Any], name: str) -> None:
    numpy = getattr(np, {"sign": "sign", "reciprocal": "reciprocal"}.get(name, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = np.asarray(numpy(x))
    actual = getattr(torch, name)(rn.asarray(x)).numpy()
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if np.isfinite(x).all() and np.isfinite(expected).all():  # where exp() overflows, libraries differ in the parts
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_dtypes_meet_as_in_the_standard(data: st.DataObject) -> None:
    names = ("float32", "float64", "complex64", "complex128")
    a, b = (data.draw(st.sampled_from(names)) for _ in range(2))
    x, y = np.ones(2, a), np.full(2, 2, b)
    assert (rn.asarray(x) * rn.asarray(y)).numpy().dtype == (x * y).dtype
    assert (rn.asarray(x) * 1j).dtype is (rn.complex128 if a in ("float64", "complex128") else rn.complex64)
    assert (1.0 - rn.asarray(x)).dtype is rn.asarray(x).dtype


def test_python_numbers() -> None:
    assert rn.asarray(1j).dtype is rn.asarray([1, 2j]).dtype is rn.complex64
    assert rn.asarray(np.ones(2, complex)).dtype is rn.complex128
    assert (rn.asarray([1, 2]) * 1j).dtype is rn.complex64
    z = rn.asarray(3 - 4j)
    assert complex(z) == z.item() == 3 - 4j and bool(z) and abs(z).item() == 5.0
    assert "3.-4.j" in repr(z) and rn.full(2, 1j).tolist() == [1j, 1j]
    assert rn.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j] and rn.eye(2, dtype="complex64").dtype is rn.complex64
    with pytest.raises(TypeError):
        float(z)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_programs_move_them(dtype: str) -> None:
    x = rn.asarray(drawn(2, 3).astype(dtype))

    def moved(z: Any) -> tuple[Any, ...]:
        return (
            z,
            z.T,
            z[:, ::-1],
            z.reshape(-1)[1:],
            rn.full_like(z, 1 + 2j),
            rn.concat([z, rn.zeros_like(z)], 1),
            z[0] * 1j,
        )

    compiled = rn.compile(moved)
    for z in (x, x.T.contiguous().T, x[:, ::-1]):
        for actual, expected in zip(compiled(z), moved(z), strict=True):
            assert actual.dtype is expected.dtype and actual.numpy().tobytes() == expected.numpy().tobytes()


def test_state_of_programs() -> None:
    v = rn.Variable(np.array([1 + 1j, 2]))

    @rn.compile
    def step(x: Any) -> Any:
        v.assign(v * x + 1j)
        return v.read().sum()

    assert step(rn.asarray(2j, dtype="complex128")).item() == -2 + 8j
    assert v.numpy().tolist() == [-2 + 3j, 5j]


def test_the_interpreter_computes_them() -> None:
    z = rn.asarray(drawn(3)).to("interpreter")
    actual = rn.compile(lambda x: rn.exp(x) * 2j)(z)
    assert actual.numpy().tobytes() == (rn.exp(z) * 2j).numpy().tobytes()


def test_in_place() -> None:
    z = rn.asarray([1 + 1j, 2, 3])
    z[1] = 5j
    z[0] += 1
    z *= 2
    assert z.tolist() == [4 + 2j, 10j, 6]
    with pytest.raises(DTypeError):
        rn.asarray([1.0]).mul_(1j)


def test_files(tmp_path: Path) -> None:
    z = rn.asarray(drawn(2, 2))
    rn.save({"z": z}, tmp_path / "state")
    rn.save_file({"z": z}, tmp_path / "arrays")
    for actual in (rn.load(tmp_path / "state"), rn.load_file(tmp_path / "arrays")):
        assert actual["z"].dtype is rn.complex128 and actual["z"].tolist() == z.tolist()


def test_gradients_are_pytorchs() -> None:
    z = rn.asarray([3 + 4j]).requires_grad_()
    (rn.abs(z) ** 2).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [6 + 8j]
    with pytest.raises(GradientError, match="seed"):
        z.sum().backward()
    zero = rn.asarray([0j]).requires_grad_()
    (rn.abs(zero).sum() + rn.sign(zero).real.sum()).backward()
    assert zero.grad is not None and zero.grad.tolist() == [0]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "floor": rn.floor,
    "lt": lambda z: z < z,
    "sort": rn.sort,
    "max": rn.max,
    "erf": rn.erf,
    "floor_divide": lambda z: z // 2,
    "atan2": lambda z: rn.atan2(z, z),
    "relu": rn.relu,
    "maximum": lambda z: rn.maximum(z, z),
    "cast": lambda z: z.astype("float32"),
    "and": lambda z: z & z,
    "remainder": lambda z: z % 2,
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("compiled", [False, True])
def test_what_has_no_meaning_is_refused(name: str, compiled: bool) -> None:
    function = rn.compile(REFUSED[name]) if compiled else REFUSED[name]
    with pytest.raises(DTypeError, match=rf"^\[{name}\].*complex64"):
        function(rn.asarray([1 + 1j, 2]))
