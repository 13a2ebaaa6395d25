"""Bad parameters and values get one clear error; checks can be left out; the table of divergences is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import distributions as D
from runnel.core.errors import ShapeError
from runnel.distributions import constraints

WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "scale": (lambda: D.Normal(0.0, rn.asarray([1.0, -1.0])), ValueError, r"\[Normal\] scale must be .*\[-1"),
    "nan": (lambda: D.Normal(float("nan"), 1.0), ValueError, r"\[Normal\] loc must be a number, not NaN"),
    "probability": (lambda: D.Bernoulli(1.5), ValueError, r"\[Bernoulli\] probs must be from 0 to 1; got \[1.5\]"),
    "none": (lambda: D.Bernoulli(), ValueError, r"\[Bernoulli\] takes one of probs and logits; got none"),
    "both": (lambda: D.Categorical(rn.ones(2), rn.ones(2)), ValueError, r"\[Categorical\] .* got both"),
    "weights": (lambda: D.Categorical(rn.asarray([0.5, -0.5])), ValueError, "probs must not be negative"),
    "zeros": (lambda: D.Categorical(rn.zeros(3)), ValueError, r"the sum of probs is finite and not 0"),
    "number": (lambda: D.Categorical(0.5), ShapeError, r"\[Categorical\] probs must have an element for each category"),
    "interval": (lambda: D.Uniform(1.0, 0.0), ValueError, r"\[Uniform\] high - low must be greater than 0"),
    "vector": (lambda: D.Dirichlet(2.0), ShapeError, r"\[Dirichlet\] concentration must have an element"),
    "count": (lambda: D.Multinomial(-1, rn.ones(2)), ValueError, r"\[Multinomial\] total_count must be an int"),
    "trials": (lambda: D.Binomial(2.5, 0.5), ValueError, r"\[Binomial\] total_count must be a whole number"),
    "matrix": (lambda: D.MultivariateNormal(rn.zeros(2)), ValueError, r"one of covariance_matrix.* got none"),
    "definite": (
        lambda: D.MultivariateNormal(rn.zeros(2), rn.asarray([[1.0, 2.0], [2.0, 1.0]])), ValueError,
        r"\[MultivariateNormal\] covariance_matrix must be a symmetric, positive definite matrix",
    ),
    "sizes": (lambda: D.MultivariateNormal(rn.zeros(3), rn.eye(2)), ShapeError, r"loc must have shape"),
    "value": (lambda: D.Exponential(1.0).log_prob(rn.asarray(-1.0)), ValueError, r"value must be 0 or greater"),
    "category": (lambda: D.Categorical(rn.ones(3)).log_prob(rn.asarray(3)), ValueError, r"from 0 to 2; got \[3\]"),
    "shape": (lambda: D.Normal(rn.zeros(3), 1.0).log_prob(rn.zeros(2)), ShapeError, r"\[Normal\] operand shapes"),
    "event": (lambda: D.Dirichlet(rn.ones(3)).log_prob(rn.ones(2)), ShapeError, r"\[Dirichlet\] value must have shape"),
    "simplex": (lambda: D.Dirichlet(rn.ones(2)).log_prob(rn.ones(2)), ValueError, r"probabilities with the sum 1"),
    "axes": (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ShapeError, r"\[Independent\] 1 axes cannot be taken"),
    "components": (
        lambda: D.MixtureSameFamily(D.Categorical(rn.ones(3)), D.Normal(rn.zeros(2), 1.0)), ShapeError,
        r"\[MixtureSameFamily\] 3 categories",
    ),
    "reparametrised": (lambda: D.Poisson(1.0).rsample(), NotImplementedError, r"\[Poisson\] has no rsample"),
    "cdf": (lambda: D.Dirichlet(rn.ones(2)).cdf(rn.ones(2)), NotImplementedError, r"\[Dirichlet\] has no cdf"),
    "freedom": (lambda: D.Wishart(1.0, rn.eye(3)), ValueError, r"\[Wishart\] df must be greater than 2; got \[1.0\]"),
    "factor": (lambda: D.Wishart(3.0), ValueError, r"\[Wishart\] takes one of covariance_matrix.* got none"),
    "dimension": (lambda: D.LKJCholesky(1), ValueError, r"\[LKJCholesky\] dim must be 2 or greater; got 1"),
    "no transform": (lambda: D.biject_to(constraints.boolean), NotImplementedError, r"with biject_to\.register"),
    "no constraint": (lambda: D.transform_to(3), TypeError, r"\[transform_to\] takes a constraint; got"),
    "elements": (lambda: D.CorrCholeskyTransform()(rn.ones(4)), ShapeError, r"n\(n - 1\)/2 elements; got 4"),
    "pair": (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0)), NotImplementedError, r"add one with"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        call()


def test_checks_can_be_left_out() -> None:
    assert np.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(rn.asarray(1.0)).numpy())
    D.Distribution.set_default_validate_args(False)
    try:
        assert float(D.Exponential(1.0).log_prob(rn.asarray(-1.0))) == 1
    finally:
        D.Distribution.set_default_validate_args(True)


def test_transforms_and_their_inverses() -> None:
    x = rn.asarray(np.array([[0.3, -1.2, 0.7]]))
    for t in (
        D.ExpTransform(), D.SigmoidTransform(), D.TanhTransform(), D.SoftplusTransform(), D.AffineTransform(1.0, -2.0),
        D.ComposeTransform([D.AffineTransform(0.0, 0.5), D.ExpTransform(), D.PowerTransform(1.5)]),
        D.ExpTransform().inv.inv,
    ):  # fmt: skip
        y = t(x)
        np.testing.assert_allclose(t.inv(y).numpy(), x.numpy(), rtol=1e-12)
        slope = rn.grad(lambda v, t=t: t(v).sum())(x)
        np.testing.assert_allclose(t.log_abs_det_jacobian(x, y).numpy(), np.log(np.abs(slope.numpy())), rtol=1e-10)
        np.testing.assert_allclose(t.inv.log_abs_det_jacobian(y, x).numpy(), -np.log(np.abs(slope.numpy())), rtol=1e-10)
    breaking = D.StickBreakingTransform()
    y = breaking(x)
    np.testing.assert_allclose(breaking.inv(y).numpy(), x.numpy(), rtol=1e-12)
    jacobian = rn.jacrev(lambda v: breaking(v)[:-1])(x[0]).numpy()
    np.testing.assert_allclose(
        breaking.log_abs_det_jacobian(x, y).numpy()[0], np.log(np.abs(np.linalg.det(jacobian))), rtol=1e-10
    )
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)


def test_values_are_enumerated() -> None:
    assert D.Bernoulli(rn.asarray([0.2, 0.3])).enumerate_support().shape == (2, 2)
    assert D.Categorical(rn.ones((2, 3))).enumerate_support(expand=False).shape == (3, 1)
    assert D.OneHotCategorical(rn.ones(3)).enumerate_support().tolist() == np.eye(3).tolist()
    assert float(rn.exp(D.Binomial(4, 0.3).log_prob(D.Binomial(4, 0.3).enumerate_support())).sum()) == pytest.approx(1)


def test_divergences_of_custom_classes() -> None:
    class Half(D.Distribution):
        support = constraints.real

    class Quarter(Half):
        pass

    @D.register_kl(Half, D.Normal)
    def _half(p: Any, q: Any) -> float:
        return 0.5

    assert D.kl_divergence(Quarter(), D.Normal(0.0, 1.0)) == 0.5
    assert constraints.positive.check(rn.asarray([0.0, 1.0])).tolist() == [False, True]


def test_straight_through_gradients_equal_gradients_of_probabilities() -> None:
    logits = rn.tensor([0.1, 0.5, -1.0], requires_grad=True)
    drawn = D.OneHotCategoricalStraightThrough(logits=logits).rsample(key=rn.Generator(1).next_key())
    assert sorted(drawn.tolist()) == [0, 0, 1]
    weights = rn.asarray([1.0, 2.0, 3.0])
    expected = rn.grad(lambda v: (rn.softmax(v) * weights).sum())(logits.detach())
    (drawn * weights).sum().backward()
    np.testing.assert_allclose(logits.grad.numpy(), expected.numpy(), rtol=1e-6)


def test_transforms_for_constraints_of_others() -> None:
    class Even(constraints.Constraint):
        pass

    class EvenToo(Even):
        pass

    @D.transform_to.register(Even)
    def _even(constraint: Even) -> D.Transform:
        return D.AffineTransform(0.0, 2.0)

    assert D.transform_to(EvenToo())(rn.asarray(3.0)).item() == 6.0
    with pytest.raises(TypeError, match="registers constraints"):
        D.biject_to.register(3, lambda _: D.ExpTransform())


def test_dependent_constraints() -> None:
    class Interval(D.Distribution):
        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self) -> Any:
            return constraints.interval(0.0, 2.0)

    assert constraints.is_dependent(Interval.support) and not constraints.is_dependent(constraints.real)
    assert Interval().support.check(rn.asarray(3.0)).item() is False


def test_the_divergence_of_wisharts_of_one_row_equals_that_of_gammas() -> None:
    """A Wishart matrix of one number has a gamma distribution of df/2 and 1/(2·variance)."""
    p, q = D.Wishart(3.0, [[2.0]]), D.Wishart(4.5, [[0.7]])
    gammas = D.kl_divergence(D.Gamma(1.5, 0.25), D.Gamma(2.25, 1 / 1.4))
    np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), gammas.numpy(), rtol=1e-5)


def test_generalized_pareto_numbers_without_a_concentration_are_exponential() -> None:
    """The derivatives by the concentration at 0, too, are the limits of those around."""
    slopes = []
    for xi in (-1e-4, 0.0, 1e-4):
        leaf = rn.tensor(np.asarray(xi), requires_grad=True)
        d = D.GeneralizedPareto(rn.asarray(0.5, rn.float64), 2.0, leaf)
        (d.log_prob(rn.asarray(4.0, rn.float64)) + d.icdf(rn.asarray(0.7, rn.float64))).backward()
        slopes.append(leaf.grad.item())
    assert slopes[1] == pytest.approx((slopes[0] + slopes[2]) / 2, rel=1e-5)
    exponential = D.Exponential(0.5).log_prob(rn.asarray(3.5)).item()
    assert D.GeneralizedPareto(0.5, 2.0, 0.0).log_prob(rn.asarray(4.0)).item() == pytest.approx(exponential)


def test_exponential_families_by_their_normalizers() -> None:
    """Entropy and divergence of Poisson's kin, the exponential numbers, from F(θ) = -log(-θ)."""

    class Waiting(D.ExponentialFamily):
        def __init__(self, rate: float) -> None:
            self.rate = rn.asarray([rate])
            super().__init__((1,))

        @property
        def _natural_params(self) -> tuple[Any, ...]:
            return (-self.rate,)

        def _log_normalizer(self, natural: Any) -> Any:
            return -rn.log(-natural)

        _mean_carrier_measure = 0

    p, q = Waiting(1.5), Waiting(0.4)
    np.testing.assert_allclose(p.entropy().numpy(), [D.Exponential(1.5).entropy().item()], rtol=1e-6)
    expected = D.kl_divergence(D.Exponential(1.5), D.Exponential(0.4)).item()
    np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), [expected], rtol=1e-6)
