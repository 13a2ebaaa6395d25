"""Distributions of probability, with PyTorch's names: random values with gradients, log-probabilities, moments."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.distributions import constraints, kl, transforms
    from runnel.distributions.categorical import (
        Categorical,
        Multinomial,
        OneHotCategorical,
        OneHotCategoricalStraightThrough,
    )
    from runnel.distributions.circular import VonMises
    from runnel.distributions.distribution import Distribution
    from runnel.distributions.exponential_family import ExponentialFamily
    from runnel.distributions.gamma_family import Chi2, Exponential, Gamma, InverseGamma, Pareto, Weibull
    from runnel.distributions.generalized_pareto import GeneralizedPareto
    from runnel.distributions.half import HalfCauchy, HalfNormal
    from runnel.distributions.independent import Independent
    from runnel.distributions.intervals import ContinuousBernoulli, Kumaraswamy, Uniform
    from runnel.distributions.joint_transforms import (
        CatTransform,
        CumulativeDistributionTransform,
        ReshapeTransform,
        StackTransform,
        identity_transform,
    )
    from runnel.distributions.kl import kl_divergence, register_kl
    from runnel.distributions.location_scale import Cauchy, Gumbel, Laplace, Normal
    from runnel.distributions.matrices import LKJCholesky, Wishart
    from runnel.distributions.matrix_transforms import (
        CorrCholeskyTransform,
        LowerCholeskyTransform,
        PositiveDefiniteTransform,
    )
    from runnel.distributions.mixture import MixtureSameFamily
    from runnel.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
    from runnel.distributions.registry import ConstraintRegistry, biject_to, transform_to
    from runnel.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
    from runnel.distributions.simplex import Beta, Dirichlet
    from runnel.distributions.student import FisherSnedecor, StudentT
    from runnel.distributions.transformed import LogisticNormal, LogNormal, TransformedDistribution
    from runnel.distributions.transforms import (
        AbsTransform,
        AffineTransform,
        ComposeTransform,
        ExpTransform,
        IndependentTransform,
        PowerTransform,
        SigmoidTransform,
        SoftmaxTransform,
        SoftplusTransform,
        StickBreakingTransform,
        TanhTransform,
        Transform,
    )
    from runnel.distributions.trials import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ConstraintRegistry",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]
_LATE = {
    "AbsTransform": "runnel.distributions.transforms:AbsTransform",
    "AffineTransform": "runnel.distributions.transforms:AffineTransform",
    "Bernoulli": "runnel.distributions.trials:Bernoulli",
    "Beta": "runnel.distributions.simplex:Beta",
    "Binomial": "runnel.distributions.trials:Binomial",
    "CatTransform": "runnel.distributions.joint_transforms:CatTransform",
    "Categorical": "runnel.distributions.categorical:Categorical",
    "Cauchy": "runnel.distributions.location_scale:Cauchy",
    "Chi2": "runnel.distributions.gamma_family:Chi2",
    "ComposeTransform": "runnel.distributions.transforms:ComposeTransform",
    "ConstraintRegistry": "runnel.distributions.registry:ConstraintRegistry",
    "ContinuousBernoulli": "runnel.distributions.intervals:ContinuousBernoulli",
    "CorrCholeskyTransform": "runnel.distributions.matrix_transforms:CorrCholeskyTransform",
    "CumulativeDistributionTransform": "runnel.distributions.joint_transforms:CumulativeDistributionTransform",
    "Dirichlet": "runnel.distributions.simplex:Dirichlet",
    "Distribution": "runnel.distributions.distribution:Distribution",
    "ExpTransform": "runnel.distributions.transforms:ExpTransform",
    "Exponential": "runnel.distributions.gamma_family:Exponential",
    "ExponentialFamily": "runnel.distributions.exponential_family:ExponentialFamily",
    "FisherSnedecor": "runnel.distributions.student:FisherSnedecor",
    "Gamma": "runnel.distributions.gamma_family:Gamma",
    "GeneralizedPareto": "runnel.distributions.generalized_pareto:GeneralizedPareto",
    "Geometric": "runnel.distributions.trials:Geometric",
    "Gumbel": "runnel.distributions.location_scale:Gumbel",
    "HalfCauchy": "runnel.distributions.half:HalfCauchy",
    "HalfNormal": "runnel.distributions.half:HalfNormal",
    "Independent": "runnel.distributions.independent:Independent",
    "IndependentTransform": "runnel.distributions.transforms:IndependentTransform",
    "InverseGamma": "runnel.distributions.gamma_family:InverseGamma",
    "Kumaraswamy": "runnel.distributions.intervals:Kumaraswamy",
    "LKJCholesky": "runnel.distributions.matrices:LKJCholesky",
    "Laplace": "runnel.distributions.location_scale:Laplace",
    "LogNormal": "runnel.distributions.transformed:LogNormal",
    "LogisticNormal": "runnel.distributions.transformed:LogisticNormal",
    "LowRankMultivariateNormal": "runnel.distributions.multivariate_normal:LowRankMultivariateNormal",
    "LowerCholeskyTransform": "runnel.distributions.matrix_transforms:LowerCholeskyTransform",
    "MixtureSameFamily": "runnel.distributions.mixture:MixtureSameFamily",
    "Multinomial": "runnel.distributions.categorical:Multinomial",
    "MultivariateNormal": "runnel.distributions.multivariate_normal:MultivariateNormal",
    "NegativeBinomial": "runnel.distributions.trials:NegativeBinomial",
    "Normal": "runnel.distributions.location_scale:Normal",
    "OneHotCategorical": "runnel.distributions.categorical:OneHotCategorical",
    "OneHotCategoricalStraightThrough": "runnel.distributions.categorical:OneHotCategoricalStraightThrough",
    "Pareto": "runnel.distributions.gamma_family:Pareto",
    "Poisson": "runnel.distributions.trials:Poisson",
    "PositiveDefiniteTransform": "runnel.distributions.matrix_transforms:PositiveDefiniteTransform",
    "PowerTransform": "runnel.distributions.transforms:PowerTransform",
    "RelaxedBernoulli": "runnel.distributions.relaxed:RelaxedBernoulli",
    "RelaxedOneHotCategorical": "runnel.distributions.relaxed:RelaxedOneHotCategorical",
    "ReshapeTransform": "runnel.distributions.joint_transforms:ReshapeTransform",
    "SigmoidTransform": "runnel.distributions.transforms:SigmoidTransform",
    "SoftmaxTransform": "runnel.distributions.transforms:SoftmaxTransform",
    "SoftplusTransform": "runnel.distributions.transforms:SoftplusTransform",
    "StackTransform": "runnel.distributions.joint_transforms:StackTransform",
    "StickBreakingTransform": "runnel.distributions.transforms:StickBreakingTransform",
    "StudentT": "runnel.distributions.student:StudentT",
    "TanhTransform": "runnel.distributions.transforms:TanhTransform",
    "Transform": "runnel.distributions.transforms:Transform",
    "TransformedDistribution": "runnel.distributions.transformed:TransformedDistribution",
    "Uniform": "runnel.distributions.intervals:Uniform",
    "VonMises": "runnel.distributions.circular:VonMises",
    "Weibull": "runnel.distributions.gamma_family:Weibull",
    "Wishart": "runnel.distributions.matrices:Wishart",
    "biject_to": "runnel.distributions.registry:biject_to",
    "constraints": "runnel.distributions:constraints",
    "identity_transform": "runnel.distributions.joint_transforms:identity_transform",
    "kl": "runnel.distributions:kl",
    "kl_divergence": "runnel.distributions.kl:kl_divergence",
    "register_kl": "runnel.distributions.kl:register_kl",
    "transform_to": "runnel.distributions.registry:transform_to",
    "transforms": "runnel.distributions:transforms",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
