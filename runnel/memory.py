"""Memory planners: who says where in a program's memory its intermediate values lie (``docs/extend/passes.md``)."""

from runnel.compiler.memory.arena import (
    Allocator,
    Heap as BestFit,
    Lifetime,
    MemoryPlanner,
    Replayed as replay,
    most_alive,
    search,
)
from runnel.core import public

__all__ = ["Allocator", "BestFit", "Lifetime", "MemoryPlanner", "most_alive", "replay", "search"]

public.offer(globals(), __all__, inner=frozenset({"Allocator", "BestFit", "Lifetime", "replay"}))
