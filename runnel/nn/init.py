"""Initial values of Parameters.

Each function fills a Variable, its ``data`` or a tensor from ``generator`` (the default one if None), and returns it.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from runnel import ops
from runnel.core import public
from runnel.core.errors import ShapeError
from runnel.ops.elementwise.gamma import erfinv
from runnel.tensor import random
from runnel.tensor.creation import asarray, eye, full
from runnel.tensor.grad_mode import recording
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.variable import Variable

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye_",
    "fans",
    "gain_of",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

ArrayT = TypeVar("ArrayT", bound=ArrayMethods[Any])


def _filled(tensor: ArrayT, values: Any) -> ArrayT:
    """Assign ``values`` to ``tensor`` and return it."""
    if isinstance(tensor, Variable):
        tensor.assign(values)
    else:
        with recording(False):
            tensor.update("init", lambda _: asarray(values))
    return tensor


def uniform_(tensor: ArrayT, a: float = 0.0, b: float = 1.0, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with uniform numbers in [a, b) and return it."""
    return _filled(tensor, ops.uniform(random.next_key(generator, tensor.device), tensor.shape, tensor.dtype, a, b))


def normal_(tensor: ArrayT, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with normal numbers of this mean and standard deviation."""
    return _filled(tensor, ops.normal(random.next_key(generator, tensor.device), tensor.shape, tensor.dtype, mean, std))


def constant_(tensor: ArrayT, val: float) -> ArrayT:
    """Fill ``tensor`` with one value."""
    return _filled(tensor, full(tensor.shape, val, tensor.dtype, device=tensor.device))


def zeros_(tensor: ArrayT) -> ArrayT:
    """Fill ``tensor`` with zeros."""
    return constant_(tensor, 0)


def ones_(tensor: ArrayT) -> ArrayT:
    """Fill ``tensor`` with ones."""
    return constant_(tensor, 1)


def trunc_normal_(
    tensor: ArrayT, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> ArrayT:
    """Fill ``tensor`` with normal numbers restricted to [a, b], by the inverse of the distribution function."""
    unit = ops.uniform(random.next_key(generator, tensor.device), tensor.shape, "float64").numpy()
    spread = std * math.sqrt(2)
    low, high = (math.erf((edge - mean) / spread) for edge in (a, b))
    drawn = erfinv(asarray(low + unit * (high - low))).numpy() * spread + mean
    return _filled(tensor, asarray(np.clip(drawn, a, b), device=tensor.device).astype(tensor.dtype))


def fans(tensor: ArrayT) -> tuple[int, int]:
    """Return the number of inputs and outputs of each unit of a weight (out, in, ...)."""
    if tensor.ndim < 2:
        raise ShapeError(
            f"[init] a weight must have two axes or more for fan-in and fan-out; got shape {tensor.shape}."
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def gain_of(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which initial values compensate for a nonlinearity."""
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity == "selu":
        return 0.75
    raise ValueError(
        f"[init] nonlinearity must be linear, sigmoid, tanh, relu, leaky_relu or selu; got {nonlinearity!r}."
    )


calculate_gain = gain_of


def xavier_uniform_(tensor: ArrayT, gain: float = 1.0, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with uniform numbers of variance 2·gain²/(fan_in + fan_out) (X. Glorot, Y. Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: ArrayT, gain: float = 1.0, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with normal numbers of variance 2·gain²/(fan_in + fan_out) (X. Glorot, Y. Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def fan(tensor: ArrayT, mode: str) -> int:
    """Return the number of inputs ("fan_in") or outputs ("fan_out") of each unit of a weight (out, in, ...)."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"[init] mode must be 'fan_in' or 'fan_out'; got {mode!r}.")
    return fans(tensor)[mode == "fan_out"]


def _kaiming_std(tensor: ArrayT, a: float, mode: str, nonlinearity: str) -> float:
    return gain_of(nonlinearity, a) / math.sqrt(fan(tensor, mode))


def kaiming_uniform_(
    tensor: ArrayT, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> ArrayT:
    """Fill ``tensor`` with uniform numbers of variance gain²/fan (K. He et al., 2015).

    Args:
        tensor: the tensor to fill.
        a: the slope of a leaky relu.
        mode: "fan_in" or "fan_out".
        nonlinearity: the nonlinearity after the layer, which determines the gain.
        generator: the generator to draw from; the default one if None.
    """
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: ArrayT, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> ArrayT:
    """Fill ``tensor`` with normal numbers of variance gain²/fan (K. He et al., 2015).

    The arguments are as in :func:`kaiming_uniform_`.
    """
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: ArrayT, gain: float = 1.0, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with orthogonal rows or columns, whichever are fewer, by a QR decomposition in float64.

    A. Saxe et al., 2013.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"[orthogonal_] tensor must have two axes or more; got shape {tensor.shape}.")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    drawn = ops.normal(
        random.next_key(generator, tensor.device), (max(rows, columns), min(rows, columns)), "float64"
    ).numpy()
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))
    matrix = gain * (q if rows >= columns else q.T)
    return _filled(tensor, asarray(matrix.reshape(tensor.shape), device=tensor.device).astype(tensor.dtype))


def eye_(tensor: ArrayT) -> ArrayT:
    """Fill ``tensor`` with the identity matrix."""
    if tensor.ndim != 2:
        raise ShapeError(f"[eye_] tensor must be a matrix; got shape {tensor.shape}.")
    return _filled(tensor, eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: ArrayT, groups: int = 1) -> ArrayT:
    """Fill the weight of a convolution so that it returns its input channels, in each of ``groups``.

    Output channels beyond the number of input channels are 0.
    """
    if tensor.ndim not in (3, 4, 5) or groups < 1 or tensor.shape[0] % groups:
        raise ShapeError(
            f"[dirac_] tensor must have three to five axes, and groups={groups} divide the first; got shape "
            f"{tensor.shape}."
        )
    values = np.zeros(tensor.shape, tensor.dtype.numpy)
    out = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(out, tensor.shape[1])):
            values[(group * out + channel, channel, *middle)] = 1
    return _filled(tensor, values)


def sparse_(tensor: ArrayT, sparsity: float, std: float = 0.01, generator: Any = None) -> ArrayT:
    """Fill ``tensor`` with normal numbers, and the share ``sparsity`` of each column with 0 (J. Martens, 2010)."""
    if tensor.ndim != 2 or not 0 <= sparsity <= 1:
        raise ShapeError(
            f"[sparse_] tensor must be a matrix and sparsity in [0, 1]; got {tensor.shape} and {sparsity}."
        )
    rows = tensor.shape[0]
    order = ops.argsort(
        ops.argsort(ops.uniform(random.next_key(generator, tensor.device), tensor.shape, "float32"), 0), 0
    )
    drawn = ops.normal(random.next_key(generator, tensor.device), tensor.shape, tensor.dtype, 0.0, std)
    return _filled(tensor, ops.where(ops.less(order, math.ceil(sparsity * rows)), 0, drawn))


# PyTorch's names from before 2018.
constant, dirac, normal, orthogonal, sparse, uniform = constant_, dirac_, normal_, orthogonal_, sparse_, uniform_
kaiming_normal, kaiming_uniform = kaiming_normal_, kaiming_uniform_
xavier_normal, xavier_uniform = xavier_normal_, xavier_uniform_

public.offer(globals(), __all__)
