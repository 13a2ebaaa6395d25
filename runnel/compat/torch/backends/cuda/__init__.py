"""Settings that have no effect."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.backends import (
        flags as sdp_kernel,
        is_absent as cudnn_sdp_enabled,
        is_absent as flash_sdp_enabled,
        is_absent as mem_efficient_sdp_enabled,
        is_present as math_sdp_enabled,
    )
    from runnel.compat.functions.running import (
        is_available as is_built,
        no_effect as enable_cudnn_sdp,
        no_effect as enable_flash_sdp,
        no_effect as enable_math_sdp,
        no_effect as enable_mem_efficient_sdp,
    )
    from runnel.compat.torch.backends.cuda import matmul

__all__ = [
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]
_LATE = {
    "cudnn_sdp_enabled": "runnel.compat.functions.backends:is_absent",
    "enable_cudnn_sdp": "runnel.compat.functions.running:no_effect",
    "enable_flash_sdp": "runnel.compat.functions.running:no_effect",
    "enable_math_sdp": "runnel.compat.functions.running:no_effect",
    "enable_mem_efficient_sdp": "runnel.compat.functions.running:no_effect",
    "flash_sdp_enabled": "runnel.compat.functions.backends:is_absent",
    "is_built": "runnel.compat.functions.running:is_available",
    "math_sdp_enabled": "runnel.compat.functions.backends:is_present",
    "matmul": "runnel.compat.torch.backends.cuda:matmul",
    "mem_efficient_sdp_enabled": "runnel.compat.functions.backends:is_absent",
    "sdp_kernel": "runnel.compat.functions.backends:flags",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
