"""Short descriptions of values for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.core.dispatch import TensorLike
from runnel.core.dtypes import DType

LONGEST = 60


def short_repr(value: Any) -> str:
    """``value`` for one line of text: a tensor by its dtype and shape, a container by its size, a number as it is."""
    kind = type(value)
    if isinstance(value, TensorLike):
        return f"a {kind.__name__} {value.aval}"
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
