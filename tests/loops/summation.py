"""The order of a sum, spelt out: blocks of one chain each, which meet pairwise; and the bound of its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.loops.ir import CHAIN, K_BLOCK, LANES


def paired(blocks: list[Any], combine: Callable[[Any, Any], Any] = np.add) -> Any:
    """The first blocks, as many as the largest power of two below their number, and the rest."""
    if len(blocks) == 1:
        return blocks[0]
    half = 2 ** math.floor(math.log2(len(blocks) - 1)) if len(blocks) > 2 else 1
    return combine(paired(blocks[:half], combine), paired(blocks[half:], combine))


def chain(values: Any) -> Any:
    """One after the other, from 0."""
    total = np.zeros(1, values.dtype)
    for value in values:
        total = total + value
    return total[0]


def in_blocks(values: Any) -> Any:
    """The sum of a sequence of updates."""
    blocks = [chain(values[at : at + CHAIN]) for at in range(0, len(values), CHAIN)]
    return paired(blocks) if blocks else values.dtype.type(0)


def in_lanes(values: Any) -> Any:
    """The sum along the last axis: 16 partial sums, then a tree of halves."""
    lanes = [in_blocks(values[lane::LANES]) for lane in range(LANES)]
    for half in (8, 4, 2, 1):
        lanes = [lanes[lane] + lanes[lane + half] for lane in range(half)]
    return lanes[0]


def bound(count: int, dtype: Any, *, products: bool = False) -> float:
    """How far a sum of ``count`` terms may be from the true one, as a part of the sum of their magnitudes."""
    block = K_BLOCK if products else CHAIN
    steps = min(count, block) + math.ceil(math.log2(max(count / block, 1))) + 4
    eps = {2: 2.0**-24, 4: 2.0**-24, 8: 2.0**-53}[np.dtype(dtype).itemsize]
    return steps * eps / (1 - steps * eps)
