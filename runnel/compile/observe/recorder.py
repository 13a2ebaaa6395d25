"""The recorder of one call: where each value from outside was found, and a log of reads.

Provenance is by identity. A plain value (a number, a text) is checked where it is read. Any other object that was read
from outside has a source, the path by which it was first found, and stays alive until the recording ends, so that its
address cannot mean another object. An object without a source was made by the run: its content needs no check.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, Final, NoReturn

from runnel.compile.observe.effects import Effects
from runnel.compile.observe.sources import Identity, Log, Source, is_immortal, is_in_its_module, item_of
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    FIXED,
    MISSING,
    PLAIN,
    SINGLETONS,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_python_class,
    is_users_method,
    mro,
    namespace,
)
from runnel.core.errors import CaptureError


class NotCapturable(BaseException):
    """A refusal: why a call runs eagerly, in one sentence, and at which line.

    It is not an Exception, so that ``except Exception`` in the function does not catch it.
    """

    def __init__(
        self, reason: str, where: str, remedy: str = "", is_intended: bool = False, is_passing: bool = False
    ) -> None:
        super().__init__(reason, where, remedy)
        self.reason = reason
        self.where = where
        self.remedy = remedy
        self.is_intended = is_intended  # by the user, who need not be told
        self.is_passing = is_passing  # because of this call's surroundings; later calls are traced
        self.guard: Any = None  # of what was read before: while it holds, the refusal is the same

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}{'; ' + self.remedy if self.remedy else ''}"


class _Over:
    """The recorder of a finished run. Generators that the run left open are closed when they are released; what they do
    then belongs to the eager call."""

    def __getattr__(self, name: str) -> NoReturn:
        if isinstance(sys.exception(), GeneratorExit):
            raise GeneratorExit
        raise CaptureError("[compile] a function made by an observed call was called after that call ended.")


_OVER: Final[Any] = _Over()


_READING: Final = (
    "__iter__", "__len__", "__getitem__", "__contains__", "__reversed__", "__eq__", "__add__", "__or__", "__ror__",
    "__length_hint__", "__array__", "keys", "values", "items",
)  # fmt: skip
_OUTSIDE: Final = "use a plain container, or read it outside and pass what is needed as an argument"


class Recorder:
    """One observed run.

    Args:
        policy: the rules for values and functions (``table.Policy``).
        session: what surrounds the run (``observation.Session``).
        hooks: makes the hooks of the run (``hooks.Hooks``).
    """

    def __init__(self, policy: Any, session: Any, hooks: Any) -> None:
        self.policy = policy
        self.session = session
        self.log = Log()
        self.effects = Effects()
        self.sources: dict[int, Source] = {}
        self.symbols: dict[int, Source] = {}  # numbers that may differ at later calls
        self.computed = 0  # how many numbers were computed from symbols
        self.cells: dict[int, Source] = {}  # closure variables from outside: the source of the content
        self.codes: dict[int, CodeType] = {}  # rewritten code of this run by id, and its original
        self.not_capturable: NotCapturable | None = None
        self.memo: dict[Any, Any] = {}
        self.made: set[int] = set()  # objects of Python classes that the run made, by id
        self.generators: list[weakref.ref[Any]] = []  # that the run made
        self.settled = ""  # what the run prepared that a later call will find done
        self.hooks = hooks(self)
        self._alive: list[Any] = []
        self._twins: dict[int, FunctionType] = {}
        self._bound: dict[tuple[int, int], CodeType] = {}
        self._spaces: dict[int, Source | None] = {}  # by id of a class: the source of its namespace

    # Provenance -------------------------------------------------------------------------------------------------------

    def reach(self, value: Any, source: Source) -> Any:
        """Note that ``value`` was read at ``source``, and return it. Plain values are checked."""
        kind, log = type(value), self.log
        if kind in PLAIN:
            self.is_plain(value, source)
            return value
        if value is MISSING:
            log.check(source, "{v} is not MISSING", source.label)
            return value
        known = self.sources.get(id(value))
        if known is not None:
            if known is not source:
                log.check(None, "{s0} is not {s1}", f"{source} is {known}", (), (source, known))
            return value
        self.sources[id(value)] = source
        if source.value is MISSING:
            source.value = value
        self._alive.append(value)
        if kind in FIXED or is_class(value) or (kind in C_FUNCTIONS and is_immortal(value)):
            log.check(source, "{v} is not {0}", source.label, (Identity(value),))
            if is_class(value):
                self.reach_class(value, source)
        elif kind is FunctionType and self.policy.counts_by_identity(value):
            expected = value if is_in_its_module(value) else Identity(value)
            log.check(source, "{v} is not {0}", f"{source} is another function", (expected,))
        elif kind is FunctionType:
            fails = "type({v}) is not FunctionType or {v}.__code__ is not {0} or {v}.__builtins__ is not {1}"
            log.check(source, fails, f"{source} is another function", (value.__code__, value.__builtins__))
        elif kind is slice:
            log.check(source, "type({v}) is not {0}", f"type of {source}", (slice,))
            for part in ("start", "stop", "step"):
                bound = getattr(value, part)
                self.reach(bound, log.source(source, f"{{p}}.{part}", f"{source}.{part}", bound))
        else:
            leaf = self.policy.leaf(kind)
            if leaf is not None:
                leaf(self, value, source)
            else:
                log.check(source, "type({v}) is not {0}", f"type of {source}", (Identity(kind),))
            self.reach_class(kind, None if is_immortal(kind) else log.source(source, "type({p})", f"type of {source}"))
            self.require_inherited(value)
        return value

    def require_inherited(self, value: Any) -> None:
        """Refuse an object that is read by the methods of a built-in container, if its class has others."""
        kind = type(value)
        if container_of(kind) is None or not is_python_class(kind) or self.policy.is_transparent(kind):
            return
        if self.policy.is_library(kind.__module__):  # Counter
            return
        for name in _READING:
            if is_users_method(kind, name, self.class_attribute(kind, name)):
                self.refuse(f"{described(value)} inherits from a container and has a custom {name}", _OUTSIDE)

    def reach_symbolic(self, value: Any, source: Source) -> Any:
        """Like ``reach``, for a value that only observed code gets. A number may become a symbol."""
        kind = type(value)
        if (kind is float or kind is int) and self.policy.is_symbolic(self, kind, source):
            return self.hooks.symbol(value, source)
        return self.reach(value, source)

    def is_plain(self, value: Any, source: Source) -> None:
        """Require an equal number or text at ``source``."""
        if type(value) in SINGLETONS:
            self.log.check(source, "{v} is not {0}", source.label, (value,))
        else:
            self.log.check(source, "{v} is not {0} and differs({v}, {0})", source.label, (value,))

    def concrete_number(self, value: Any) -> Any:
        """Return the plain value of a symbol, which later calls must find again. Return other values as they are."""
        kind = type(value)
        if kind is str:
            if self.policy.shows_unknown(value):
                self.refuse("the text of a tensor is looked into before it has a value", "print or return the tensor")
            return value
        source = self.symbols.get(id(value))
        if source is None:
            return value
        if kind in SYMBOLIC:
            value = SYMBOLIC[kind](value)
            if kind is not float:
                self.concrete_number(value)
        self.is_plain(value, source)
        return value

    def source_of(self, value: Any) -> Source | None:
        """Return where a value from outside was found, or None for what the run made."""
        return self.sources.get(id(value))

    def pinned(self, value: Any) -> None:
        """Require the same object at later calls."""
        source = self.sources.get(id(value))
        if source is not None:
            self.log.check(source, "{v} is not {0}", f"which object {source} is", (Identity(value),))

    # Classes ----------------------------------------------------------------------------------------------------------

    def reach_class(self, kind: type, source: Source | None) -> None:
        """Note a class from outside. ``source`` is where a guard finds it; None if it lives as long as the process."""
        if id(kind) in self._spaces:
            return
        self._alive.append(kind)
        for place, base in enumerate(mro(kind)):
            if id(base) in self._spaces:
                continue
            self._alive.append(base)
            label = type.__dict__["__name__"].__get__(base)
            if self.policy.is_fixed_class(base) or not is_python_class(base):
                self._spaces[id(base)] = None
            elif is_immortal(base):
                self.sources.setdefault(id(base), self.log.source(None, "{0}", label, base, (base,)))
                self._spaces[id(base)] = self.log.source(None, "{0}", label, MISSING, (namespace(base),))
            else:
                if source is None:
                    self.refuse(f"the class {label} is reached through a class that outlives it")
                at = source if place == 0 else self.log.source(source, f"{{p}}.__mro__[{place}]", label, base)
                self.sources.setdefault(id(base), at)
                self._spaces[id(base)] = self.log.source(at, "namespace({p})", label)
        if is_python_class(kind) and not self.policy.is_fixed_class(kind):
            if is_immortal(kind):
                self.log.check(None, "{0}.__mro__ is not {1}", f"bases of {kind.__name__}", (kind, mro(kind)))
            elif source is not None:
                same = tuple(map(id, mro(kind)))
                self.log.check(source, "ids({v}.__mro__) != {0}", f"bases of {kind.__name__}", (same,))
        meta = type(kind)
        if meta is not type:
            is_found = is_immortal(meta) or source is None
            found = None if is_found else self.log.source(source, "type({p})", meta.__name__)
            self.reach_class(meta, found)

    def class_space(self, kind: type) -> Source | None:
        """Return the source of a class's namespace; None for classes that cannot change or that the run made."""
        return self._spaces.get(id(kind))

    def is_namespace(self, value: Any) -> bool:
        """Return whether ``value`` is the ``__dict__`` of a class."""
        source = self.sources.get(id(value))
        return type(value) is MappingProxyType and (source is None or source in self._spaces.values())

    def class_lookup(self, kind: type, name: str) -> tuple[Any, Source | None]:
        """Return what a class holds under ``name``, or MISSING, and its source. Bases that were asked are checked."""
        written = self.effects.written
        first: type | None = None  # the first fixed class, whose own attributes hide those of its bases
        for base in mro(kind):
            space = self._spaces.get(id(base))
            if self.policy.is_transparent(base):
                continue
            if space is None:
                first = first or base
            elif (id(base), name) in written:
                space = None
            attribute = namespace(base).get(name, MISSING)
            if attribute is not MISSING:
                if space is None:
                    self.policy.on_fixed_attribute(self, first or base, name)
                    return attribute, None
                return attribute, self.log.source(space, item_of(name, attribute), f"{space}.{name}", attribute)
            if space is not None:
                self.log.check(space, f"{name!r} in {{v}}", f"{space}.{name}")
        return MISSING, None

    def class_attribute(self, kind: type, name: str) -> Any:
        """Return what a class holds under ``name``, or MISSING, and note its source."""
        attribute, source = self.class_lookup(kind, name)
        if source is not None:
            self.reach(attribute, source)
        if attribute is None:
            self.refuse(f"{name} of the class {kind.__name__} is None", "write a method that raises TypeError")
        return attribute

    # Functions --------------------------------------------------------------------------------------------------------

    def twin(self, function: FunctionType) -> FunctionType:
        """Return a function like this one whose code reports to this recorder."""
        if id(function.__code__) in self.codes:
            return function
        known = self._twins.get(id(function))
        if known is not None:
            return known
        observed = FunctionType(
            self._code_for(function),
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        observed.__kwdefaults__ = function.__kwdefaults__
        observed.__qualname__ = function.__qualname__
        observed.__module__ = function.__module__
        self._twins[id(function)] = observed
        self._alive.append(function)
        source = self.sources.get(id(function))
        if source is None and not self.policy.is_library(str(function.__module__)):
            if not is_in_its_module(function):
                self.refuse(f"{described(function)} is called, which was not found by a read", "call it by its name")
            source = self.sources[id(function)] = self.log.source(None, "{0}", function.__name__, function, (function,))
        if source is not None:
            self._reach_parts(function, source)
        return observed

    def _reach_parts(self, function: FunctionType, source: Source) -> None:
        log, label = self.log, function.__qualname__
        for i, name in enumerate(function.__code__.co_freevars):
            cell = function.__closure__[i]  # type: ignore[index]
            called = name if source.parent is None and source.text == "fn" else f"{name} of {label}"
            holder = log.source(source, f"{{p}}.__closure__[{i}]", f"variable {called}", cell)
            known = self.sources.setdefault(id(cell), holder)
            if known is not holder:
                log.check(None, "{s0} is not {s1}", f"{holder} is {known}", (), (holder, known))
            else:
                self._alive.append(cell)
                self.cells[id(cell)] = log.source(holder, "{p}.cell_contents", called)
        space = log.source(source, "{p}.__globals__", f"globals of {label}", function.__globals__)
        self.sources.setdefault(id(function.__globals__), space)
        if function.__defaults__ is None and function.__kwdefaults__ is None:
            fails = "{v}.__defaults__ is not None or {v}.__kwdefaults__ is not None"
            log.check(source, fails, f"defaults of {label}")
            return
        for part in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, part)
            self.reach(defaults, log.source(source, f"{{p}}.{part}", f"defaults of {label}", defaults))
            if defaults:
                self.hooks.reach_items(defaults)

    def _code_for(self, function: FunctionType) -> CodeType:
        code = function.__code__
        key = (id(code), id(function.__globals__))
        known = self._bound.get(key)
        if known is None:
            known = self._bound[key] = self.hooks.bound_code(function)
            self._register(known, code)
        return known

    def _register(self, code: CodeType, original: CodeType) -> None:
        self._alive += (code, original)
        self.codes[id(code)] = original
        pairs = zip(code.co_consts, original.co_consts, strict=False)  # hooks follow the original constants
        for inner, was in pairs:
            if type(was) is CodeType:
                self._register(inner, was)

    def is_own(self, function: Any) -> bool:
        """Return whether a function runs code that this recorder made."""
        return type(function) is FunctionType and id(function.__code__) in self.codes

    def prepared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what to call in place of ``function(*args, **kwargs)``: a function and its arguments."""
        return self.hooks.prepared(function, args, kwargs)

    def passed(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function, observed, and return its result to observed code."""
        function, args, kwargs = self.hooks.prepared(function, args, kwargs or {})
        return function(*args, **kwargs)

    def invoke(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function, observed. Its result may be looked at, so a number among results is checked."""
        return self.concrete_number(self.passed(function, args, kwargs))

    def callback(self, function: Any) -> Any:
        """Return a function for unobserved code to call in place of ``function``."""
        if self.is_own(function):
            return function
        return lambda *args, **kwargs: self.invoke(function, args, kwargs)

    # Bookkeeping ------------------------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """End the run: undo all changes and release everything."""
        try:
            self.effects.undo()
        finally:
            self.close()

    def close(self) -> None:
        """Release everything; hooks and recorder refer to each other and must not wait for the collector."""
        self.hooks.rec = _OVER
        for known in (self.sources, self.symbols, self.cells, self.memo, self._twins, self._bound, self._spaces):
            known.clear()
        self.made.clear()
        self._alive.clear()
        self.log.forget_values()
        self.session.end()
        self.session = None
        self.not_capturable = None  # its traceback leads to the frames of all callers
        self.effects = Effects()

    def make(self, value: Any) -> Any:
        """Note that the run made an object, and return it."""
        self.made.add(id(value))
        self._alive.append(value)
        return value

    def require_origin(self, value: Any) -> None:
        """Refuse an object from outside that unobserved code found: no guard would see its changes."""
        kind = type(value)
        if id(value) in self.sources or id(value) in self.made or self.policy.is_fixed_class(kind):
            return
        if self.policy.makes(kind):
            return
        if not self.policy.is_library(str(kind.__module__)):
            self.refuse(f"{described(value)} is used, which was not found by a read", "pass it as an argument")

    def keep(self, value: Any) -> None:
        """Keep an object alive until the recording ends, so that its address means it."""
        self._alive.append(value)

    def constant(self, value: Any) -> Any:
        """Return one object for equal constants."""
        return self.memo.setdefault(("constant", repr(value)), value)  # 1 is not True

    def unsettled(self, why: str) -> None:
        """Note that the run prepared something: its record holds for this call only."""
        self.settled = self.settled or why

    # Refusing ---------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str, remedy: str = "", is_intended: bool = False, is_passing: bool = False) -> NoReturn:
        """End the observation."""
        self.not_capturable = NotCapturable(reason, self.line(), remedy, is_intended, is_passing)
        raise self.not_capturable

    def refuse_value(self, value: Any, reads: str) -> NoReturn:
        """Refuse to give a value to C code, which may run methods of it unobserved."""
        at = self.source_of(value)
        what = described(value) + (f" ('{at}')" if at is not None else "")
        self.refuse(
            f"{reads} is given {what}, whose methods it may call unobserved",
            "call it outside and pass the result as an argument; rn.uncompiled says that it is meant to run eagerly",
        )

    def frame(self) -> Any:
        """Return the innermost observed frame outside the standard library, else the innermost, or None."""
        frame, first = sys._getframe(1), None
        while frame is not None:
            if id(frame.f_code) in self.codes:
                if not self.policy.is_library(frame.f_globals.get("__name__", "")):
                    return frame
                first = first or frame
            frame = frame.f_back  # type: ignore[assignment]
        return first

    def line(self) -> str:
        """Return ``file:line`` of ``frame()``."""
        frame = self.frame()
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "at the call"
