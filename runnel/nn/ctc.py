"""Connectionist temporal classification (A. Graves et al., 2006), as a function and as a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.dtypes import float32, int64
from runnel.core.errors import ShapeError
from runnel.nn.layer import Layer, layer
from runnel.ops.arguments import Array
from runnel.ops.indexing.gather import labels_below
from runnel.ops.losses import reduced
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.scan import scan

_IMPOSSIBLE: Final = -1e30  # the logarithm of 0, with derivatives


def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Array | Sequence[int],
    target_lengths: Array | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute -log of the probability of the targets, over all ways to repeat labels and put blanks between them.

    A. Graves et al., "Connectionist temporal classification", 2006.

    Args:
        log_probs: log-probabilities (T, N, C), or (T, C) for one sequence, as ``log_softmax`` returns them.
        targets: labels (N, S), or the labels of all sequences one after the other.
        input_lengths: the number of steps of each sequence.
        target_lengths: the number of labels of each sequence.
        blank: the label of a blank.
        reduction: "mean" divides each loss by its number of labels, and takes the mean over sequences; "sum" or "none".
        zero_infinity: return 0 instead of infinity for sequences with too many labels for their steps.
    """
    if log_probs.ndim == 2:
        input_counts, label_counts = (_vector(log_probs, n) for n in (input_lengths, target_lengths))
        labels = ops.reshape(targets, (1, -1))
        single = ops.squeeze(
            ctc_loss(ops.expand_dims(log_probs, 1), labels, input_counts, label_counts, blank, "none", zero_infinity), 0
        )
        if reduction == "mean":
            single = single / ops.cast(ops.maximum(ops.squeeze(label_counts, 0), 1), single.dtype)
        elif reduction not in ("sum", "none"):
            reduced("ctc_loss", single, reduction)
        result: Tensor = single
        return result
    if log_probs.ndim != 3 or not 0 <= blank < log_probs.shape[2]:
        raise ShapeError(
            f"[ctc_loss] log_probs must have shape (T, N, C), and blank be below C; got {log_probs.shape} and {blank}."
        )
    batch, classes = log_probs.shape[1:]
    input_counts, label_counts = (_vector(log_probs, n) for n in (input_lengths, target_lengths))
    if input_counts.shape != (batch,) or label_counts.shape != (batch,):
        raise ShapeError(
            f"[ctc_loss] input_lengths and target_lengths must have a number for each of {batch} sequences; got shapes "
            f"{input_counts.shape} and {label_counts.shape}."
        )
    labels = labels_below(_padded(targets, label_counts, batch), classes)
    wide = log_probs if log_probs.dtype.itemsize != 2 else ops.cast(log_probs, float32)
    losses = -_log_likelihood(wide, labels, input_counts, label_counts, blank)
    is_possible = ops.less(losses, -_IMPOSSIBLE / 2)
    losses = ops.where(is_possible, losses, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        losses = losses / ops.cast(ops.maximum(label_counts, 1), losses.dtype)
    averaged: Tensor = ops.cast(reduced("ctc_loss", losses, reduction), log_probs.dtype)
    return averaged


def _vector(x: Array, lengths: Any) -> Array:
    """Return lengths as int64, one for each sequence."""
    if not isinstance(lengths, ArrayMethods):
        lengths = x.lift(np.asarray(lengths, np.int64).reshape(-1), int64)
    return ops.reshape(ops.cast(lengths, int64), (-1,))


def _padded(targets: Array, lengths: Array, batch: int) -> Array:
    """Return labels as (N, S), also if one row contains all of them."""
    labels = ops.cast(targets, int64)
    if labels.ndim == 2 and labels.shape[0] == batch:
        return labels
    if labels.ndim != 1:
        raise ShapeError(f"[ctc_loss] targets must have shape (N, S) or one axis; got shape {labels.shape}.")
    known = lengths.known()
    longest = labels.size if known is None else int(known.max(initial=0))
    if not longest:
        return ops.full_like(labels, 0, (batch, 0))
    before = ops.less(ops.iota(lengths, (batch, batch), 1), ops.iota(lengths, (batch, batch), 0))
    first = ops.sum(ops.where(before, ops.expand_dims(lengths, 0), 0), 1, keepdims=True)
    place = first + ops.iota(labels, (batch, longest), 1)
    return ops.take(labels, ops.minimum(place, labels.size - 1), 0)


def _log_likelihood(x: Array, labels: Array, input_counts: Array, label_counts: Array, blank: int) -> Array:
    """Return log p of the labels of each sequence.

    The states are blank, label, blank, label, …, blank. Each step stays, or moves by one state, or by two past a
    blank between different labels.
    """
    batch, count = labels.shape
    states = 2 * count + 1
    spread = ops.reshape(ops.stack([ops.full_like(labels, blank), labels], -1), (batch, 2 * count))
    extended = ops.pad(spread, ((0, 0), (0, 1)), blank)
    skipped = ops.pad(extended, ((0, 0), (2, 0)), blank)[:, :states]
    may_skip = ops.logical_and(ops.not_equal(extended, blank), ops.not_equal(extended, skipped))
    whole = ops.broadcast_to(ops.expand_dims(extended, 0), (x.shape[0], batch, states))
    scores = ops.take_along_axis(x, whole, 2)  # (T, N, states)
    impossible = ops.full_like(x, _IMPOSSIBLE, (batch, states))
    begins = ops.less(ops.iota(extended, (batch, states), 1), 2)

    def step(log_p: Array, entry: tuple[Array, Array]) -> tuple[Array, None]:
        number, score = entry
        by_one = ops.pad(log_p, ((0, 0), (1, 0)), _IMPOSSIBLE)[:, :states]
        by_two = ops.where(may_skip, ops.pad(log_p, ((0, 0), (2, 0)), _IMPOSSIBLE)[:, :states], impossible)
        ways = ops.logsumexp(ops.stack([log_p, by_one, by_two]), 0)
        after = ops.where(ops.equal(number, 0), ops.where(begins, score, impossible), ways + score)
        return ops.where(
            ops.less(number, ops.expand_dims(input_counts, -1)), ops.maximum(after, _IMPOSSIBLE), log_p
        ), None

    last, _ = scan(step, impossible, (ops.iota(x, (x.shape[0], 1, 1), 0), scores))
    place = ops.iota(extended, (batch, states), 1)
    end = 2 * ops.expand_dims(label_counts, -1)
    ends = ops.logical_or(ops.equal(place, end), ops.equal(place, end - 1))
    return ops.logsumexp(ops.where(ends, last, impossible), 1)


class _CTCLoss(Layer):
    _shows_numbers = False


CTCLoss = layer("CTCLoss", ctc_loss, base=_CTCLoss)
