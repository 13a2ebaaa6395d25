"""Networks: modules."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public

__all__ = []

public.offer(globals(), __all__, forwards=("runnel.nn",))
del public
