"""Clears all caches that exist only for speed."""

from __future__ import annotations

from runnel.backends import base
from runnel.backends.host import memory
from runnel.compile import cache
from runnel.core import generated
from runnel.tensor import composing, eager, tensor
from runnel.transforms import scan_gradient


def clear_caches() -> None:
    """Let go of what is kept only to be quick: programs of compiled functions, plans of single ops, constants, machine
    code that nothing refers to, blocks of memory that wait to be used again.

    Nothing that is in use is lost. The next calls trace and plan again, and find their machine code on the disk. What
    belongs to a model goes with the model anyway; nobody needs to call this.
    """
    cache.clear()
    composing.clear()
    eager.clear()
    scan_gradient.clear()
    generated.bytecode.cache_clear()
    for backend in base.BACKENDS.values():
        backend.clear()
    for constants in tensor.CONSTANT_CACHES:
        constants.clear()
    memory.trim()
