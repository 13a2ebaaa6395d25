"""einops on tensors (A. Rogozhnikov, "Einops", 2022): import this module once, and ``einops`` knows them.

``einops.rearrange``, ``reduce``, ``repeat``, ``einsum``, ``pack`` and ``unpack`` then take tensors and Variables,
eagerly, compiled and with gradients. The module has these names itself, and ``runnel.compat.einops.layers`` has
``Rearrange``, ``Reduce`` and ``EinMix`` as modules.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from runnel.compile.boundary import set_observed
from runnel.ops import precision
from runnel.ops.linear_algebra.products import einsum as einsum_of
from runnel.ops.reductions import primitives
from runnel.ops.shapes.joining import tile
from runnel.ops.shapes.pieces import concat, stack
from runnel.ops.shapes.views import expand_dims, permute
from runnel.tensor import creation
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor

try:
    from einops import (
        EinopsError,
        asnumpy,
        einsum,
        pack,
        parse_shape,
        rearrange,
        reduce,
        repeat,
        unpack,
    )
    from einops._backends import AbstractBackend
except ImportError as error:
    raise ImportError("[einops] is not installed; run: pip install 'runnel[einops]'") from error

__all__ = ["EinopsError", "asnumpy", "einsum", "pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]

set_observed("einops", False)  # it computes with these functions, and what it keeps are its patterns


class Backend(AbstractBackend):  # type: ignore[misc]  # einops finds it among the subclasses
    """The operations that einops needs from an array library."""

    framework_name = "runnel"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, ArrayMethods)

    def from_numpy(self, x: np.ndarray) -> Tensor:
        return creation.asarray(x)

    def to_numpy(self, x: Any) -> np.ndarray:
        array: np.ndarray = x.numpy()
        return array

    def arange(self, start: int, stop: int) -> Tensor:
        return creation.arange(start, stop)

    def transpose(self, x: Any, axes: Any) -> Tensor:
        return permute(x, axes)

    def reduce(self, x: Any, operation: str, axes: Any) -> Tensor:
        module = precision if operation == "mean" else primitives
        reduced: Tensor = getattr(module, operation)(x, axis=tuple(axes))
        return reduced

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Tensor:
        return stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Tensor:
        return expand_dims(x, new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        sizes = [-1] * n_axes
        for position, size in pos2len.items():
            x = self.add_axis(x, position)
            sizes[position] = size
        expanded: Tensor = x.expand(*sizes)
        return expanded

    def tile(self, x: Any, repeats: Any) -> Tensor:
        return tile(x, repeats)

    def concat(self, tensors: Any, axis: int) -> Tensor:
        return concat(list(tensors), axis)

    def is_float_type(self, x: Any) -> bool:
        return bool(x.dtype.is_inexact)

    def layers(self) -> Any:
        return importlib.import_module("runnel.compat.einops.layers")

    def einsum(self, pattern: str, *x: Any) -> Tensor:
        return einsum_of(pattern, *x)
