"""Padding and packing of sequences of different lengths, under PyTorch's module name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import public
from runnel.core.errors import ShapeError
from runnel.nn.packing import PackedSequence, pack_padded_sequence, pad_packed_sequence
from runnel.ops.arguments import Array
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor

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
            f"[pad_sequence] takes some sequences and padding_side 'right' or 'left'; received {len(sequences)} and "
            f"{padding_side!r}."
        )
    if any(x.shape[1:] != sequences[0].shape[1:] for x in sequences):
        raise ShapeError(
            f"[pad_sequence] sequences differ in their lengths alone; received {[x.shape for x in sequences]}."
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
    """Return the sequences that ``pad_sequence`` made one array of. Their lengths are part of a program."""
    if padded_sequences.ndim < 2:
        raise ShapeError(
            f"[unpad_sequence] a batch has axes of steps and sequences; received {padded_sequences.shape}."
        )
    x = padded_sequences if batch_first else ops.moveaxis(padded_sequences, 1, 0)
    counts = np.asarray(lengths)
    if counts.shape != x.shape[:1] or ((counts < 0) | (counts > x.shape[1])).any():
        raise ShapeError(
            f"[unpad_sequence] {x.shape[0]} sequences of up to {x.shape[1]} steps; received lengths {counts.tolist()}."
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
