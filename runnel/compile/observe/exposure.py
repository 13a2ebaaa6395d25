"""Blocks in which C code calls special methods of the user's classes: sorting, hashing, comparing, formatting.

C code finds those methods on the classes themselves, so for the length of the block the functions there run rewritten
code. The net (``net.py``) says whether any other Python code ran in it: that would be code that nobody observed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final

from runnel.compile.observe.classes import LENT, MISSING, code_of, is_python_class, lookup, mro, namespace
from runnel.compile.observe.containers import content
from runnel.compile.observe.net import Net
from runnel.compile.observe.plain import Plain, with_hooks
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import ITERATORS, PLAIN, container_of, is_class

_PLAIN_HOOKS: Final = Plain()
_ONE_BLOCK: Final = threading.RLock()  # functions have one code: what two threads put there they could not take back
_LONGEST_WAIT: Final = 10.0  # seconds


def classes_in(values: Any, depth: int = 0) -> list[type]:
    """The classes made in Python of what C code can find in these values, each once."""
    found: dict[type, None] = {}
    for value in values:
        kind = type(value)
        if kind in PLAIN or is_class(value):
            continue
        if kind is slice:
            found |= dict.fromkeys(classes_in((value.start, value.stop, value.step), depth + 1))
            continue
        base = container_of(kind)
        if base is not None and depth < 50:
            inner = (
                (*dict.keys(value), *dict.values(value))
                if base is dict
                else base.__iter__(value)
                if base is not bytearray
                else ()
            )
            found |= dict.fromkeys(classes_in(list(inner), depth + 1))
        if is_python_class(kind) and _has_methods(kind):
            found[kind] = None
    return list(found)


def _special_methods(kind: type) -> list[tuple[str, FunctionType]]:
    return [
        (name, value)
        for base in mro(kind)
        if is_python_class(base)
        for name, value in namespace(base).items()
        if type(value) is FunctionType and name.startswith("__") and name.endswith("__")
    ]


def _has_methods(kind: type) -> bool:
    return any(name not in ("__init__", "__new__", "__init_subclass__") for name, _ in _special_methods(kind))


class _OnThisThread:
    """Hooks that observe on the thread that records, and do the plain thing on others."""

    def __init__(self, hooks: Any) -> None:
        self._hooks = hooks
        self._thread = threading.get_ident()

    def __getattr__(self, kind: str) -> Any:
        observed, plain, thread = getattr(self._hooks, kind), getattr(_PLAIN_HOOKS, kind), self._thread
        return lambda *args: observed(*args) if threading.get_ident() == thread else plain(*args)


class Exposed:
    """The block. Special methods of ``classes`` are observed; other Python code that runs ends the observation."""

    def __init__(self, rec: Recorder, classes: list[type]) -> None:
        self._rec = rec
        self._net: Net | None = None
        self._changed: list[tuple[FunctionType, CodeType, CodeType]] = []  # what runs now, and what did
        self._functions: dict[int, FunctionType] = {}
        for kind in classes:
            for name, function in _special_methods(kind):
                rec.class_found(kind, name)
                self._functions[id(function)] = function

    def __enter__(self) -> None:
        rec = self._rec
        if not _ONE_BLOCK.acquire(timeout=_LONGEST_WAIT):
            rec.refuse("another thread is in the middle of such a call", is_passing=True)
        try:
            self._expose(rec)
        except BaseException:
            self._end()
            raise

    def _expose(self, rec: Recorder) -> None:
        self._net = None if rec.net is not None else Net(rec, call_c.__code__)  # an outer block's net hears of all
        if self._net is not None:
            self._net.begin()
        for function in self._functions.values():
            if rec.is_own(function) or rec.policy.native(function) is not None:
                continue
            rec.twin(function)  # what the function is made of is read
            observed = with_hooks(function, _OnThisThread(rec.actor))
            LENT[id(observed)] = code_of(function)
            rec.register(observed, code_of(function))
            self._changed.append((function, observed, function.__code__))
            function.__code__ = observed

    def __exit__(self, *_: Any) -> None:
        self._end()
        if self._net is not None and self._net.escaped:
            self._rec.refuse(f"code ran unobserved: {', '.join(sorted(set(self._net.escaped))[:3])}")

    def _end(self) -> None:
        for function, observed, code in self._changed:
            function.__code__ = code
            LENT.pop(id(observed), None)
        if self._net is not None:
            self._net.end()
        _ONE_BLOCK.release()


def _is_iterator(kind: type) -> bool:
    return kind in ITERATORS or (not is_python_class(kind) and lookup(kind, "__next__") is not MISSING)


def _looked_at(rec: Recorder, iterator: Any) -> Any:
    """What an iterator gives to C code, which looks at the numbers."""
    for value in iterator:
        yield rec.settled_number(value)


def call_c(rec: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function written in C that looks into its arguments and calls their special methods."""
    for value in (*args, *kwargs.values()):
        content(rec, value)
    args = tuple([_looked_at(rec, x) if _is_iterator(type(x)) else x for x in args])
    classes = classes_in((*args, *kwargs.values()))
    if not classes:
        return function(*args, **kwargs)
    with Exposed(rec, classes):
        return function(*args, **kwargs)
