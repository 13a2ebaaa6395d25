"""TinyFlow's session: values go in and come out as float32 NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from runnel.compat.tinyflow.functions import Symbol
from runnel.declarative import session


class Cell(np.ndarray[Any, np.dtype[np.float32]]):
    """An array of one element that goes where a number goes, as TinyFlow's programs print losses: NumPy itself
    converts arrays without axes only."""

    def __float__(self) -> float:
        return float(self.item())


class Session:
    """Keeps the values of variables. With "fusion" in ``config`` a run is one program, else its operations run one by
    one; "gpu" means nothing here."""

    def __init__(self, config: str = "cpu") -> None:
        self.config = config
        self._session = session.Session(fused="fusion" in config)

    def run(self, fetch: Any, feed_dict: Mapping[Symbol, np.ndarray] | None = None) -> Any:
        """The values of ``fetch``: a symbol or operation, or a list of such for a list of values. None stands for
        operations and for what has no axes or no elements."""
        feeds = {x: np.ascontiguousarray(value, np.float32) for x, value in (feed_dict or {}).items()}
        result = self._session.run(fetch, feeds)
        return [_array(x) for x in result] if isinstance(fetch, list) else _array(result)


def _array(value: Any) -> np.ndarray | None:
    if value is None or value.ndim == 0 or 0 in value.shape:
        return None
    result = np.array(value.numpy(), np.float32)
    return result.view(Cell) if result.size == 1 else result
