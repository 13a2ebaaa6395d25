"""Samples put together to batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import dtypes
from runnel.core.errors import ArgumentError
from runnel.core.showing import short_repr
from runnel.core.surface import offered
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


@offered("data")
def default_collate(batch: Sequence[Any]) -> Any:
    """A list of samples as one batch: tensors and NumPy arrays stacked along a new first axis; Python numbers as a
    tensor (floats float64, as in PyTorch; ints int64); strings and bytes as a list; of mappings, named tuples, tuples
    and lists one of batches, a list for the latter two. ArgumentError for samples of unlike forms or other types."""
    if not batch:
        raise ArgumentError("[default_collate] there are no samples to put together.")
    first = batch[0]
    if isinstance(first, ArrayMethods):
        return ops.stack(list(batch))
    if isinstance(first, np.ndarray | np.generic):
        return asarray(np.stack([np.asarray(sample) for sample in batch]), copy=False)
    if isinstance(first, float):
        return asarray(np.array(batch, np.float64))
    if isinstance(first, int):
        return asarray(np.array(batch), dtypes.bool_ if isinstance(first, bool) else dtypes.int64)
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple | list):
        if any(len(sample) != len(first) for sample in batch):
            raise ArgumentError(
                f"[default_collate] samples have as many elements each; received {[len(sample) for sample in batch]}. "
                "Pass DataLoader a collate_fn that pads or packs them."
            )
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise ArgumentError(
        "[default_collate] samples are tensors, NumPy arrays, numbers, strings, or mappings and sequences of these; "
        f"received {short_repr(first)}. Pass DataLoader a collate_fn."
    )


@offered("data")
def default_convert(data: Any) -> Any:
    """NumPy arrays in a sample as tensors; all else as it is."""
    if isinstance(data, np.ndarray | np.generic) and np.asarray(data).dtype.kind not in "SUO":
        return asarray(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        parts = [default_convert(value) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    return data
