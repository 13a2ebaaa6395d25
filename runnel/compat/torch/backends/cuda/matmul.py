"""Settings that have no effect: attributes can be set."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import (
        allow_bf16_reduced_precision_reduction,
        allow_fp16_accumulation,
        allow_fp16_reduced_precision_reduction,
        allow_tf32,
        fp32_precision,
    )

__all__ = [
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
    "allow_fp16_reduced_precision_reduction",
    "allow_tf32",
    "fp32_precision",
]
_LATE = {
    "allow_bf16_reduced_precision_reduction": "runnel.compat.functions.backends:allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation": "runnel.compat.functions.backends:allow_fp16_accumulation",
    "allow_fp16_reduced_precision_reduction": "runnel.compat.functions.backends:allow_fp16_reduced_precision_reduction",
    "allow_tf32": "runnel.compat.functions.backends:allow_tf32",
    "fp32_precision": "runnel.compat.functions.backends:fp32_precision",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
