"""GPUs, of which there are none."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.running import (
        OutOfMemoryError,
        bytes_of_gpu as max_memory_allocated,
        bytes_of_gpu as max_memory_reserved,
        bytes_of_gpu as memory_allocated,
        bytes_of_gpu as memory_reserved,
        device_count,
        get_rng_state_all,
        is_available,
        is_available as is_bf16_supported,
        is_initialized,
        no_effect as empty_cache,
        no_effect as manual_seed,
        no_effect as manual_seed_all,
        no_effect as reset_peak_memory_stats,
        no_effect as set_rng_state_all,
        no_effect as synchronize,
    )
    from runnel.compat.torch.cuda import amp

__all__ = [
    "OutOfMemoryError",
    "amp",
    "device_count",
    "empty_cache",
    "get_rng_state_all",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_rng_state_all",
    "synchronize",
]
_LATE = {
    "OutOfMemoryError": "runnel.compat.functions.running:OutOfMemoryError",
    "amp": "runnel.compat.torch.cuda:amp",
    "device_count": "runnel.compat.functions.running:device_count",
    "empty_cache": "runnel.compat.functions.running:no_effect",
    "get_rng_state_all": "runnel.compat.functions.running:get_rng_state_all",
    "is_available": "runnel.compat.functions.running:is_available",
    "is_bf16_supported": "runnel.compat.functions.running:is_available",
    "is_initialized": "runnel.compat.functions.running:is_initialized",
    "manual_seed": "runnel.compat.functions.running:no_effect",
    "manual_seed_all": "runnel.compat.functions.running:no_effect",
    "max_memory_allocated": "runnel.compat.functions.running:bytes_of_gpu",
    "max_memory_reserved": "runnel.compat.functions.running:bytes_of_gpu",
    "memory_allocated": "runnel.compat.functions.running:bytes_of_gpu",
    "memory_reserved": "runnel.compat.functions.running:bytes_of_gpu",
    "reset_peak_memory_stats": "runnel.compat.functions.running:no_effect",
    "set_rng_state_all": "runnel.compat.functions.running:no_effect",
    "synchronize": "runnel.compat.functions.running:no_effect",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
