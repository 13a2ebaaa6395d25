"""The recorder of one call: the provenance of values from outside, and a log of reads.

Values have provenance by identity. A plain value (a number, a string) is checked where it is read and needs none
afterwards; any other object that was read from outside has a source, the path by which it was found first, and is kept
alive until the recording ends, so that its address cannot mean another. What has no source was made by the run itself:
its content needs no check. Nothing here uses ``isinstance``, ``==`` or ``in`` on values of the user, which runs their
code.
"""

from __future__ import annotations

import builtins
import importlib.util
import sys
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, NoReturn

from runnel.compile.observe import calls, containers, exposure, followed, methods, symbols, varying
from runnel.compile.observe.classes import (
    MISSING,
    code_of,
    is_python_class,
    lasts_visibly,
    lookup,
    mro,
    namespace,
)
from runnel.compile.observe.effects import Effects
from runnel.compile.observe.hooks import Hooks
from runnel.compile.observe.not_capturable import NotCapturable
from runnel.compile.observe.plain import OPERATORS, Call, Plain, with_hooks
from runnel.compile.observe.policy import Policy
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Identity, Log, Source, is_immortal, is_in_its_module
from runnel.compile.observe.values import C_FUNCTIONS, FIXED, PLAIN, SINGLETONS, container_of, is_class
from runnel.core.errors import CaptureError

PLAIN_HOOKS = Plain()


def _absolute(at: tuple[dict[str, Any], str], level: int) -> str:
    """The full name of a module that is imported in code with these globals."""
    names, name = at
    if not level:
        return name
    package = names.get("__package__") or getattr(names.get("__spec__"), "parent", None)
    if package is None:
        package = names["__name__"] if "__path__" in names else names["__name__"].rpartition(".")[0]
    return importlib.util.resolve_name("." * level + name, package)


def _codes_in(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if type(constant) is CodeType]


class _Over:
    """The recorder of a run that is over. Generators which the run did not end are closed when the run is let go of,
    and what they do then was taken back with it, or is done by the eager call that comes after."""

    def __getattr__(self, name: str) -> NoReturn:
        if isinstance(sys.exception(), GeneratorExit):
            raise GeneratorExit
        raise CaptureError("[compile] a function made by a call that was observed was left over, and is called.")


_OVER: Final[Any] = _Over()


class Recording(Recorder):
    """One observed run."""

    def __init__(self, policy: Policy, session: Any) -> None:
        self.policy = policy
        self.session = session  # what goes on around the run
        self.log = Log()
        self.effects = Effects()
        self.sources: dict[int, Source] = {}
        self.computed = 0  # how many numbers come about by computing with such numbers
        self.symbols: dict[int, Source] = {}  # numbers that may differ at later calls: how they come about
        self.stand_ins: dict[int, Source] = {}  # what the run sees in place of values from outside: of which
        self.cells: dict[int, Source] = {}  # cells from outside: the source of what they hold
        self.codes: set[int] = set()  # rewritten code that this run executes
        self.originals: dict[int, CodeType] = {}  # what it was
        self.not_capturable: NotCapturable | None = None
        self.memo: dict[Any, Any] = {}
        self.hooks = Hooks(self)
        self.actor = varying.hooks_for(self.hooks, bool(session.varying))
        self.net: Any = None  # that hears of code that runs unobserved, while C code is called
        self.settled = ""  # else: what the run did that a later one will find done
        self._alive: list[Any] = []
        self._twins: dict[int, FunctionType] = {}
        self._bound: dict[tuple[int, int], CodeType] = {}
        self._spaces: dict[int, Source | None] = {}  # by id of a class: the source of its namespace

    # Provenance -----------------------------------------------------------------------------------------------------

    def reach(self, value: Any, source: Source) -> Any:
        """``value`` was read at ``source``: check it, or remember where it was found. Gives the value."""
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
            fails = "type({v}) is not FunctionType or ({v}.__code__ is not {0} and code_of({v}) is not {0})"
            log.check(source, fails, f"{source} is another function", (code_of(value),))
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
        return value

    def reach_symbolic(self, value: Any, source: Source) -> Any:
        """The same for a value that the run gets from here alone: a number may be another one at later calls."""
        kind = type(value)
        may_vary = (kind is float or kind is int or kind is str) and self.net is None  # else C code may be given it
        if may_vary and self.policy.is_symbolic(self, kind, source):
            return symbols.begin(self, value, source)
        return self.reach(value, source)

    def is_plain(self, value: Any, source: Source) -> None:
        """A later call must find an equal number or text at ``source``."""
        if type(value) in SINGLETONS:
            self.log.check(source, "{v} is not {0}", source.label, (value,))
        else:
            self.log.check(source, "{v} is not {0} and differs({v}, {0})", source.label, (value,))

    def concrete_number(self, value: Any) -> Any:
        """A number that somebody looks at: a later call must find an equal one."""
        source = self.symbols.get(id(value))
        if source is None:
            return value
        value = symbols.bare(value)
        self.is_plain(value, source)
        return value

    def reach_class(self, kind: type, source: Source | None) -> None:
        """A class from outside was met, which a guard finds at ``source`` unless it lives for ever."""
        if id(kind) in self._spaces:
            return
        self._alive.append(kind)
        for place, base in enumerate(mro(kind)):
            if id(base) in self._spaces:
                continue
            if self.policy.is_fixed_class(base):
                self._spaces[id(base)] = None
                continue
            self._alive.append(base)
            label = type.__dict__["__name__"].__get__(base)
            if not is_python_class(base):
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
        if self.policy.is_fixed_class(kind):
            pass
        elif is_python_class(kind) and is_immortal(kind):
            self.log.check(None, "{0}.__mro__ is not {1}", f"bases of {kind.__name__}", (kind, mro(kind)))
        elif is_python_class(kind) and source is not None:
            same = tuple(map(id, mro(kind)))
            self.log.check(source, "ids({v}.__mro__) != {0}", f"bases of {kind.__name__}", (same,))
        if type(kind) is not type:
            meta = type(kind)
            self.reach_class(
                meta,
                None if is_immortal(meta) or source is None else self.log.source(source, "type({p})", meta.__name__),
            )

    def source_of(self, value: Any) -> Source | None:
        """Where a value from outside was found; None for what the run made."""
        keys = self.effects.open_keys
        if keys:
            for key in keys.pop(id(value), ()):
                self.concrete_number(key)
        return self.sources.get(id(value))

    def class_space(self, kind: type) -> Source | None:
        """The source of a class's namespace; None for classes that cannot change or that the run made."""
        return self._spaces.get(id(kind))

    def class_lookup(self, kind: type, name: str) -> tuple[Any, Source | None]:
        """What a class holds under ``name``, checked along its bases, and where; MISSING where it holds nothing."""
        written = self.effects.written
        first: type | None = None  # of those that are fixed: what is given to it goes before what its bases have
        for base in mro(kind):
            space = self._spaces.get(id(base))
            if space is None:
                first = first or base
            elif (id(base), name) in written:
                space = None
            attribute = namespace(base).get(name, MISSING)
            if attribute is not MISSING:
                if space is None:
                    if self.policy.is_transparent(base):
                        continue
                    return attribute, self.policy.on_fixed_attribute(self, first or base, name)
                return attribute, self.log.source(space, f"{{p}}.get({name!r}, MISSING)", f"{space}.{name}", attribute)
            if space is not None:
                self.log.check(space, f"{name!r} in {{v}}", f"{space}.{name}")
        return MISSING, None

    def class_attribute(self, kind: type, name: str) -> Any:
        """What a class holds under ``name``, remembered with its source."""
        attribute, source = self.class_lookup(kind, name)
        if source is not None:
            self.reach(attribute, source)
        return attribute

    def followed(self, container: Any) -> Source | None:
        """Where the guard finds what a list of plain values holds now; None where it does not compute that."""
        return followed.state(self, container)

    def pinned(self, value: Any) -> None:
        """Which object this is matters: a later call must find the same one."""
        source = self.sources.get(id(value))
        if source is None:
            return
        kind = type(value)
        if self.policy.leaf(kind) is None and not is_immortal(value) and not lasts_visibly(value):
            is_users = is_python_class(kind) and not self.policy.is_library(kind.__module__)
            remedy = "add '__weakref__' to its __slots__" if is_users else "pass what is needed of it"
            self.refuse(f"'{source}' counts for which object it is, and no {kind.__name__} can be watched", remedy)
        self.log.check(source, "{v} is not {0}", f"which object {source} is", (Identity(value),))

    # Running code ---------------------------------------------------------------------------------------------------

    def twin(self, function: FunctionType) -> FunctionType:
        """A function like this one whose code tells this recorder what it does."""
        if id(function.__code__) in self.codes:
            return function
        known = self._twins.get(id(function))
        if known is not None:
            return known
        flags = code_of(function).co_flags
        if flags & 0x280:  # a coroutine, or a generator of the asynchronous kind
            self.refuse(f"{function.__qualname__} is asynchronous")
        code = self.code_for(function)
        observed = FunctionType(
            code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        observed.__kwdefaults__ = function.__kwdefaults__
        observed.__qualname__ = function.__qualname__
        observed.__module__ = function.__module__
        self._twins[id(function)] = observed
        self._alive.append(function)
        source = self.sources.get(id(function))
        if source is not None:
            self._reach_parts(function, source)
        return observed

    def _reach_parts(self, function: FunctionType, source: Source) -> None:
        log, label = self.log, function.__qualname__
        code = code_of(function)
        for i, name in enumerate(code.co_freevars):
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
                containers.reach_items(self, defaults)

    def code_for(self, function: FunctionType) -> CodeType:
        """The function's code with hooks of this recorder."""
        code = code_of(function)
        key = (id(code), id(function.__globals__))
        known = self._bound.get(key)
        if known is None:
            known = self._bound[key] = with_hooks(function, self.actor)
            self._alive += (code, known)
            self.register(known, code)
        return known

    def register(self, code: CodeType, original: CodeType) -> None:
        """Code made here, of ``original``, runs observed."""
        self._alive.append(code)
        self.codes.add(id(code))
        self.originals[id(code)] = original
        for inner, was in zip(_codes_in(code), _codes_in(original), strict=True):
            self.register(inner, was)

    def has_code(self, code: CodeType) -> bool:
        """Whether this is code that this recorder made."""
        return id(code) in self.codes

    def is_own(self, function: Any) -> bool:
        """Whether a function runs code that this recorder made."""
        return type(function) is FunctionType and id(function.__code__) in self.codes

    def invoke(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function, observed. What it gives may be looked at."""
        return self.concrete_number(self.passed(function, args, kwargs))

    def passed(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The same where what it gives goes to the observed code alone."""
        return calls.invoke(self, function, args, kwargs or {})

    def prepared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """What to call in place of a function."""
        return calls.prepared(self, function, args, kwargs)

    def constructed(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """What to call in place of a class, as ``type.__call__`` does."""
        return calls.constructed(self, kind, args, kwargs, by_metaclass=False)

    def invoke_special(
        self, method: Any, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a special method that the class of ``value`` holds."""
        if type(method) is FunctionType:
            return self.invoke(method, (value, *args), kwargs)
        return self.invoke(self.bind(method, value, type(value)), args, kwargs)

    def bind(self, attribute: Any, value: Any, kind: type) -> Any:
        """What a class holds, as a method of ``value``."""
        what = type(attribute)
        if what is staticmethod or what is classmethod:
            inner = attribute.__func__
            at = self.source_of(attribute)
            if at is not None:
                self.reach(inner, self.log.source(at, "{p}.__func__", f"{at}", inner))
            return inner if what is staticmethod else self.bound(inner, kind)
        getter = lookup(what, "__get__")
        if getter is MISSING:
            return attribute
        if type(getter) is FunctionType:
            return self.invoke(self.class_attribute(what, "__get__"), (attribute, value, kind))
        return attribute.__get__(value, kind)

    def bound(self, function: Any, value: Any) -> Any:
        """A class method of the class ``value``."""
        return MethodType(function, value) if type(function) is FunctionType else function.__get__(value)

    def callback(self, function: Any) -> Any:
        """A function for C code to call, observed. What it gives is passed on."""
        if type(function) is FunctionType and self.is_own(function):
            return function
        return lambda *args, **kwargs: self.invoke(function, args, kwargs)

    def judged(self, function: Any) -> Any:
        """The same where C code looks at what it gives: compares keys, say."""
        called = self.callback(function)
        return lambda *args, **kwargs: exposure.judged(self, called(*args, **kwargs))

    def calls_c(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function written in C that looks into its arguments."""
        return exposure.call_c(self, function, args, kwargs or {})

    def makes_class(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A part of the interpreter that makes a class is called."""
        return exposure.make_class(self, function, args, kwargs)

    def classes_in(self, values: Any) -> list[type]:
        """Classes with special methods written in Python of what C code can find in these values."""
        return exposure.classes_in(values)

    def exposed(self, classes: list[type], called_from: CodeType | None = None) -> Any:
        """A block in which C code, and code that runs unobserved, calls the special methods of classes observed.
        ``called_from``: the code that calls functions of Python's own library."""
        return exposure.Exposed(self, classes, called_from=called_from)

    def hashed(self, key: Any) -> None:
        """C code hashes and compares a key."""
        if type(key) in PLAIN:
            self.concrete_number(key)
        else:
            containers.content(self, key)
            if not self.policy.is_constant(key):
                self.pinned(key)

    def change(self, value: Any, symbol: str, other: Any) -> Any:
        """``value += other`` of a container from outside."""
        name = {
            "+=": "__iadd__",
            "*=": "__imul__",
            "|=": "__ior__",
            "&=": "__iand__",
            "-=": "__isub__",
            "^=": "__ixor__",
        }
        base = container_of(type(value))
        takes_other = base is not set or container_of(type(other)) in (set, frozenset)
        if symbol not in name or not hasattr(base, name[symbol]) or not takes_other:
            return self.calls_c(OPERATORS[symbol], (value, other))
        if base is list and symbol == "+=":
            methods.change(self, value, base, "extend", (other,), {})
        else:
            methods.change(self, value, base, name[symbol], (other,), {})
        return value

    # Bookkeeping ----------------------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """The run is over: everything outside is as it was before."""
        try:
            self.effects.undo()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of everything; hooks and recorder refer to each other, and must not wait for the collector."""
        self.hooks.rec = self.actor.rec = _OVER
        for collection in (
            self.sources,
            self.symbols,
            self.stand_ins,
            self.cells,
            self.memo,
            self._twins,
            self._bound,
            self._spaces,
        ):
            collection.clear()
        self._alive.clear()
        self.log.forget_values()
        self.session.end()
        self.session = None
        self.not_capturable = None  # its traceback leads to the frames of all callers
        self.effects = Effects()

    def keep(self, value: Any) -> None:
        """Keep an object alive until the recording ends, so that its address means it."""
        self._alive.append(value)

    def constant(self, value: Any) -> Any:
        """One object for equal constants."""
        return self.memo.setdefault(("constant", repr(value)), value)  # 1 is no True

    def unsettled(self, why: str) -> None:
        """The run prepared something that the next one will find: what was recorded holds for this call alone."""
        self.settled = self.settled or why

    def builtins_source(self, names: dict[str, Any], built: dict[str, Any]) -> Source:
        """Where built-in names are found."""
        if built is not vars(builtins):
            self.refuse("the module has built-in names of its own")
        return self.log.source(None, "{0}", "built-ins", MISSING, (built,))

    def importing(self, at: tuple[dict[str, Any], str], level: int, names: Any) -> Any:
        """``import name``: the module is found again by its name; a first import settles."""
        before = len(sys.modules)
        try:
            module = PLAIN_HOOKS.import_name(at, level, names)
        except ImportError as problem:
            self.log.check(None, f"{problem.name!r} in modules", f"module {problem.name}")
            raise
        if len(sys.modules) != before:
            self.unsettled(f"{at[1]} was imported")
        absolute = _absolute(at, level)
        name = absolute if names else absolute.partition(".")[0]
        if sys.modules.get(name) is not module:
            self.refuse(f"the module {name} is not in sys.modules", "import it outside")
        if name != absolute:
            self.log.check(None, f"{absolute!r} not in modules", f"module {absolute}")
        return self.reach(module, self.log.source(None, f"modules.get({name!r})", f"module {name}", module))

    def frame(self, level: int) -> Any:
        """The ``level``-th observed frame, the innermost first."""
        frame = sys._getframe(1)
        while frame is not None:
            if id(frame.f_code) in self.codes:
                level -= 1
                if level <= 0:
                    return frame
            frame = frame.f_back  # type: ignore[assignment]
        return None

    # Refusing -------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str, remedy: str = "", is_intended: bool = False, is_passing: bool = False) -> NoReturn:
        """End the observation."""
        self.not_capturable = NotCapturable(reason, self.line(), remedy, is_intended, is_passing)
        raise self.not_capturable

    def line(self) -> str:
        """``file:line`` of the innermost observed frame, outside the standard library where there is one."""
        frame = sys._getframe(1)
        first = ""
        while frame is not None:
            if id(frame.f_code) in self.codes:
                at = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                if not self.policy.is_library(frame.f_globals.get("__name__", "")):
                    return at
                first = first or at
            frame = frame.f_back  # type: ignore[assignment]
        return first or "at the call"
