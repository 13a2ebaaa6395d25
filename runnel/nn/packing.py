"""Packed sequences of different lengths: the rows of each step, without padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.core.kinds import declare
from runnel.ops.arguments import Array
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor


@declare
class PackedSequence(NamedTuple):
    """Sequences without padding, the longest first. Made by :func:`pack_padded_sequence`.

    Attributes:
        data: the elements of step 0 of all sequences, then those of step 1 of all that have one, and so on.
        batch_sizes: how many sequences have each step.
        sorted_indices: the number, in the caller's order, of each sequence; None where that is the order.
        unsorted_indices: the place of each of the caller's sequences.
    """

    data: Any
    batch_sizes: tuple[int, ...]
    sorted_indices: tuple[int, ...] | None = None
    unsorted_indices: tuple[int, ...] | None = None

    def lengths(self) -> list[int]:
        """The length of each sequence, the longest first."""
        sizes = np.array(self.batch_sizes)
        return [int((sizes > row).sum()) for row in range(self.batch_sizes[0])]

    def groups(self) -> list[Group]:
        """Neighbouring steps that as many sequences have."""
        groups: list[Group] = []
        start = row = 0
        for size, steps in itertools.groupby(self.batch_sizes):
            length = len(list(steps))
            groups.append(Group(start, length, size, row))
            start, row = start + length, row + length * size
        return groups


class Group(NamedTuple):
    """``length`` steps from step ``start`` on, which ``size`` sequences have; their elements begin at ``row``."""

    start: int
    length: int
    size: int
    row: int


def pack_padded_sequence(
    input: Array, lengths: Array | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Take the padding out of a batch of sequences.

    Args:
        input: of shape (steps, batch, …), or (batch, steps, …) with ``batch_first``.
        lengths: of each sequence, at least 1. They are part of the program: each set of lengths is traced for itself.
        batch_first: see ``input``.
        enforce_sorted: whether ``lengths`` must fall; if not, the sequences are sorted, and sorted back by
            :func:`pad_packed_sequence` and the recurrent layers.
    """
    if input.ndim < 2:
        raise ShapeError(f"[pack_padded_sequence] a batch has axes of steps and sequences; received {input.shape}.")
    x = ops.moveaxis(input, 0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    counts = np.asarray(lengths).astype(np.int64)
    if counts.shape != (batch,) or (batch and (counts.min() < 1 or counts.max() > steps)):
        raise ShapeError(
            f"[pack_padded_sequence] a batch of {batch} sequences of up to {steps} steps needs {batch} lengths from 1 "
            f"to {steps}; received {counts.tolist()}."
        )
    order: np.ndarray | None = None
    if np.any(np.diff(counts) > 0):
        if enforce_sorted:
            raise ShapeError(
                f"[pack_padded_sequence] lengths must fall with enforce_sorted=True; received {counts.tolist()}."
            )
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    sizes = tuple(int((counts > step).sum()) for step in range(int(counts.max(initial=0))))
    columns = np.arange(batch) if order is None else order
    rows = np.concatenate([step * batch + columns[:size] for step, size in enumerate(sizes)] or [columns])
    data = ops.take(ops.reshape(x, (steps * batch, *x.shape[2:])), asarray(rows, device=x.device), 0)
    if order is None:
        return PackedSequence(data, sizes)
    return PackedSequence(data, sizes, tuple(order.tolist()), tuple(np.argsort(order).tolist()))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch of ``sequence``, in the caller's order, and the lengths.

    Args:
        sequence: what :func:`pack_padded_sequence` or a recurrent layer gave.
        batch_first: whether the result has shape (batch, steps, …) and not (steps, batch, …).
        padding_value: stands where a sequence has ended.
        total_length: of the result; by default that of the longest sequence.
    """
    sizes, data = sequence.batch_sizes, sequence.data
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ShapeError(f"[pad_packed_sequence] total_length={steps} is less than the longest length, {len(sizes)}.")
    batch = sizes[0]
    rows = np.full((steps, batch), data.shape[0], np.int64)  # the row behind the last holds the padding
    at = 0
    for step, size in enumerate(sizes):
        rows[step, :size] = np.arange(at, at + size)
        at += size
    lengths = np.array(sequence.lengths(), np.int64)
    if sequence.unsorted_indices is not None:
        back = np.array(sequence.unsorted_indices)
        rows, lengths = rows[:, back], lengths[back]
    padding = ops.full_like(data, padding_value, (1, *data.shape[1:]))
    padded = ops.take(ops.concat([data, padding]), asarray(rows.T if batch_first else rows, device=data.device), 0)
    return padded, asarray(lengths, device=data.device)


def reordered(states: Sequence[Any], order: tuple[int, ...] | None) -> tuple[Any, ...]:
    """States of shape (layers, batch, …) with their batch in ``order``."""
    if order is None:
        return tuple(states)
    return tuple(ops.take(h, asarray(np.array(order), device=h.device), 1) for h in states)
