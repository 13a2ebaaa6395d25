"""The ragged value: the elements of all rows one after another, and where each row begins.

Row i is ``values[offsets[i] : offsets[i + 1]]``. To functions a ragged value is a padded batch (rows, length, ...)
without the padding: axis 0 are the rows, axis 1 the elements of a row, and the axes of an element follow. The values
may be ragged themselves, which makes axis 2 ragged, too.

Compiled functions, gradients and files see a container of two tensors. Functions see a value that handles whole calls
(:mod:`runnel.core.overrides`) by the table in :mod:`runnel.uneven.table`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core import dtypes, pytree
from runnel.core.arrays import short_repr
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import required
from runnel.core.dtypes import DType, Dtype
from runnel.core.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from runnel.core.namespaces import imported
from runnel.core.overrides import Override
from runnel.core.tables import axes
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods

_TABLE: Final = "runnel.uneven.table:{}"
REMEDY: Final = "compute with x.values, x.padded() or the rows x.unbind()"


class RaggedError(Override, UnsupportedError):
    """Raised where library code reads a ragged value: the call is handled here."""

    def handles(self, function: Callable[..., Any]) -> bool:
        """Return whether the table has a row for ``function``. Layers of the library without a row refuse the call."""
        return imported(_TABLE.format("row_of"))(function) is not None or _is_layer(function)

    def handle(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return imported(_TABLE.format("handled"))(function, args, kwargs)


def _is_layer(function: Any) -> bool:
    return not hasattr(function, "__name__") and type(function).__module__.startswith("runnel.nn.")


class Ragged(ArrayMethods[Any]):
    """Rows of different lengths, stored one after another.

    Args:
        values: the elements of all rows, shape (total, ...): a tensor, what ``asarray`` takes, or another Ragged.
        offsets: ascending integers, one more than there are rows: 0, where each further row begins, and the total.

    Example:
        >>> x = rn.Ragged(rn.arange(5), [0, 2, 2, 5])
        >>> x.tolist()
        [[0, 1], [], [2, 3, 4]]
    """

    def __init__(self, values: Any, offsets: Any) -> None:
        self._values: Any = values if isinstance(values, ArrayMethods) else asarray(values)
        self._offsets: Any = offsets if isinstance(offsets, ArrayMethods) else asarray(np.asarray(offsets))
        _check(self._values, self._offsets)

    @classmethod
    def made(cls, values: Any, offsets: Any) -> Ragged:
        """Return a ragged value of checked parts."""
        self: Ragged = object.__new__(cls)
        self._values, self._offsets = values, offsets
        return self

    @classmethod
    def from_lengths(cls, values: Any, lengths: Any) -> Ragged:
        """Return rows of these ``lengths``, integers that add up to the number of values."""
        sizes = lengths if isinstance(lengths, ArrayMethods) else asarray(np.asarray(lengths, np.int64))
        known = sizes.known()
        if known is not None:
            return cls(values, np.concatenate([[0], np.cumsum(known, dtype=np.int64)]))
        ends = ops.cumsum(sizes, 0, dtypes.int64)
        return cls(values, ops.concat([ops.full_like(ends, 0, (1,)), ends]))

    @classmethod
    def from_padded(cls, x: Any, lengths: Any) -> Ragged:
        """Return the first ``lengths[i]`` elements of each row of ``x``, of shape (rows, length, ...).

        The lengths decide a shape: compiled functions read them when they are traced, and have a trace for each
        combination.
        """
        x = x if isinstance(x, ArrayMethods) else asarray(x)
        sizes = lengths if isinstance(lengths, ArrayMethods) else asarray(np.asarray(lengths, np.int64))
        known = np.asarray(required(sizes, "[from_padded] lengths must be known when the function is traced."))
        if (
            x.ndim < 2
            or known.shape != x.shape[:1]
            or (known.size and not 0 <= known.min() <= known.max() <= x.shape[1])
        ):
            raise ShapeError(
                f"[from_padded] lengths must be one number from 0 to length for each row of x (rows, length, ...); got "
                f"{known.tolist()} for shape {x.shape}."
            )
        places = np.flatnonzero(np.arange(x.shape[1]) < known[:, None])
        flat = ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
        return cls.from_lengths(ops.take(flat, asarray(places), 0), known)

    # The parts --------------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The elements of all rows, shape (total, ...)."""
        return self._values

    @property
    def offsets(self) -> Any:
        """Return the index at which each row begins, followed by the total."""
        return self._offsets

    @property
    def lengths(self) -> Any:
        """The length of each row, int64."""
        ends = ops.cast(self._offsets, dtypes.int64)
        return ends[1:] - ends[:-1]

    @property
    def total(self) -> int:
        """The number of elements of all rows."""
        return self._values.count if isinstance(self._values, Ragged) else self._values.shape[0]

    @property
    def count(self) -> int:
        """The number of rows. Unlike ``len``, it may differ from call to call of a compiled function."""
        rows: int = self._offsets.shape[0] - 1
        return rows

    @property
    def ndim(self) -> int:
        """The number of axes: rows, elements, and the axes of an element."""
        return int(self._values.ndim) + 1

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        kind: DType = self._values.dtype
        return kind

    @property
    def device(self) -> Any:
        """The device of the values."""
        return self._values.device

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Return whether the values require a gradient."""
        return bool(self._values.requires_grad)

    def map(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Ragged:
        """Return these rows with ``function(values, ...)`` as values: the function must treat each element of its
        first axis by itself."""
        return Ragged(function(self._values, *args, **kwargs), self._offsets)

    def padded(self, fill: Any = 0, length: int | None = None) -> Any:
        """Return the rows as a tensor (rows, ``length``, ...) with ``fill`` after their ends.

        By default the longest row decides the length; a compiled function must give it. Rows must not be longer.
        """
        return imported("runnel.uneven.joining:padded")(self, fill, length)

    def unbind(self, axis: int = 0) -> tuple[Any, ...]:
        """Return the rows. Offsets decide shapes here, see :meth:`from_padded`."""
        if axis != 0:
            raise UnsupportedError(f"[unbind] axis must be 0 for a Ragged; got {axis}.")
        at = np.asarray(required(self._offsets, "[unbind] offsets must be known when the function is traced.")).tolist()
        return tuple(self._values[begin:end] for begin, end in itertools.pairwise(at))

    def tolist(self) -> list[Any]:
        """Return the rows as nested lists of numbers."""
        return [row.tolist() for row in self.unbind()]

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the rows as a NumPy array of arrays. ``values.numpy()`` and ``offsets.numpy()`` copy nothing."""
        rows = np.empty(len(self), object)
        for i, row in enumerate(self.unbind()):
            rows[i] = row.numpy()
        return rows

    def __len__(self) -> int:
        return int(self.count)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __repr__(self) -> str:
        inner = repr(self._values) if isinstance(self._values, Ragged) else str(self._values.aval)
        return f"Ragged({len(self)} rows, values={inner})"

    def summary(self) -> str:
        return repr(self)

    def __pos__(self) -> Any:
        return self

    def clone(self) -> Any:
        """Return the same rows with separate values, through which gradients flow."""
        return self.map(lambda values: values.clone())

    def detach(self) -> Ragged:
        """Return the same rows without their history."""
        return self.map(lambda values: values.detach())

    def requires_grad_(self, requires_grad: bool = True) -> Ragged:
        """Let the values collect gradients, or not; return this value."""
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Any:
        """The gradient of the values, as these rows; None if there is none."""
        found = self._values.grad
        return None if found is None else Ragged.made(found, self._offsets)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise UnsupportedError("[numpy] a ragged value is no array; use x.padded() or x.values with x.offsets.")

    # What library code asks for: its call is handled above ------------------------------------------------------------

    @property
    def aval(self) -> Any:
        raise RaggedError(f"[ragged] a ragged value has no shape; {REMEDY}.")

    def read(self) -> Any:
        """Raise the error that hands the call over."""
        return self.aval

    def lift(self, array: Any, dtype: DType) -> Any:
        return self._values.lift(array, dtype)

    def apply_op(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if len(inputs) == 1 and axes.get(op) is ELEMENTWISE:
            return Ragged.made(self._values.apply_op(op, (self._values,), attrs), self._offsets)
        return self.aval

    def apply_composed(self, composition: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        row = imported(_TABLE.format("row_of"))(composition)
        return self.aval if row is None else row(composition.call, args, kwargs)

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        raise UnsupportedError(f"[{name}] a ragged value must not be changed in place; write to x.values.")


def _check(values: Any, offsets: Any) -> None:
    """Raise the error of offsets that do not fit the values, as far as they are known."""
    if offsets.ndim != 1 or not offsets.shape[0]:
        raise ShapeError(f"[Ragged] offsets must be a vector of one integer or more; got shape {offsets.shape}.")
    if not offsets.dtype.is_integer:
        raise DTypeError(f"[Ragged] offsets must be integers; got {offsets.dtype.name}.")
    if not values.ndim:
        raise ShapeError("[Ragged] values must have an axis of elements; got a single number.")
    known = offsets.known()
    if known is None:
        return
    ends = np.asarray(known).astype(np.int64)
    total = len(values) if isinstance(values, Ragged) else values.shape[0]
    if ends[0] != 0 or ends[-1] != total or (np.diff(ends) < 0).any():
        raise AxisError(
            f"[Ragged] offsets must ascend from 0 to the number of values, {total}; got "
            f"{np.array2string(ends, threshold=20, separator=', ')}."
        )


def _parts(x: Ragged) -> tuple[tuple[Any, Any], None]:
    return (x.values, x.offsets), None


pytree.register(Ragged, _parts, lambda static, children: Ragged.made(*children))


def ragged(rows: Sequence[Any], dtype: Dtype = None, *, axes: int = 1) -> Ragged:
    """Return a Ragged of these rows.

    Args:
        rows: a sequence of tensors, arrays, or lists of numbers, which may differ in their first axis.
        dtype: the dtype of the values; by default the common one of the rows.
        axes: the number of ragged axes. With 2, each row is a sequence of such rows (sentences of words of letters).

    Example:
        >>> rn.ragged([[1, 2], [], [3]]).lengths.tolist()
        [2, 0, 1]
    """
    if operator.index(axes) < 1:
        raise ShapeError(f"[ragged] axes must be 1 or more; got {axes}.")
    if isinstance(rows, (str, bytes)) or not isinstance(rows, (Sequence, np.ndarray, ArrayMethods)):
        raise ArgumentError(f"[ragged] rows must be a sequence of arrays or lists; got {short_repr(rows)}.")
    if isinstance(rows, (np.ndarray, ArrayMethods)) and not rows.ndim:
        raise ShapeError("[ragged] rows must have an axis of elements; got a single number.")
    rows = list(rows)
    if axes > 1:
        if any(
            not isinstance(row, (Sequence, np.ndarray, ArrayMethods))
            or (isinstance(row, (np.ndarray, ArrayMethods)) and not row.ndim)
            for row in rows
        ):
            raise ArgumentError(f"[ragged] each row must be a sequence of rows with axes={axes}.")
        inner = ragged([part for row in rows for part in row], dtype, axes=axes - 1)
        return Ragged.from_lengths(inner, [len(row) for row in rows])
    tensors = [row if isinstance(row, ArrayMethods) else _array(row) for row in rows]
    if any(not x.ndim for x in tensors):
        raise ShapeError("[ragged] rows must have an axis of elements; got a single number.")
    full = [x for x in tensors if x.ndim > 1 or x.shape[0]] or tensors[:1]
    if any(x.shape[1:] != full[0].shape[1:] for x in full):
        raise ShapeError(
            f"[ragged] rows must differ only in their first axis; got shapes {[tuple(x.shape) for x in full[:10]]}."
        )
    sizes = [x.shape[0] for x in tensors]
    if not full:
        values: Any = asarray(np.zeros(0, np.float32))
    elif any(isinstance(x, ArrayMethods) for x in full):
        values = ops.concat([x if isinstance(x, ArrayMethods) else asarray(x) for x in full])
    else:
        values = asarray(np.concatenate([np.asarray(x) for x in full]))
    return Ragged.from_lengths(values if dtype is None else ops.cast(values, dtypes.as_dtype(dtype)), sizes)


def _array(row: Any) -> np.ndarray:
    """Return a list of numbers as an array of the dtype that ``asarray`` gives it."""
    return np.zeros(0, np.int64) if isinstance(row, (list, tuple)) and not row else asarray(row).numpy()
