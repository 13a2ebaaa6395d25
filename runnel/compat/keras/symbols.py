"""Symbols: what layers give when a model is put together, with the layer and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.dtypes import Dtype


class Symbol:
    """The output of ``layer`` for ``args``; without a layer, an input of a model. ``shape`` begins with None, for the
    batch."""

    def __init__(
        self, shape: Any, dtype: Any = "float32", layer: Any = None, args: Any = (), options: Any = None
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.layer = layer
        self.args = args
        self.options = options or {}

    def __repr__(self) -> str:
        return f"<symbol of shape {self.shape}>"


def Input(shape: Sequence[int | None], dtype: Dtype = "float32", name: str = "") -> Symbol:
    """A symbol of a model's input: ``shape`` is that of a sample, without the batch."""
    return Symbol((None, *shape), dtype)


def shape_of(value: Any) -> Any:
    """The shape of an input, its batch as None; a list of shapes for several."""
    if isinstance(value, list | tuple):
        return [shape_of(item) for item in value]
    return (None, *tuple(value.shape)[1:])
