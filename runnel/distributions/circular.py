"""Distributions of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, broadcast_all
from runnel.ops.library.special import i0e, i1e
from runnel.random import circular


class VonMises(Distribution):
    """Angles with a density proportional to exp(concentration·cos(x - loc))."""

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all("VonMises", loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = (), *, generator: Any = None, key: Any = None) -> Any:
        shape = self._extended_shape(sample_shape)
        return circular.vonmises(self.loc, self.concentration, shape, generator=generator, key=key)

    @property
    def mean(self) -> Any:
        """The direction of the mean of (cos x, sin x)."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """1 less the length of the mean of (cos x, sin x)."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        k = self.concentration
        half = ops.sin((self._valid(value) - self.loc) / 2)
        return -(half * half) * k * 2 - math.log(2 * math.pi) - ops.log(i0e(k))

    def entropy(self) -> Any:
        k = self.concentration
        return k * (1 - i1e(k) / i0e(k)) + math.log(2 * math.pi) + ops.log(i0e(k))
