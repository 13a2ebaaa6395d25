"""Functions and modules as they are."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.compat.functions.scripting import (
        Final,
        ScriptFunction,
        ScriptModule,
        annotate,
        as_it_is as export,
        as_it_is as ignore,
        as_it_is as interface,
        as_it_is as unused,
        fork,
        isinstance,
        never_scripting as is_scripting,
        never_scripting as is_tracing,
        script,
        script as freeze,
        script as optimize_for_inference,
        script as script_if_tracing,
        script as script_method,
        script as trace,
        wait,
    )

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "optimize_for_inference",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "unused",
    "wait",
]
_LATE = {
    "Final": "runnel.compat.functions.scripting:Final",
    "ScriptFunction": "runnel.compat.functions.scripting:ScriptFunction",
    "ScriptModule": "runnel.compat.functions.scripting:ScriptModule",
    "annotate": "runnel.compat.functions.scripting:annotate",
    "export": "runnel.compat.functions.scripting:as_it_is",
    "fork": "runnel.compat.functions.scripting:fork",
    "freeze": "runnel.compat.functions.scripting:script",
    "ignore": "runnel.compat.functions.scripting:as_it_is",
    "interface": "runnel.compat.functions.scripting:as_it_is",
    "is_scripting": "runnel.compat.functions.scripting:never_scripting",
    "is_tracing": "runnel.compat.functions.scripting:never_scripting",
    "isinstance": "runnel.compat.functions.scripting:isinstance",
    "optimize_for_inference": "runnel.compat.functions.scripting:script",
    "script": "runnel.compat.functions.scripting:script",
    "script_if_tracing": "runnel.compat.functions.scripting:script",
    "script_method": "runnel.compat.functions.scripting:script",
    "trace": "runnel.compat.functions.scripting:script",
    "unused": "runnel.compat.functions.scripting:as_it_is",
    "wait": "runnel.compat.functions.scripting:wait",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
