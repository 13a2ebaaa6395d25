"""Linear algebra: factorizations and systems of equations."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.ops.linalg import eigh, qr, solve, svd

__all__ = ["eigh", "qr", "solve", "svd"]

public.offer(globals(), __all__)
del public
