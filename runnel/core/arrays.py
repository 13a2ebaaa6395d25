"""User data as NumPy arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType, from_numpy
from runnel.core.errors import ArgumentError

LONGEST = 60


def short_repr(value: Any) -> str:
    """Describe ``value`` in one line: a tensor by its dtype and shape, a container by its size, a number as it is."""
    kind = type(value)
    if isinstance(value, TensorLike):
        return f"a {kind.__name__} {value.summary()}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, np.generic):
        return f"{value} (NumPy's {kind.__name__})"
    if value is None or isinstance(value, (bool, DType)):
        return repr(value)
    if isinstance(value, (int, float, complex, str, bytes)):
        return f"{_cut(repr(value))} ({kind.__name__})"
    if kind in (list, tuple) and len(repr(value)) <= LONGEST:
        return f"{value!r} ({kind.__name__})"
    if isinstance(value, (list, dict, set, tuple, frozenset)):
        return f"a {kind.__name__} of {len(value)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    top = kind.__module__.partition(".")[0]
    return f"a {kind.__name__}" if top in ("builtins", "__main__") else f"a {top} {kind.__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def as_array(name: str, data: Any) -> np.ndarray:
    """Convert numbers, nested sequences of numbers, or arrays to a NumPy array of a dtype that tensors support.

    Raises ArgumentError for ragged rows and for data other than numbers, TypeError for unsupported numbers.
    """
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"[{name}] {short_repr(data)} is no array: "
            f"its rows differ in length, or its items are no numbers ({error})."
        ) from None
    if array.dtype.kind in "OSUVMm" and array.dtype.names is None and array.dtype.type.__module__ == "numpy":
        raise ArgumentError(
            f"[{name}] the elements must be numbers; got {short_repr(data)}, of NumPy dtype {array.dtype}."
        )
    from_numpy(array.dtype)
    return array


def can_share(array: np.ndarray, dtype: DType | None) -> bool:
    """Return whether a tensor can share the memory of ``array``: it has ``dtype``, if one is given, and whole steps."""
    fits = dtype is None or array.dtype == dtype.numpy
    return fits and array.dtype.isnative and not any(step % array.itemsize for step in array.strides)


def same_memory(array: np.ndarray, view: np.ndarray) -> bool:
    """Return whether one array is the other in another shape."""
    return array.flags.c_contiguous and view.flags.c_contiguous and array.size == view.size
