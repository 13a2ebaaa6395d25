"""PyTorch's low-level variants of ``nn.functional``: modes as numbers, all arguments positional, several results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel import ops
from runnel.core.dtypes import Dtype, int64
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn import functions
from runnel.nn.dropout import alpha_dropout, feature_alpha_dropout
from runnel.nn.resampling import affine_grid, grid_sample
from runnel.ops.arguments import Array, as_tuple
from runnel.tensor.random import dropout, rand

_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def affine_grid_generator(theta: Array, size: Sequence[int], align_corners: bool) -> Array:
    return affine_grid(theta, size, align_corners)


def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """Sample like ``nn.functional.grid_sample``, with modes as numbers.

    interpolation_mode is 0 for bilinear, 1 for nearest, 2 for bicubic. padding_mode is 0 for zeros, 1 for border, 2 for
    reflection.
    """
    if not 0 <= interpolation_mode < len(_INTERPOLATIONS) or not 0 <= padding_mode < len(_PADDINGS):
        raise ArgumentError(
            f"[grid_sampler] modes must be numbers from 0 to 2; got {interpolation_mode} and {padding_mode}."
        )
    return grid_sample(input, grid, _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode], align_corners)


def constant_pad_nd(input: Array, pad: Sequence[int], value: float = 0) -> Array:
    """Pad by a constant, like ``nn.functional.pad``: pairs of widths, the last axis first."""
    return functions.pad(input, tuple(pad), "constant", value)


def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
) -> Array:
    """Return a convolution over one to three spatial axes, or its transpose."""
    sizes = [as_tuple(x) for x in (stride, padding, dilation, output_padding)]
    steps, around, gaps, behind = (x[0] if len(x) == 1 else x for x in sizes)
    if transposed:
        return ops.conv_transpose(input, weight, bias, steps, around, behind, groups, gaps)
    return ops.conv(input, weight, bias, steps, around, gaps, groups)


def fill(input: Array, value: bool | int | float | complex) -> Array:
    """Return a tensor like ``input`` filled with ``value``."""
    return ops.full_like(input, value)


def grouped_mm(
    mat_a: Array, mat_b: Array, *, offs: Array | None = None, bias: Any = None, out_dtype: Dtype = None
) -> Array:
    """Return products of groups: group i is ``mat_a[offs[i-1]:offs[i]] @ mat_b[i]``, for mixtures of experts.

    Of two matrices, the groups cut the axis over which products sum, and the result has a matrix for each. Of two
    stacks of matrices, without ``offs``, this is ``mat_a @ mat_b``. Rows and columns after the last offset are 0. Every
    call reads the offsets, so a compiled function cannot compute them.
    """
    if bias is not None or out_dtype not in (None, mat_a.dtype):
        raise ArgumentError("[grouped_mm] bias must be None and out_dtype the operands' dtype, as in PyTorch on CPUs.")
    if {mat_a.ndim, mat_b.ndim} - {2, 3}:
        raise ShapeError(
            f"[grouped_mm] mat_a and mat_b must have 2 or 3 axes; got shapes {mat_a.shape} and {mat_b.shape}."
        )
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise ArgumentError("[grouped_mm] offs must be given, except for two stacks of matrices.")
    if offs is None:
        return ops.matmul(mat_a, mat_b)
    if offs.ndim != 1 or not offs.dtype.is_integer:
        raise ArgumentError(f"[grouped_mm] offs must be a vector of integers; got {offs.aval}.")
    ends: list[int] = offs.tolist()
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]

    def groups(x: Array, axis: int) -> Sequence[Array]:
        if x.ndim == 3:
            return ops.unstack(x)
        return ops.split(x, [*sizes, x.shape[axis] - ends[-1]], axis)

    lefts, rights = groups(mat_a, 1 if mat_b.ndim == 2 else 0), groups(mat_b, 1 if mat_a.ndim == 3 else 0)
    products = [ops.matmul(a, b) for a, b, _ in zip(lefts, rights, sizes, strict=False)]
    if mat_a.ndim == mat_b.ndim:
        return ops.stack(products)
    axis = 0 if mat_a.ndim == 2 else 1
    rest = (mat_a if axis == 0 else mat_b).shape[axis] - ends[-1]
    if rest:
        shape = (rest, mat_b.shape[-1]) if axis == 0 else (mat_a.shape[-2], rest)
        products.append(ops.full_like(mat_a, 0, shape))
    return ops.concat(products, axis)


def norm_except_dim(v: Array, pow: int = 2, dim: int = 0) -> Array:
    """Return norms of order ``pow`` over all axes except ``dim``, which keep size 1; with dim=-1, one number."""
    if dim == -1:
        return ops.norm(v, pow)
    return ops.norm(v, pow, tuple(axis for axis in range(v.ndim) if axis != dim), keepdims=True)


# --- dropout ------------------------------------------------------------------------------------------------------


def native_dropout(input: Array, p: float, train: bool | None) -> tuple[Array, Array]:
    """Return the input with elements zeroed with probability ``p`` and the others divided by 1 - p, and the mask of
    kept ones."""
    if train is False or p == 0:
        return input.handle(), ops.full_like(input, True, dtype="bool")
    if not 0 <= p <= 1:
        raise ValueError(f"[native_dropout] p must be in [0, 1]; got {p}.")
    kept = ops.less(rand(input.shape), 1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return ops.where(kept, ops.multiply(input, scale), 0), kept


def feature_dropout(input: Array, p: float, train: bool) -> Array:
    """Zero channels of (N, C, …) with probability ``p`` and divide the others by 1 - p."""
    if input.ndim < 2:
        raise ShapeError(f"[feature_dropout] input must have axes (N, C, …); got shape {input.shape}.")
    ones = ops.full_like(input, 1, (*input.shape[:2], *(1,) * (input.ndim - 2)))
    return ops.multiply(input, dropout(ones, p, train))


def dropout_(input: Array, p: float, train: bool) -> Array:
    """Apply ``nn.functional.dropout`` in place."""
    return input.update("dropout_", lambda x: dropout(x, p, train))


def feature_dropout_(input: Array, p: float, train: bool) -> Array:
    """Apply :func:`feature_dropout` in place."""
    return input.update("feature_dropout_", lambda x: feature_dropout(x, p, train))


def alpha_dropout_(input: Array, p: float, train: bool) -> Array:
    """Apply ``nn.functional.alpha_dropout`` in place."""
    return input.update("alpha_dropout_", lambda x: alpha_dropout(x, p, train))


def feature_alpha_dropout_(input: Array, p: float, train: bool) -> Array:
    """Apply ``nn.functional.feature_alpha_dropout`` in place."""
    return input.update("feature_alpha_dropout_", lambda x: feature_alpha_dropout(x, p, train))


# --- normalization ------------------------------------------------------------------------------------------------


def _moments(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    """Return the mean and the inverse standard deviation."""
    return ops.mean(x, axes, keepdims=True), ops.rsqrt(ops.var(x, axes, keepdims=True) + eps)


def native_layer_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return ``nn.functional.layer_norm``, the means, and the inverse standard deviations.

    As in PyTorch, no gradient flows through the last two.
    """
    shape = tuple(normalized_shape)
    mean, rstd = _moments(input, tuple(range(-len(shape), 0)), eps)
    return ops.layer_norm(input, shape, weight, bias, eps), ops.stop_gradient(mean), ops.stop_gradient(rstd)


def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Array, Array, Array]:
    """Return ``nn.functional.group_norm`` of N images, and the mean and inverse standard deviation of each group.

    The images have C channels of ``HxW`` elements.
    """
    if math.prod(input.shape) != N * C * HxW or input.shape[:2] != (N, C):
        raise ShapeError(
            f"[native_group_norm] N, C and HxW must fit the input's shape {input.shape}; got {N}, {C} and {HxW}."
        )
    normal = ops.group_norm(input, group, weight, bias, eps)
    mean, rstd = _moments(ops.reshape(input, (N, group, C // group * HxW)), (-1,), eps)
    return normal, ops.squeeze(mean, -1), ops.squeeze(rstd, -1)


def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Array:
    """Return ``nn.functional.batch_norm``, which takes the arguments in another order."""
    return functions.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Array:
    """Return ``nn.functional.instance_norm``, which takes the arguments in another order."""
    return functions.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Array:
    """Return ``nn.functional.embedding``, which takes the indices first; a ``padding_idx`` of -1 is none."""
    padding = None if padding_idx == -1 else padding_idx
    return functions.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Return ``nn.functional.batch_norm`` and, in training, the means and inverse standard deviations.

    In evaluation, the last two are empty vectors.
    """
    if training:
        axes = (0, *range(2, input.ndim))
        mean, rstd = (ops.reshape(x, (input.shape[1],)) for x in _moments(input, axes, eps))
    else:
        mean = rstd = ops.full_like(input, 0, (0,))
    normal = functions.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return normal, ops.stop_gradient(mean), ops.stop_gradient(rstd)


def embedding_renorm_(weight: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """Scale the rows of ``weight`` selected by ``indices`` to a norm of at most ``max_norm``, in place."""

    flat = ops.reshape(indices, (indices.size,))
    counts = ops.scatter_add(flat, ops.full_like(weight, 1, (flat.size,), int64), weight.shape[0])

    def change(table: Array) -> Array:
        norms = ops.norm(table, norm_type, -1, keepdims=True)
        too_long = ops.logical_and(ops.greater(ops.expand_dims(counts, -1), 0), ops.greater(norms, max_norm))
        return ops.where(too_long, table * (max_norm / (norms + 1e-7)), table)

    return weight.update("embedding_renorm_", change)
