"""The table of functions that take ragged values: how each one's rows go.

A row is a function of (function, args, kwargs), the call to carry out. There are few kinds: on the values, with dense
operands repeated for the elements of their row or without; along axes; losses; and the functions of other files.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.composed import Composition
from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import as_dtype, from_numpy
from runnel.core.errors import ShapeError, UnsupportedError
from runnel.nn import functional, functions
from runnel.nn.embedding import embedding_bag
from runnel.ops.arguments import normalize_axis
from runnel.ops.indexing import runs
from runnel.ops.sorting.order import Ranked
from runnel.uneven import joining, rows, windows
from runnel.uneven.attention import attention, multihead
from runnel.uneven.recurrent import recurrent
from runnel.uneven.value import REMEDY, Ragged

Row = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def row_of(function: Any) -> Row | None:
    """Return the row of a function, composition or layer of this library."""
    if isinstance(function, Composition):
        function = function.function
    name = getattr(function, "__name__", None)
    if name is not None:
        return ROWS.get(name) if str(function.__module__).startswith("runnel") else None
    for kind in type(function).__mro__:
        if kind.__name__ in LAYERS and kind.__module__.startswith("runnel."):
            return LAYERS[kind.__name__]
    return None


def handled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call with ragged values; UnsupportedError for a function without a row."""
    row = row_of(function)
    if row is None:
        raise UnsupportedError(f"[{name_of(function)}] x must not be ragged here; {REMEDY}.")
    return row(function, args, kwargs)


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of the library with values that may be ragged themselves."""
    if any(isinstance(x, Ragged) for x in (*args, *kwargs.values())):
        return handled(function, args, kwargs)
    return function(*args, **kwargs)


def name_of(function: Any) -> str:
    """Return how users call a function or layer."""
    return getattr(function, "__name__", type(function).__name__)


# On the values --------------------------------------------------------------------------------------------------------


def on_values(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function with the values: it treats each element by itself. Other arrays belong to all elements."""
    return _on_values(function, args, kwargs, lambda x, ragged: x)


def elementwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function with the values, and arrays that broadcast against the batch."""
    return _on_values(function, args, kwargs, functools.partial(_aligned, name_of(function)))


def _on_values(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], other: Callable[[Any, Ragged], Any]
) -> Any:
    values = [x for x in (*args, *kwargs.values()) if isinstance(x, Ragged)]
    offsets = rows.common_offsets(name_of(function), values)
    like = Ragged.made(values[0].values, offsets)

    def plain(x: Any) -> Any:
        return x.values if isinstance(x, Ragged) else other(x, like)

    inner = tuple(map(plain, args)), {name: plain(x) for name, x in kwargs.items()}
    if isinstance(like.values, Ragged):
        return _wrapped(handled(function, *inner), offsets)
    forward = getattr(function, "forward", function)  # hooks of a layer have seen the ragged value
    return _wrapped(forward(*inner[0], **inner[1]), offsets)


def _wrapped(result: Any, offsets: Any) -> Any:
    if isinstance(result, tuple):
        parts = [Ragged.made(x, offsets) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return Ragged.made(result, offsets)


def _aligned(name: str, x: Any, like: Ragged) -> Any:
    """Return a dense operand of the batch (rows, length, ...) as one of the values (total, ...)."""
    if not isinstance(x, (TensorLike, np.ndarray)) or x.ndim < like.ndim - 1:
        return x
    if x.ndim > like.ndim or x.shape[x.ndim - like.ndim + 1] != 1 or (
        x.ndim == like.ndim and x.shape[0] not in (1, like.count)
    ):  # fmt: skip
        raise ShapeError(
            f"[{name}] an array beside a ragged value of {like.ndim} axes and {like.count} rows must have size 1 along "
            f"the ragged axis 1; got shape {tuple(x.shape)}."
        )
    dense = _tensor(x, like)
    if x.ndim < like.ndim:
        return dense[0]
    return dense[0, 0] if x.shape[0] == 1 else runs.spread(ops.squeeze(dense, 1), rows.labels(like))


def _tensor(x: Any, like: Ragged) -> Any:
    return x if isinstance(x, TensorLike) else like.lift(x, from_numpy(x.dtype))


# Along axes -----------------------------------------------------------------------------------------------------------


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(inspect.unwrap(function))


def along(over_rows: Callable[[Ragged, dict[str, Any]], Any] | None = None) -> Row:
    """Return the row of a function of its first argument along ``axis`` or ``dim``. ``over_rows`` computes the result
    over the ragged axis from the value and the other arguments."""

    def row(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name, signature = name_of(function), _signature(function)
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        first, x = next(iter(given.items()))
        usual = "dim" if "dim" in signature.parameters else "axis"
        key = next((k for k in ("axis", "dim") if k in given), usual)
        axis = given.get(key, signature.parameters[key].default)
        if isinstance(axis, TensorLike):  # x.max(y)
            return elementwise(function, args, kwargs)
        if not isinstance(x, Ragged):
            raise UnsupportedError(f"[{name}] the argument that is ragged must be the first one.")
        several = isinstance(axis, (tuple, list))
        axes = [normalize_axis(name, a, x.ndim) for a in (axis if several else (axis,)) if a is not None]
        given[first] = x.values
        if axis is None:
            return call(function, *bound.args, **bound.kwargs)
        if min(axes, default=0) >= 2:
            given[key] = tuple(a - 1 for a in axes) if several else axes[0] - 1
            return _wrapped(call(function, *bound.args, **bound.kwargs), x.offsets)
        if axes != [1] or over_rows is None or isinstance(x.values, Ragged):
            raise UnsupportedError(
                f"[{name}] the axis of a ragged value of {x.ndim} axes must be "
                + ("1 or more" if over_rows is not None and not isinstance(x.values, Ragged) else "2 or more")
                + f" here; got {axis}: {REMEDY}."
            )
        bound.apply_defaults()
        given = bound.arguments
        result = over_rows(x, given)
        keeps = given.get("keepdims") is True or given.get("keepdim") is True
        if isinstance(result, Ragged) or not keeps:
            return result
        if isinstance(result, tuple):
            return type(result)(*(ops.expand_dims(r, 1) for r in result))
        return ops.expand_dims(result, 1)

    return row


def _extreme(kind: str) -> Callable[[Ragged, dict[str, Any]], Any]:
    """Return the extremes of rows; as PyTorch's method, with their positions."""

    def over_rows(x: Ragged, given: dict[str, Any]) -> Any:
        found = rows.extreme(kind, x)
        return Ranked(found, rows.place(kind, x)) if given.get("dim") is not None else found

    return over_rows


def _correction(given: dict[str, Any]) -> float:
    if given.get("unbiased") is not None:
        return float(given["unbiased"])
    return 1.0 if given["correction"] is None else float(given["correction"])


def _dtype(given: dict[str, Any]) -> Any:
    return None if given.get("dtype") is None else as_dtype(given["dtype"])


# Others ---------------------------------------------------------------------------------------------------------------


def loss(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a loss with the values: means are over all elements, and "none" gives one number for each."""
    bound = _signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    result = on_values(function, args, kwargs)
    return result if bound.arguments.get("reduction") == "none" else result.values


def product(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Multiply each element with a matrix or vector."""
    x, y = args
    if not isinstance(x, Ragged) or isinstance(y, Ragged) or y.ndim > 2:
        raise UnsupportedError(
            "[matmul] a ragged value must be multiplied from the right by a matrix or vector; use "
            "scaled_dot_product_attention for products of rows."
        )
    return on_values(function, args, kwargs)


def bag(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Combine the embeddings of each row."""
    bound = _signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    x = given["x"]
    for name in ("offsets", "per_sample_weights"):
        if not isinstance(x, Ragged) or given[name] is not None:
            raise UnsupportedError(f"[embedding_bag] {name} must be None beside a ragged value, which has the rows.")
    if given["padding_idx"] is not None:
        raise UnsupportedError("[embedding_bag] padding_idx must be None for a ragged value, which has no padding.")
    names = ("max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    embedded = x.map(functions.embedding, given["weight"], **{name: given[name] for name in names})
    if given["mode"] == "max":
        return rows.extreme("max", embedded)
    if given["mode"] == "sum":
        return rows.summed(embedded)
    return rows.summed(embedded) / rows.column(ops.cast(ops.maximum(x.lengths, 1), embedded.dtype), embedded.values)


def bag_layer(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``nn.EmbeddingBag`` with rows as bags."""

    def forward(x: Ragged, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return bag(
            embedding_bag,
            (
                x, layer.weight, offsets, layer.max_norm, layer.norm_type, layer.scale_grad_by_freq, layer.mode,
                layer.sparse, per_sample_weights,
            ),
            {"padding_idx": layer.padding_idx},
        )  # fmt: skip

    return forward(*args, **kwargs)


def by_options(function: Callable[..., Any]) -> Row:
    """Return the row of a layer that stores the options of ``function`` under their names."""

    def row(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        options = {name: getattr(layer, name) for name in _signature(function).parameters if hasattr(layer, name)}
        return ROWS[function.__name__](function, args, options | kwargs)

    return row


# The table ------------------------------------------------------------------------------------------------------------

_ELEMENTWISE: Final = {
    place.partition(":")[2]
    for name, place in {**vars(functional)["NAMES"], **vars(ops)["PUBLIC"]}.items()
    if place.startswith("runnel.ops.elementwise.") and name != "allclose"
}
_ALSO_ELEMENTWISE: Final = """
    cast celu hardshrink rrelu softplus softsign softshrink tanhshrink threshold log_sigmoid clip clamp lerp masked_fill
    stop_gradient full_like zeros_like ones_like empty_like astype
"""
_ON_VALUES: Final = """
    linear bilinear embedding layer_norm rms_norm dropout alpha_dropout one_hot prelu glu
"""
_FEATURES: Final = """
    cumsum cumprod cumulative_sum cumulative_prod diff sort argsort topk flip roll norm normalize median quantile
    count_nonzero softmin gumbel_softmax cosine_similarity chunk split squeeze
"""
_LOSSES: Final = """
    cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy kl_div
    binary_cross_entropy_with_logits linear_cross_entropy gaussian_nll_loss poisson_nll_loss hinge_embedding_loss
    soft_margin_loss multilabel_soft_margin_loss margin_ranking_loss cosine_embedding_loss multi_margin_loss
"""

ROWS: Final[dict[str, Row]] = {
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(_ALSO_ELEMENTWISE.split(), elementwise),
    **dict.fromkeys(_ON_VALUES.split(), on_values),
    **dict.fromkeys(_FEATURES.split(), along()),
    **dict.fromkeys(_LOSSES.split(), loss),
    "sum": along(lambda x, given: rows.summed(x, _dtype(given))),
    "mean": along(lambda x, given: rows.averaged(x, _dtype(given))),
    "prod": along(lambda x, given: rows.product(x, _dtype(given))),
    "max": along(_extreme("max")),
    "min": along(_extreme("min")),
    "argmax": along(lambda x, given: rows.place("max", x)),
    "argmin": along(lambda x, given: rows.place("min", x)),
    "any": along(lambda x, given: rows.any_of(x)),
    "all": along(lambda x, given: rows.all_of(x)),
    "var": along(lambda x, given: rows.variance(x, _correction(given))),
    "std": along(lambda x, given: rows.deviation(x, _correction(given))),
    "logsumexp": along(lambda x, given: rows.logsumexp(x)),
    "softmax": along(lambda x, given: Ragged.made(rows.softmax(x, _dtype(given)), x.offsets)),
    "log_softmax": along(lambda x, given: Ragged.made(rows.log_softmax(x, _dtype(given)), x.offsets)),
    "matmul": product,
    "concat": joining.concat,
    "stack": joining.stack,
    "expand_dims": joining.expand_dims,
    "getitem": joining.getitem,
    "embedding_bag": bag,
    "scaled_dot_product_attention": attention,
    "conv1d": windows.CONVOLUTION,
    "max_pool1d": windows.MAXIMUM,
    "avg_pool1d": windows.AVERAGE,
}
LAYERS: Final[dict[str, Row]] = {
    **dict.fromkeys(("Dropout", "AlphaDropout", "RReLU", "Embedding", "PReLU", "BatchNorm1d", "Bilinear"), on_values),
    "MaxPool1d": by_options(functions.max_pool1d),
    "AvgPool1d": by_options(functions.avg_pool1d),
    "EmbeddingBag": bag_layer,
    "MultiheadAttention": multihead,
    **dict.fromkeys(("RNN", "GRU", "LSTM"), recurrent),
}
