"""The default generator."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.drawing import initial_seed, manual_seed
    from runnel.compat.functions.running import fork_rng

__all__ = ["fork_rng", "initial_seed", "manual_seed"]
_LATE = {
    "fork_rng": "runnel.compat.functions.running:fork_rng",
    "initial_seed": "runnel.compat.functions.drawing:initial_seed",
    "manual_seed": "runnel.compat.functions.drawing:manual_seed",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel",))
del TYPE_CHECKING, public
