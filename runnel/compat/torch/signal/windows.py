"""Windows for Fourier transforms."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.windows import (
        bartlett,
        blackman,
        cosine,
        exponential,
        gaussian,
        general_cosine,
        general_hamming,
        hamming,
        hann,
        kaiser,
        nuttall,
    )

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]
_LATE = {
    "bartlett": "runnel.compat.functions.windows:bartlett",
    "blackman": "runnel.compat.functions.windows:blackman",
    "cosine": "runnel.compat.functions.windows:cosine",
    "exponential": "runnel.compat.functions.windows:exponential",
    "gaussian": "runnel.compat.functions.windows:gaussian",
    "general_cosine": "runnel.compat.functions.windows:general_cosine",
    "general_hamming": "runnel.compat.functions.windows:general_hamming",
    "hamming": "runnel.compat.functions.windows:hamming",
    "hann": "runnel.compat.functions.windows:hann",
    "kaiser": "runnel.compat.functions.windows:kaiser",
    "nuttall": "runnel.compat.functions.windows:nuttall",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
