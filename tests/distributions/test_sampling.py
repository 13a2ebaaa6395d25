"""Samples: of their distribution, of the right shapes, the same in all modes, and with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import runnel as rn
from runnel import distributions as D
from runnel.core import switches

KEY = rn.Generator(12).next_key()
UNLIKELY = 1e-4

CONTINUOUS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Normal": (lambda: D.Normal(1.0, 2.0), st.norm(1, 2)),
    "LogNormal": (lambda: D.LogNormal(0.5, 0.7), st.lognorm(0.7, scale=np.exp(0.5))),
    "HalfNormal": (lambda: D.HalfNormal(2.0), st.halfnorm(scale=2)),
    "HalfCauchy": (lambda: D.HalfCauchy(2.0), st.halfcauchy(scale=2)),
    "Kumaraswamy": (lambda: D.Kumaraswamy(1.0, 3.0), st.beta(1, 3)),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(0.8), lambda x: (4**x - 1) / 3),
    "Exponential": (lambda: D.Exponential(2.0), st.expon(scale=0.5)),
    "Gamma": (lambda: D.Gamma(2.5, 4.0), st.gamma(2.5, scale=0.25)),
    "InverseGamma": (lambda: D.InverseGamma(2.5, 4.0), st.invgamma(2.5, scale=4)),
    "Weibull": (lambda: D.Weibull(3.0, 1.5), st.weibull_min(1.5, scale=3)),
    "Pareto": (lambda: D.Pareto(2.0, 3.0), st.pareto(3, scale=2)),
    "Beta": (lambda: D.Beta(2.0, 0.5), st.beta(2, 0.5)),
    "StudentT": (lambda: D.StudentT(4.0, 1.0, 2.0), st.t(4, 1, 2)),
    "FisherSnedecor": (lambda: D.FisherSnedecor(4.0, 6.0), st.f(4, 6)),
    "mixture": (
        lambda: D.MixtureSameFamily(D.Categorical(rn.asarray([0.3, 0.7])), D.Normal(rn.asarray([-1.0, 2.0]), 0.5)),
        lambda x: 0.3 * st.norm(-1, 0.5).cdf(x) + 0.7 * st.norm(2, 0.5).cdf(x),
    ),
    "GeneralizedPareto": (lambda: D.GeneralizedPareto(1.0, 2.0, 0.3), st.genpareto(0.3, 1, 2)),
    "short tail": (lambda: D.GeneralizedPareto(0.0, 1.0, -0.4), st.genpareto(-0.4)),
    "Wishart of a number": (lambda: D.Independent(D.Wishart(3.0, [[2.0]]), 0), st.gamma(1.5, scale=4)),
    "logistic": (
        lambda: D.TransformedDistribution(D.Uniform(0.0, 1.0), [D.SigmoidTransform().inv, D.AffineTransform(1.0, 2.0)]),
        st.logistic(1, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    make, expected = CONTINUOUS[name]
    x = make().sample((4000,), key=KEY).numpy().astype(np.float64).reshape(-1)
    assert st.kstest(x, getattr(expected, "cdf", expected)).pvalue > UNLIKELY


COUNTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Geometric": (lambda: D.Geometric(0.4), st.geom(0.4, loc=-1)),
    "NegativeBinomial": (lambda: D.NegativeBinomial(2.5, 0.6), st.nbinom(2.5, 0.4)),
    "Binomial": (lambda: D.Binomial(30, 0.6), st.binom(30, 0.6)),
    "Multinomial": (lambda: D.Multinomial(30, rn.asarray([0.1, 0.6, 0.3])), st.binom(30, 0.6)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    make, expected = COUNTS[name]
    x = make().sample((4000,), key=KEY).numpy()
    if name == "Multinomial":
        assert (x.sum(-1) == 30).all()
        x = x[:, 1]
    edges = np.unique(expected.ppf([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]))
    observed = np.histogram(x, [-np.inf, *(edges + 0.5), np.inf])[0]
    shares = np.diff([0, *expected.cdf(edges), 1])
    assert st.chisquare(observed, 4000 * shares).pvalue > UNLIKELY


PARTS = rn.asarray([0.2, 0.5, 0.3])
SHAPES: dict[str, Callable[[], Any]] = {
    "Dirichlet": lambda: D.Dirichlet(rn.ones((2, 3))),
    "Categorical": lambda: D.Categorical(rn.ones((2, 3))),
    "OneHotCategorical": lambda: D.OneHotCategorical(PARTS).expand((2,)),
    "straight through": lambda: D.OneHotCategoricalStraightThrough(rn.ones((2, 3))),
    "Multinomial": lambda: D.Multinomial(5, rn.ones((2, 3))),
    "MultivariateNormal": lambda: D.MultivariateNormal(rn.zeros((2, 3)), rn.eye(3)),
    "LowRank": lambda: D.LowRankMultivariateNormal(rn.zeros((2, 3)), rn.ones((3, 1)), rn.ones(3)),
    "Independent": lambda: D.Independent(D.Gamma(rn.ones((2, 3)), 1.0), 1),
    "LogisticNormal": lambda: D.LogisticNormal(rn.zeros((2, 3)), 1.0),
    "RelaxedBernoulli": lambda: D.RelaxedBernoulli(0.5, PARTS).expand((2, 3)),
    "RelaxedOneHot": lambda: D.RelaxedOneHotCategorical(0.5, PARTS).expand((2,)),
    "VonMises": lambda: D.VonMises(PARTS, 2.0).expand((2, 3)),
    "Poisson": lambda: D.Poisson(PARTS),
    "Wishart": lambda: D.Wishart(rn.asarray([4.0, 5.0]), rn.eye(3)),
    "LKJCholesky": lambda: D.LKJCholesky(3, rn.asarray([0.7, 2.0])),
    "GeneralizedPareto": lambda: D.GeneralizedPareto(PARTS, 1.0, -0.2),
    "vectors": lambda: D.MixtureSameFamily(
        D.Categorical(rn.ones(4)), D.Independent(D.Normal(rn.zeros((2, 4, 3)), 1.0), 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_modes(name: str) -> None:
    d = SHAPES[name]()
    shape = (4, *d.batch_shape, *d.event_shape)
    x = d.sample((4,), key=KEY)
    assert x.shape == shape and d.log_prob(x).shape == (4, *d.batch_shape)
    assert bool(d.support.check(x).all()) and not x.requires_grad
    wide = d.expand((5, *d.batch_shape))
    assert wide.batch_shape == (5, *d.batch_shape) and wide.sample(key=KEY).shape == (5, *shape[1:])

    def draw(key: Any) -> Any:
        y = SHAPES[name]().sample((4,), key=key)
        return y, SHAPES[name]().log_prob(y)

    for threads in (1, 2):
        with switches.override(num_threads=threads):
            y, log_prob = rn.compile(lambda key: draw(key))(KEY)
        np.testing.assert_array_equal(y.numpy(), x.numpy())
        np.testing.assert_array_equal(log_prob.numpy(), d.log_prob(x).numpy())


def test_covariances() -> None:
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    x = D.MultivariateNormal(rn.zeros(2), rn.asarray(covariance)).sample((8000,), key=KEY).numpy()
    np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.1)
    low = D.LowRankMultivariateNormal(rn.zeros(2), rn.asarray([[1.0], [0.5]]), rn.asarray([0.2, 0.4]))
    np.testing.assert_allclose(np.cov(low.sample((8000,), key=KEY).numpy().T), low.covariance_matrix.numpy(), atol=0.1)


def test_matrices() -> None:
    """Means of Wishart matrices; correlations r of LKJ matrices, of which (r + 1)/2 has a beta distribution."""
    wishart = D.Wishart(5.0, rn.asarray([[2.0, 0.6], [0.6, 0.5]]))
    x = wishart.sample((8000,), key=KEY).numpy()
    np.testing.assert_allclose(x.mean(0), wishart.mean.numpy(), atol=0.25)
    np.testing.assert_allclose(x.var(0), wishart.variance.numpy(), rtol=0.1)
    for dim, concentration in ((3, 1.0), (4, 2.5)):
        factor = D.LKJCholesky(dim, concentration).sample((4000,), key=KEY).numpy().astype(np.float64)
        correlations = factor @ np.swapaxes(factor, -1, -2)
        half = concentration - 1 + dim / 2
        for i, j in ((1, 0), (dim - 1, 1)):
            assert st.kstest((correlations[:, i, j] + 1) / 2, st.beta(half, half).cdf).pvalue > UNLIKELY


def test_the_density_of_factors_equals_that_of_two_by_two_correlations() -> None:
    """For dim 2 the factor is (r, √(1 - r²)), and r has the density (1 - r²)^(concentration - 1) up to a constant."""
    r = np.linspace(-0.9, 0.9, 7)
    factor = np.zeros((7, 2, 2))
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, r, np.sqrt(1 - r * r)
    own = D.LKJCholesky(2, rn.asarray(2.5, rn.float64)).log_prob(rn.asarray(factor)).numpy()
    np.testing.assert_allclose(own, st.beta(2.5, 2.5, -1, 2).logpdf(r), rtol=1e-10)


@pytest.mark.parametrize(
    "make, parameters",
    [
        (D.Normal, (0.5, 2.0)),
        (D.LogNormal, (0.5, 0.5)),
        (D.Gamma, (0.7, 2.0)),
        (D.Beta, (2.0, 0.7)),
        (D.StudentT, (7.0, 1.0, 2.0)),
        (D.Weibull, (2.0, 1.5)),
        (D.Kumaraswamy, (2.0, 1.5)),
        (D.ContinuousBernoulli, (0.7,)),
    ],
)
def test_gradients_of_samples_keep_the_probability_below_them(make: Any, parameters: tuple[float, ...]) -> None:
    """cdf(x; θ) is constant along the gradient of x, for each sample: ∂F/∂θ + p(x)·dx/dθ = 0."""
    leaves = [rn.tensor(np.full(5, p), requires_grad=True) for p in parameters]
    x = make(*leaves).rsample(key=KEY)
    x.sum().backward()
    if make in (D.Beta, D.StudentT):  # of several random numbers each: the gradient is another one, with the same mean
        assert all(np.isfinite(leaf.grad.numpy()).all() and leaf.grad.numpy().any() for leaf in leaves)
        return
    density = np.exp(make(*[p.detach() for p in leaves]).log_prob(x.detach()).numpy())
    for i, leaf in enumerate(leaves):
        h = 1e-5
        ahead, behind = (
            make(*[p.detach() + s * h * (j == i) for j, p in enumerate(leaves)]).cdf(x.detach()).numpy()
            for s in (1, -1)
        )
        np.testing.assert_allclose(-(ahead - behind) / (2 * h) / density, leaf.grad.numpy(), rtol=1e-4)
