"""Memory of backends whose device memory is that of this process."""

from __future__ import annotations

from runnel.backends.host import memory


class HostMemory:
    """The part of a backend that allocates memory."""

    allocate = staticmethod(memory.allocate)
    allocate_slab = staticmethod(memory.allocate_slab)
