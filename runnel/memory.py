"""Memory planners: who says where in a program's memory its intermediate values lie (``docs/extend/passes.md``)."""

from runnel.compiler.memory.arena import Allocator, MemoryPlanner, Replayed as replay, search
from runnel.compiler.memory.arrangement import Heap as BestFit, Lifetime, most_alive
from runnel.core import public

__all__ = ["Allocator", "BestFit", "Lifetime", "MemoryPlanner", "most_alive", "replay", "search"]

public.offer(globals(), __all__, inner=frozenset({"Allocator", "BestFit", "Lifetime", "replay"}))
