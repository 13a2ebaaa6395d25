"""A safety net for observed runs: detects Python code that starts unobserved while C code runs.

Debuggers, profilers and tools that measure coverage ask Python for the same events. They go on hearing of them: from
CPython 3.12 on each tool has a place of its own, and on 3.11 the net takes whichever of ``sys.settrace`` and
``sys.setprofile`` is free.
"""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from runnel.compile.observe.asynchronous import Collections, handles_signal
from runnel.compile.observe.classes import is_python_class, is_special
from runnel.compile.observe.recorder import Recorder

_PACKAGE: Final = __name__.rpartition(".")[0]
_TOOLS: Final = (4, 3, 5)  # places that no kind of tool has a claim on, and the one for optimizers


class Net:
    """Between ``begin()`` and ``end()`` it notes what runs on this thread, unobserved, because observed code or
    ``called_from`` called it; and special methods of the user's that code like Runnel's own called.
    ``leaves_library``: Python's own library may run, and what it calls of the user's is noted."""

    def __init__(self, rec: Recorder, called_from: CodeType, leaves_library: bool = False) -> None:
        self.escaped: list[str] = []
        self._rec = rec
        self._called_from = called_from
        self._leaves_library = leaves_library
        self._hears = False
        self._watch: Any = None
        self._collections = Collections()

    def hears_of(self, called_from: CodeType) -> bool:
        """Whether this is the function from which C code is called."""
        return self._called_from is called_from

    def begin(self) -> None:
        watch = Place(self) if sys.version_info < (3, 12) else _MONITOR
        self._collections.begin()
        if not watch.begin(self):
            self._collections.end()
            self._rec.refuse("other tools take all the places of sys.monitoring", is_passing=True)
        self._watch, self._rec.net = watch, self
        _heard_of()
        if not self._hears:
            self.end()
            self._rec.refuse(
                "it is called by a debugger or profiler, for which Python tells of no calls", is_passing=True
            )

    def end(self) -> None:
        """Everything is again as before."""
        if self._watch is not None:
            self._rec.net = None
            if not self._watch.end(self):
                self.escaped.append("what another tool ran, which took the place of the net")
            self._collections.end()
            self._watch = None

    def entered(self, frame: Any) -> bool:
        """Code starts to run in a frame. Whether it is of this package, so that it need not be told of again."""
        if frame.f_code is _heard_of.__code__:
            self._hears = True
            return False
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PACKAGE) or self._rec.policy.is_unobserved(module):
            return True
        if not self._rec.has_code(frame.f_code):
            caller = frame.f_back
            is_watched = caller is not None and self._is_watched(caller, frame.f_code.co_name, module)
            if is_watched and not self._collections.is_running and not handles_signal(frame):
                self.escaped.append(f"{frame.f_code.co_qualname} ({module})")
        return False

    def _is_watched(self, caller: FrameType, name: str, module: str) -> bool:
        """Whether what a frame calls must be observed: of unobserved code what it calls by syntax, of the user's."""
        policy = self._rec.policy
        if self._rec.has_code(caller.f_code) or caller.f_code is self._called_from:
            return not (self._leaves_library and policy.is_library(module))
        if policy.is_library(module):
            return False
        within = caller.f_globals.get("__name__", "")
        if policy.is_unobserved(within) or within.startswith(_PACKAGE):
            return is_special(name) and name != "__del__" and policy.is_unobserved(within)
        return self._leaves_library and policy.is_library(within) and not module.startswith("namedtuple_")


def _heard_of() -> None:
    """A call that a net hears of, if it hears of any: none are told of while a tool runs that asked for them."""


class Place:
    """The place of ``sys.settrace`` on this thread, or of ``sys.setprofile``: one that no other tool is in. Where both
    are taken, what is in the first is given its events from here if it is written in Python, and waits if it is not.
    """

    def __init__(self, net: Net) -> None:
        is_free = sys.gettrace() is None or sys.getprofile() is not None
        self._get: Any = sys.gettrace if is_free else sys.getprofile
        self._set: Any = sys.settrace if is_free else sys.setprofile
        self._net = net
        self._before: Any = self._get()
        self._passes_on = is_python_class(type(self._before)) or isinstance(self._before, (FunctionType, MethodType))
        self._trace = self.hear

    def hear(self, frame: Any, event: str, what: Any) -> Any:
        """What Python tells of. (It takes a listener off its place from which an exception comes.)"""
        if event == "call":
            self._net.entered(frame)
        return self._before(frame, event, what) if self._passes_on else None

    def begin(self, net: Net) -> bool:
        self._set(self._trace)
        return True

    def end(self, net: Net) -> bool:
        """Whether the place was held all the time."""
        is_installed = self._get() is self._trace
        if is_installed:
            self._set(self._before)
        return is_installed


class _Monitor:
    """One place of ``sys.monitoring`` for the nets of all threads, held for as long as there are any."""

    def __init__(self) -> None:
        self._nets: dict[int, list[Net]] = {}  # by thread, the innermost last
        self._lock = threading.Lock()
        self._tool = -1

    def begin(self, net: Net) -> bool:
        with self._lock:
            if not self._nets and not self._takes_place():
                return False
            self._nets.setdefault(threading.get_ident(), []).append(net)
            return True

    def _takes_place(self) -> bool:
        monitoring = _monitoring()
        self._tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), -1)
        if self._tool < 0:
            return False
        monitoring.use_tool_id(self._tool, "runnel")
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._started)
        monitoring.set_events(self._tool, monitoring.events.PY_START)
        return True

    def _started(self, code: Any, _: int) -> Any:
        nets = self._nets.get(threading.get_ident())
        return _monitoring().DISABLE if nets and nets[-1].entered(sys._getframe(1)) else None

    def end(self, net: Net) -> bool:
        with self._lock:
            nets = self._nets[threading.get_ident()]
            nets.remove(net)
            if not nets:
                del self._nets[threading.get_ident()]
            if not self._nets:
                monitoring = _monitoring()
                monitoring.set_events(self._tool, 0)
                monitoring.register_callback(self._tool, monitoring.events.PY_START, None)
                monitoring.free_tool_id(self._tool)
                monitoring.restart_events()
        return True


_MONITOR: Final = _Monitor()


def _monitoring() -> Any:
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # from 3.12 on
