"""Numbers of each distribution are of that distribution: Kolmogorov and Smirnov's test, or chi-square for counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import runnel as rn

KEY = rn.Generator(20).next_key()
CONTINUOUS: dict[str, tuple[Callable[[Any], rn.Tensor], Any]] = {
    "normal": (lambda n: rn.normal(1.0, 2.0, n, key=KEY, dtype="float64"), st.norm(1, 2)),
    "uniform": (lambda n: rn.random.uniform(-1.0, 3.0, n, key=KEY), st.uniform(-1, 4)),
    "lognormal": (lambda n: rn.random.lognormal(0.5, 0.7, n, key=KEY), st.lognorm(0.7, scale=np.exp(0.5))),
    "truncated": (lambda n: rn.random.truncated_normal(0.0, 1.0, -0.5, 2.0, n, key=KEY), st.truncnorm(-0.5, 2)),
    "tail": (lambda n: rn.random.truncated_normal(0.0, 1.0, 9.0, np.inf, n, key=KEY), st.truncnorm(9, np.inf)),
    "exponential": (lambda n: rn.random.exponential(2.0, n, key=KEY), st.expon(scale=2)),
    "laplace": (lambda n: rn.random.laplace(1.0, 2.0, n, key=KEY), st.laplace(1, 2)),
    "cauchy": (lambda n: rn.random.cauchy(1.0, 2.0, n, key=KEY), st.cauchy(1, 2)),
    "gumbel": (lambda n: rn.random.gumbel(1.0, 2.0, n, key=KEY), st.gumbel_r(1, 2)),
    "logistic": (lambda n: rn.random.logistic(1.0, 2.0, n, key=KEY), st.logistic(1, 2)),
    "weibull": (lambda n: rn.random.weibull(1.5, n, key=KEY), st.weibull_min(1.5)),
    "pareto": (lambda n: rn.random.pareto(2.5, n, key=KEY), st.lomax(2.5)),
    "rayleigh": (lambda n: rn.random.rayleigh(2.0, n, key=KEY), st.rayleigh(scale=2)),
    "gamma small": (lambda n: rn.random.standard_gamma(0.3, n, key=KEY, dtype="float64"), st.gamma(0.3)),
    "gamma": (lambda n: rn.random.gamma(2.5, 3.0, n, key=KEY), st.gamma(2.5, scale=3)),
    "gamma large": (lambda n: rn.random.standard_gamma(1e4, n, key=KEY, dtype="float64"), st.gamma(1e4)),
    "chisquare": (lambda n: rn.random.chisquare(3.0, n, key=KEY), st.chi2(3)),
    "standard_t": (lambda n: rn.random.standard_t(4.0, n, key=KEY), st.t(4)),
    "beta": (lambda n: rn.random.beta(0.5, 2.0, n, key=KEY), st.beta(0.5, 2)),
    "dirichlet": (lambda n: rn.random.dirichlet([0.5, 1.0, 2.0], n, key=KEY)[..., 0], st.beta(0.5, 3)),
    "vonmises": (lambda n: rn.random.vonmises(0.5, 2.0, n, key=KEY), st.vonmises(2, 0.5)),
    "vonmises flat": (lambda n: rn.random.vonmises(0.0, 0.0, n, key=KEY), st.uniform(-np.pi, 2 * np.pi)),
    "vonmises sharp": (lambda n: rn.random.vonmises(0.0, 1e7, n, key=KEY, dtype="float64"), st.norm(0, 10**-3.5)),
}
COUNTS: dict[str, tuple[Callable[[Any], rn.Tensor], Any]] = {
    "poisson few": (lambda n: rn.random.poisson(2.5, n, key=KEY), st.poisson(2.5)),
    "poisson": (lambda n: rn.random.poisson(10.0, n, key=KEY), st.poisson(10)),
    "poisson many": (lambda n: rn.random.poisson(300.0, n, key=KEY), st.poisson(300)),
    "binomial few": (lambda n: rn.random.binomial(20, 0.2, n, key=KEY), st.binom(20, 0.2)),
    "binomial": (lambda n: rn.random.binomial(100, 0.3, n, key=KEY), st.binom(100, 0.3)),
    "binomial likely": (lambda n: rn.random.binomial(500, 0.9, n, key=KEY), st.binom(500, 0.9)),
    "geometric": (lambda n: rn.random.geometric(0.3, n, key=KEY), st.geom(0.3)),
    "negative_binomial": (lambda n: rn.random.negative_binomial(2.5, 0.3, n, key=KEY), st.nbinom(2.5, 0.3)),
    "bernoulli": (lambda n: rn.bernoulli(0.3, n, key=KEY), st.bernoulli(0.3)),
    "randint": (lambda n: rn.randint(-3, 5, n, key=KEY), st.randint(-3, 5)),
    "categorical": (
        lambda n: rn.random.categorical(rn.log(rn.asarray([0.1, 0.2, 0.7])), n, key=KEY),
        st.rv_discrete(values=(range(3), (0.1, 0.2, 0.7))),
    ),
    "multinomial": (
        lambda n: rn.multinomial(rn.asarray([1.0, 0.0, 3.0]), n, True, key=KEY),
        st.rv_discrete(values=((0, 2), (0.25, 0.75))),
    ),
    "choice": (
        lambda n: rn.random.choice(rn.asarray([5, 6, 9]), n, p=[0.5, 0.2, 0.3], key=KEY),
        st.rv_discrete(values=((5, 6, 9), (0.5, 0.2, 0.3))),
    ),
}
UNLIKELY = 1e-4  # of a right sampler, for one seed


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    draw, expected = CONTINUOUS[name]
    x = draw(5000).numpy().astype(np.float64)
    assert np.isfinite(x).all() and st.kstest(x, expected.cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    draw, expected = COUNTS[name]
    x = draw(5000).numpy().astype(np.int64)
    values = np.arange(x.min(), x.max() + 1)
    frequencies = np.array([*(5000 * expected.pmf(values)), 5000 * (1 - expected.pmf(values).sum())])
    observed = np.array([*np.bincount(x - x.min()), 0])
    assert not observed[frequencies < 1e-12].any()
    large = frequencies >= 5
    grouped = [np.append(c[large], c[~large].sum()) for c in (observed, frequencies)]
    if grouped[1][-1] < 1e-9:
        grouped = [c[:-1] for c in grouped]
    assert st.chisquare(grouped[0], grouped[1] * (grouped[0].sum() / grouped[1].sum())).pvalue > UNLIKELY


def test_vectors_have_their_covariance() -> None:
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    x = rn.random.multivariate_normal(mean, cov, 20000, key=KEY).numpy()
    assert np.abs(x.mean(0) - mean).max() < 0.05 and np.abs(np.cov(x.T) - cov).max() < 0.1
    white = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    assert all(st.kstest(row[:5000], "norm").pvalue > UNLIKELY for row in white)


def test_without_replacement_first_choices_follow_the_weights() -> None:
    weights = rn.asarray([0.1, 0.2, 0.3, 0.4])
    chosen = rn.multinomial(rn.broadcast_to(weights, (4000, 4)), 2, key=KEY).numpy()
    exact = np.array([0.1, 0.2, 0.3, 0.4])
    assert (chosen[:, 0] != chosen[:, 1]).all()
    assert st.chisquare(np.bincount(chosen[:, 0]), 4000 * exact).pvalue > UNLIKELY
    second = [sum(exact[i] * exact[j] / (1 - exact[i]) for i in range(4) if i != j) for j in range(4)]
    assert st.chisquare(np.bincount(chosen[:, 1]), 4000 * np.array(second)).pvalue > UNLIKELY


def test_permutations_are_equally_likely() -> None:
    keys = rn.split_key(KEY, 3000)
    orders = rn.vmap(lambda k: rn.randperm(3, key=k))(keys).numpy()
    counts = np.unique(orders @ np.array([9, 3, 1]), return_counts=True)[1]
    assert counts.size == 6 and st.chisquare(counts).pvalue > UNLIKELY
