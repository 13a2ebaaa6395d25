"""Functions that a program calls back (``rn.pure_callback``, ``rn.debug``): they run with the program, unobserved.

Which function it is belongs to the program; what it reads then is its own. A function that was made inside of the
compiled one keeps what it found there at the trace: numbers, which are checked, and things from outside, which it finds
as they are; a tensor of the compiled function would be none at run time, and a list made inside another one each time.
"""

from __future__ import annotations

import types
from types import FunctionType, MethodType
from typing import Any, Final

from runnel.compile import boundary
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import PLAIN, SYMBOLIC
from runnel.compile.wrappers import Uncompiled
from runnel.core.errors import CaptureError
from runnel.tensor import callbacks
from runnel.tensor.methods import ArrayMethods

_TAKE_ONE: Final = (callbacks.pure_callback, callbacks.callback)


def takes_one(function: Any) -> bool:
    """Whether a function's first argument is one that programs call."""
    return getattr(function, "__wrapped__", function) in _TAKE_ONE


def call(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call such a function with the other arguments as of any function of ours."""
    name = "callback" if getattr(function, "__wrapped__", function) is callbacks.pure_callback else "function"
    if args:
        args = (Uncompiled(_as_it_is(rec, args[0])), *args[1:])
    elif name in kwargs:
        kwargs = kwargs | {name: Uncompiled(_as_it_is(rec, kwargs[name]))}
    return boundary.run(rec, function, args, kwargs)


def _as_it_is(rec: Recorder, function: Any) -> Any:
    """The function that the user meant, not observed."""
    if isinstance(function, (MethodType, types.BuiltinMethodType)):
        owner = function.__self__
        if not isinstance(owner, types.ModuleType):
            _original(rec, owner)
        if type(function) is MethodType and rec.is_own(function.__func__):
            return MethodType(_as_it_is(rec, function.__func__), owner)
        return function
    if type(function) is not FunctionType or not rec.is_own(function):
        _pinned(rec, function)
        return function
    cells = tuple(_cell(rec, cell) for cell in function.__closure__ or ())
    defaults = function.__defaults__ and tuple(_original(rec, x) for x in function.__defaults__)
    original = FunctionType(
        rec.codes[id(function.__code__)], function.__globals__, function.__name__, defaults, cells or None
    )
    original.__kwdefaults__ = function.__kwdefaults__ and {
        n: _original(rec, x) for n, x in function.__kwdefaults__.items()
    }
    return original


def _cell(rec: Recorder, cell: types.CellType) -> types.CellType:
    if id(cell) in rec.cells:  # from outside: what it holds then is what the function reads
        return cell
    try:
        return types.CellType(_original(rec, cell.cell_contents))
    except ValueError:  # it is empty
        return cell


def _pinned(rec: Recorder, value: Any) -> None:
    """A later call must find this object; the program keeps it with the function."""
    source = rec.source_of(value)
    if source is not None:
        rec.log.check(source, "{v} is not {0}", f"which object {source} is", (value,))


def _original(rec: Recorder, value: Any) -> Any:
    """What a function that was made inside holds on to, as it finds it later."""
    if type(value) in PLAIN or type(value) in SYMBOLIC:
        return rec.concrete_number(value)
    if isinstance(value, ArrayMethods) and getattr(value, "is_traced", False):
        raise CaptureError(
            "[callback] the function reads a tensor of the compiled function, which has no value when it is called; "
            "pass it as an argument."
        )
    if type(value) is FunctionType and rec.is_own(value):
        return _as_it_is(rec, value)
    if rec.source_of(value) is not None:
        _pinned(rec, value)
    elif not isinstance(value, (FunctionType, type, types.ModuleType, ArrayMethods)):
        rec.refuse(
            f"a callback holds a {type(value).__name__} that the function makes at each call", "pass it as an argument"
        )
    return value
