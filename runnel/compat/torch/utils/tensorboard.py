"""Numbers as TensorBoard shows them."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.event_writer import SummaryWriter

__all__ = ["SummaryWriter"]
_LATE = {
    "SummaryWriter": "runnel.compat.functions.event_writer:SummaryWriter",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
