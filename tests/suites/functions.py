"""The functions composed of primitives, for the suites that trace and differentiate: each with inputs that keep it away
from its kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel import ops
from tests.suites.library_functions import LIBRARY_FUNCTIONS
from tests.suites.spatial_functions import SPATIAL_FUNCTIONS

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)
X = RNG.normal(size=(3, 5))
Y = RNG.normal(size=(3, 5))
P = RNG.uniform(0.1, 0.9, (3, 5))
Q = RNG.uniform(0.1, 0.9, (3, 5))
W = RNG.normal(size=(4, 5))
LABELS = (4, 0, 2)


def index(*values: Any) -> rn.Tensor:
    return rn.asarray(np.array(values))


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "square": (ops.square, (X,)), "reciprocal": (ops.reciprocal, (P,)), "rsqrt": (ops.rsqrt, (P,)),
    "log10": (ops.log10, (P,)), "pow_3": (lambda x: ops.pow(x, 3), (X,)), "pow_half": (lambda x: ops.pow(x, 0.5), (P,)),
    "pow_-2": (lambda x: ops.pow(x, -2), (P,)), "pow_tensors": (ops.pow, (P, X)),
    "mean": (lambda x: ops.mean(x, 0), (X,)), "var": (lambda x: ops.var(x, 1, correction=1), (X,)),
    "std": (lambda x: ops.std(x, (0, 1), keepdims=True), (X,)), "max": (lambda x: ops.max(x, -1), (X,)),
    "min": (lambda x: ops.min(x, 0), (X,)), "prod": (lambda x: ops.prod(x, 0), (X,)),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), (X,)), "softmax": (ops.softmax, (X,)),
    "softmax_0": (lambda x: ops.softmax(x, 0), (X,)), "log_softmax": (ops.log_softmax, (X,)),
    "norm": (lambda x: ops.norm(x, axis=1), (X,)), "norm_3": (lambda x: ops.norm(x, 3, 0), (X,)),
    "layer_norm": (lambda x, w, b: ops.layer_norm(x, 5, w, b), (X, Y[0], Y[1])),
    "rms_norm": (lambda x, w: ops.rms_norm(x, w), (X, Y[0])), "clip": (lambda x: ops.clip(x, -0.5, 0.7), (X,)),
    "leaky_relu": (ops.leaky_relu, (X,)), "elu": (ops.elu, (X,)), "selu": (ops.selu, (X,)), "gelu": (ops.gelu, (X,)),
    "gelu_tanh": (lambda x: ops.gelu(x, "tanh"), (X,)), "silu": (ops.silu, (X,)),
    "softplus": (lambda x: ops.softplus(x, 2.0), (X,)), "log_sigmoid": (ops.log_sigmoid, (X,)),
    "mish": (ops.mish, (X,)),
    "hardtanh": (ops.hardtanh, (X,)), "hardswish": (ops.hardswish, (X,)), "hardsigmoid": (ops.hardsigmoid, (X,)),
    "relu6": (ops.relu6, (X,)), "glu": (ops.glu, (X, Y)),
    "mse_loss": (ops.mse_loss, (X, Y)), "l1_loss": (lambda x, y: ops.l1_loss(x, y, reduction="sum"), (X, Y)),
    "smooth_l1_loss": (lambda x, y: ops.smooth_l1_loss(x, y, reduction="none", beta=0.8), (X, Y)),
    "huber_loss": (lambda x, y: ops.huber_loss(x, y, delta=0.8), (X, Y)),
    "bce": (ops.binary_cross_entropy, (P, Q)), "bce_logits": (ops.binary_cross_entropy_with_logits, (X, P)),
    "kl_div": (lambda x, t: ops.kl_div(x, t, reduction="batchmean"), (X, P)),
    "cross_entropy": (lambda x: ops.cross_entropy(x, index(*LABELS)), (X,)),
    "cross_entropy_smoothed": (lambda x, w: ops.cross_entropy(x, index(*LABELS), w, label_smoothing=0.1), (X, P[0])),
    "cross_entropy_of_probabilities": (ops.cross_entropy, (X, P)),
    "nll_loss": (lambda x: ops.nll_loss(ops.log_softmax(x), index(*LABELS), reduction="sum"), (X,)),
    "linear": (ops.linear, (X, W, Y[0, :4])), "matmul_vectors": (ops.matmul, (X[0], Y[0])),
    "matmul_batch": (ops.matmul, (RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(2, 4, 2)))),
    "outer": (ops.outer, (X[0], Y[1])), "vecdot": (ops.vecdot, (X, Y)),
    "tensordot": (lambda x, y: ops.tensordot(x, y, ((1,), (1,))), (X, W)),
    "getitem": (lambda x: ops.getitem(x, (slice(None, None, -2), None, 1)), (X,)),
    "put": (lambda x, y: ops.put(x, (slice(None, None, -2), slice(1, 4)), y), (X, Y[:2, :3])),
    "pad": (lambda x: ops.pad(x, ((1, 0), (2, 3)), 1.5), (X,)), "stack": (lambda x, y: ops.stack([x, y], 1), (X, Y)),
    "split": (lambda x: ops.split(x, 3, 1)[1], (X,)), "roll": (lambda x: ops.roll(x, 7, 1), (X,)),
    "flip": (ops.flip, (X,)), "moveaxis": (lambda x: ops.moveaxis(x, 0, -1), (X,)),
    "take": (lambda x: ops.take(x, index([3, -1], [0, 0]), 1), (X,)),
    "take_along_axis": (lambda x: ops.take_along_axis(x, index([2, 1, 1, 0, 0], [0, 2, 2, 2, 1]), 0), (X,)),
    "embedding": (lambda w: ops.embedding(w, index([1, 1], [0, 3])), (W,)),
    "index_add": (lambda x, u: ops.index_add(x, 0, index(1, 1), u), (X, Y[:2])),
    "scatter_add": (lambda u: ops.scatter_add(index(4, 0, 4), u, 5), (X,)),
    "scaled_dot_product_attention": (
        lambda q, k, v, m: ops.scaled_dot_product_attention(q, k, v, m, is_causal=True, enable_gqa=True),
        tuple(RNG.normal(size=s) for s in ((1, 2, 3, 2), (1, 1, 4, 2), (1, 1, 4, 3), (3, 4))),
    ),
}  # fmt: skip
FUNCTIONS |= SPATIAL_FUNCTIONS | LIBRARY_FUNCTIONS
