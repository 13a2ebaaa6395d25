"""Arguments of layers over spatial axes: one number for all axes, one for each, pairs, or a word."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from runnel.core.avals import Shape
from runnel.core.errors import ShapeError
from runnel.ops.arguments import as_shape, is_single
from runnel.ops.im2col import effective_size

Pairs = tuple[tuple[int, int], ...]


def per_axis(name: str, what: str, value: int | Sequence[int], spatial: int) -> Shape:
    """One int for all spatial axes, also as a sequence, or one for each."""
    try:
        numbers = as_shape(name, value)
    except ShapeError:
        numbers = ()
    if is_single(value) or len(numbers) == 1:
        return numbers * spatial
    if len(numbers) != spatial:
        raise ShapeError(f"[{name}] {what} is an int or {spatial} ints, one for each spatial axis; got {value!r}.")
    return numbers


def padding_pairs(name: str, value: str | int | Sequence[Any], kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    """Padding as (before, after) for each spatial axis, from an int, ints, pairs, "valid" or "same"."""
    if isinstance(value, str):
        return _named_padding(name, value, kernel, stride, dilation)
    entries: Any = value
    if is_single(entries) or all(map(is_single, entries)):
        return tuple((n, n) for n in per_axis(name, "padding", entries, len(kernel)))
    pairs = tuple((operator.index(low), operator.index(high)) for low, high in entries)
    if len(pairs) != len(kernel):
        raise ShapeError(f"[{name}] padding needs a pair for each of {len(kernel)} spatial axes; got {value!r}.")
    return pairs


def _named_padding(name: str, value: str, kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    if value == "valid":
        return ((0, 0),) * len(kernel)
    if value != "same":
        raise ShapeError(f"[{name}] padding is a number for each spatial axis, 'same' or 'valid'; got {value!r}.")
    if any(step != 1 for step in stride):
        raise ShapeError(f"[{name}] padding='same' needs stride 1, got {stride}; give the padding in numbers.")
    extra = [effective_size(extent, gap) - 1 for extent, gap in zip(kernel, dilation, strict=True)]
    return tuple((n // 2, n - n // 2) for n in extra)
