"""Memory for backends that compute in this process's own."""

from __future__ import annotations

from runnel.backends.host import memory


class HostMemory:
    """The part of a backend that gives memory."""

    allocate = staticmethod(memory.allocate)
    allocate_slab = staticmethod(memory.allocate_slab)
