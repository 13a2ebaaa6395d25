"""Data as users give it, as NumPy arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.dtypes import from_numpy
from runnel.core.errors import ArgumentError
from runnel.core.showing import shown


def as_array(name: str, data: Any) -> np.ndarray:
    """``data`` (numbers, nested sequences of numbers, arrays) as a NumPy array of a dtype that tensors can have.

    Raises ArgumentError for ragged rows and for what holds no numbers, TypeError for numbers that tensors do not hold.
    """
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"[{name}] {shown(data)} is no array: its rows differ in length, or its items are no numbers ({error})."
        ) from None
    if array.dtype.kind in "OSUVMm" and array.dtype.names is None and array.dtype.type.__module__ == "numpy":
        raise ArgumentError(f"[{name}] a tensor holds numbers; received {shown(data)}, of NumPy dtype {array.dtype}.")
    from_numpy(array.dtype)
    return array
