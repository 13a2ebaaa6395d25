"""Blocks in which C code calls special methods of the user's classes: sorting, hashing, comparing, formatting.

C code finds those methods on the classes themselves, so for the length of the block the functions there run rewritten
code. The net below says whether any other Python code ran in it: that would be code that nobody observed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe.classes import MISSING, instance_dict, is_python_class, lookup, mro, namespace
from runnel.compile.observe.containers import content
from runnel.compile.observe.plain import Plain, with_hooks
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import ITERATORS, PLAIN, container_of, is_class, is_users_method

_PLAIN_HOOKS: Final = Plain()
_PACKAGE: Final = __name__.rpartition(".")[0]


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


def _special_methods(kind: type) -> list[tuple[str, FunctionType | property]]:
    """What C code finds of a class: methods, and properties such as ``__array_interface__``."""
    return [
        (name, value)
        for base in mro(kind)
        if is_python_class(base)
        for name, value in namespace(base).items()
        if _is_special(name) and type(value) in (FunctionType, property)
    ]


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _has_methods(kind: type) -> bool:
    return any(name not in ("__init__", "__new__", "__init_subclass__") for name, _ in _special_methods(kind))


def stands_for_values(kind: type) -> bool:
    """Whether objects of a class made in Python can be given where numbers, arrays or sequences are wanted."""
    return any(is_users_method(lookup(kind, name), name) for name in _OF_VALUES)


_OF_VALUES: Final = (
    "__array__", "__array_interface__", "__array_struct__", "__dlpack__", "__buffer__", "__iter__", "__next__",
    "__len__", "__length_hint__", "__getitem__", "__contains__", "__bool__", "__index__", "__int__", "__float__",
    "__complex__",
)  # fmt: skip


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
        self._net = None if rec.is_exposed else Net(rec)  # one is enough
        self._changed: list[tuple[FunctionType, Any]] = []
        self._functions: dict[int, FunctionType] = {}
        for kind in classes:
            for name, found in _special_methods(kind):
                rec.class_found(kind, name)
                function = found if type(found) is FunctionType else self._getter(found)
                if type(function) is FunctionType:
                    self._functions[id(function)] = function

    def _getter(self, found: Any) -> Any:
        """The function of a property."""
        source = self._rec.source_of(found)
        if source is not None:
            self._rec.reach(found.fget, self._rec.log.source(source, "{p}.fget", f"{source}", found.fget))
        return found.fget

    def __enter__(self) -> None:
        if self._net is not None:
            self._net.__enter__()
            self._rec.is_exposed = True
        try:
            self._exchange()
        except BaseException:
            self._end()
            raise

    def _exchange(self) -> None:
        rec = self._rec
        for function in self._functions.values():
            if rec.is_own(function) or rec.policy.native(function) is not None:
                continue
            rec.twin(function)  # what the function is made of is read
            code = function.__code__
            observed = with_hooks(function, _OnThisThread(rec.actor))
            rec.register(observed, code)
            self._changed.append((function, code))
            function.__code__ = observed

    def __exit__(self, *_: Any) -> None:
        self._end()
        if self._net is not None and self._net.escaped:
            self._rec.refuse(f"code ran unobserved: {', '.join(sorted(set(self._net.escaped))[:3])}")

    def _end(self) -> None:
        if self._net is not None:
            self._rec.is_exposed = False
            self._net.__exit__()
        for function, code in self._changed:
            function.__code__ = code


def _monitoring() -> Any:
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # from 3.12 on


class Net:
    """Tells of Python code that starts to run on this thread and is not observed."""

    def __init__(self, rec: Recorder) -> None:
        self.escaped: list[str] = []
        self._rec = rec
        self._thread = threading.get_ident()
        self._from = (call_c.__code__,)  # here C code is called; what else this package runs is its own
        self._before: Any = None
        self._tool = -1

    def _entered(self, frame: Any) -> bool:
        """Whether the code that starts in a frame is of this package, so that it need not be told of again."""
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PACKAGE) or self._rec.policy.is_unobserved(module):
            return True
        if threading.get_ident() == self._thread and not self._rec.has_code(frame.f_code):
            caller = frame.f_back
            if caller is not None and self._is_watched(caller, frame.f_code.co_name, module):
                self.escaped.append(f"{frame.f_code.co_qualname} ({module})")
        return False

    def _is_watched(self, caller: Any, name: str, module: str) -> bool:
        """Whether what a frame calls must be observed: of unobserved code what it calls by syntax, of the user's."""
        if self._rec.has_code(caller.f_code) or caller.f_code in self._from:
            return True
        policy = self._rec.policy
        is_users = _is_special(name) and name != "__del__" and not policy.is_library(module)
        return is_users and policy.is_unobserved(caller.f_globals.get("__name__", ""))

    def __enter__(self) -> None:
        if sys.version_info < (3, 12):
            self._before = sys.getprofile()
            if self._before is not None:
                self._rec.refuse("a profiler is active, which takes the place of the net below the recorder")
            sys.setprofile(lambda frame, event, _: self._entered(frame) if event == "call" else None)
            return
        monitoring = _monitoring()
        free = [tool for tool in (4, 3) if monitoring.get_tool(tool) is None]
        if not free:
            self._rec.refuse("other tools take all the places of sys.monitoring")
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, "runnel")
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._started)
        monitoring.set_events(self._tool, monitoring.events.PY_START)

    def _started(self, code: Any, _: int) -> Any:
        return _monitoring().DISABLE if self._entered(sys._getframe(1)) else None

    def __exit__(self, *_: Any) -> None:
        if sys.version_info < (3, 12):
            sys.setprofile(None)
            return
        monitoring = _monitoring()
        monitoring.set_events(self._tool, 0)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, None)
        monitoring.free_tool_id(self._tool)
        monitoring.restart_events()


def _is_iterator(kind: type) -> bool:
    return kind in ITERATORS or (not is_python_class(kind) and lookup(kind, "__next__") is not MISSING)


def _looked_at(rec: Recorder, iterator: Any) -> Any:
    """What an iterator gives to C code, which looks at the numbers."""
    for value in iterator:
        yield rec.settled_number(value)


def settle_parts(rec: Recorder, values: Iterable[Any]) -> None:
    """Numbers that the run keeps in objects of its own: their methods give them to code that looks at them."""
    if rec.symbols:
        for value in values:
            space = instance_dict(value) if is_python_class(type(value)) and rec.source_of(value) is None else None
            for part in list(space.values()) if space is not None else ():
                if type(part) in PLAIN or container_of(type(part)) is not None:
                    content(rec, part)


def call_c(rec: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function written in C that looks into its arguments and calls their special methods."""
    for value in (*args, *kwargs.values()):
        content(rec, value)
    args = tuple([_looked_at(rec, x) if _is_iterator(type(x)) else x for x in args])
    values = (*args, *kwargs.values())
    classes = classes_in(values)
    if not classes:
        return function(*args, **kwargs)
    settle_parts(rec, values)
    with Exposed(rec, classes):
        return function(*args, **kwargs)
