"""Layers of vision networks: convolutions with normalization, squeeze-and-excitation, MLPs, stochastic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.compat.functions.random import rand
from runnel.nn import (
    AdaptiveAvgPool2d,
    BatchNorm2d,
    BatchNorm3d,
    Conv2d,
    Conv3d,
    Dropout,
    Linear,
    Module,
    ReLU,
    Sequential,
    Sigmoid,
    functional,
)
from runnel.tensor.creation import asarray

Layer = Callable[..., Module]


class FrozenBatchNorm2d(Module):
    """Batch normalization with constant statistics and factors, in buffers."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            self.register_buffer(name, asarray(np.full(num_features, value, np.float32)))

    def forward(self, x: Any) -> Any:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"FrozenBatchNorm2d({self.weight.shape[0]}, eps={self.eps})"


class ConvNormActivation(Sequential):
    """A convolution, a normalization and an activation, of which the last two may be None."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any = 3,
        stride: Any = 1,
        padding: Any = None,
        groups: int = 1,
        norm_layer: Layer | None = BatchNorm2d,
        activation_layer: Layer | None = ReLU,
        dilation: Any = 1,
        inplace: bool | None = True,
        bias: bool | None = None,
        conv_layer: Layer = Conv2d,
    ) -> None:
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                axes = len(kernel_size) if isinstance(kernel_size, Sequence) else len(dilation)
                kernels = [kernel_size] * axes if isinstance(kernel_size, int) else kernel_size
                dilations = [dilation] * axes if isinstance(dilation, int) else dilation
                padding = tuple((k - 1) // 2 * d for k, d in zip(kernels, dilations, strict=True))
        has_bias = norm_layer is None if bias is None else bias
        layers = [conv_layer(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias=has_bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """A convolution of images, a normalization and an activation."""


class Conv3dNormActivation(ConvNormActivation):
    """A convolution of volumes, a normalization and an activation."""

    def __init__(self, in_channels: int, out_channels: int, *args: Any, **kwargs: Any) -> None:
        if len(args) < 5:
            kwargs.setdefault("norm_layer", BatchNorm3d)
        kwargs["conv_layer"] = Conv3d
        super().__init__(in_channels, out_channels, *args, **kwargs)


class SqueezeExcitation(Module):
    """Channels scaled by a small network of their means (J. Hu et al., "Squeeze-and-excitation networks", 2018)."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Layer = ReLU,
        scale_activation: Layer = Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = AdaptiveAvgPool2d(1)
        self.fc1 = Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, input: Any) -> Any:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(Sequential):
    """Linear layers with normalization, activation and dropout between them."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: Sequence[int],
        norm_layer: Layer | None = None,
        activation_layer: Layer | None = ReLU,
        inplace: bool | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[Module] = []
        size = in_channels
        for hidden in hidden_channels[:-1]:
            layers.append(Linear(size, hidden, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(hidden))
            if activation_layer is not None:
                layers.append(activation_layer(**options))
            layers.append(Dropout(dropout, **options))
            size = hidden
        layers += [Linear(size, hidden_channels[-1], bias=bias), Dropout(dropout, **options)]
        super().__init__(*layers)


class Permute(Module):
    """The axes in another order."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Any) -> Any:
        return x.permute(*self.dims)


def stochastic_depth(input: Any, p: float, mode: str, training: bool = True) -> Any:
    """Replace the input (mode "batch") or each sample ("row") by 0 with probability ``p``, and scale the others.

    G. Huang et al., "Deep networks with stochastic depth", 2016.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"[stochastic_depth] p must be from 0 to 1; got {p}.")
    if mode not in ("batch", "row"):
        raise ValueError(f"[stochastic_depth] mode must be 'batch' or 'row'; got {mode!r}.")
    if not training or p == 0:
        return input
    kept = (rand([input.shape[0] if mode == "row" else 1] + [1] * (input.ndim - 1)) < 1 - p).to(input.dtype)
    return input * (kept / (1 - p) if p < 1 else kept)


class StochasticDepth(Module):
    """:func:`stochastic_depth` while training."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Any) -> Any:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"


def _drop_block(input: Any, p: float, block_size: int, eps: float, training: bool, axes: int) -> Any:
    if not 0 <= p <= 1:
        raise ValueError(f"[drop_block] p must be from 0 to 1; got {p}.")
    if not training or p == 0:
        return input
    sizes = input.shape[2:]
    block = min(block_size, *sizes)
    share = p * np.prod(sizes) / (block**axes * np.prod([n - block + 1 for n in sizes]))
    seeds = (rand([*input.shape[:2], *(n - block + 1 for n in sizes)]) < float(share)).to(input.dtype)
    padded = functional.pad(seeds, [block // 2] * (2 * axes))
    pool = functional.max_pool2d if axes == 2 else functional.max_pool3d
    kept = 1 - pool(padded, block, 1, block // 2)
    if block % 2 == 0:
        kept = kept[(..., *(slice(0, n) for n in sizes))]
    return input * kept * (kept.numel() / (eps + kept.sum()))


def drop_block2d(
    input: Any, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Any:
    """Replace squares of images by 0 (G. Ghiasi et al., "DropBlock", 2018)."""
    return _drop_block(input, p, block_size, eps, training, 2)


def drop_block3d(
    input: Any, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6, training: bool = True
) -> Any:
    """Replace cubes of volumes by 0."""
    return _drop_block(input, p, block_size, eps, training, 3)


class DropBlock2d(Module):
    """:func:`drop_block2d` while training."""

    axes = 2

    def __init__(self, p: float, block_size: int, inplace: bool = False, eps: float = 1e-6) -> None:
        super().__init__()
        self.p, self.block_size, self.eps = p, block_size, eps

    def forward(self, input: Any) -> Any:
        return _drop_block(input, self.p, self.block_size, self.eps, self.training, self.axes)


class DropBlock3d(DropBlock2d):
    """:func:`drop_block3d` while training."""

    axes = 3
