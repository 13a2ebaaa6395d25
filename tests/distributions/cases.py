"""Distributions as text, which PyTorch and Runnel read alike: ``D`` is the module, ``T`` makes float64 tensors."""

from __future__ import annotations

# constructor: values whose probabilities are compared
DISTRIBUTIONS = {
    "D.Normal(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.0, -1.5], [3.0, 10.0]])",
    "D.Normal(0.0, 1.0)": "T([0.0, 8.0])",
    "D.LogNormal(T([0.5, -1.0]), T([0.4, 1.3]))": "T([[0.2, 1.5], [3.0, 10.0]])",
    "D.HalfNormal(T([0.5, 3.0]))": "T([[0.0, 1.5], [0.3, 5.0]])",
    "D.HalfCauchy(T([0.5, 3.0]))": "T([[0.1, 1.5], [0.3, 50.0]])",
    "D.Laplace(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.0, -1.5], [3.0, 1.0]])",
    "D.Cauchy(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.0, -1.5], [300.0, 1.0]])",
    "D.Gumbel(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.0, -1.5], [3.0, 1.0]])",
    "D.Uniform(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.5, 0.0], [1.7, -0.2]])",
    "D.Kumaraswamy(T([0.5, 3.0]), T([2.0, 1.3]))": "T([[0.1, 0.2], [0.9, 0.7]])",
    "D.ContinuousBernoulli(T([0.2, 0.5003, 0.9]))": "T([[0.1, 0.2, 0.3], [0.9, 0.7, 1.0]])",
    "D.ContinuousBernoulli(logits=T([-2.0, 0.5]))": "T([[0.1, 0.2], [0.9, 0.7]])",
    "D.Exponential(T([0.5, 3.0]))": "T([[0.0, 0.2], [3.0, 10.0]])",
    "D.Gamma(T([0.5, 3.0, 200.0]), T([2.0, 0.3, 4.0]))": "T([[0.1, 2.0, 45.0], [3.0, 10.0, 60.0]])",
    "D.Chi2(T([0.5, 3.0]))": "T([[0.1, 0.2], [3.0, 10.0]])",
    "D.InverseGamma(T([0.5, 3.0]), T([2.0, 0.3]))": "T([[0.1, 0.2], [3.0, 10.0]])",
    "D.Weibull(T([0.5, 3.0]), T([2.0, 0.7]))": "T([[0.1, 0.2], [1.0, 10.0]])",
    "D.Pareto(T([0.5, 3.0]), T([2.5, 0.7]))": "T([[0.6, 3.2], [3.0, 10.0]])",
    "D.Beta(T([0.5, 3.0, 2.0]), T([2.0, 1.3, 2.0]))": "T([[0.1, 0.2, 0.3], [0.9, 0.7, 0.5]])",
    "D.Dirichlet(T([[0.5, 3.0, 1.0], [2.0, 2.0, 4.0]]))": "T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])",
    "D.StudentT(T([0.5, 3.0]), T([1.0, 0.0]), T([2.0, 0.3]))": "T([[0.1, 0.2], [9.0, -0.7]])",
    "D.FisherSnedecor(T([2.5, 3.0]), T([5.0, 7.0]))": "T([[0.1, 0.2], [9.0, 0.7]])",
    "D.VonMises(T([0.5, -3.0]), T([2.0, 30.0]))": "T([[0.1, 0.2], [3.0, -2.9]])",
    "D.Bernoulli(T([0.2, 0.7]))": "T([[0.0, 1.0], [1.0, 1.0]])",
    "D.Bernoulli(logits=T([-2.0, 30.0]))": "T([[0.0, 1.0], [1.0, 0.0]])",
    "D.Geometric(T([0.2, 0.7]))": "T([[0.0, 1.0], [5.0, 2.0]])",
    "D.Geometric(logits=T([-1.0, 0.7]))": "T([[0.0, 1.0], [5.0, 2.0]])",
    "D.Binomial(10, T([0.2, 0.7]))": "T([[0.0, 1.0], [5.0, 10.0]])",
    "D.Binomial(10, logits=T([-1.0, 3.0]))": "T([[0.0, 1.0], [5.0, 10.0]])",
    "D.NegativeBinomial(T([3.0, 2.5]), T([0.2, 0.7]))": "T([[0.0, 1.0], [5.0, 10.0]])",
    "D.NegativeBinomial(3.0, logits=T([-1.0, 3.0]))": "T([[0.0, 1.0], [5.0, 10.0]])",
    "D.Poisson(T([0.5, 30.0]))": "T([[0.0, 1.0], [5.0, 28.0]])",
    "D.Categorical(T([[1.0, 2.0, 1.0], [0.1, 0.2, 0.7]]))": "T([[0.0, 2.0], [1.0, 1.0]])",
    "D.Categorical(logits=T([1.0, 2.0, -1.0]))": "T([0.0, 2.0, 1.0])",
    "D.OneHotCategorical(T([[1.0, 2.0, 1.0], [0.1, 0.2, 0.7]]))": "T([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])",
    "D.OneHotCategorical(logits=T([1.0, 2.0, -1.0]))": "T([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])",
    "D.Multinomial(4, T([[1.0, 2.0, 1.0], [0.1, 0.2, 0.7]]))": "T([[0.0, 1.0, 3.0], [2.0, 0.0, 2.0]])",
    "D.Multinomial(4, logits=T([1.0, 2.0, -1.0]))": "T([[0.0, 1.0, 3.0], [2.0, 0.0, 2.0]])",
    "D.MultivariateNormal(T([0.5, -1.0]), T([[2.0, 0.6], [0.6, 0.5]]))": "T([[0.0, -1.5], [3.0, 1.0]])",
    "D.MultivariateNormal(T([[0.5, -1.0], [0.0, 0.0]]), precision_matrix=T([[2.0, 0.6], [0.6, 0.5]]))": (
        "T([[0.0, -1.5], [3.0, 1.0]])"
    ),
    "D.MultivariateNormal(T([0.5, -1.0]), scale_tril=T([[2.0, 0.0], [0.6, 0.5]]))": "T([[0.0, -1.5], [3.0, 1.0]])",
    "D.LowRankMultivariateNormal(T([0.5, -1.0, 0.0]), T([[1.0], [0.5], [-0.3]]), T([0.5, 1.0, 2.0]))": (
        "T([[0.0, -1.5, 1.0], [3.0, 1.0, 0.0]])"
    ),
    "D.GeneralizedPareto(T([0.5, -1.0]), T([2.0, 0.3]), T([0.2, -0.4]))": "T([[0.6, -0.8], [3.0, -0.5]])",
    "D.LKJCholesky(3, T([0.7, 2.5]))": (
        "T([[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.8, 0.0, 0.6]]])"
    ),
    "D.Wishart(T([3.0, 4.5]), T([[2.0, 0.6], [0.6, 0.5]]))": (
        "T([[[2.0, 0.5], [0.5, 1.0]], [[9.0, -0.5], [-0.5, 0.1]]])"
    ),
    "D.Wishart(T(3.0), precision_matrix=T([[2.0, 0.6], [0.6, 0.5]]))": "T([[2.0, 0.5], [0.5, 1.0]])",
    "D.Wishart(T(5.0), T([[2.0, 0.3, 0.1], [0.3, 0.5, 0.2], [0.1, 0.2, 1.0]]))": (
        "T([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 4.0]])"
    ),
    "D.Independent(D.Normal(T([[0.5, -1.0], [0.0, 1.0]]), T([2.0, 0.3])), 1)": "T([[0.0, -1.5], [3.0, 1.0]])",
    "D.LogisticNormal(T([0.5, -1.0]), T([2.0, 0.3]))": "T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])",
    "D.TransformedDistribution(D.Uniform(T(0.0), T(1.0)), "
    "[D.SigmoidTransform().inv, D.AffineTransform(2.0, -3.0)])": "T([0.0, 2.0, 7.0])",
    "D.TransformedDistribution(D.Normal(T([0.5, -1.0]), T([2.0, 0.3])), D.TanhTransform())": (
        "T([[0.1, -0.5], [-0.9, -0.2]])"
    ),
    "D.TransformedDistribution(D.Normal(T([0.5, -1.0]), 1.0), D.StickBreakingTransform())": (
        "T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])"
    ),
    "D.TransformedDistribution(D.Normal(T([0.5, -1.0]), T([2.0, 0.3])), "
    "[D.SoftplusTransform(), D.PowerTransform(T(1.5))])": "T([[0.1, 0.5], [0.9, 0.2]])",
    "D.RelaxedBernoulli(T(0.5), T([0.2, 0.7]))": "T([[0.1, 0.2], [0.9, 0.7]])",
    "D.RelaxedOneHotCategorical(T(0.5), T([1.0, 2.0, 1.0]))": "T([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])",
    "D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Normal(T([0.5, -1.0]), T([2.0, 0.3])))": "T([0.0, -1.2])",
    "D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Independent("
    "D.Normal(T([[0.5, -1.0], [0.0, 1.0]]), 1.0), 1))": "T([[0.0, -1.2], [1.0, 0.4]])",
    "D.Normal(T(0.5), T(2.0)).expand((2, 3))": "T([0.0, 1.0, 2.0])",
    "D.Dirichlet(T([0.5, 3.0, 1.0])).expand((2,))": "T([0.2, 0.3, 0.5])",
    "D.LogNormal(T([0.5]), T([0.4])).expand((3, 2))": "T([0.2, 1.5])",
}

# pairs whose divergence is compared
_PAIRS = {
    "Normal": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, 1.0]), T([1.0, 2.0])"),
    "HalfNormal": ("T([0.5, 3.0])", "T([1.5, 0.3])"),
    "LogNormal": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, 1.0]), T([1.0, 2.0])"),
    "Laplace": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, 1.0]), T([1.0, 2.0])"),
    "Cauchy": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, 1.0]), T([1.0, 2.0])"),
    "Gumbel": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, 1.0]), T([1.0, 2.0])"),
    "Exponential": ("T([0.5, 3.0])", "T([1.5, 0.3])"),
    "Gamma": ("T([0.5, 3.0]), T([2.0, 0.3])", "T([1.5, 1.0]), T([1.0, 2.0])"),
    "Beta": ("T([0.5, 3.0]), T([2.0, 0.3])", "T([1.5, 1.0]), T([1.0, 2.0])"),
    "Dirichlet": ("T([0.5, 3.0])", "T([1.5, 0.3])"),
    "Bernoulli": ("T([0.5, 0.0])", "T([0.2, 0.3])"),
    "ContinuousBernoulli": ("T([0.4, 0.9])", "T([0.2, 0.3])"),
    "Binomial": ("7, T([0.5, 0.1])", "7, T([0.2, 0.3])"),
    "Geometric": ("T([0.5, 0.1])", "T([0.2, 0.3])"),
    "Poisson": ("T([0.5, 3.0])", "T([1.5, 0.3])"),
    "Categorical": ("T([0.5, 0.5, 0.0])", "T([0.2, 0.3, 0.5])"),
    "OneHotCategorical": ("T([0.5, 0.5, 1.0])", "T([0.2, 0.3, 0.5])"),
    "Uniform": ("T([0.5, -1.0]), T([2.0, 0.3])", "T([0.0, -0.5]), T([3.0, 2.0])"),
    "Pareto": ("T([0.5, 3.0]), T([2.0, 0.3])", "T([1.5, 1.0]), T([1.0, 2.0])"),
    "MultivariateNormal": ("T([0.5, -1.0]), T([[2.0, 0.6], [0.6, 0.5]])", "T([0.0, 1.0]), T([[1.0, 0.1], [0.1, 3.0]])"),
}
_CROSSED = [
    ("Beta(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Exponential(T(2.0))", "Normal(T(0.2), T(0.5))"),
    ("Gamma(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Gumbel(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Laplace(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Pareto(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Uniform(T(2.0), T(3.0))", "Normal(T(0.2), T(0.5))"),
    ("Beta(T(2.0), T(3.0))", "Exponential(T(0.5))"),
    ("Gamma(T(2.0), T(3.0))", "Exponential(T(0.5))"),
    ("Pareto(T(2.0), T(3.0))", "Exponential(T(0.5))"),
    ("Uniform(T([2.0, -1.0]), T([3.0, 1.0]))", "Exponential(T(0.5))"),
    ("Exponential(T(2.0))", "Gamma(T(0.2), T(0.5))"),
    ("Exponential(T(2.0))", "Gumbel(T(0.2), T(0.5))"),
    ("Normal(T(2.0), T(1.0))", "Gumbel(T(0.2), T(0.5))"),
    ("Uniform(T(2.0), T(3.0))", "Gumbel(T(0.2), T(0.5))"),
    ("Normal(T(2.0), T(1.0))", "Exponential(T(0.5))"),
    ("Poisson(T(2.0))", "Bernoulli(T(0.5))"),
    ("Bernoulli(T([0.3, 0.9]))", "Poisson(T(0.5))"),
    ("Beta(T(2.0), T(3.0))", "ContinuousBernoulli(T(0.3))"),
    ("Beta(T(2.0), T(3.0))", "Gamma(T(0.7), T(1.5))"),
    ("Beta(T(2.0), T(3.0))", "Uniform(T([-0.5, 0.2]), T([2.0, 1.0]))"),
    ("ContinuousBernoulli(T(0.3))", "Exponential(T(0.7))"),
    ("ContinuousBernoulli(T(0.3))", "Normal(T(0.7), T(2.0))"),
    ("ContinuousBernoulli(T(0.3))", "Pareto(T(0.7), T(2.0))"),
    ("ContinuousBernoulli(T(0.3))", "Uniform(T([-0.5, 0.2]), T([2.0, 1.0]))"),
    ("Exponential(T(0.3))", "ContinuousBernoulli(T(0.7))"),
    ("Gamma(T(0.3), T(2.0))", "ContinuousBernoulli(T(0.7))"),
    ("Gamma(T(0.3), T(2.0))", "Gumbel(T(0.7), T(1.2))"),
    ("Gumbel(T(0.3), T(2.0))", "ContinuousBernoulli(T(0.7))"),
    ("Laplace(T(0.3), T(2.0))", "ContinuousBernoulli(T(0.7))"),
    ("Normal(T(0.3), T(2.0))", "ContinuousBernoulli(T(0.7))"),
    ("Pareto(T(0.3), T(2.0))", "ContinuousBernoulli(T(0.7))"),
    ("Pareto(T(0.3), T([2.0, 0.5]))", "Gamma(T(0.7), T(1.2))"),
    ("Uniform(T([0.2, -1.0]), T([0.7, 0.5]))", "Beta(T(0.7), T(1.2))"),
    ("Uniform(T([0.2, -1.0]), T([0.7, 0.5]))", "ContinuousBernoulli(T(0.7))"),
    ("Uniform(T([0.2, 2.0]), T([0.7, 5.0]))", "Gamma(T(0.7), T(1.2))"),
    ("Uniform(T([0.8, 2.0]), T([1.7, 5.0]))", "Pareto(T(0.7), T(1.2))"),
    (
        "LowRankMultivariateNormal(T([0.5, -1.0]), T([[1.0], [0.5]]), T([0.5, 1.0]))",
        "MultivariateNormal(T([0.0, 1.0]), T([[1.0, 0.1], [0.1, 3.0]]))",
    ),
    (
        "MultivariateNormal(T([0.0, 1.0]), T([[1.0, 0.1], [0.1, 3.0]]))",
        "LowRankMultivariateNormal(T([0.5, -1.0]), T([[1.0], [0.5]]), T([0.5, 1.0]))",
    ),
    (
        "Independent(D.Normal(T([0.5, -1.0]), T([2.0, 0.3])), 1)",
        "Independent(D.Normal(T([0.0, 1.0]), T([1.0, 2.0])), 1)",
    ),
]
DIVERGENCES = [
    *((f"D.{name}({p})", f"D.{name}({q})") for name, (p, q) in _PAIRS.items()),
    *((f"D.{p}", f"D.{q}") for p, q in _CROSSED),
]
QUANTILES = "T([0.1, 0.5, 0.9])"
MOMENTS = ("mean", "mode", "variance", "stddev")
# transforms by text: arguments whose values, slopes and gradients are compared
TRANSFORMS = {
    "D.ExpTransform()": "T([0.3, -2.0])",
    "D.SigmoidTransform()": "T([0.3, -2.0])",
    "D.TanhTransform()": "T([0.3, -2.0])",
    "D.SoftplusTransform()": "T([0.3, -2.0])",
    "D.PowerTransform(T(1.7))": "T([0.3, 2.0])",
    "D.AffineTransform(T([0.5, 1.0]), T([2.0, -3.0]))": "T([0.3, -2.0])",
    "D.AffineTransform(0.5, 2.0, event_dim=1)": "T([[0.3, -2.0]])",
    "D.StickBreakingTransform()": "T([[0.3, -2.0], [0.0, 1.0]])",
    "D.CorrCholeskyTransform()": "T([[0.3, -2.0, 0.7], [0.0, 1.0, -0.4]])",
    "D.LowerCholeskyTransform()": "T([[0.3, -2.0], [0.7, -0.4]])",
    "D.PositiveDefiniteTransform()": "T([[0.3, -2.0], [0.7, -0.4]])",
    "D.SoftmaxTransform()": "T([0.3, -2.0])",
    "D.ReshapeTransform((2, 3), (6,))": "T([[[0.3, -2.0, 1.0], [0.7, 0.1, -0.4]]])",
    "D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2])": (
        "T([[0.3, -2.0, 1.0], [0.7, 0.1, -0.4]])"
    ),
    "D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=0)": "T([[0.3, -2.0, 1.0], [0.7, 0.1, -0.4]])",
    "D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=1)": "T([[0.3, -2.0], [0.7, 0.1]])",
    "D.CumulativeDistributionTransform(D.Normal(T(0.2), T(1.5)))": "T([0.3, -2.0])",
    "D.IndependentTransform(D.ExpTransform(), 1)": "T([[0.3, -2.0]])",
    "D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()])": "T([0.3, -2.0])",
    "D.identity_transform": "T([0.3, -2.0])",
    **{
        f"D.{table}(D.constraints.{constraint})": "T([0.3, -2.0])"
        for table in ("transform_to", "biject_to")
        for constraint in (
            "real", "real_vector", "positive", "nonnegative", "greater_than(2.0)", "greater_than_eq(-1.0)",
            "less_than(3.0)", "interval(-1.0, 2.5)", "half_open_interval(0.0, 4.0)", "unit_interval", "simplex",
            "independent(D.constraints.positive, 1)", "cat([D.constraints.positive, D.constraints.real])",
            "stack([D.constraints.positive, D.constraints.unit_interval])",
        )
    },
    "D.transform_to(D.constraints.lower_cholesky)": "T([[0.3, -2.0], [0.7, -0.4]])",
    "D.transform_to(D.constraints.positive_definite)": "T([[0.3, -2.0], [0.7, -0.4]])",
    "D.biject_to(D.constraints.corr_cholesky)": "T([0.3])",
}  # fmt: skip
# constraints by text: values of which each is asked whether it belongs to the set
CONSTRAINTS = {
    "real": "T([0.3, math.nan])",
    "positive": "T([0.3, 0.0, -1.0, math.nan])",
    "nonnegative": "T([0.3, 0.0, -1.0])",
    "unit_interval": "T([0.0, 1.0, 1.1])",
    "interval(T(-1.0), T(2.0))": "T([-1.0, 2.0, 2.1])",
    "half_open_interval(0.0, 2.0)": "T([0.0, 2.0, 1.0])",
    "greater_than(2.0)": "T([2.0, 2.1])",
    "greater_than_eq(2.0)": "T([2.0, 1.9])",
    "less_than(2.0)": "T([2.0, 1.9])",
    "integer_interval(0, 3)": "T([0.0, 1.5, 3.0, 4.0])",
    "nonnegative_integer": "T([0.0, 1.5, -1.0])",
    "positive_integer": "T([0.0, 1.0])",
    "boolean": "T([0.0, 1.0, 0.5])",
    "simplex": "T([[0.2, 0.8], [0.5, 0.6], [-0.1, 1.1]])",
    "one_hot": "T([[0.0, 1.0], [1.0, 1.0]])",
    "lower_triangular": "T([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 1.0], [2.0, 1.0]]])",
    "lower_cholesky": "T([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, -1.0]]])",
    "corr_cholesky": "T([[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]])",
    "square": "T([[[1.0, 0.0], [0.6, 0.8]]])",
    "symmetric": "T([[[1.0, 0.5], [0.5, 0.8]], [[1.0, 0.0], [0.6, 0.8]]])",
    "positive_semidefinite": "T([[[1.0, 0.5], [0.5, 0.8]], [[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])",
    "positive_definite": "T([[[1.0, 0.5], [0.5, 0.8]], [[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])",
    "real_vector": "T([[0.1, 0.2], [0.1, math.nan]])",
    "independent(D.constraints.positive, 1)": "T([[0.1, 0.2], [0.1, -1.0]])",
    "cat([D.constraints.positive, D.constraints.real], dim=1)": "T([[0.1, -0.2], [-0.1, 0.2]])",
    "stack([D.constraints.positive, D.constraints.real], dim=1)": "T([[0.1, -0.2], [-0.1, 0.2]])",
}
