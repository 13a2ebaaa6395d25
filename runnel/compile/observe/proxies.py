"""Objects that show what others hold: read-only views of dicts, and functions chosen by the class of an argument.

What they show is found again by the guard, and read like anything else.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import reprlib
import types
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe import attributes, containers
from runnel.compile.observe.classes import is_python_class
from runnel.compile.observe.plain import Call, returning
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import is_immortal
from runnel.compile.observe.values import DICT_VIEWS

READS: Final = frozenset({"get", "keys", "values", "items", "copy", "__getitem__", "__contains__", "__len__"})
_GUARDS: Final = (reprlib.recursive_repr(), getattr(dataclasses, "_recursive_repr", reprlib.recursive_repr()))
GUARDED_TEXTS: Final = frozenset(guard(repr).__code__ for guard in _GUARDS)
DISPATCH: Final = functools.singledispatch(print).dispatch.__code__


def unguarded(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The text of a dataclass, without the guard against objects that hold themselves."""
    inner, at = function.__wrapped__, rec.source_of(function)  # type: ignore[attr-defined]
    if at is not None:
        rec.reach(inner, rec.log.source(at, "{p}.__wrapped__", f"{at}", inner))
    return rec.prepared(inner, args, kwargs)


def shown(rec: Recorder, value: Any) -> Any:
    """The dict behind a read-only view of it, or a view of it as it is read; any other value is itself."""
    kind = type(value)
    if kind is not types.MappingProxyType and kind not in DICT_VIEWS:
        return value
    at = rec.source_of(value)
    if at is None and kind in DICT_VIEWS:
        return value
    inner = gc.get_referents(value)[0]
    if at is not None:
        rec.reach(inner, rec.log.source(at, "{0}({p})[0]", f"what {at} shows", inner, (gc.get_referents,)))
    return inner if kind is types.MappingProxyType else containers.view(rec, inner, kind.__name__.removeprefix("dict_"))


def method_of_view(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``view.name(...)`` of a read-only view; None where that is not one of the ways to read it."""
    if name not in READS:
        return None
    return rec.prepared(attributes.read(rec, shown(rec, value), name), args, kwargs)


def dispatched(rec: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """``dispatch(kind)`` of a function of ``functools.singledispatch``: the guard asks again, for functions can be
    registered meanwhile."""
    at = rec.source_of(function)
    if at is None or len(args) != 1 or kwargs:
        return rec.twin(function), args, kwargs
    (kind,) = args
    chosen = function(kind)
    known = rec.source_of(kind)
    label = f"dispatch({kind.__name__}) of {at}"
    if known is not None and is_python_class(kind):
        source = rec.log.computed("{a0}({a1})", (at, known), label, ())
    elif is_immortal(kind):
        source = rec.log.computed("{a0}({0})", (at,), label, (kind,))
    else:
        rec.refuse(f"a function is chosen by the class {kind.__name__}, which the function made")
    return returning(rec.reach(chosen, source))
