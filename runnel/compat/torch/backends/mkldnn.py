"""Settings that have no effect: attributes can be set."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import allow_tf32, deterministic, enabled, flags, fp32_precision
    from runnel.compat.functions.running import is_available

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "fp32_precision", "is_available"]
_LATE = {
    "allow_tf32": "runnel.compat.functions.backends:allow_tf32",
    "deterministic": "runnel.compat.functions.backends:deterministic",
    "enabled": "runnel.compat.functions.backends:enabled",
    "flags": "runnel.compat.functions.backends:flags",
    "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
    "is_available": "runnel.compat.functions.running:is_available",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
