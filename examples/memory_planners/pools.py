"""NNVM's planner: blocks of a pool that are used again by values of similar size.

A value takes the smallest free block of its size up to 16 times that; if there is none, the largest free block down to
a 16th of it, which grows to the value's size; else a new block. Blocks never split. In the end they lie one after the
other.

    rn.compile(f, memory_planner=pools)
"""

from __future__ import annotations

from collections.abc import Sequence

from runnel import memory

MATCH_RANGE = 16


def pools(lifetimes: Sequence[memory.Lifetime], match_range: int = MATCH_RANGE) -> list[int]:
    """An offset for each lifetime."""
    sizes: list[int] = []  # of the blocks
    ends: list[int] = []  # the last moment of the value that a block holds
    block_of = [0] * len(lifetimes)
    for i in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].first):
        nbytes, first, last = lifetimes[i]
        free = [b for b, end in enumerate(ends) if end < first]
        larger = [b for b in free if nbytes <= sizes[b] <= nbytes * match_range]
        smaller = [b for b in free if nbytes // match_range <= sizes[b] < nbytes]
        if larger:
            block = min(larger, key=lambda b: sizes[b])
        elif smaller:
            block = max(smaller, key=lambda b: sizes[b])
            sizes[block] = nbytes
        else:
            block = len(sizes)
            sizes.append(nbytes)
            ends.append(last)
        ends[block], block_of[i] = last, block
    begins = [sum(sizes[:b]) for b in range(len(sizes))]
    return [begins[block] for block in block_of]
