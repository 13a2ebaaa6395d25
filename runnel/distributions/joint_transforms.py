"""Transforms of parts by other transforms, of shapes, and by a distribution function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.distributions import constraints
from runnel.distributions.distribution import Distribution, sum_last
from runnel.distributions.transforms import ComposeTransform, Transform

identity_transform = ComposeTransform([])


class _Joint(Transform):
    """A base of :class:`CatTransform` and :class:`StackTransform`; a subclass splits values."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _parts(self, x: Any) -> list[Any]:
        raise NotImplementedError

    def _whole(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._whole([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._whole([t._inverse(part) for t, part in zip(self.transforms, self._parts(y), strict=True)])

    def _slopes(self, x: Any, y: Any) -> list[Any]:
        pairs = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in pairs]


class CatTransform(_Joint):
    """Transforms ``tseq`` of consecutive parts of ``lengths`` (1 each by default) along the axis ``dim``."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """Size of the axis."""
        return sum(self.lengths)

    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def _parts(self, x: Any) -> list[Any]:
        if x.shape[self.dim] != self.length:
            raise ShapeError(
                f"[CatTransform] axis {self.dim} must have the size {self.length}; got shape {tuple(x.shape)}."
            )
        return list(ops.split(x, self.lengths, self.dim))

    def _whole(self, parts: list[Any]) -> Any:
        return ops.concat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        slopes = [
            sum_last(slope, self.event_dim - t.domain.event_dim)
            for t, slope in zip(self.transforms, self._slopes(x, y), strict=True)
        ]
        axis = self.dim - x.ndim if self.dim >= 0 else self.dim
        axis += self.event_dim
        return ops.concat(slopes, axis) if axis < 0 else sum(slopes)


class StackTransform(_Joint):
    """Transforms ``tseq`` of consecutive positions along the axis ``dim``."""

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _parts(self, x: Any) -> list[Any]:
        if x.shape[self.dim] != len(self.transforms):
            raise ShapeError(
                f"[StackTransform] axis {self.dim} has a position for each of {len(self.transforms)} transforms; "
                f"got shape {tuple(x.shape)}."
            )
        return [ops.squeeze(part, self.dim) for part in ops.split(x, 1, self.dim)]

    def _whole(self, parts: list[Any]) -> Any:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return ops.stack(self._slopes(x, y), self.dim)


class ReshapeTransform(Transform):
    """Reshape values from ``in_shape`` to ``out_shape``."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"[ReshapeTransform] shapes must have equal numbers of elements; got {self.in_shape} and "
                f"{self.out_shape}."
            )

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x: Any) -> Any:
        return ops.reshape(x, self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return ops.reshape(y, self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return ops.full_like(x, 0.0, x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._changed(tuple(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._changed(tuple(shape), self.out_shape, self.in_shape)

    def _changed(self, shape: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
        cut = len(shape) - len(old)
        if cut < 0 or shape[cut:] != old:
            raise ShapeError(f"[ReshapeTransform] values must have the shape {old}; got {shape}.")
        return (*shape[:cut], *new)


class CumulativeDistributionTransform(Transform):
    """Map a number to its cumulative probability ``distribution.cdf``."""

    bijective = True
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    @property
    def sign(self) -> int:
        return 1

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
