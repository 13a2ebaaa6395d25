"""The functions that ``autocast`` changes, as they are exported: products in low precision, sums in full precision.

Products round their operands to the wanted dtype and their results too; what is between is added up in float32. A
product of two bfloat16 is exact in float32, so machines with and without instructions for it differ in how sums round
(docs/internals/kernels.md, "Products of bfloat16"). The functions of other files know nothing of this: rules of ops,
gradients and passes apply those, and mean what they say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from runnel.core.composed import composed, composition_of
from runnel.core.conversion import CASTING
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, float32, float64, from_numpy
from runnel.ops import losses, normalization
from runnel.ops.attention import functions
from runnel.ops.conversion import cast
from runnel.ops.convolution import layers
from runnel.ops.elementwise import activations
from runnel.ops.linear_algebra import contraction
from runnel.ops.linear_algebra.dots import operand_dtype
from runnel.ops.reductions import primitives, statistics

P = ParamSpec("P")
R = TypeVar("R")


def in_low(function: Callable[P, R], *, widened: bool = False) -> Callable[P, R]:
    """Round the float operands and the result of ``function`` to the dtype of autocast, unless one of them is float64.

    Operands keep that dtype where the machine multiplies it; otherwise, or with ``widened``, they become float32. A
    composition stays one, so that the conversions are part of its program."""

    composition = composition_of(function)
    if composition is not None:
        return composed(in_low(composition.function, widened=widened))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        low = CASTING.dtype
        if low is None:
            return function(*args, **kwargs)
        dtypes = {_float_dtype(x) for x in (*args, *kwargs.values())} - {None}
        if not dtypes or float64 in dtypes:
            return function(*args, **kwargs)
        compute_dtype = float32 if widened else operand_dtype(low)
        rounded: Any = [_rounded(x, low, compute_dtype) for x in args]
        named: Any = {name: _rounded(x, low, compute_dtype) for name, x in kwargs.items()}
        result: Any = cast(function(*rounded, **named), low)
        return result

    call.__module__ = __name__  # where it has the function's name, and a pickle finds it
    return call


def in_full(function: Callable[P, R]) -> Callable[P, R]:
    """Convert the operands of ``function`` that have two bytes to float32 under autocast. A composition stays one."""

    composition = composition_of(function)
    if composition is not None:
        return composed(in_full(composition.function))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if CASTING.dtype is None:
            return function(*args, **kwargs)
        wide: Any = [_widened(x) for x in args]
        named: Any = {name: _widened(x) for name, x in kwargs.items()}
        return function(*wide, **named)

    call.__module__ = __name__
    return call


def _float_dtype(x: Any) -> DType | None:
    """Return the dtype of a float array, None for anything else."""
    if isinstance(x, TensorLike):
        return x.dtype if x.dtype.is_float and not x.is_weak else None
    if isinstance(x, np.ndarray):
        dtype = from_numpy(x.dtype)
        return dtype if dtype.is_float else None
    return None


def _rounded(x: Any, low: DType, compute_dtype: DType) -> Any:
    """Round a float array to ``low``, and convert it to ``compute_dtype``."""
    if _float_dtype(x) is None:
        return x
    if isinstance(x, np.ndarray):
        return x.astype(low.numpy).astype(compute_dtype.numpy)
    return cast(cast(x, low), compute_dtype)


def _widened(x: Any) -> Any:
    return cast(x, float32) if isinstance(x, TensorLike) and x.dtype.is_float and x.dtype.itemsize < 4 else x


matmul = in_low(contraction.matmul)
linear = in_low(contraction.linear)
tensordot = in_low(contraction.tensordot)
conv = in_low(layers.conv)
conv_transpose = in_low(layers.conv_transpose)
scaled_dot_product_attention = in_low(functions.scaled_dot_product_attention, widened=True)
packed_attention = in_low(functions.packed_attention, widened=True)
varlen_attn = in_low(functions.varlen_attn, widened=True)

sum = in_full(primitives.sum)
prod = in_full(primitives.prod)
mean = in_full(statistics.mean)
var = in_full(statistics.var)
std = in_full(statistics.std)
norm = in_full(statistics.norm)
logsumexp = in_full(statistics.logsumexp)
vecdot = in_full(contraction.vecdot)
softmax = in_full(activations.softmax)
log_softmax = in_full(activations.log_softmax)
layer_norm = in_full(statistics.layer_norm)
rms_norm = in_full(statistics.rms_norm)
batch_norm = in_full(normalization.batch_norm)
channel_moments = in_full(normalization.channel_moments)
group_norm = in_full(normalization.group_norm)
instance_norm = in_full(normalization.instance_norm)

binary_cross_entropy = in_full(losses.binary_cross_entropy)
binary_cross_entropy_with_logits = in_full(losses.binary_cross_entropy_with_logits)
cross_entropy = in_full(losses.cross_entropy)
huber_loss = in_full(losses.huber_loss)
kl_div = in_full(losses.kl_div)
l1_loss = in_full(losses.l1_loss)
mse_loss = in_full(losses.mse_loss)
nll_loss = in_full(losses.nll_loss)
smooth_l1_loss = in_full(losses.smooth_l1_loss)
