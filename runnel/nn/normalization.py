"""Normalization layers: over batches, groups of channels, single images, neighboring channels, or the last axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

from runnel import ops
from runnel.core.dtypes import Dtype
from runnel.core.errors import ShapeError
from runnel.nn import functional, init
from runnel.nn.functions import require_variance
from runnel.nn.layer import layer
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter, parameter_dtype
from runnel.ops.arguments import Array, as_sizes
from runnel.tensor.creation import ones, zeros
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class _WithStatistics(Module):
    """The base of layers that normalize channels by moments of the input, or by running averages of them."""

    axes: ClassVar[tuple[int, ...]] = ()  # how many axes an input may have
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Variable | None
    running_var: Variable | None
    num_batches_tracked: Variable | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Dtype = None,
    ) -> None:
        kind = parameter_dtype(dtype)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", Parameter(ones((num_features,), kind)) if affine else None)
        self.register_parameter("bias", Parameter(zeros((num_features,), kind)) if affine and bias else None)
        self.register_buffer("running_mean", zeros((num_features,), kind) if track_running_stats else None)
        self.register_buffer("running_var", ones((num_features,), kind) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", zeros((), "int64") if track_running_stats else None)

    def reset_running_stats(self) -> None:
        """Reset the running statistics: mean 0, variance 1, no batch seen."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Reset everything: weight 1, bias 0, and the running statistics."""
        self.reset_running_stats()
        _reset(self.weight, self.bias)

    def _require_input(self, x: Any) -> None:
        if x.ndim not in self.axes or x.shape[1] != self.num_features:
            raise ShapeError(
                f"[{type(self).__name__}] input must have {' or '.join(map(str, self.axes))} axes, the second of size "
                f"{self.num_features}; got shape {x.shape}."
            )

    def _share(self, x: Any) -> Any:
        """Return the share of this batch in the running statistics."""
        if self.num_batches_tracked is None:
            return 0.0
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        if self.momentum is not None:
            return self.momentum
        return 1 / ops.cast(self.num_batches_tracked, x.dtype)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm(_WithStatistics):
    """The base of batch normalizations (S. Ioffe, C. Szegedy, 2015)."""

    _version = 2

    def forward(self, x: Array) -> Any:
        self._require_input(x)
        fresh = self.training or self.running_mean is None
        if fresh:
            require_variance(x)
        share = self._share(x) if self.training else 0.0
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        return functional.batch_norm(x, *state, fresh, share, self.eps)


class BatchNorm1d(BatchNorm):
    """Normalize each channel to mean 0 and variance 1 over the batch (S. Ioffe, C. Szegedy, 2015).

    In training mode the moments of the batch are used, and running averages of the mean and the unbiased variance are
    kept. In evaluation mode the running averages are used.

    Args:
        num_features: number of channels C.
        eps: a small number that is added to the variance.
        momentum: the share of each batch in the running statistics; None averages over all batches.
        affine: whether to multiply by ``weight`` and add ``bias``, which start as 1 and 0.
        track_running_stats: keep running statistics and use them in evaluation mode.
        bias: whether there is a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(N, C)`` or ``(N, C, L)``.

    Example:
        >>> nn.BatchNorm1d(16)(rn.randn((32, 16))).shape
        (32, 16)
    """

    axes = (2, 3)


class BatchNorm2d(BatchNorm):
    """Normalize each channel of images to mean 0 and variance 1 over the batch.

    It takes the arguments of :class:`BatchNorm1d`.

    Shape:
        input and output ``(N, C, H, W)``.

    Example:
        >>> nn.BatchNorm2d(3)(rn.randn((8, 3, 16, 16))).shape
        (8, 3, 16, 16)
    """

    axes = (4,)


class BatchNorm3d(BatchNorm):
    """Normalize each channel of volumes (N, C, D, H, W) to mean 0 and variance 1 over the batch.

    It takes the arguments of :class:`BatchNorm1d`.
    """

    axes = (5,)


class SyncBatchNorm(BatchNorm):
    """Normalize each channel of (N, C, …) like :class:`BatchNorm1d` and :class:`BatchNorm2d`.

    ``process_group`` has no effect, since training uses a single process.
    """

    axes = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        *,
        bias: bool = True,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype)

    @staticmethod
    def convert_sync_batchnorm(module: Module, process_group: Any = None) -> Module:
        """Return ``module`` unchanged."""
        return module


class _InstanceNorm(_WithStatistics):
    """The base of instance normalizations (D. Ulyanov et al., 2016)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias=bias, dtype=dtype)

    def forward(self, x: Array) -> Any:
        if x.ndim == self.axes[0] - 1:
            return ops.squeeze(self.forward(ops.expand_dims(x, 0)), 0)
        self._require_input(x)
        share = self.momentum or 0.0
        fresh = self.training or self.running_mean is None
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        return functional.instance_norm(x, *state, fresh, share, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sequence, (N, C, L) or (C, L), to mean 0 and variance 1.

    It takes the arguments of :class:`InstanceNorm2d`.
    """

    axes = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image to mean 0 and variance 1 (D. Ulyanov et al., 2016).

    Args:
        num_features: number of channels C.
        eps: a small number that is added to the variance.
        momentum: the share of each batch in the running statistics.
        affine: whether to multiply by ``weight`` and add ``bias``, which start as 1 and 0.
        track_running_stats: keep running statistics and use them in evaluation mode.
        bias: whether there is a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(N, C, H, W)`` or ``(C, H, W)``.
    """

    axes = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume, (N, C, D, H, W) or (C, D, H, W), to mean 0 and variance 1.

    It takes the arguments of :class:`InstanceNorm2d`.
    """

    axes = (5,)


class GroupNorm(Module):
    """Normalize each group of channels of each image to mean 0 and variance 1 (Y. Wu, K. He, 2018).

    Args:
        num_groups: number of groups, which divides ``num_channels``.
        num_channels: number of channels C.
        eps: a small number that is added to the variance.
        affine: whether to multiply each channel by ``weight`` and add ``bias``, which start as 1 and 0.
        bias: whether there is a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(N, C, ...)``.

    Example:
        >>> nn.GroupNorm(4, 16)(rn.randn((8, 16, 32, 32))).shape
        (8, 16, 32, 32)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        dtype: Dtype = None,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(f"[GroupNorm] num_groups must divide num_channels; got {num_groups} and {num_channels}.")
        kind = parameter_dtype(dtype)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", Parameter(ones((num_channels,), kind)) if affine else None)
        self.register_parameter("bias", Parameter(zeros((num_channels,), kind)) if affine and bias else None)

    def reset_parameters(self) -> None:
        """Reset weight to 1 and bias to 0."""
        _reset(self.weight, self.bias)

    def forward(self, x: Array) -> Any:
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class LayerNorm(Module):
    """Normalize over the last axes to mean 0 and variance 1 (J. Ba et al., 2016).

    Args:
        normalized_shape: the shape of the last axes, or the size of the last one.
        eps: a small number that is added to the variance.
        elementwise_affine: whether to multiply by ``weight`` and add ``bias``, which start as 1 and 0.
        bias: whether there is a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(..., *normalized_shape)``.

    Example:
        >>> nn.LayerNorm(64)(rn.randn((8, 10, 64))).shape
        (8, 10, 64)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Dtype = None,
    ) -> None:
        kind = parameter_dtype(dtype)
        self.normalized_shape = as_sizes("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(ones(self.normalized_shape, kind)) if elementwise_affine else None)
        self.register_parameter(
            "bias", Parameter(zeros(self.normalized_shape, kind)) if elementwise_affine and bias else None
        )

    def reset_parameters(self) -> None:
        """Reset weight to 1 and bias to 0."""
        _reset(self.weight, self.bias)

    def forward(self, x: Array) -> Any:
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Normalize over the last axes to root mean square 1 (B. Zhang, R. Sennrich, 2019).

    Args:
        normalized_shape: the shape of the last axes, or the size of the last one.
        eps: a small number that is added to the mean square; by default the machine epsilon of the input's dtype.
        elementwise_affine: whether to multiply by ``weight``, which starts as 1.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        input and output ``(..., *normalized_shape)``.
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Dtype = None,
    ) -> None:
        self.normalized_shape = as_sizes("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        start = Parameter(ones(self.normalized_shape, parameter_dtype(dtype))) if elementwise_affine else None
        self.register_parameter("weight", start)

    def reset_parameters(self) -> None:
        """Reset weight to 1."""
        _reset(self.weight, None)

    def forward(self, x: Array) -> Any:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _reset(weight: Variable | None, bias: Variable | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Compute x / (k + alpha · mean of the squares of ``size`` neighboring channels)^beta for (N, C, …)."""
    size = operator.index(size)
    if x.ndim < 3 or size < 1:
        raise ShapeError(
            f"[local_response_norm] x must have axes (N, C, …) and size be positive; got shape {x.shape} and {size}."
        )
    widths = [(0, 0)] * x.ndim
    widths[1] = (size // 2, (size - 1) // 2)
    squares = ops.pad(ops.square(x), widths)
    total = ops.narrow(squares, 1, 0, x.shape[1])
    for i in range(1, size):
        total = total + ops.narrow(squares, 1, i, x.shape[1])
    result: Tensor = x / ops.pow(total * (alpha / size) + k, beta)
    return result


LocalResponseNorm = layer("LocalResponseNorm", local_response_norm)
