"""Samples of different lengths as one batch without padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.core.errors import ArgumentError, ShapeError
from runnel.data.allocating import new_array
from runnel.data.collating import default_collate
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


class Packed(NamedTuple):
    """Sequences one behind the other. ``values`` (sum of lengths, …) are their elements; sequence i is
    ``values[cu_seqlens[i] : cu_seqlens[i + 1]]``, with ``cu_seqlens`` int32 (sequences + 1,), as
    ``nn.functional.varlen_attention`` takes them."""

    values: Any
    cu_seqlens: Any

    @property
    def lengths(self) -> list[int]:
        """The length of each sequence."""
        offsets = self.cu_seqlens.numpy()
        return [int(n) for n in np.diff(offsets)]


def pack_collate(batch: Sequence[Any]) -> Any:
    """A ``collate_fn`` for ragged samples: arrays and lists of numbers of one or more axes become a :class:`Packed`, of
    which samples may differ in the first axis; single numbers and strings are put together as ``default_collate`` does.
    Goes into tuples, lists and mappings. ShapeError for samples that differ in another axis."""
    if not batch:
        raise ArgumentError("[pack_collate] there are no samples to put together.")
    first = batch[0]
    if isinstance(first, Mapping):
        return {key: pack_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) or (isinstance(first, list) and not _is_sequence(first)):
        parts = [pack_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    if isinstance(first, str | bytes) or np.ndim(_array(first)) == 0:
        return default_collate(batch)
    return _packed([_array(sample) for sample in batch])


def _is_sequence(sample: list[Any]) -> bool:
    return all(isinstance(item, int | float | np.number) for item in sample)


def _array(sample: Any) -> np.ndarray:
    array = sample.numpy() if isinstance(sample, ArrayMethods) else np.asarray(sample)
    return array.astype(np.int64) if isinstance(sample, list) and not sample else array


def _packed(arrays: list[np.ndarray]) -> Packed:
    if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
        raise ShapeError(
            f"[pack_collate] samples differ in their first axis alone; received {[array.shape for array in arrays]}."
        )
    offsets = np.cumsum([0, *(len(array) for array in arrays)]).astype(np.int32)
    values = new_array((int(offsets[-1]), *arrays[0].shape[1:]), np.result_type(*{array.dtype for array in arrays}))
    np.concatenate(arrays, out=values, casting="unsafe")
    return Packed(asarray(values, copy=False), asarray(offsets, copy=False))
