"""Batch normalization folded into the convolution before it, for inference."""

from __future__ import annotations

import copy
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.nn.convolution import Convolution, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from runnel.nn.linear import Linear
from runnel.nn.normalization import BatchNorm
from runnel.nn.parameter import Parameter
from runnel.tensor.tensor import Tensor


def fuse_conv_bn(conv: Convolution, bn: BatchNorm, transpose: bool = False) -> Convolution:
    """Return a convolution layer that computes ``conv`` followed by ``bn`` in evaluation mode.

    The running statistics scale its weight and shift its bias. Both layers stay unchanged.
    """
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("[fuse_conv_bn] bn must have running statistics.")
    if bn.num_features != conv.out_channels:
        raise ShapeError(
            f"[fuse_conv_bn] bn must have the {conv.out_channels} output channels of conv as num_features; got "
            f"{bn.num_features}."
        )
    scale = ops.rsqrt(bn.running_var + bn.eps)
    if bn.weight is not None:
        scale = scale * bn.weight
    shift = -bn.running_mean * scale
    if bn.bias is not None:
        shift = shift + bn.bias
    if conv.bias is not None:
        shift = shift + conv.bias * scale
    fused = copy.copy(conv)
    fused.weight = Parameter(_scaled(conv, scale).without_tape(), conv.weight.requires_grad)
    fused.bias = Parameter(shift.without_tape(), conv.weight.requires_grad)
    fused.training = False
    return fused


def _scaled(conv: Convolution, scale: Tensor) -> Tensor:
    """Multiply the weight by a number for each output channel, which is the second axis of a transposed convolution."""
    weight = conv.weight.read()
    if not isinstance(conv, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)):
        return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
    grouped = weight.reshape(conv.groups, -1, *weight.shape[1:])
    factors = scale.reshape(conv.groups, 1, -1, *(1,) * (weight.ndim - 2))
    result: Tensor = (grouped * factors).reshape(weight.shape)
    return result


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the convolution that computes a convolution followed by a batch normalization.

    The convolution has ``conv_w`` and ``conv_b``; the normalization has mean ``bn_rm`` and variance ``bn_rv``,
    multiplies by ``bn_w`` and adds ``bn_b``, each None if it is missing. With ``transpose`` the weight
    belongs to a transposed convolution in one group.
    """
    scale = ops.rsqrt(bn_rv + bn_eps) * (1 if bn_w is None else bn_w)
    axis = 1 if transpose else 0
    along = tuple(-1 if i == axis else 1 for i in range(conv_w.ndim))
    bias = ((0 if conv_b is None else conv_b) - bn_rm) * scale + (0 if bn_b is None else bn_b)
    weight = conv_w * ops.reshape(scale, along)
    trains = bool(conv_w.requires_grad)
    return Parameter(weight.read().without_tape(), trains), Parameter(bias.read().without_tape(), trains)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Do the same as ``fuse_conv_bn_weights`` for a dense layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Linear, bn: BatchNorm) -> Linear:
    """Return a dense layer that computes ``linear`` followed by ``bn`` in evaluation mode. Both stay unchanged."""
    if bn.num_features != linear.out_features:
        raise ShapeError(
            f"[fuse_linear_bn_eval] bn must have the {linear.out_features} output features of linear as num_features; "
            f"got {bn.num_features}."
        )
    state = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused = copy.copy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(linear.weight, linear.bias, *state)
    fused.training = False
    return fused
