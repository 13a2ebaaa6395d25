"""Times of stretches of a program."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.profiling import (
        ProfilerAction,
        ProfilerActivity,
        profile,
        record_function,
        schedule,
        tensorboard_trace_handler,
    )

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]
_LATE = {
    "ProfilerAction": "runnel.compat.functions.profiling:ProfilerAction",
    "ProfilerActivity": "runnel.compat.functions.profiling:ProfilerActivity",
    "profile": "runnel.compat.functions.profiling:profile",
    "record_function": "runnel.compat.functions.profiling:record_function",
    "schedule": "runnel.compat.functions.profiling:schedule",
    "tensorboard_trace_handler": "runnel.compat.functions.profiling:tensorboard_trace_handler",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
