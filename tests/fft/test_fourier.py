"""Fourier transforms: NumPy is the oracle, differences measure the derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, DTypeError, ShapeError
from tests.ops.complex_checks import check, check_values, drawn, reals

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
OF_REALS = ("rfft", "ihfft", "rfftn", "rfft2")


def sample(name: str) -> Any:
    return reals(3, 5) if name in OF_REALS else drawn(3, 5)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("how", [{}, {"n": 4}, {"n": 7}, {"axis": 0}], ids=str)
def test_along_one_axis(name: str, norm: str, how: dict[str, int]) -> None:
    x = sample(name)
    numpy = getattr(np.fft, name)
    check_values(lambda y: getattr(rn.fft, name)(y, norm=norm, **how), lambda y: numpy(y, norm=norm, **how), x)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("how", [{}, {"s": (4, 4), "axes": (1, 0)}, {"axes": (0, 1), "norm": "ortho"}], ids=str)
def test_along_several_axes(name: str, how: dict[str, Any]) -> None:
    x = sample(name)
    check_values(lambda y: getattr(rn.fft, name)(y, **how), lambda y: getattr(np.fft, name)(y, **how), x)


@pytest.mark.parametrize("name", [*ONE, "fftn", "irfftn"])
@pytest.mark.parametrize("how", [{}, {"norm": "forward"}], ids=str)
def test_derivatives(name: str, how: dict[str, Any]) -> None:
    check(lambda y: getattr(rn.fft, name)(y, **how), sample(name)[:2])


@pytest.mark.parametrize("n", [1, 4, 5])
def test_derivatives_of_other_lengths(n: int) -> None:
    for name in ("rfft", "irfft"):
        check(lambda y, name=name: getattr(rn.fft, name)(y, n=n), sample(name)[0])


def test_real_numbers_are_transformed_as_complex_ones() -> None:
    check_values(rn.fft.fft, np.fft.fft, reals(6))
    check(rn.fft.fft, reals(4))


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float32", "complex64"), ("float64", "complex128"), ("int64", "complex64"), ("float16", "complex64")],
)
def test_precision(dtype: str, result: str) -> None:
    x = rn.asarray(np.arange(4).astype(dtype))
    assert rn.fft.fft(x).dtype.name == rn.fft.rfft(x).dtype.name == result


def test_second_derivatives() -> None:
    x = rn.asarray(reals(4))
    power = rn.hessian(lambda y: (rn.abs(rn.fft.rfft(y)) ** 2).sum())(x).numpy()
    basis = np.fft.rfft(np.eye(4))
    np.testing.assert_allclose(power, 2 * (basis @ basis.conj().T).real, atol=1e-6)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        actual = getattr(rn.fft, name)(n, d=0.5, dtype=rn.float64).numpy()
        np.testing.assert_array_equal(actual, getattr(np.fft, name)(n, d=0.5))
    assert rn.fft.fftfreq(n).dtype is rn.float32


@pytest.mark.parametrize("axes", [None, 0, (0, 1)])
def test_shifts(axes: Any) -> None:
    x = drawn(4, 5)
    for name in ("fftshift", "ifftshift"):
        check_values(
            lambda y, name=name: getattr(rn.fft, name)(y, axes=axes),
            lambda y, name=name: getattr(np.fft, name)(y, axes),
            x,
        )


def test_mistakes() -> None:
    z = rn.asarray(drawn(3))
    with pytest.raises(DTypeError, match=r"^\[rfft\] x must be real"):
        rn.fft.rfft(z)
    with pytest.raises(ArgumentError, match="norm must be 'backward', 'ortho' or 'forward'"):
        rn.fft.fft(z, norm="full")
    with pytest.raises(ShapeError, match="at least one element"):
        rn.fft.fft(z, n=0)
    with pytest.raises(ShapeError, match="lengths s"):
        rn.fft.fftn(z, s=(2, 2), axes=(0,))
    with pytest.raises(ShapeError, match="must be at least 1"):
        rn.fft.fftfreq(0)
