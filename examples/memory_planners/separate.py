"""No sharing: every value has separate memory, as if each had been allocated and none freed.

rn.compile(f, memory_planner=separate)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runnel import memory


def separate(lifetimes: Sequence[memory.Lifetime]) -> list[int]:
    """An offset for each lifetime."""
    return list(itertools.accumulate((x.nbytes for x in lifetimes), initial=0))[:-1]
