"""``torch.nn.utils.fusion``: layers with the normalization after them in their weights."""

from __future__ import annotations

import copy
from typing import Any

from runnel.compat.functions.creation import zeros
from runnel.core.errors import ArgumentError
from runnel.nn.parameter import Parameter
from runnel.tensor.grad_mode import recording


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution in evaluation mode that normalizes its result like ``bn``."""
    return _fused("fuse_conv_bn_eval", conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a dense layer in evaluation mode that normalizes its result like ``bn``."""
    return _fused("fuse_linear_bn_eval", linear, bn, 0)


def _fused(name: str, layer: Any, bn: Any, axis: int) -> Any:
    if layer.training or bn.training:
        raise ArgumentError(f"[{name}] the layer and bn must be in evaluation mode; call eval() first.")
    fused = copy.deepcopy(layer)
    with recording(False):
        fused.weight, fused.bias = fuse_conv_bn_weights(
            layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, axis == 1
        )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """Return the weight and bias of a convolution with these statistics, scales and shifts applied to its result."""
    with recording(False):
        scale = (bn_rv + bn_eps) ** -0.5
        scale = scale if bn_w is None else scale * bn_w
        shape = [1] * conv_w.ndim
        shape[1 if transpose else 0] = -1
        bias = zeros(bn_rm.shape, dtype=bn_rm.dtype) if conv_b is None else conv_b
        shift = (bias - bn_rm) * scale
        return Parameter(conv_w * scale.reshape(shape)), Parameter(shift if bn_b is None else shift + bn_b)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return the weight and bias of a dense layer with these statistics, scales and shifts applied to its result."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
