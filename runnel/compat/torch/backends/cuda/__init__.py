"""Settings that have no effect."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import (
        is_available as is_built,
        no_effect as enable_cudnn_sdp,
        no_effect as enable_flash_sdp,
        no_effect as enable_math_sdp,
        no_effect as enable_mem_efficient_sdp,
    )
    from runnel.compat.torch.backends.cuda import matmul

__all__ = ["enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "is_built", "matmul"]
_LATE = {
    "enable_cudnn_sdp": "runnel.compat.functions.running:no_effect",
    "enable_flash_sdp": "runnel.compat.functions.running:no_effect",
    "enable_math_sdp": "runnel.compat.functions.running:no_effect",
    "enable_mem_efficient_sdp": "runnel.compat.functions.running:no_effect",
    "is_built": "runnel.compat.functions.running:is_available",
    "matmul": "runnel.compat.torch.backends.cuda:matmul",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
