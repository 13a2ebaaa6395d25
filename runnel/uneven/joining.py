"""Ragged values joined, indexed and padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.dispatch import TensorLike, apply, required
from runnel.core.dtypes import int64
from runnel.core.errors import AxisError, ShapeError, UnsupportedError
from runnel.ops.arguments import normalize_axis
from runnel.ops.indexing import runs
from runnel.tensor.creation import asarray
from runnel.uneven import rows
from runnel.uneven.value import Ragged

_KNOWN: Final = "[getitem] offsets must be known when the function is traced: the rows decide the shape of the result."


def padded(x: Ragged, fill: Any = 0, length: int | None = None) -> Any:
    """Return the rows as a tensor (rows, ``length``, ...) with ``fill`` after their ends."""
    values = x.values.padded(fill) if isinstance(x.values, Ragged) else x.values
    if length is None:
        lengths = required(x.lengths, "[padded] length must be given in a compiled function.")
        length = int(np.max(lengths, initial=0))
    count = x.count
    whole = ops.full_like(values, fill, (count * length, *values.shape[1:]))
    if values.shape[0]:
        place = apply(runs.run_length_p, rows.positions(x), extent=length, allowed=None)
        whole = ops.put(whole, rows.labels(x) * length + place, values)
    return ops.reshape(whole, (count, length, *values.shape[1:]))


def regular(x: Any) -> Ragged:
    """Return a dense batch (rows, length, ...) as rows of equal length."""
    count, length = x.shape[:2]
    return Ragged.made(ops.reshape(x, (count * length, *x.shape[2:])), ops.iota(x, (count + 1,), 0, int64) * length)


# Joining --------------------------------------------------------------------------------------------------------------


def concat(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Join rows (axis 0), the elements of each row (axis 1) or the features of elements."""

    def parts(arrays: Sequence[Any], axis: int | None = 0) -> Any:
        if axis is None:
            raise UnsupportedError("[concat] axis must be a number for ragged values; got None.")
        first = next(x for x in arrays if isinstance(x, Ragged))
        place = normalize_axis("concat", axis, first.ndim)
        values = [x if isinstance(x, Ragged) else regular(x) for x in arrays]
        if any(isinstance(x.values, Ragged) for x in values) and place < 2:
            raise UnsupportedError("[concat] values must have one ragged axis along axis 0 or 1.")
        if place >= 2:
            offsets = rows.common_offsets("concat", values)
            return Ragged.made(function([x.values for x in values], place - 1), offsets)
        return _rows_after_rows(values) if place == 0 else _joined_rows(values)

    return parts(*args, **kwargs)


def _rows_after_rows(values: Sequence[Ragged]) -> Ragged:
    offsets, total = [rows.checked_offsets(values[0])], values[0].total
    for x in values[1:]:
        offsets.append(rows.checked_offsets(x)[1:] + total)
        total = total + x.total
    return Ragged.made(ops.concat([x.values for x in values]), ops.concat(offsets))


def _joined_rows(values: Sequence[Ragged]) -> Ragged:
    if any(x.count != values[0].count for x in values):
        raise ShapeError(f"[concat] ragged values must have the same number of rows; got {[x.count for x in values]}.")
    starts = [rows.checked_offsets(x) for x in values]
    offsets = starts[0]
    for each in starts[1:]:
        offsets = offsets + each
    total = 0
    for x in values:
        total = total + x.total
    whole = Ragged.made(ops.concat([x.values for x in values]), offsets)
    if not whole.count or not total:
        return whole
    ids = rows.labels(whole)
    within = ops.iota(offsets, (total,), 0, int64) - ops.take(offsets, ids, 0)
    place, before = within, 0
    for x, begin in zip(values, starts, strict=True):  # the element of the first part that reaches so far
        first, size = ops.take(begin, ids, 0), ops.take(begin[1:] - begin[:-1], ids, 0)
        here = ops.logical_and(within >= 0, within < size)
        place = ops.where(here, first + within + before, place)
        within = ops.where(here, -1, within - size)
        before = before + x.total
    return Ragged.made(ops.take(whole.values, place, 0), offsets)


def stack(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Join ragged values along a new axis of their elements."""

    def parts(arrays: Sequence[Any], axis: int = 0) -> Any:
        if not all(isinstance(x, Ragged) for x in arrays):
            raise ShapeError("[stack] all arrays must be ragged if one is.")
        place = normalize_axis("stack", axis, arrays[0].ndim + 1)
        if place < 2:
            raise UnsupportedError(f"[stack] the new axis of ragged values must be 2 or more, or negative; got {axis}.")
        offsets = rows.common_offsets("stack", arrays)
        return Ragged.made(function([x.values for x in arrays], place - 1), offsets)

    return parts(*args, **kwargs)


def expand_dims(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add an axis to the elements."""

    def parts(x: Ragged, axis: int) -> Any:
        place = normalize_axis("expand_dims", axis, x.ndim + 1)
        if place < 2:
            raise UnsupportedError(f"[expand_dims] the new axis of a ragged value must be 2 or more; got {axis}.")
        return x.map(function, place - 1)

    return parts(*args, **kwargs)


# Indexing -------------------------------------------------------------------------------------------------------------


def getitem(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return x[rows, elements, ...]: a row, some rows; an element of each row, a slice of each row."""
    x, key = args
    if not isinstance(x, Ragged):
        raise UnsupportedError("[getitem] an index must not be ragged; index with its values.")
    keys = key if isinstance(key, tuple) else (key,)
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if dots:
        missing = x.ndim - sum(k is not None and k is not Ellipsis for k in keys)
        keys = (*keys[: dots[0]], *(slice(None),) * missing, *keys[dots[0] + 1 :])
    if any(k is None for k in keys[:2]):
        raise UnsupportedError("[getitem] a new axis of a ragged value must come after axis 1.")
    first, second, rest = keys[0], (keys[1] if len(keys) > 1 else slice(None)), keys[2:]
    if isinstance(first, (int, np.integer)):
        at = _offsets(x)
        count = len(at) - 1
        if not -count <= first < count:
            raise AxisError(f"[getitem] index {first} lies outside the {count} rows.")
        return x.values[at[first % count] : at[first % count + 1]][(second, *rest)]
    if not (isinstance(first, slice) and first == slice(None)):
        x = _some_rows(x, first)
    if rest:
        x = x.map(lambda values: values[(slice(None), *rest)])
    if isinstance(second, (int, np.integer)):
        return _element(x, int(second))
    if isinstance(second, slice):
        return x if second == slice(None) else _part(x, second)
    raise UnsupportedError("[getitem] axis 1 of a ragged value takes a number or a slice.")


def _offsets(x: Ragged) -> np.ndarray:
    return np.asarray(required(x.offsets, _KNOWN)).astype(np.int64)


def _taken(x: Ragged, begins: np.ndarray, lengths: np.ndarray, steps: Any = 1) -> Ragged:
    """Return rows of ``lengths`` elements from ``begins`` on, with NumPy's arrays."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
    place = asarray(np.repeat(begins, lengths) + within * np.repeat(np.broadcast_to(steps, len(lengths)), lengths))
    if isinstance(x.values, Ragged):
        return Ragged(x.values[place], ends)
    return Ragged(ops.take(x.values, place, 0), ends)


def _some_rows(x: Ragged, key: Any) -> Ragged:
    if isinstance(key, TensorLike):
        key = np.asarray(required(key, _KNOWN))
    at = _offsets(x)
    try:
        chosen = np.arange(len(at) - 1)[np.asarray(key) if isinstance(key, (list, np.ndarray)) else key]
    except IndexError as error:
        raise AxisError(f"[getitem] an index lies outside the {len(at) - 1} rows ({error}).") from None
    return _taken(x, at[chosen], (at[1:] - at[:-1])[chosen])


def _element(x: Ragged, place: int) -> Any:
    """Return one element of each row, which must have it."""
    if isinstance(x.values, Ragged):
        raise UnsupportedError("[getitem] axis 1 of several ragged axes takes a slice.")
    rows.require_elements("getitem", x, place + 1 if place >= 0 else -place)
    offsets = rows.checked_offsets(x)
    lengths = offsets[1:] - offsets[:-1]
    spare = lengths - 1 - place if place >= 0 else lengths + place
    spare = apply(runs.run_length_p, spare, extent=max(x.total, 1), allowed=None)
    if not x.count:
        return ops.full_like(x.values, 0, (0, *x.values.shape[1:]))
    return ops.take(x.values, offsets[:-1] + (lengths - 1 - spare if place >= 0 else spare), 0)


def _part(x: Ragged, key: slice) -> Ragged:
    """Return a slice of each row. In programs, x[:, a:-b] with a and b >= 0 cuts the rows at run time."""
    start, stop = key.start or 0, -(key.stop or 0)
    is_cut = start >= 0 and stop >= 0 and key.step in (None, 1) and not isinstance(x.values, Ragged)
    if not is_cut or x.offsets.known() is not None:
        at = _offsets(x)
        spans = [range(*key.indices(n)) for n in np.diff(at).tolist()]
        begins = at[:-1] + np.array([span.start for span in spans], np.int64)
        return _taken(x, begins, np.array([len(span) for span in spans], np.int64), key.step or 1)
    cut = start + stop
    offsets = rows.checked_offsets(x)
    lengths = apply(runs.run_length_p, offsets[1:] - offsets[:-1] - cut, extent=x.total + 1, allowed=None)
    ends = ops.concat([offsets[:1], offsets[:-1] + lengths + cut])
    ends, total = ends - ops.iota(ends, ends.shape, 0) * cut, x.total - x.count * cut
    place = ops.iota(ends, (total,), 0, int64) + rows.labels_between(ends, total) * cut + start
    return Ragged.made(ops.take(x.values, place, 0), ends)
