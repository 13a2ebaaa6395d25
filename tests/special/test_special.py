"""Special functions against SciPy and against digits of higher precision; their edges, degrees and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import runnel as rn
from runnel import special
from runnel.core.errors import RunnelError

RNG = np.random.default_rng(12)
WIDE = np.concatenate([RNG.uniform(-30, 30, 2000), RNG.uniform(-90, 90, 500), 10 ** RNG.uniform(-10, 1, 200)])
ABOVE = np.abs(np.concatenate([RNG.uniform(0, 5, 1500), RNG.uniform(0, 600, 500), 10 ** RNG.uniform(-10, 1, 200)]))
AIRY = RNG.uniform(-15, 10, 2000)


def wave(x: Any) -> Any:
    """How high the waves of J and Y are."""
    return np.sqrt(2 / np.pi / np.maximum(np.abs(x), 1))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any, Callable[[Any], Any]]] = {
    "bessel_j0": (sp.j0, WIDE, wave),
    "bessel_j1": (sp.j1, WIDE, lambda x: np.minimum(wave(x), np.abs(x))),
    "bessel_y0": (sp.y0, np.abs(WIDE), wave),
    "bessel_y1": (sp.y1, np.abs(WIDE), wave),
    "modified_bessel_i0": (sp.i0, ABOVE, np.zeros_like),
    "modified_bessel_i1": (sp.i1, ABOVE, np.zeros_like),
    "modified_bessel_k0": (sp.k0, ABOVE, np.zeros_like),
    "modified_bessel_k1": (sp.k1, ABOVE, np.zeros_like),
    "scaled_modified_bessel_k0": (sp.k0e, ABOVE, np.zeros_like),
    "scaled_modified_bessel_k1": (sp.k1e, ABOVE, np.zeros_like),
    "spherical_bessel_j0": (lambda x: sp.spherical_jn(0, np.abs(x)), WIDE, lambda x: 1 / np.maximum(1, np.abs(x))),
    "airy_ai": (lambda x: sp.airy(x)[0], AIRY, lambda x: np.where(x < 0, 0.28 / np.maximum(np.abs(x), 1) ** 0.25, 0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_a_few_units_in_the_last_place(name: str) -> None:
    oracle, x, size = FUNCTIONS[name]
    actual, expected = getattr(special, name)(rn.asarray(x)).numpy(), oracle(x)
    error = np.abs(actual - expected) / np.maximum(np.maximum(np.abs(expected), size(x)), 1e-290)
    assert error.max() < (5e-14 if name == "airy_ai" else 1.2e-14), x[error.argmax()]
    narrow = x.astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = oracle(narrow.astype(np.float64)).astype(np.float32)
    actual = getattr(special, name)(rn.asarray(narrow)).numpy()
    finite = np.isfinite(rounded)
    assert np.all(np.abs(actual[finite] - rounded[finite]) <= np.spacing(np.abs(rounded[finite])))


# the argument, the value, computed with 30 digits, and the error
DIGITS: dict[str, tuple[str, float, float, float]] = {
    "j0": ("bessel_j0", 325.94169289331774, 0.0000473581580116271410455, 1e-16),
    "y1": ("bessel_y1", 325.94169289331774, -0.00011515336962394741586, 1e-16),
    "airy_of_waves": ("airy_ai", -97.64869984174535, -0.0091893397018976388907, 1e-16),
    "airy_of_small_values": ("airy_ai", 56.07787200610751, 2.67913298522755723659e-123, 2e-138),
}


@pytest.mark.parametrize("case", DIGITS)
def test_far_from_zero(case: str) -> None:
    name, x, expected, error = DIGITS[case]
    assert abs(getattr(special, name)(rn.asarray(x, dtype="float64")).item() - expected) < error


def test_edges_are_limits() -> None:
    inf, nan = np.inf, np.nan
    x = rn.asarray([0.0, -0.0, inf, -inf, nan, -1.0], dtype="float64")
    for name, expected in {
        "bessel_j0": (1, 1, 0, 0, nan, sp.j0(1)), "bessel_j1": (0, 0, 0, 0, nan, -sp.j1(1)),
        "bessel_y0": (-inf, -inf, 0, nan, nan, nan), "bessel_y1": (-inf, -inf, 0, nan, nan, nan),
        "modified_bessel_k0": (inf, inf, 0, nan, nan, nan), "modified_bessel_k1": (inf, inf, 0, nan, nan, nan),
        "scaled_modified_bessel_k0": (inf, inf, 0, nan, nan, nan), "airy_ai": (*sp.airy([0, 0])[0], 0, 0, nan,
                                                                              sp.airy(-1)[0]),
        "spherical_bessel_j0": (1, 1, 0, 0, nan, np.sin(1)),
    }.items():  # fmt: skip
        np.testing.assert_allclose(getattr(special, name)(x).numpy(), expected, rtol=1e-15, err_msg=name)


def test_zeta() -> None:
    rng = np.random.default_rng(33)
    s = np.concatenate([rng.uniform(1.01, 60, 800), rng.uniform(1.001, 2, 200)])
    q = np.concatenate([rng.uniform(0.01, 30, 800), 10 ** rng.uniform(-3, 5, 200)])
    np.testing.assert_allclose(special.zeta(rn.asarray(s), rn.asarray(q)).numpy(), sp.zeta(s, q), rtol=1e-14)
    inf, nan = np.inf, np.nan
    pairs = [(1, 2, inf), (0.5, 2, nan), (2, 0, inf), (2, -1, inf), (2, -1.5, 9.379246644989124), (2.5, -1.5, nan),
             (3, -1.5, 0.11810202582086413), (2, -400.25, sp.polygamma(1, 401.25) * -1 + 2 * np.pi**2),
             (nan, 1, nan), (1, nan, inf), (inf, 0.5, inf), (inf, 1, 1), (3, inf, 0)]  # fmt: skip
    s, q, expected = (np.array(part, np.float64) for part in zip(*pairs, strict=True))
    np.testing.assert_allclose(special.zeta(rn.asarray(s), rn.asarray(q)).numpy(), expected, rtol=2e-14)


def test_derivatives_of_zeta_by_the_exponent() -> None:
    """ζ'(s) and ζ''(s) of Riemann's function, computed with 30 digits."""
    s = rn.asarray([2.0, 3.0, 20.0], dtype="float64")
    first = rn.grad(lambda s: special.zeta(s, 1.0).sum())
    np.testing.assert_allclose(
        first(s).numpy(),
        [-0.937548254315843753702574094568, -0.198126242885636853330681821503, -6.61353020736710773298734e-07],
        rtol=1e-13,
    )
    second = rn.grad(lambda s: first(s).sum())
    np.testing.assert_allclose(second(s).numpy()[:1], [1.98928023429890102342085868988], rtol=1e-13)


def test_polygamma_of_high_orders() -> None:
    x = np.array([0.7, 2.5, 11.0, -3.25])
    for n in (31, 60, 130):
        actual = rn.special.polygamma(n, rn.asarray(x)).numpy()
        expected = (-1.0) ** (n + 1) * sp.gamma(n + 1.0) * sp.zeta(n + 1, x[:3])
        np.testing.assert_allclose(actual[:3], expected, rtol=1e-13)
    step = rn.grad(lambda x: rn.special.polygamma(30, x).sum())(rn.asarray(x)).numpy()
    np.testing.assert_allclose(step, rn.special.polygamma(31, rn.asarray(x)).numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match=r"\[polygamma\] n must be from 0 to 170; got 171"):
        rn.special.polygamma(171, rn.asarray(x))


POLYNOMIALS: dict[str, Callable[..., Any]] = {
    "chebyshev_polynomial_t": sp.eval_chebyt,
    "chebyshev_polynomial_u": sp.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: sp.eval_chebyu(n, x) - sp.eval_chebyu(n - 1, x),
    "chebyshev_polynomial_w": lambda n, x: sp.eval_chebyu(n, x) + sp.eval_chebyu(n - 1, x),
    "shifted_chebyshev_polynomial_t": sp.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": sp.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: sp.eval_sh_chebyu(n, x) - sp.eval_sh_chebyu(n - 1, x),
    "shifted_chebyshev_polynomial_w": lambda n, x: sp.eval_sh_chebyu(n, x) + sp.eval_sh_chebyu(n - 1, x),
    "hermite_polynomial_h": sp.eval_hermite,
    "hermite_polynomial_he": sp.eval_hermitenorm,
    "laguerre_polynomial_l": sp.eval_laguerre,
    "legendre_polynomial_p": sp.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    rng = np.random.default_rng(33)
    function, oracle = getattr(special, name), POLYNOMIALS[name]
    x, n = rng.uniform(-0.95, 1.2, (7, 1)), np.arange(14)
    tensor = rn.asarray(x)
    actual = function(tensor, rn.asarray(n)).numpy()
    expected = oracle(n, x)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    assert function(tensor, 5).numpy().tobytes() == actual[:, 5:6].tobytes()
    assert rn.compile(lambda x, n: function(x, n))(tensor, rn.asarray(n)).numpy().tobytes() == actual.tobytes()
    edges = function(rn.asarray([0.5, np.nan, 0.5, 0.5]), rn.asarray([-1.0, 0.0, np.nan, np.inf])).tolist()
    assert edges == [0, 1, 0, 0]
    for k in (0, 1, 2, 7):  # first and second derivatives, of the polynomials through the values
        points = np.cos(np.pi * (np.arange(k + 1) + 0.5) / (k + 1))
        fit = np.polynomial.Polynomial.fit(points, oracle(k, points), k).convert()
        slope = rn.grad(lambda x, k=k: function(x, k).sum())
        bend = rn.grad(lambda x, slope=slope: slope(x).sum())
        size = np.abs(fit.coef).sum() * 50
        np.testing.assert_allclose(slope(tensor).numpy(), fit.deriv()(x), rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_allclose(bend(tensor).numpy(), fit.deriv(2)(x), rtol=1e-9, atol=1e-12 * size)


def test_degrees_are_cut_and_dtypes_meet() -> None:
    x = rn.asarray([0.25], dtype="float32")
    assert special.legendre_polynomial_p(x, 2.7).tolist() == special.legendre_polynomial_p(x, 2).tolist()
    assert special.legendre_polynomial_p(x, rn.asarray([1, 2])).dtype == rn.float32
    assert special.hermite_polynomial_h(rn.asarray([3]), 2).dtype == rn.float32
    assert special.legendre_polynomial_p(2.0, rn.asarray([1, 2])).tolist() == [2, 5.5]
    with pytest.raises((RunnelError, TypeError)):
        special.legendre_polynomial_p(x, "2")


def test_derivatives_at_zero() -> None:
    def derivatives(function: Callable[[Any], Any], count: int) -> list[float]:
        x, results = rn.asarray(0.0, dtype="float64"), []
        for _ in range(count):
            function = rn.grad(function)
            results.append(function(x).item())
        return results

    assert derivatives(special.spherical_bessel_j0, 4) == pytest.approx([0, -1 / 3, 0, 1 / 5])
    assert derivatives(special.bessel_j0, 2) == pytest.approx([0, -0.5])
    assert derivatives(special.bessel_j1, 1) == pytest.approx([0.5])
    ai, slope = sp.airy(0)[:2]
    assert derivatives(special.airy_ai, 4) == pytest.approx([slope, 0, ai, 2 * slope])
