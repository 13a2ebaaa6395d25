"""Combine samples into batches: stacked or ragged, in private or shared memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core import dtypes
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, ShapeError
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.uneven.value import Ragged


def default_collate(batch: Sequence[Any]) -> Any:
    """Combine a list of samples into a batch.

    Tensors and NumPy arrays are stacked along a new first axis. Python numbers become a tensor: float64 if there is a
    float, otherwise int64, or bool if all are bools. Strings and bytes become a list. Mappings, named tuples, tuples
    and lists are combined item by item; the last two become a list.

    ShapeError for arrays of different shapes; ArgumentError for samples of different kinds, mappings with different
    keys, and other types such as None.
    """
    if not batch:
        raise ArgumentError("[default_collate] there are no samples to put together.")
    form = _form(batch[0])
    if form is None:
        raise ArgumentError(
            "[default_collate] samples are tensors, NumPy arrays, numbers, strings, mappings and sequences of these; "
            f"got {short_repr(batch[0])}. Pass DataLoader a collate_fn."
        )
    for number, sample in enumerate(batch):
        if _form(sample) is not form:
            raise ArgumentError(
                f"[default_collate] samples have one form; number 0 of the batch is {short_repr(batch[0])}, number "
                f"{number} {short_repr(sample)}. Pass DataLoader a collate_fn."
            )
    return form(batch)


def _numbers(batch: Sequence[Any]) -> Any:
    if not all(isinstance(sample, int | float) for sample in batch):
        shapes = [np.shape(sample) for sample in batch]
        if any(shape != shapes[0] for shape in shapes):
            raise ShapeError(
                f"[default_collate] samples must have one shape; got {', '.join(map(str, dict.fromkeys(shapes)))}. "
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
    first = batch[0]
    for number, sample in enumerate(batch):
        if sample.keys() != first.keys():
            raise ArgumentError(
                f"[default_collate] samples have the same keys; number 0 of the batch has {list(first)}, number "
                f"{number} {list(sample)}."
            )
    return {key: default_collate([sample[key] for sample in batch]) for key in first}


def _sequences(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise ArgumentError(
            f"[default_collate] samples must have equal lengths; got {[len(sample) for sample in batch]}. "
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
    """Return the function that combines samples like this one; None if no function does."""
    return next((form for kinds, form in _FORMS if isinstance(sample, kinds)), None)


def default_convert(data: Any) -> Any:
    """Convert NumPy arrays in a sample to tensors."""
    if isinstance(data, np.ndarray | np.generic) and np.asarray(data).dtype.kind not in "SUO":
        return asarray(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        parts = [default_convert(value) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    return data


Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]


class _Room(threading.local):
    """The allocator of this thread's batches."""

    allocate: Allocate | None = None


ROOM = _Room()


def new_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized array for a part of a batch."""
    return np.empty(shape, dtype) if ROOM.allocate is None else ROOM.allocate(shape, dtype)


def pack_collate(batch: Sequence[Any]) -> Any:
    """Combine ragged samples: a ``collate_fn``.

    Arrays and lists of numbers become a :class:`runnel.Ragged`; they may differ in their first axis, and ShapeError is
    raised if they differ in another one. Single numbers and strings are combined by ``default_collate``. It descends
    into tuples, lists and mappings.
    """
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


def _packed(arrays: list[np.ndarray]) -> Ragged:
    if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
        raise ShapeError(
            f"[pack_collate] samples must differ only in their first axis; got {[array.shape for array in arrays]}."
        )
    offsets = np.cumsum([0, *(len(array) for array in arrays)])
    values = new_array((int(offsets[-1]), *arrays[0].shape[1:]), np.result_type(*{array.dtype for array in arrays}))
    np.concatenate(arrays, out=values, casting="unsafe")
    return Ragged(asarray(values, copy=False), asarray(offsets, copy=False))
