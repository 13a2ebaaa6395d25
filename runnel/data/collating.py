"""Samples put together to batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core import dtypes
from runnel.core.errors import ArgumentError, ShapeError
from runnel.core.showing import short_repr
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods


def default_collate(batch: Sequence[Any]) -> Any:
    """A list of samples as one batch: tensors and NumPy arrays stacked along a new first axis; Python numbers as a
    tensor (float64 if there is a float, otherwise int64, or bool where all are bools); strings and bytes as a list; of
    mappings, named tuples, tuples and lists one of batches, a list for the latter two. ShapeError for arrays of unlike
    shapes, ArgumentError for samples of unlike forms, mappings of other keys, and other types such as None."""
    if not batch:
        raise ArgumentError("[default_collate] there are no samples to put together.")
    form = _form(batch[0])
    if form is None:
        raise ArgumentError(
            "[default_collate] samples are tensors, NumPy arrays, numbers, strings, mappings and sequences of these; "
            f"received {short_repr(batch[0])}. Pass DataLoader a collate_fn."
        )
    for number, sample in enumerate(batch):
        if _form(sample) is not form:
            raise ArgumentError(
                f"[default_collate] samples have one form; number 0 of the batch is {short_repr(batch[0])}, number "
                f"{number} {short_repr(sample)}. Pass DataLoader a collate_fn."
            )
    return form(batch)


def _numbers(batch: Sequence[Any]) -> Any:
    """Arrays, tensors and numbers, stacked."""
    if not all(isinstance(sample, int | float) for sample in batch):
        shapes = [np.shape(sample) for sample in batch]
        if any(shape != shapes[0] for shape in shapes):
            raise ShapeError(
                f"[default_collate] samples have one shape; received {', '.join(map(str, dict.fromkeys(shapes)))}. "
                "Pass DataLoader a collate_fn that pads or packs them (runnel.data.pack_collate)."
            )
        if isinstance(batch[0], ArrayMethods):
            return ops.stack(list(batch))
        return asarray(np.stack([np.asarray(sample) for sample in batch]), copy=False)
    array = np.array(batch)
    if array.dtype.kind == "f":
        return asarray(array.astype(np.float64))
    return asarray(array, dtypes.bool_ if array.dtype.kind == "b" else dtypes.int64)


def _mappings(batch: Sequence[Any]) -> Any:
    """Mappings of the same keys."""
    first = batch[0]
    for number, sample in enumerate(batch):
        if sample.keys() != first.keys():
            raise ArgumentError(
                f"[default_collate] samples have the same keys; number 0 of the batch has {list(first)}, number "
                f"{number} {list(sample)}."
            )
    return {key: default_collate([sample[key] for sample in batch]) for key in first}


def _sequences(batch: Sequence[Any]) -> Any:
    """Tuples or lists of as many elements each."""
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise ArgumentError(
            f"[default_collate] samples have as many elements each; received {[len(sample) for sample in batch]}. "
            "Pass DataLoader a collate_fn that pads or packs them."
        )
    parts = [default_collate(part) for part in zip(*batch, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else parts


_FORMS: Final[tuple[tuple[Any, Callable[[Sequence[Any]], Any]], ...]] = (
    (ArrayMethods | np.ndarray | np.number | np.bool_ | int | float, _numbers),
    (str | bytes, list),
    (Mapping, _mappings),
    (tuple | list, _sequences),
)


def _form(sample: Any) -> Callable[[Sequence[Any]], Any] | None:
    """What puts samples like this one together; None if nothing does."""
    return next((form for kinds, form in _FORMS if isinstance(sample, kinds)), None)


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
