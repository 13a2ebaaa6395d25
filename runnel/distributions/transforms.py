"""Invertible functions with the logarithms of their derivatives, which turn one distribution into another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.distributions import constraints
from runnel.distributions.distribution import sum_last
from runnel.ops.arguments import broadcast_shapes
from runnel.ops.elementwise.circular import atanh
from runnel.ops.reductions.cumulative import cumprod, cumsum
from runnel.random.drawing import as_parameter


class Transform:
    """A function ``transform(x)`` with its inverse ``transform.inv(y)``.

    ``log_abs_det_jacobian(x, y)`` is the logarithm of the factor by which it stretches volumes at x. A subclass defines
    ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        self.cache_size = cache_size

    def __call__(self, x: Any) -> Any:
        return self._call(x)

    @property
    def inv(self) -> Transform:
        """Inverse transform."""
        return _Inverse(self)

    @property
    def sign(self) -> int:
        """1 if the function increases, -1 if it decreases."""
        raise NotImplementedError(f"[{type(self).__name__}] has no sign: it is not a function of one number.")

    @property
    def event_dim(self) -> int:
        """Number of axes of one value."""
        dim: int = self.domain.event_dim
        return dim

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] has no _call.")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] has no inverse.")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the log absolute determinant of the derivative at x, where y is the value."""
        raise NotImplementedError(f"[{type(self).__name__}] has no log_abs_det_jacobian.")

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the value for an argument of ``shape``."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the argument for a value of ``shape``."""
        return shape

    def __eq__(self, other: Any) -> bool:
        return self is other or (type(self) is type(other) and _same(self.__dict__, other.__dict__))

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(mine: dict[str, Any], others: dict[str, Any]) -> bool:
    """Return True if attributes are the same objects or equal numbers."""
    return mine.keys() == others.keys() and all(
        x is others[name] or (isinstance(x, (int, float, tuple, list, Transform)) and x == others[name])
        for name, x in mine.items()
    )


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        super().__init__()
        self._of = of

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return self._of.bijective

    domain = property(lambda self: self._of.codomain)
    codomain = property(lambda self: self._of.domain)

    @property
    def inv(self) -> Transform:
        return self._of

    @property
    def sign(self) -> int:
        return self._of.sign

    def _call(self, x: Any) -> Any:
        return self._of._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._of.forward_shape(shape)


class _Rising(Transform):
    """An increasing function of numbers."""

    bijective = True

    @property
    def sign(self) -> int:
        return 1


class ExpTransform(_Rising):
    """y = exp x."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return ops.exp(x)

    def _inverse(self, y: Any) -> Any:
        return ops.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(_Rising):
    """y = 1/(1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return ops.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return ops.log(y) - ops.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -ops.softplus(-x) - ops.softplus(x)


class TanhTransform(_Rising):
    """y = tanh x."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return ops.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (math.log(2) - x - ops.softplus(x * -2)) * 2


class SoftplusTransform(_Rising):
    """y = log(1 + exp x)."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return ops.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return y + ops.log(-ops.expm1(-y))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -ops.softplus(-x)


class PowerTransform(_Rising):
    """y = x^exponent, x > 0."""

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = as_parameter(exponent)

    @property
    def sign(self) -> Any:
        return ops.sign(self.exponent) if hasattr(self.exponent, "aval") else (self.exponent > 0) * 2 - 1

    def _call(self, x: Any) -> Any:
        return ops.pow(x, self.exponent)

    def _inverse(self, y: Any) -> Any:
        return ops.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return ops.log(ops.abs(self.exponent * y / x))


class AffineTransform(Transform):
    """y = loc + scale · x, with ``event_dim`` axes as one value."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = as_parameter(loc), as_parameter(scale)
        self._event_dim = event_dim

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = property(lambda self: self.domain)

    @property
    def sign(self) -> Any:
        return ops.sign(self.scale) if hasattr(self.scale, "aval") else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        stretched = ops.log(ops.abs(self.scale + ops.zeros_like(x)))
        return sum_last(stretched, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes("AffineTransform", shape, *(getattr(x, "shape", ()) for x in (self.loc, self.scale)))

    inverse_shape = forward_shape


class AbsTransform(Transform):
    """y = |x|; the inverse returns y."""

    codomain = constraints.nonnegative

    def _call(self, x: Any) -> Any:
        return ops.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class SoftmaxTransform(Transform):
    """y = softmax x along the last axis; the inverse returns log y."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return ops.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return ops.log(y)


class StickBreakingTransform(Transform):
    """Map n numbers to n + 1 probabilities: y_i is the share sigmoid(x_i - log(n - i)) of the rest."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _offsets(self, x: Any) -> Any:
        n = x.shape[-1]
        return ops.log(n - ops.iota(x, (n,), dtype=x.dtype))

    def _call(self, x: Any) -> Any:
        share = ops.sigmoid(x - self._offsets(x))
        left = cumprod(1 - share, -1)
        one = ops.ones_like(share[..., :1])
        return ops.concat([share, one], -1) * ops.concat([one, left], -1)

    def _inverse(self, y: Any) -> Any:
        first = y[..., :-1]
        left = ops.maximum(1 - cumsum(first, -1), 1.2e-38)
        return ops.log(first) - ops.log(left) + self._offsets(first)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        moved = x - self._offsets(x)
        return ops.sum(-moved - ops.softplus(-moved) + ops.log(y[..., :-1]), -1)

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] - 1)


class ComposeTransform(Transform):
    """A sequence of transforms."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    def _event_dims(self) -> tuple[int, int]:
        """Return the axes of arguments and of values that all parts together need."""
        dim = 0
        for part in reversed(self.parts):
            dim = max(dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        argument = dim
        for part in self.parts:
            dim = max(dim, part.domain.event_dim) + part.codomain.event_dim - part.domain.event_dim
        return argument, dim

    @property
    def domain(self) -> Any:
        return _widened(self.parts[0].domain, self._event_dims()[0]) if self.parts else constraints.real

    @property
    def codomain(self) -> Any:
        return _widened(self.parts[-1].codomain, self._event_dims()[1]) if self.parts else constraints.real

    @property
    def sign(self) -> int:
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total: Any = ops.zeros_like(x) if not self.parts else 0
        dim = self.domain.event_dim
        for part in self.parts:
            value = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, value), dim - part.domain.event_dim)
            dim += part.codomain.event_dim - part.domain.event_dim
            x = value
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape


class IndependentTransform(Transform):
    """``base_transform`` with its last ``reinterpreted_batch_ndims`` batch axes as part of a value."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def sign(self) -> int:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


def _widened(constraint: Any, event_dim: int) -> Any:
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint
