"""Functions of PyTorch's without an equal in NumPy, at their edges: values as PyTorch has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel.compat import numpy as rnp
from runnel.core.errors import ArgumentError, DTypeError, ShapeError


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_divisors_and_multiples(dtype: str) -> None:
    x = np.array([[0, 0, 12], [7, 100, 3]], dtype)
    y = np.array([0, 5, 18], dtype)
    for name in ("gcd", "lcm"):
        actual = getattr(torch, name)(rn.asarray(x), rn.asarray(y)).numpy()
        expected = getattr(np, name)(x, y)
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype
    assert torch.gcd(rn.asarray(-12), 18).item() == 6 and torch.lcm(rn.asarray(-4), 6).item() == 12
    assert rn.compile(torch.gcd)(rn.asarray([12, 9]), rn.asarray([18, 6])).tolist() == [6, 3]
    assert rn.vmap(torch.gcd)(rn.asarray([12, 9]), rn.asarray([18, 6])).tolist() == [6, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_taken_apart(dtype: str) -> None:
    x = rn.asarray([0.0, -0.0, 1.0, -6.0, 0.3, math.inf, math.nan], dtype=dtype)
    mantissa, exponent = torch.frexp(x)
    assert mantissa.dtype is x.dtype and exponent.tolist() == [0, 0, 1, 3, -1, 0, 0]
    expected = np.frexp(x.astype("float64").numpy())[0]
    np.testing.assert_array_equal(mantissa.astype("float64").numpy(), expected)
    leaf = rn.tensor([6.0, 0.3], requires_grad=True)
    torch.frexp(leaf).mantissa.sum().backward()
    assert leaf.grad.tolist() == [0.125, 2.0]


@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_singular_matrices_have_a_gradient_of_the_determinant(rank: int) -> None:
    rng = np.random.default_rng(rank)
    a = rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3))
    minors = [[np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)]
    expected = np.array(minors) * (-1.0) ** np.add.outer(range(3), range(3))
    actual = rn.grad(rn.linalg.det)(rn.asarray(a)).numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-14)
    np.testing.assert_array_equal(rn.compile(rn.grad(rn.linalg.det))(rn.asarray(a)).numpy(), actual)


def test_determinants_of_complex_matrices() -> None:
    rng = np.random.default_rng(5)
    a, step = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)), 1e-6
    g = rn.grad(lambda x: rn.real(rn.linalg.det(x)) ** 2)(rn.asarray(a)).numpy()
    for unit in (1, 1j):
        moved = a.copy()
        moved[1, 2] += unit * step
        difference = (np.linalg.det(moved).real ** 2 - np.linalg.det(a).real ** 2) / step
        assert difference == pytest.approx((g[1, 2] * np.conj(unit)).real, rel=1e-4)


def test_diagonals_are_filled() -> None:
    for shape in ((3, 3), (2, 5), (7, 3)):
        for wrap in (False, True):
            expected = np.zeros(shape)
            np.fill_diagonal(expected, 2.0, wrap=wrap)
            x = rn.zeros(shape)
            assert x.fill_diagonal_(2.0, wrap) is x
            np.testing.assert_array_equal(x.numpy(), expected)
    cube = rnp.fill_diagonal(rn.zeros((3, 3, 3)), 1.0)
    assert cube.sum().item() == 3 and cube[2, 2, 2].item() == 1
    with pytest.raises(ShapeError, match=r"\[fill_diagonal\].*\(2, 3, 3\)"):
        rnp.fill_diagonal(rn.zeros((2, 3, 3)), 1.0)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3])
def test_diagonals_are_replaced(offset: int) -> None:
    x = rn.asarray(np.arange(24.0).reshape(2, 3, 4))
    src = rn.diagonal(x, offset, 2, 1) * 0 - 1
    replaced = torch.diagonal_scatter(x, src, offset, 2, 1)
    assert rn.diagonal(replaced, offset, 2, 1).tolist() == src.tolist()
    assert int((replaced != x).sum()) == src.size


def test_elements_by_number() -> None:
    x = rn.zeros((2, 3))
    assert torch.put(x, rn.asarray([1, -1]), rn.asarray([4.0, 5.0])).tolist() == [[0, 4, 0], [0, 0, 5]]
    assert x.put_(rn.asarray([[0, 0]]), rn.ones((1, 2)), accumulate=True) is x and x[0, 0].item() == 2
    places = torch.unravel_index(rn.asarray(np.array([0, 5, 3], np.uint8)), (2, 3))
    assert [p.tolist() for p in places] == [[0, 1, 1], [0, 2, 0]] and places[0].dtype is rn.int64
    with pytest.raises(ShapeError, match=r"\[put\].*\(2,\).*\(3,\)"):
        x.put(rn.asarray([0, 1]), rn.ones(3))


def test_runs_are_reduced() -> None:
    data = rn.asarray([[1.0], [5.0], [2.0], [4.0]])
    for reduce, expected, of_none in (
        ("sum", [6, 6], 0.0), ("mean", [3, 3], math.nan), ("max", [5, 4], -math.inf),
        ("min", [1, 2], math.inf), ("prod", [5, 8], 1.0),
    ):  # fmt: skip
        by_lengths = torch.segment_reduce(data, reduce, lengths=rn.asarray([2, 0, 2])).numpy()
        np.testing.assert_array_equal(by_lengths[:, 0], [expected[0], of_none, expected[1]])
        by_offsets = torch.segment_reduce(data, reduce, offsets=rn.asarray([0, 2, 2, 4])).numpy()
        np.testing.assert_array_equal(by_offsets, by_lengths)
    assert torch.segment_reduce(data, "max", lengths=rn.asarray([4, 0]), initial=9.0).tolist() == [[9.0], [9.0]]
    leaf = rn.tensor([1.0, 3.0, 3.0], requires_grad=True)
    torch.segment_reduce(leaf, "max", lengths=rn.asarray([3])).sum().backward()
    assert leaf.grad.tolist() == [0.0, 0.5, 0.5]
    with pytest.raises(ShapeError, match=r"\[segment_reduce\] lengths \[1, 2\].*4 rows"):
        torch.segment_reduce(data, "sum", lengths=rn.asarray([1, 2]))


def test_selection_along_an_axis_broadcasts() -> None:
    x = rn.asarray(np.arange(12.0).reshape(3, 4))
    assert torch.take_along_dim(x, rn.asarray([[1]]), 1).tolist() == [[1.0], [5.0], [9.0]]
    assert torch.take_along_dim(x, rn.asarray([[5, 0]])).tolist() == [5.0, 0.0]
    with pytest.raises(ShapeError, match=r"\[take_along_dim\].*\(1,\).*\(3, 4\)"):
        torch.take_along_dim(x, rn.asarray([1]), 1)


def test_pytorchs_keywords() -> None:
    x = rn.asarray(np.arange(12.0).reshape(3, 4))
    assert torch.triu(x, diagonal=1)[0].tolist() == [0, 1, 2, 3] and torch.diag(x, diagonal=1).tolist() == [1, 6, 11]
    assert torch.diagonal(x[None], offset=1, dim1=1, dim2=2).tolist() == [[1, 6, 11]]
    assert torch.softmax(x.half(), dim=1, dtype=torch.float32).dtype is rn.float32
    assert torch.special.log_softmax(x, 1).shape == x.shape and x.var(dim=0, correction=None).shape == (4,)
    assert x.norm("nuc").item() == pytest.approx(np.linalg.norm(x.numpy(), "nuc"))
    assert torch.isreal(rn.asarray([1j, 1 + 0j])).tolist() == [False, True] and torch.isreal(x).all()
    assert torch.conj_physical(rn.asarray(1j)).item() == -1j and torch.resolve_conj(x).tolist() == x.tolist()


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_long_slices_are_rescaled(p: float) -> None:
    """A hair below the greatest norm that is allowed, as in PyTorch; in float64, where that hair can be seen."""
    x = np.array([[3.0, -4.0], [0.3, 0.4], [-6.0, 8.0]])
    size = np.linalg.norm(x, p, axis=1, keepdims=True)
    expected = x * np.where(size > 2.0, 2.0 / (size + 1e-7), 1.0)
    np.testing.assert_allclose(torch.renorm(rn.asarray(x), p, 0, 2.0).numpy(), expected, rtol=1e-14)
    assert (np.linalg.norm(torch.renorm(rn.asarray(x), p, 0, 2.0).numpy(), p, axis=1) <= 2.0).all()


def test_elements_that_strides_name() -> None:
    x = rn.asarray(np.arange(12.0).reshape(3, 4))
    assert x.mT.as_strided((2,), (1,)).tolist() == [0.0, 1.0]  # of the elements in memory
    assert x.as_strided((2, 0), (5, 100)).shape == (2, 0) and x.as_strided((), (), 7).item() == 7.0
    leaf = rn.tensor(np.arange(3.0), requires_grad=True)
    leaf.as_strided((2, 2), (1, 1)).sum().backward()
    assert leaf.grad.tolist() == [1.0, 2.0, 1.0]
    src = rn.zeros((2, 2), dtype=rn.float64)
    changed = torch.as_strided_scatter(x, src, (2, 2), (4, 2), 1)
    assert (changed != x).sum().item() == 4 and changed[0].tolist() == [0.0, 0.0, 2.0, 0.0]
    for size, stride, first in (((2, 2), (8, 4), 0), ((2,), (1,), 11), ((1,), (1,), -1)):
        with pytest.raises(ShapeError, match=r"\[as_strided\].*\(3, 4\) has 12"):
            x.as_strided(size, stride, first)
    with pytest.raises(ShapeError, match="name an element twice"):
        torch.as_strided_scatter(x, src, (2, 2), (1, 1))


def test_gradients_of_samples() -> None:
    x = rn.asarray([0, 1, 4, 9])
    (slopes,) = torch.gradient(x, edge_order=2)
    assert slopes.tolist() == [0.0, 2.0, 4.0, 6.0] and slopes.dtype is rn.float32
    expected = np.gradient(x.numpy(), np.array([0.0, 1.0, 3.0, 4.0]))
    actual = torch.gradient(x.astype("float64"), spacing=rn.asarray([0.0, 1.0, 3.0, 4.0]))[0]
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-14)
    assert [y.tolist() for y in torch.gradient(rn.zeros((2, 2)))] == [[[0.0] * 2] * 2] * 2
    with pytest.raises(ShapeError, match=r"edge_order 2 needs 3 samples along axis 0; got 2"):
        torch.gradient(rn.zeros(2), edge_order=2)
    with pytest.raises(ShapeError, match=r"\[gradient\] 3 spacings for 2 axes"):
        torch.gradient(rn.zeros((3, 3)), spacing=(1.0, 1.0, 1.0))


def test_signals_come_back_from_their_transforms() -> None:
    x = rn.asarray(np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32))
    window = torch.hann_window(16)
    spectrum = torch.stft(x, 16, window=window, return_complex=True)
    assert window.dtype is rn.float32 and spectrum.shape == (2, 9, 13) and spectrum.dtype is rn.complex64
    np.testing.assert_allclose(torch.istft(spectrum, 16, window=window, length=50).numpy(), x.numpy(), atol=1e-6)
    assert torch.istft(spectrum, 16, window=window, length=60)[:, 56:].tolist() == [[0.0] * 4] * 2
    with pytest.raises(ArgumentError, match="give return_complex=True"):
        x.stft(16)
    with pytest.raises(ValueError, match="windows do not cover the signal"):
        torch.istft(spectrum, 16, window=window, center=False)
    with pytest.raises(ShapeError, match=r"50 samples hold no frame of n_fft=64"):
        x.stft(64, center=False, return_complex=True)
    with pytest.raises(ShapeError, match=r"the window has shape \(16,\); got \(15,\)"):
        x.stft(16, window=window[1:], return_complex=True)


def test_windows_are_periodic_or_symmetric() -> None:
    assert torch.hann_window(4).tolist() == [0.0, 0.5, 1.0, 0.5] and torch.hann_window(3, False).tolist() == [
        0.0,
        1.0,
        0.0,
    ]
    assert torch.bartlett_window(0).shape == (0,) and torch.kaiser_window(1).tolist() == [1.0]
    assert torch.hann_window(4, requires_grad=True, layout=torch.strided).requires_grad
    with pytest.raises(DTypeError, match=r"\[hann_window\] the dtype must be floating; got int64"):
        torch.hann_window(4, dtype=rn.int64)
    with pytest.raises(ShapeError, match=r"\[kaiser_window\].*got -1"):
        torch.kaiser_window(-1)


def test_sums_of_products_by_numbers_of_axes() -> None:
    x, y = (rn.asarray(np.random.default_rng(n).normal(size=(3, 3))) for n in range(2))
    by_letters = rn.einsum("ij,jk->ik", x, y).tolist()
    assert rn.einsum(x, [0, 1], y, [1, 2], [0, 2]).tolist() == by_letters
    assert rn.einsum(x, (30, 1), y, (1, 2), (30, 2)).tolist() == by_letters
    with pytest.raises(ArgumentError, match="numbers from 0 to 51; got 52"):
        rn.einsum(x, [0, 52])
    with pytest.raises(ArgumentError, match=r"behind each operand stands a list of the numbers of its axes"):
        rn.einsum(x, y)


def test_one_element_without_an_axis() -> None:
    x = rn.asarray(2.0)
    assert rn.topk(x, 1).indices.tolist() == 0 and rn.topk(x, k=1, dim=-1).values.item() == 2.0
    assert rn.scatter(x, 0, rn.asarray(0), src=rn.asarray(3.0)).item() == 3.0
    assert x.scatter_add_(0, rn.asarray([0, 0]), rn.ones(2)).item() == 4.0
    assert torch.index_reduce(x, 0, rn.asarray([0]), rn.asarray([2.0]), "prod").shape == ()
    with pytest.raises(ShapeError, match=r"\[index_select\] takes one element of a 0-d array; 2 are asked for"):
        rn.index_select(x, 0, rn.asarray([0, 0]))
