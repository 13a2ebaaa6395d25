"""Batch normalization folded into the convolution before it, for inference."""

from __future__ import annotations

import copy

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.convolution import Convolution, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from runnel.nn.normalization import BatchNorm
from runnel.nn.parameter import Parameter
from runnel.tensor.tensor import Tensor


def fuse_conv_bn(conv: Convolution, norm: BatchNorm) -> Convolution:
    """A convolution layer that does what ``conv`` and then ``norm``, in evaluation mode, do: its weight is scaled and
    its bias shifted by the running statistics. Both layers stay as they are."""
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError("[fuse_conv_bn] the normalization keeps no running statistics; there is nothing to fold.")
    if norm.num_features != conv.out_channels:
        raise ShapeError(
            f"[fuse_conv_bn] a convolution to {conv.out_channels} channels is not followed by a normalization of "
            f"{norm.num_features}."
        )
    scale = ops.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -norm.running_mean * scale
    if norm.bias is not None:
        shift = shift + norm.bias
    if conv.bias is not None:
        shift = shift + conv.bias * scale
    fused = copy.copy(conv)
    fused.weight = Parameter(_scaled(conv, scale).detach(), conv.weight.requires_grad)
    fused.bias = Parameter(shift.detach(), conv.weight.requires_grad)
    fused.training = False
    return fused


def _scaled(conv: Convolution, scale: Tensor) -> Tensor:
    """The weight times a number for each channel of the result; a transposed one has them in its second axis."""
    weight = conv.weight.read()
    if not isinstance(conv, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)):
        return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
    grouped = weight.reshape(conv.groups, -1, *weight.shape[1:])
    factors = scale.reshape(conv.groups, 1, -1, *(1,) * (weight.ndim - 2))
    result: Tensor = (grouped * factors).reshape(weight.shape)
    return result
