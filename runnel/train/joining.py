"""Outputs of batches as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.core.pytree import flatten, unflatten
from runnel.tensor.methods import ArrayMethods


def joined(outputs: Iterable[Any]) -> Any:
    """Arrays of the batches joined along their first axis, in the structure that the outputs have."""
    listed = list(outputs)
    if not listed:
        raise ArgumentError("[predict] the data give no batches.")
    flat = [flatten(output) for output in listed]
    structure = flat[0][1]
    for _, other in flat:
        if other != structure:
            raise ArgumentError(
                f"[predict] outputs of all batches have one structure; received {structure!r} and {other!r}."
            )
    return unflatten(structure, [_joined(parts) for parts in zip(*(leaves for leaves, _ in flat), strict=True)])


def _joined(parts: Sequence[Any]) -> Any:
    """One leaf of all outputs; None where each is None."""
    if all(part is None for part in parts):
        return None
    if any(not isinstance(part, ArrayMethods | int | float) for part in parts):
        kinds = ", ".join(sorted({type(part).__name__ for part in parts}))
        raise ArgumentError(f"[predict] outputs are made of tensors, numbers and None; received {kinds}.")
    arrays = [part.numpy() if isinstance(part, ArrayMethods) else np.asarray(part) for part in parts]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)
