"""Sequences of numbers brought to one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.core.errors import ArgumentError
from runnel.data.allocating import new_array
from runnel.tensor.creation import asarray


def truncate(tokens: Sequence[Any], length: int, side: str = "right") -> Sequence[Any]:
    """At most ``length`` tokens: what is cut off is at the "right" or at the "left"."""
    if length < 0 or side not in ("left", "right"):
        raise ArgumentError(f"[truncate] length is 0 or more and side left or right; received {length!r} and {side!r}.")
    return tokens[:length] if side == "right" else tokens[max(len(tokens) - length, 0) :]


def pad(tokens: Sequence[int], length: int, value: int = 0, side: str = "right") -> list[int]:
    """``length`` tokens at least: as many of ``value`` as are missing at the "right" or "left"."""
    if side not in ("left", "right"):
        raise ArgumentError(f"[pad] side is left or right; received {side!r}.")
    missing = [value] * (length - len(tokens))
    return [*tokens, *missing] if side == "right" else [*missing, *tokens]


def pad_collate(batch: Sequence[tuple[Sequence[int], int]]) -> list[Any]:
    """A ``collate_fn`` for pairs (numbers of words, label): int64 tensors (N, longest) with zeros behind the
    shorter ones, lengths (N,) and labels (N,)."""
    texts, labels = zip(*batch, strict=True)
    lengths = np.array([len(text) for text in texts], np.int64)
    rows = new_array((len(texts), int(lengths.max(initial=0))), np.dtype(np.int64))
    rows[...] = 0
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = text
    return [asarray(array, copy=False) for array in (rows, lengths, np.array(labels, np.int64))]
