"""Calls of every composition, with arguments of different kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn
from runnel import ops
from runnel.nn import functional as F
from runnel.nn.recurrence import next_state, run_layers

Arguments = tuple[rn.Tensor, ...]


def _cases() -> dict[str, tuple[Callable[..., Any], Arguments]]:
    rng = np.random.default_rng(11)

    def normal(*shape: int, dtype: Any = np.float32) -> rn.Tensor:
        return rn.asarray((2 * rng.standard_normal(shape)).astype(dtype))

    def share(*shape: int) -> rn.Tensor:
        """Numbers between 0 and 1."""
        return rn.asarray(rng.uniform(0.05, 0.95, shape).astype(np.float32))

    def labels(classes: int, *shape: int) -> rn.Tensor:
        return rn.asarray(rng.integers(0, classes, shape))

    def half(*shape: int) -> rn.Tensor:
        return normal(*shape).astype(rn.bfloat16)

    key = rn.asarray(np.array([3, 4], np.uint32))
    return {
        "mse_loss": (F.mse_loss, (normal(5, 7), normal(5, 7))),
        "mse_loss of one tensor": (lambda x: F.mse_loss(x, x) + F.mse_loss(x, x * x), (normal(4, 4),)),
        "l1_loss": (lambda x, y: F.l1_loss(x, y, reduction="sum"), (normal(5, 7), normal(5, 7))),
        "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), (normal(5, 7), normal(5, 7))),
        "huber_loss": (lambda x, y: F.huber_loss(x, y, reduction="none"), (normal(5, 7), normal(5, 7))),
        "binary_cross_entropy": (F.binary_cross_entropy, (share(6, 5), share(6, 5))),
        "binary_cross_entropy_with_logits": (
            lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w),
            (normal(6, 5), share(6, 5), share(5)),
        ),
        "kl_div": (lambda x, y: F.kl_div(x, y, reduction="batchmean"), (normal(6, 5), share(6, 5))),
        "nll_loss": (F.nll_loss, (normal(8, 10), labels(10, 8))),
        "cross_entropy": (F.cross_entropy, (normal(32, 10), labels(10, 32))),
        "cross_entropy of images": (
            lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.1),
            (normal(2, 5, 3, 3), labels(5, 2, 3, 3), share(5)),
        ),
        "cross_entropy of probabilities": (F.cross_entropy, (normal(8, 5), share(8, 5))),
        "leaky_relu": (F.leaky_relu, (normal(9, 13),)),
        "elu": (F.elu, (normal(9, 13),)),
        "selu": (F.selu, (normal(9, 13),)),
        "gelu": (F.gelu, (normal(9, 13),)),
        "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (half(9, 13),)),
        "silu": (F.silu, (half(9, 13),)),
        "softplus": (lambda x: F.softplus(x, 2.0), (normal(9, 13),)),
        "log_sigmoid": (F.logsigmoid, (normal(9, 13),)),
        "mish": (F.mish, (normal(9, 13),)),
        "hardtanh": (F.hardtanh, (normal(9, 13),)),
        "relu6": (F.relu6, (normal(9, 13),)),
        "hardsigmoid": (F.hardsigmoid, (normal(9, 13),)),
        "hardswish": (F.hardswish, (normal(9, 13),)),
        "softmax": (lambda x: F.softmax(x * x, 0) * F.softmax(x), (normal(6, 17),)),
        "log_softmax": (F.log_softmax, (normal(6, 17, dtype=np.float64),)),
        "glu": (ops.glu, (normal(3, 4), normal(3, 4))),
        "mean": (rn.mean, (normal(65, 70),)),
        "mean of half precision": (lambda x: x.mean(0), (half(65, 7),)),
        "var": (lambda x: rn.var(x, axis=0, correction=1), (normal(6, 17),)),
        "std": (lambda x: rn.std(x, axis=(0, 1), keepdims=True), (normal(6, 17),)),
        "logsumexp": (lambda x: rn.logsumexp(x, 1), (normal(6, 17),)),
        "norm": (lambda x: rn.norm(x, axis=-1) * rn.norm(x, 3, -1), (normal(6, 17),)),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, [16], w, b), (normal(8, 16), normal(16), normal(16))),
        "rms_norm": (ops.rms_norm, (normal(8, 16), normal(16))),
        "channel_moments": (lambda x: ops.channel_moments(x)[0] * ops.channel_moments(x)[1], (normal(6, 4, 3),)),
        "batch_norm": (
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
            (normal(6, 4, 5, 5), normal(4), normal(4)),
        ),
        "batch_norm_in_training": (
            lambda x, w, b: F.batch_norm(x.transpose(1, 3), rn.zeros((4,)), rn.ones((4,)), w, b, True),
            (normal(6, 5, 5, 4), normal(4), normal(4)),
        ),
        "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (normal(3, 4, 5, 5), normal(4), normal(4))),
        "instance_norm": (ops.instance_norm, (normal(3, 4, 5),)),
        "linear": (F.linear, (normal(2, 3, 16), normal(5, 16), normal(5))),
        "next_state of LSTM": (
            lambda x, h, c, w, v: sum(next_state("lstm", x, (h, c), w, v), start=rn.zeros(())),
            (normal(2, 3), normal(2, 4), normal(2, 4), normal(16, 3), normal(16, 4)),
        ),
        "next_state of GRU": (
            lambda x, h, w, v, b: next_state("gru", x, (h,), w, v, b, b)[0],
            (normal(3), normal(4), normal(12, 3), normal(12, 4), normal(12)),
        ),
        "run_layers": (
            lambda x, h, w, v, b: ops.concat(run_layers("tanh", False, x, (h,), ((w, b, v, b, None),) * 2), 0),
            (normal(5, 2, 4), normal(2, 2, 4), normal(4, 4), normal(4, 4), normal(4)),
        ),
        "run_layers in both directions": (
            lambda x, h, c, w, v, p: run_layers("lstm", True, x, (h, c), ((w, None, v, None, p),) * 2)[0],
            (normal(3, 2, 4), normal(2, 2, 2), normal(2, 2, 4), normal(16, 4), normal(16, 2), normal(2, 4)),
        ),
        "linear whose operands depend on each other": (
            lambda x, w: F.linear(F.linear(x * w.sum(0), w, (w * w).sum(1)) @ w, w, w[:, 0]) * F.linear(x, w),
            (normal(9, 16), normal(5, 16)),
        ),
        "einsum": (lambda x, y: rn.einsum("bij,kj->bik", x, y), (normal(2, 3, 16), normal(5, 16))),
        "einsum of three": (
            lambda x, y, z: rn.einsum("i...,ij,jk->k...", x, y, z) * rn.einsum("ij->", y),
            (normal(4, 2, 3), normal(4, 5), normal(5, 6)),
        ),
        "normalize": (F.normalize, (normal(5, 6),)),
        "cosine_similarity": (F.cosine_similarity, (normal(5, 6), normal(5, 6))),
        "pairwise_distance": (F.pairwise_distance, (normal(5, 6), normal(6))),
        "sum": (lambda x: rn.sum(x, 1) * x.sum(), (normal(5, 5),)),
        "sum of half precision": (lambda x: x.sum(0), (half(65, 7),)),
        "prod": (lambda x: rn.prod(x, 0), (normal(4, 5),)),
        "max": (lambda x: rn.max(x, 0) * x.max(dim=1).values * x.max(1, keepdim=True)[0], (normal(5, 5),)),
        "min": (lambda x: rn.min(x, 0) * x.min(dim=1).values, (normal(5, 5),)),
        "any": (lambda x: x * rn.any(x > 0, 1, keepdims=True), (normal(4, 5),)),
        "all": (lambda x: x * rn.all(x > -2, 1, keepdims=True), (normal(4, 5),)),
        "argmax": (lambda x: x * rn.argmax(x, 1, keepdims=True), (normal(4, 5),)),
        "argmin": (lambda x: x * rn.argmin(x, 1, keepdims=True), (normal(4, 5),)),
        "cumsum": (lambda x: rn.cumsum(x, 0), (normal(4, 5),)),
        "cumprod": (lambda x: rn.cumprod(x, 0), (normal(4, 5),)),
        "logcumsumexp": (lambda x: x.logcumsumexp(0), (normal(4, 5),)),
        "cummax": (lambda x: x.cummax(0).values, (normal(4, 5),)),
        "cummin": (lambda x: x.cummin(0)[0], (normal(4, 5),)),
        "sort": (lambda x: rn.sort(x, 0) * x.sort(1).values, (normal(4, 5),)),
        "argsort": (lambda x: x * rn.argsort(x), (normal(4, 5),)),
        "topk": (lambda x: rn.topk(x, 2).values, (normal(4, 5),)),
        "take": (lambda x, i: rn.take(x, i, 1), (normal(4, 5), labels(5, 3))),
        "take_along_axis": (lambda x, i: rn.take_along_axis(x, i, 1), (normal(4, 5), labels(5, 4, 3))),
        "chosen": (lambda x, i, j: x[i, j] * x[:, i].sum() * x[j].sum(), (normal(4, 5), labels(4, 6), labels(4, 6))),
        "embedding": (lambda w, i: ops.embedding(w, i), (normal(9, 4), labels(9, 7))),
        "one_hot": (lambda x, i: x * ops.one_hot(i, 5), (normal(4, 5), labels(5, 4))),
        "gather": (lambda x, i: x.gather(1, i), (normal(4, 5), labels(5, 4, 2))),
        "scatter": (lambda x, i, y: x.scatter(1, i, y), (normal(4, 5), labels(5, 4, 2), normal(4, 2))),
        "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), (normal(4, 5), labels(5, 4, 2), normal(4, 2))),
        "index_select": (lambda x, i: x.index_select(1, i), (normal(4, 5), labels(5, 2))),
        "index_add": (lambda x, i, y: x.index_add(0, i, y), (normal(4, 5), labels(4, 3), normal(3, 5))),
        "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), (normal(4, 5),)),
        "lerp": (lambda x, y: x.lerp(y, 0.3), (normal(4, 5), normal(4, 5))),
        "addcmul": (lambda x, y, z: x.addcmul(y, z, value=0.5), (normal(4, 5), normal(4, 5), normal(4, 5))),
        "addcdiv": (lambda x, y, z: x.addcdiv(y, z, value=0.5), (normal(4, 5), normal(4, 5), share(4, 5))),
        "clip": (lambda x: rn.clip(x, -1, 0.5), (normal(4, 5),)),
        "concat": (lambda x, y: rn.concat([x, y, x], 1), (normal(4, 5), normal(4, 2))),
        "stack": (lambda x, y: rn.stack((x, y), 1), (normal(4, 5), normal(4, 5))),
        "where": (lambda x, y: rn.where(x > y, x, y), (normal(4, 5), normal(4, 5))),
        "max_pool": (lambda x: F.max_pool2d(x, 2), (normal(1, 2, 6, 6),)),
        "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), (normal(1, 2, 6, 6),)),
        "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 3), (normal(1, 2, 6, 6),)),
        "uniform": (lambda x, k: x * ops.uniform(k, (4, 5)), (normal(4, 5), key)),
        "normal": (lambda x, k: x * ops.normal(k, (4, 5)), (normal(4, 5), key)),
        "randint": (lambda x, k: x * ops.randint(k, 0, 7, (4, 5)), (normal(4, 5), key)),
        "dropout": (lambda x, k: ops.dropout(x, k, 0.3), (normal(4, 5), key)),
        "fold_in": (lambda x, k: x * ops.uniform(ops.fold_in(k, x.size), (4, 5)), (normal(4, 5), key)),
        "split_key": (lambda x, k: x * ops.uniform(ops.split_key(k)[1], (4, 5)), (normal(4, 5), key)),
        "a network": (
            lambda x, w, b: (F.gelu(F.layer_norm(F.linear(x, w, b) + x, (16,))) * x).mean(),
            (normal(4, 16), normal(16, 16), normal(16)),
        ),
    }  # fmt: skip


CASES = _cases()
