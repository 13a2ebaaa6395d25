"""Distributions of random numbers."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.distribution_tools import (
        broadcast_all,
        clamp_probs,
        lazy_property,
        logits_to_probs,
        probs_to_logits,
    )

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]
_LATE = {
    "broadcast_all": "runnel.compat.functions.distribution_tools:broadcast_all",
    "clamp_probs": "runnel.compat.functions.distribution_tools:clamp_probs",
    "lazy_property": "runnel.compat.functions.distribution_tools:lazy_property",
    "logits_to_probs": "runnel.compat.functions.distribution_tools:logits_to_probs",
    "probs_to_logits": "runnel.compat.functions.distribution_tools:probs_to_logits",
}

public.offer(globals(), __all__, _LATE, forwards=("runnel.distributions",))
del TYPE_CHECKING, public
