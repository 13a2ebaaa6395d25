"""What a run lets go of. Where nobody else holds such an object it dies at that moment, which weak references tell; the
recorder, which keeps all that it has met alive, would hide it."""

from __future__ import annotations

import functools
import sys
import weakref
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe.classes import MISSING
from runnel.compile.observe.plain import Call
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import FIXED, PLAIN, described, is_class

_PACKAGE: Final = __name__.partition(".")[0]


def released(rec: Recorder) -> list[Any]:
    """Objects that lay in places outside which the run has changed, and lie there no more."""
    return [
        value
        for value in rec.effects.displaced()
        if not (
            value is MISSING
            or type(value) in PLAIN
            or type(value) in FIXED
            or is_class(value)
            or rec.policy.result(type(value)) is not None
        )
    ]


def require_known(rec: Recorder) -> None:
    """It is asked whether an object is alive."""
    for value in released(rec):
        rec.refuse(
            f"whether an object still lives is asked after the function let go of {described(value)} from outside",
            "ask before, or hold the object itself",
        )


def asking(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """A function of the library that goes over weak references is called."""
    require_known(rec)
    return rec.twin(function), args, kwargs


def require_no_callbacks(rec: Recorder) -> None:
    """No code of the user's is called when what the run let go of dies."""
    for value in released(rec):
        for reference in weakref.getweakrefs(value):
            if _is_users(reference.__callback__):
                rec.refuse(
                    f"{described(value)} from outside is let go of, and the callback of a weak reference may be called",
                    "do it around the call of the compiled function",
                )


def _is_users(callback: Any) -> bool:
    if isinstance(callback, weakref.finalize):
        alive = callback.peek()
        callback = alive[1] if alive is not None else None
    while isinstance(callback, (functools.partial, MethodType)):
        callback = callback.func if isinstance(callback, functools.partial) else callback.__func__
    package = (getattr(callback, "__module__", None) or "").partition(".")[0]
    is_library = package in sys.stdlib_module_names and package != "__main__"
    return callback is not None and not is_library and package != _PACKAGE
