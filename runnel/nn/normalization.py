"""Layers that bring activations to mean 0 and variance 1: over batches, groups and instances, or over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import as_dtype
from runnel.core.errors import ShapeError
from runnel.core.surface import offered
from runnel.nn import functional
from runnel.nn.functions import require_variance
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.ops.arguments import as_sizes
from runnel.tensor.creation import ones, zeros
from runnel.tensor.variable import Variable


class _WithStatistics(Module):
    """Channels normalized by the input's own moments, or by running averages of earlier ones."""

    axes: ClassVar[tuple[int, ...]] = ()  # how many axes an input may have
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Variable | None
    running_var: Variable | None
    num_batches_tracked: Variable | None

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, dtype: Any
    ) -> None:
        kind = as_dtype(dtype)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(ones((num_features,), kind)) if affine else None)
        self.register_parameter("bias", Parameter(zeros((num_features,), kind)) if affine else None)
        self.register_buffer("running_mean", zeros((num_features,), kind) if track_running_stats else None)
        self.register_buffer("running_var", ones((num_features,), kind) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", zeros((), "int64") if track_running_stats else None)

    def _require_input(self, x: Any) -> None:
        if x.ndim not in self.axes or x.shape[1] != self.num_features:
            raise ShapeError(
                f"[{type(self).__name__}] an input has {' or '.join(map(str, self.axes))} axes, the second of size "
                f"{self.num_features}; got shape {x.shape}."
            )

    def _share(self, x: Any) -> Any:
        """How far this batch moves the running statistics: ``momentum``, or what makes them the average of all."""
        if self.num_batches_tracked is None:
            return 0.0
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        if self.momentum is not None:
            return self.momentum
        return 1 / ops.cast(self.num_batches_tracked, x.dtype)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm(_WithStatistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Any) -> Any:
        self._require_input(x)
        fresh = self.training or self.running_mean is None
        if fresh:
            require_variance(x)
        share = self._share(x) if self.training else 0.0
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        return functional.batch_norm(x, *state, fresh, share, self.eps)


@offered("nn", function="batch_norm")
class BatchNorm1d(BatchNorm):
    """Each channel of (N, C) or (N, C, L) with mean 0 and variance 1 over the batch, then scaled and shifted.

    In training mode moments are the batch's own, and running averages of them are kept, of the unbiased variance as in
    PyTorch; in evaluation mode the running averages are used (S. Ioffe, C. Szegedy, 2015).
    """

    axes = (2, 3)


@offered("nn", function="batch_norm")
class BatchNorm2d(BatchNorm):
    """Each channel of (N, C, H, W) with mean 0 and variance 1 over the batch; see :class:`BatchNorm1d`."""

    axes = (4,)


@offered("nn", function="batch_norm")
class BatchNorm3d(BatchNorm):
    """Each channel of (N, C, D, H, W) with mean 0 and variance 1 over the batch; see :class:`BatchNorm1d`."""

    axes = (5,)


class _InstanceNorm(_WithStatistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Any) -> Any:
        self._require_input(x)
        share = self.momentum or 0.0
        fresh = self.training or self.running_mean is None
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        return functional.instance_norm(x, *state, fresh, share, self.eps)


@offered("nn", function="instance_norm")
class InstanceNorm1d(_InstanceNorm):
    """Each channel of each image of (N, C, L) with mean 0 and variance 1 (D. Ulyanov et al., 2016)."""

    axes = (3,)


@offered("nn", function="instance_norm")
class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image of (N, C, H, W) with mean 0 and variance 1 (D. Ulyanov et al., 2016)."""

    axes = (4,)


@offered("nn", function="instance_norm")
class InstanceNorm3d(_InstanceNorm):
    """Each channel of each image of (N, C, D, H, W) with mean 0 and variance 1 (D. Ulyanov et al., 2016)."""

    axes = (5,)


@offered("nn", function="group_norm")
class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels of each image, then scaled and shifted (Y. Wu, K. He, 2018)."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32"
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(f"[GroupNorm] {num_channels} channels cannot be put into {num_groups} equal groups.")
        kind = as_dtype(dtype)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.register_parameter("weight", Parameter(ones((num_channels,), kind)) if affine else None)
        self.register_parameter("bias", Parameter(zeros((num_channels,), kind)) if affine else None)

    def forward(self, x: Any) -> Any:
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


@offered("nn", function="layer_norm")
class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axes, then scaled and shifted (J. Ba et al., 2016)."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = "float32",
    ) -> None:
        kind = as_dtype(dtype)
        self.normalized_shape = as_sizes("LayerNorm", normalized_shape)
        self.eps = eps
        self.register_parameter("weight", Parameter(ones(self.normalized_shape, kind)) if elementwise_affine else None)
        self.register_parameter(
            "bias", Parameter(zeros(self.normalized_shape, kind)) if elementwise_affine and bias else None
        )

    def forward(self, x: Any) -> Any:
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


@offered("nn", function="rms_norm")
class RMSNorm(Module):
    """Root mean square 1 over the last axis, then scaled (B. Zhang, R. Sennrich, 2019)."""

    weight: Parameter | None

    def __init__(self, size: int, eps: float = 1e-6, elementwise_affine: bool = True, dtype: Any = "float32") -> None:
        self.size = size
        self.eps = eps
        self.register_parameter("weight", Parameter(ones((size,), as_dtype(dtype))) if elementwise_affine else None)

    def forward(self, x: Any) -> Any:
        return ops.rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.size}, eps={self.eps}"
