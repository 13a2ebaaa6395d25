"""Pad and pack sequences of different lengths, under PyTorch's module name."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from runnel import ops
from runnel.core import public, pytree
from runnel.core.dispatch import TensorLike, required
from runnel.core.dtypes import int64
from runnel.core.errors import ShapeError
from runnel.core.kinds import declare
from runnel.ops.arguments import Array
from runnel.tensor.creation import asarray
from runnel.tensor.inplace import CONSTANT_SERIAL
from runnel.tensor.tensor import Tensor, from_numpy


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


_Numbers = tuple[int, ...]


class _Steps(NamedTuple):
    """The steps of a packed sequence, as numbers that are part of a program."""

    sizes: _Numbers
    order: _Numbers | None
    back: _Numbers | None

    def lengths(self) -> list[int]:
        """Return the length of each sequence, the longest first."""
        sizes = np.array(self.sizes, np.int64)
        return [int((sizes > row).sum()) for row in range(self.batch)]

    @property
    def batch(self) -> int:
        """The number of sequences."""
        return self.sizes[0] if self.sizes else 0

    def live(self, count: int) -> np.ndarray:
        """Return which elements of a padded batch (``count`` steps, sequences) exist."""
        sizes = np.zeros(count, np.int64)
        sizes[: len(self.sizes)] = self.sizes
        return np.arange(self.batch) < sizes[:, None]

    def rows(self, count: int) -> np.ndarray:
        """Return the row in the data of each element of a padded batch (``count`` steps, sequences).

        Elements after the end of a sequence have an index after the last row.
        """
        live = self.live(count)
        rows = np.full(live.shape, sum(self.sizes), np.int64)
        rows[live] = np.arange(int(live.sum()))
        return rows


@declare
class PackedSequence(_Fields):
    """Sequences without padding, the longest first.

    Make one by :func:`pack_padded_sequence`, or from ``data`` and sizes. The sizes are part of a program, so each set
    of sizes is traced separately.

    Attributes:
        data: the elements of step 0 of all sequences, then of step 1 of all that have one, and so on.
        batch_sizes: how many sequences have each step: an int64 vector.
        sorted_indices: the index, in the caller's order, of each sequence; None if that is the order.
        unsorted_indices: the place of each of the caller's sequences; computed from ``sorted_indices`` by default.
    """

    steps: _Steps

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> Self:
        sizes = _numbers("batch_sizes", () if batch_sizes is None else batch_sizes)
        order = None if sorted_indices is None else _numbers("sorted_indices", sorted_indices)
        back = None if unsorted_indices is None else _numbers("unsorted_indices", unsorted_indices)
        if order is not None and back is None:
            back = tuple(np.argsort(np.array(order, np.int64)).tolist())
        return cls._of(data, _Steps(sizes, order, back))

    @classmethod
    def _of(cls, data: Any, steps: _Steps) -> Self:
        device = getattr(data, "device", None)
        made = super().__new__(cls, data, *(None if own is None else _constant(own, device) for own in steps))
        made.steps = steps
        return made

    def _replace(self, **changed: Any) -> Self:
        if changed.keys() == {"data"}:
            return self._of(changed["data"], self.steps)
        return type(self)(**(self._asdict() | changed))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the same sequences with ``data.to(...)``."""
        return self._of(self.data.to(*args, **kwargs), self.steps)

    def float(self) -> Self:
        """Convert the data to float32."""
        return self.to("float32")

    def double(self) -> Self:
        """Convert the data to float64."""
        return self.to("float64")

    def half(self) -> Self:
        """Convert the data to float16."""
        return self.to("float16")

    def long(self) -> Self:
        """Convert the data to int64."""
        return self.to("int64")

    def int(self) -> Self:
        """Convert the data to int32."""
        return self.to("int32")

    def cpu(self) -> Self:
        """Return this object, since programs run on CPUs."""
        return self

    @property
    def is_cuda(self) -> bool:
        """False, since programs run on CPUs."""
        return False

    def padded(self, rows: np.ndarray, padding_value: builtins.float) -> Any:
        """Return the elements of a table of ``_Steps.rows``, and ``padding_value`` after the end of a sequence."""
        padding = ops.full_like(self.data, padding_value, (1, *self.data.shape[1:]))
        return ops.take(ops.concat([self.data, padding]), asarray(rows, device=self.data.device), 0)


def _constant(numbers: _Numbers, device: Any) -> Tensor:
    """Return numbers that are part of a program as an int64 vector, whose values are known in a trace too."""
    vector = from_numpy(np.array(numbers, np.int64), int64, copy=True, device=device)
    vector._serial = CONSTANT_SERIAL
    return vector


def _numbers(name: str, values: Any) -> _Numbers:
    traced = (
        f"[PackedSequence] {name} must be known when a function is compiled; pack the sequences outside, or pass a "
        "tuple of ints."
    )
    known = required(values, traced) if isinstance(values, TensorLike) else np.asarray(values)
    if known.ndim != 1 or (known.size and known.dtype.kind not in "iu"):
        raise ShapeError(f"[PackedSequence] {name} must be a vector of integers; got {values!r}.")
    return tuple(known.tolist())


pytree.register(
    PackedSequence,
    lambda packed: ((packed.data,), packed.steps),
    lambda steps, rest: PackedSequence._of(rest[0], steps),
)


def pack_padded_sequence(
    input: Array, lengths: Array | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Remove the padding of a batch of sequences.

    Args:
        input: shape (steps, batch, …), or (batch, steps, …) with ``batch_first``.
        lengths: the length of each sequence, at least 1. Each set of lengths is traced separately.
        batch_first: the batch is the first axis of ``input``.
        enforce_sorted: ``lengths`` must decrease. Otherwise the sequences are sorted, and the recurrent layers and
            :func:`pad_packed_sequence` restore their order.
    """
    if input.ndim < 2:
        raise ShapeError(
            f"[pack_padded_sequence] input must have axes of steps and sequences; got shape {input.shape}."
        )
    x = ops.moveaxis(input, 0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    counts = np.asarray(lengths).astype(np.int64)
    if counts.shape != (batch,) or (batch and (counts.min() < 1 or counts.max() > steps)):
        raise ShapeError(
            f"[pack_padded_sequence] lengths must be {batch} numbers from 1 to {steps}; got {counts.tolist()}."
        )
    order: np.ndarray | None = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    elif np.any(np.diff(counts) > 0):
        raise ShapeError(
            f"[pack_padded_sequence] lengths must decrease for enforce_sorted=True; got {counts.tolist()}."
        )
    sizes = tuple(int((counts > step).sum()) for step in range(int(counts.max(initial=0))))
    columns = np.arange(batch) if order is None else order
    rows = np.concatenate([step * batch + columns[:size] for step, size in enumerate(sizes)] or [columns])
    data = ops.take(ops.reshape(x, (steps * batch, *x.shape[2:])), asarray(rows, device=x.device), 0)
    return PackedSequence(data, sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the padded batch of ``sequence``, in the caller's order, and the lengths.

    Args:
        sequence: a result of :func:`pack_padded_sequence` or of a recurrent layer.
        batch_first: return shape (batch, steps, …) instead of (steps, batch, …).
        padding_value: the value after the end of a sequence.
        total_length: the number of steps; by default the length of the longest sequence.
    """
    own, data = sequence.steps, sequence.data
    sizes = own.sizes
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ShapeError(
            f"[pad_packed_sequence] total_length must be at least the longest length, {len(sizes)}; got {steps}."
        )
    rows = own.rows(steps)
    lengths = np.array(own.lengths(), np.int64)
    if own.back is not None:
        back = np.array(own.back)
        rows, lengths = rows[:, back], lengths[back]
    padded = sequence.padded(rows.T if batch_first else rows, padding_value)
    return padded, asarray(lengths, device=data.device)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def pad_sequence(
    sequences: Sequence[Array], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad sequences (lengths, …) to one array (longest, sequences, …), or with ``batch_first`` (sequences, longest, …).

    ``padding_value`` follows shorter sequences ("right") or precedes them ("left").
    """
    if not sequences or padding_side not in ("right", "left"):
        raise ValueError(
            f"[pad_sequence] sequences must not be empty, and padding_side be 'right' or 'left'; got {len(sequences)} "
            f"sequences and {padding_side!r}."
        )
    if any(x.shape[1:] != sequences[0].shape[1:] for x in sequences):
        raise ShapeError(
            f"[pad_sequence] sequences must only differ in their lengths; got shapes {[x.shape for x in sequences]}."
        )
    longest = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        missing = longest - x.shape[0]
        widths = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(ops.pad(x, (widths, *((0, 0),) * (x.ndim - 1)), padding_value))
    result: Tensor = ops.stack(padded, 0 if batch_first else 1)
    return result


def unpad_sequence(padded_sequences: Array, lengths: Array | Sequence[int], batch_first: bool = False) -> list[Tensor]:
    """Return the sequences in a result of ``pad_sequence``. Their lengths are part of a program."""
    if padded_sequences.ndim < 2:
        raise ShapeError(
            f"[unpad_sequence] padded_sequences must have axes of steps and sequences; got shape "
            f"{padded_sequences.shape}."
        )
    x = padded_sequences if batch_first else ops.moveaxis(padded_sequences, 1, 0)
    counts = np.asarray(lengths)
    if counts.shape != x.shape[:1] or ((counts < 0) | (counts > x.shape[1])).any():
        raise ShapeError(
            f"[unpad_sequence] lengths must be {x.shape[0]} numbers from 0 to {x.shape[1]}; got {counts.tolist()}."
        )
    return [x[i, : int(n)] for i, n in enumerate(counts)]


def pack_sequence(sequences: Sequence[Array], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (lengths, …)."""
    return pack_padded_sequence(pad_sequence(sequences), [x.shape[0] for x in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that were packed, in the caller's order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def invert_permutation(permutation: Any) -> Any:
    """Return the order that undoes ``permutation``, or None for None."""
    return None if permutation is None else ops.argsort(asarray(permutation))


public.offer(globals(), __all__)
