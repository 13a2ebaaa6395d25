"""Quotients of gamma numbers: Student's t and Snedecor's F."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.ops.elementwise.gamma import digamma, lgamma
from runnel.random import gamma_family
from runnel.tensor.random import key_of


class StudentT(Distribution):
    """loc + scale · t, where t is Student's with ``df`` degrees of freedom."""

    arg_constraints: ClassVar = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all("StudentT", df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * gamma_family.standard_t(self.df, shape, generator=generator, key=key)

    @property
    def mean(self) -> Any:
        return ops.where(ops.greater(self.df, 1), self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        is_finite = ops.greater(self.df, 2)
        finite = self.scale * self.scale * self.df / (ops.where(is_finite, self.df, 3.0) - 2)
        return ops.where(is_finite, finite, ops.where(ops.greater(self.df, 1), math.inf, math.nan))

    def _log_constant(self) -> Any:
        half = self.df * 0.5
        return ops.log(self.scale) + 0.5 * ops.log(self.df * math.pi) + lgamma(half) - lgamma(half + 0.5)

    def log_prob(self, value: Any) -> Any:
        z = (self._valid(value) - self.loc) / self.scale
        return (self.df + 1) * -0.5 * ops.log1p(z * z / self.df) - self._log_constant()

    def entropy(self) -> Any:
        half = self.df * 0.5
        return (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + self._log_constant()


class FisherSnedecor(Distribution):
    """Quotients of two chi-square numbers, each over its degrees of freedom."""

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all("FisherSnedecor", df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        of = key_of(generator, key, None if key is not None else self.df1.device)
        above, below = (
            gamma_family.chisquare(df, shape, key=ops.fold_in(of, i)) / df for i, df in enumerate((self.df1, self.df2))
        )
        return above / below

    @property
    def mean(self) -> Any:
        is_finite = ops.greater(self.df2, 2)
        return ops.where(is_finite, self.df2 / (ops.where(is_finite, self.df2, 3.0) - 2), math.nan)

    @property
    def mode(self) -> Any:
        a, b = self.df1, self.df2
        return ops.where(ops.greater(a, 2), (a - 2) / a * b / (b + 2), math.nan)

    @property
    def variance(self) -> Any:
        a, is_finite = self.df1, ops.greater(self.df2, 4)
        b = ops.where(is_finite, self.df2, 5.0)
        finite = b * b * 2 * (a + b - 2) / (a * (b - 2) * (b - 2) * (b - 4))
        return ops.where(is_finite, finite, math.nan)

    def log_prob(self, value: Any) -> Any:
        x, a, b = self._valid(value), self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        constant = lgamma(a + b) - lgamma(a) - lgamma(b)
        return constant + a * ops.log(ratio) + (a - 1) * ops.log(x) - (a + b) * ops.log1p(ratio * x)
