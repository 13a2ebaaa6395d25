"""Kullback-Leibler divergences: an extensible table of pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from runnel import ops
from runnel.distributions.categorical import Categorical, OneHotCategorical
from runnel.distributions.distribution import Distribution, ExponentialFamily, sum_last
from runnel.distributions.gamma_family import Exponential, Gamma, Pareto
from runnel.distributions.gamma_quotients import Beta, Dirichlet
from runnel.distributions.intervals import ContinuousBernoulli, Uniform
from runnel.distributions.location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal
from runnel.distributions.matrices import Wishart
from runnel.distributions.multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    squared_distance,
)
from runnel.distributions.transformed import Independent, TransformedDistribution
from runnel.distributions.trials import Bernoulli, Binomial, Geometric, Poisson
from runnel.ops.arguments import broadcast_shapes
from runnel.ops.elementwise.gamma import digamma, lgamma, mvlgamma
from runnel.ops.elementwise.numbers import xlogy
from runnel.random.drawing import known_values
from runnel.tensor.effects import require_at_run

Function = TypeVar("Function", bound=Callable[..., Any])
_EULER = 0.57721566490153286
_LOG_2PI = math.log(2 * math.pi)
_TABLE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Function], Function]:
    """Register the decorated function of (p, q) as the divergence of these classes and their subclasses."""

    def registered(function: Function) -> Function:
        _TABLE[type_p, type_q] = function
        return function

    return registered


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """Return ∫ p·log(p/q), of shape ``batch_shape``, by the entry of the nearest base classes.

    NotImplementedError for pairs that are not in the table.
    """
    function = _nearest(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            f"[kl_divergence] there is no formula for {type(p).__name__} and {type(q).__name__}; add one with "
            "register_kl()."
        )
    return function(p, q)


def _nearest(p: type, q: type) -> Callable[[Any, Any], Any] | None:
    """Return the entry of the classes nearest to ``p`` and ``q``."""
    near = {
        (p.__mro__.index(a) + q.__mro__.index(b), p.__mro__.index(a)): function
        for (a, b), function in _TABLE.items()
        if a in p.__mro__ and b in q.__mro__
    }
    return near[min(near)] if near else None


# --- of one class ---------------------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (ratio * ratio + apart * apart - 1) * 0.5 - ops.log(ratio)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Any:
    return _normal(p.base_dist, q.base_dist)  # type: ignore[arg-type]


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Any:
    ratio, apart = p.scale / q.scale, ops.abs(p.loc - q.loc)
    return -ops.log(ratio) + apart / q.scale + ratio * ops.exp(-apart / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Any:
    """Apply F. Chyzak, F. Nielsen, "A closed-form formula for the KL divergence between Cauchy distributions", 2019."""
    total, apart = p.scale + q.scale, p.loc - q.loc
    return ops.log(total * total + apart * apart) - ops.log(p.scale * q.scale * 4)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio, moved, loc = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    shifted = ops.exp(moved - loc + lgamma(ratio + 1))
    return -ops.log(ratio) - moved + loc + ratio * _EULER - (1 + _EULER) + shifted


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return ratio - ops.log(ratio) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    shapes = lgamma(b) - lgamma(a) + (a - b) * digamma(a)
    return b * ops.log(p.rate / q.rate) + shapes + (q.rate - p.rate) * (a / p.rate)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Any:
    total = p.concentration1 + p.concentration0
    first = (p.concentration1 - q.concentration1) * digamma(p.concentration1)
    second = (p.concentration0 - q.concentration0) * digamma(p.concentration0)
    rest = (q.concentration1 + q.concentration0 - total) * digamma(total)
    return q._log_beta() - p._log_beta() + first + second + rest


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    total = ops.sum(a, -1)
    sizes = lgamma(total) - lgamma(ops.sum(b, -1)) - ops.sum(lgamma(a) - lgamma(b), -1)
    return sizes + ops.sum((a - b) * (digamma(a) - ops.expand_dims(digamma(total), -1)), -1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Any:
    ones = _share(p.probs, q.probs, ops.softplus(-q.logits) - ops.softplus(-p.logits))
    return ones + _share(1 - p.probs, 1 - q.probs, ops.softplus(q.logits) - ops.softplus(p.logits))


def _share(p: Any, q: Any, log_ratio: Any) -> Any:
    """Return p·log(p/q); 0 if p is 0, infinite if only q is 0."""
    is_outside = ops.logical_and(ops.equal(q, 0), ops.greater(p, 0))
    return ops.where(ops.equal(p, 0), 0.0, ops.where(is_outside, math.inf, p * log_ratio))


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Any:
    return -p.entropy() - p.mean * q.logits - q._log_constant() + ops.softplus(q.logits)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Any:
    """Return the divergence for equal counts, infinite if p has more; ValueError if q has more."""
    fewer = known_values(ops.less(p.total_count, q.total_count))
    message = "[kl_divergence] Binomials have one total_count, or p the greater one"
    if fewer is None:
        require_at_run(lambda: ops.greater_equal(p.total_count, q.total_count), message)
    elif fewer.any():
        raise ValueError(f"{message}.")
    every = p.total_count * (p.probs * (p.logits - q.logits) - ops.softplus(p.logits) + ops.softplus(q.logits))
    return ops.where(ops.greater(p.total_count, q.total_count), math.inf, every)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Any:
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Any:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Any:
    terms = ops.where(ops.equal(p.probs, 0), 0.0, p.probs * (p.logits - q.logits))
    is_outside = ops.logical_and(ops.equal(q.probs, 0), ops.greater(p.probs, 0))
    return ops.sum(ops.where(is_outside, math.inf, terms), -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Any:
    return _categorical(p, q)  # type: ignore[arg-type]


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Any:
    is_outside = ops.logical_or(ops.less(p.low, q.low), ops.greater(p.high, q.high))
    return ops.where(is_outside, math.inf, ops.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Any:
    ratio, shapes = p.scale / q.scale, q.alpha / p.alpha
    return ops.where(ops.less(p.scale, q.scale), math.inf, q.alpha * ops.log(ratio) - ops.log(shapes) + shapes - 1)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    """Return -H(p) less the mean of log q, from the columns of p's factor divided by q's."""
    factor, n = q.scale_tril, p.event_shape[0]
    columns = p.scale_tril.mT
    spread = ops.sum(squared_distance(ops.expand_dims(factor, -3), columns), -1)
    full = spread + squared_distance(factor, p.loc - q.loc) + n * _LOG_2PI
    return full * 0.5 + (q.entropy() - 0.5 * n * (1 + _LOG_2PI)) - p.entropy()


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("[kl_divergence] Independents are of as many axes each.")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("[kl_divergence] transformed distributions have the same transforms.")
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_last(kl_divergence(p.base_dist, q.base_dist), max(more, 0))


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Any:
    n = p.event_shape[-1]
    spread = ops.sum(squared_distance(ops.expand_dims(q.scale_tril, -3), p.scale_tril.mT), -1)
    sizes = half_log_det(q.scale_tril) - half_log_det(p.scale_tril)
    gammas = mvlgamma(q.df * 0.5, n) - mvlgamma(p.df * 0.5, n)
    return q.df * sizes + (spread - n) * p.df * 0.5 + gammas + (p.df - q.df) * 0.5 * p.sum_of_digammas()


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Any:
    """Return the Bregman divergence of the log normalizer.

    F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", 2010.
    """
    if type(p) is not type(q):
        raise NotImplementedError("[kl_divergence] ExponentialFamilies are of one class.")
    value, gradients = p.normalizer_and_slopes()
    apart = q._log_normalizer(*q._natural_params) - value
    own = len(p.event_shape)
    for a, b, slope in zip(p._natural_params, q._natural_params, gradients, strict=True):
        apart = apart - sum_last((b - a) * slope, own)
    return apart


# --- of two classes: -H(p) less the mean of log q -------------------------------------------------------------------


def _to_normal(p: Any, q: Normal) -> Any:
    apart = (p.mean - q.loc) / q.scale
    square = p.variance / (q.scale * q.scale) + apart * apart
    return square * 0.5 + ops.log(q.scale) + 0.5 * _LOG_2PI - p.entropy()


def _to_exponential(p: Any, q: Exponential) -> Any:
    return q.rate * p.mean - ops.log(q.rate) - p.entropy()


def _gamma_of_exponential(p: Exponential) -> Gamma:
    return Gamma(ops.ones_like(p.rate), p.rate, validate_args=False)


for _kind in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform):
    register_kl(_kind, Normal)(_to_normal)
for _kind in (Beta, ContinuousBernoulli, Gamma, Pareto):
    register_kl(_kind, Exponential)(_to_exponential)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Any:
    return ops.where(ops.less(p.low, 0), math.inf, _to_exponential(p, q))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Any:
    return _gamma(_gamma_of_exponential(p), q)


@register_kl(Uniform, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Exponential, Gumbel)
def _to_gumbel(p: Any, q: Gumbel) -> Any:
    """Use the mean of exp(-(x - loc)/scale)."""
    centred = (p.mean - q.loc) / q.scale
    return centred + _mean_exponential(p, -1 / q.scale) * ops.exp(q.loc / q.scale) + ops.log(q.scale) - p.entropy()


def _mean_exponential(p: Any, t: Any) -> Any:
    """Return the mean of exp(t·x), t < 0."""
    if isinstance(p, Normal):
        return ops.exp(p.loc * t + p.variance * t * t * 0.5)
    if isinstance(p, Exponential):
        return p.rate / (p.rate - t)
    return (ops.exp(p.high * t) - ops.exp(p.low * t)) / ((p.high - p.low) * t)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Any:
    """Use the mean of |x - loc|, a folded normal variable."""
    apart = p.loc - q.loc
    z = apart / p.scale
    density = ops.exp(z * z * -0.5) * (math.sqrt(2 / math.pi))
    mean = p.scale * density + apart * ops.erf(z * math.sqrt(0.5))
    return mean / q.scale + ops.log(q.scale * 2) - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Any:
    return ops.softplus(q.logits) - p.mean * q.logits - q._log_constant() - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Any:
    return q.rate - p.probs * ops.log(q.rate) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Any:
    """Use the mean of exp(-x/scale), (1 + 1/(rate·scale))^-concentration."""
    centred = (p.mean - q.loc) / q.scale
    mean = ops.exp(q.loc / q.scale - p.concentration * ops.log1p(1 / (p.rate * q.scale)))
    return centred + mean + ops.log(q.scale) - p.entropy()


def _where_inside(is_outside: Any, value: Any) -> Any:
    return ops.where(is_outside, math.inf, value)


def _is_outside_of(q: Uniform) -> Any:
    """Return a mask where some numbers in (0, 1) are impossible for q."""
    return ops.logical_or(ops.greater(q.low, 0), ops.less(q.high, 1))


@register_kl(ContinuousBernoulli, Uniform)
@register_kl(Beta, Uniform)
def _unit_uniform(p: Any, q: Uniform) -> Any:
    return _where_inside(_is_outside_of(q), ops.log(q.high - q.low) - p.entropy())


def _is_not_unit(p: Uniform) -> Any:
    """Return a mask where p has values outside [0, 1]."""
    return ops.logical_or(ops.less(p.low, 0), ops.greater(p.high, 1))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Any:
    """Use the mean of log x over an interval, (h·log h - l·log l)/(h - l) - 1."""
    width = p.high - p.low
    low, high = 1 - p.low, 1 - p.high
    logs = (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / width - 1
    others = (xlogy(low, low) - xlogy(high, high)) / width - 1
    mean = (q.concentration1 - 1) * logs + (q.concentration0 - 1) * others - q._log_beta()
    return _where_inside(_is_not_unit(p), -mean - p.entropy())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Any:
    value = ops.softplus(q.logits) - p.mean * q.logits - q._log_constant() - p.entropy()
    return _where_inside(_is_not_unit(p), value)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Any:
    logs = (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1
    mean = xlogy(q.concentration, q.rate) - lgamma(q.concentration) + (q.concentration - 1) * logs - q.rate * p.mean
    return _where_inside(ops.less(p.low, 0), -mean - p.entropy())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Any:
    logs = (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1
    mean = ops.log(q.alpha) + q.alpha * ops.log(q.scale) - (q.alpha + 1) * logs
    return _where_inside(ops.less(p.low, q.scale), -mean - p.entropy())


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Any:
    logs = digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    mean = xlogy(q.concentration, q.rate) - lgamma(q.concentration) + (q.concentration - 1) * logs - q.rate * p.mean
    return -mean - p.entropy()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Any:
    """Return the divergence; infinite for alpha ≤ 1, like the mean."""
    logs = ops.log(p.scale) + 1 / p.alpha
    mean = xlogy(q.concentration, q.rate) - lgamma(q.concentration) + (q.concentration - 1) * logs
    is_finite = ops.greater(p.alpha, 1)
    alpha = ops.where(is_finite, p.alpha, 2.0)
    return ops.where(is_finite, q.rate * p.scale * alpha / (alpha - 1) - mean - p.entropy(), math.inf)


def _infinite(p: Any, q: Any) -> Any:
    """Return infinity where p has values that are impossible for q."""
    shape = broadcast_shapes("kl_divergence", p.batch_shape, q.batch_shape)
    return ops.full_like(p.mean, math.inf, shape)


for _wide, _narrower in {
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _other in _narrower:
        register_kl(_wide, _other)(_infinite)
