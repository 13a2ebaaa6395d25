"""Blocks in which C code may call special methods of user classes: sorting, hashing, comparing, formatting.

C code finds those methods on the classes themselves, so for the length of the block the functions there run rewritten
code. The net (``net.py``) says whether any other Python code ran in it: that would be code that nobody observed.
"""

from __future__ import annotations

import builtins
import itertools
import operator
import threading
import types
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any, Final

from runnel.compile.observe.classes import (
    LENT,
    MISSING,
    code_of,
    instance_dict,
    is_python_class,
    is_special,
    lookup,
    mro,
    namespace,
)  # fmt: skip
from runnel.compile.observe.containers import content, looked_at, require_lookup_by_value
from runnel.compile.observe.methods import CHANGES
from runnel.compile.observe.net import Net
from runnel.compile.observe.plain import Plain, with_hooks
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import (
    CONTAINERS,
    ITERATORS,
    PLAIN,
    SEQUENCES,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_users_method,
)  # fmt: skip

_PLAIN_HOOKS: Final = Plain()
_COMPARE: Final = frozenset({"index", "count", "remove", "contains", "__contains__", "eq", "ne", "__eq__", "__ne__"})
_DESCRIPTORS: Final = (types.WrapperDescriptorType, types.MethodDescriptorType)
_WRAPPERS: Final = (FunctionType, property)
_NEVER_BY_C: Final = frozenset({"__init__", "__new__", "__init_subclass__"})
_OF_ATTRIBUTES: Final = {
    "__init__",
    "__getattribute__",
    "__setattr__",
    "__delattr__",
    "__get__",
    "__set__",
    "__delete__",
}
_OF_NUMBERS: Final = {
    "__bool__",
    "__index__",
    "__int__",
    "__float__",
    "__complex__",
    "__trunc__",
    "__round__",
    "__abs__",
}
_OF_CONTAINERS: Final = frozenset(
    name
    for kind in (*CONTAINERS, *ITERATORS, object)
    for name, attribute in vars(kind).items()
    if type(attribute) in _DESCRIPTORS and name.startswith("__")
)
_CALLED_BY_C: Final = (_OF_CONTAINERS | _OF_NUMBERS) - _OF_ATTRIBUTES
_OF_JUDGEMENT: Final = ("__lt__", "__gt__", "__le__", "__ge__", "__eq__", "__ne__", "__bool__", "__len__", *_OF_NUMBERS)
_TEXTS: Final = (str, repr, ascii, format)
_ONE_BLOCK: Final = threading.RLock()  # functions have one code: what two threads put there they could not take back
_LONGEST_WAIT: Final = 10.0  # seconds


def classes_in(values: Any, depth: int = 0) -> list[type]:
    """The classes made in Python of what C code can find in these values, each once."""
    kinds: dict[type, None] = {}
    for value in values:
        kind = type(value)
        if kind in PLAIN or is_class(value):
            continue
        if kind is slice:
            kinds |= dict.fromkeys(classes_in((value.start, value.stop, value.step), depth + 1))
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
            kinds |= dict.fromkeys(classes_in(list(inner), depth + 1))
        if is_python_class(kind) and _has_methods(kind):
            kinds[kind] = None
    return list(kinds)


def _special_methods(kind: type) -> list[tuple[str, FunctionType | property]]:
    """What C code finds of a class: methods, and properties such as ``__array_interface__``."""
    return [
        (name, value)
        for base in mro(kind)
        if is_python_class(base)
        for name, value in namespace(base).items()
        if is_special(name) and type(value) in _WRAPPERS
    ]


def _has_methods(kind: type) -> bool:
    return any(
        name in _CALLED_BY_C or (type(attribute) in _WRAPPERS and is_special(name) and name not in _NEVER_BY_C)
        for base in mro(kind)
        if is_python_class(base)
        for name, attribute in namespace(base).items()
    )


def _require_observable(rec: Recorder, kind: type) -> None:
    """Special methods that C code finds there are written in Python, or read the object alone, which is watched."""
    for base in mro(kind):
        if not is_python_class(base) or rec.policy.is_transparent(base):
            continue
        for name, attribute in namespace(base).items():
            is_known = (
                type(attribute) is FunctionType
                or not is_users_method(kind, name, attribute)
                or _only_reads(kind, attribute)
            )
            if name in _CALLED_BY_C and not is_known:
                rec.refuse(f"{described(attribute)}, the {name} of a {kind.__name__}, is called by C code")


def _only_reads(kind: type, attribute: Any) -> bool:
    is_of_it = type(attribute) in _DESCRIPTORS and issubclass(kind, attribute.__objclass__)
    return is_of_it and attribute.__name__ not in CHANGES.get(container_of(kind), ())


def stands_for_values(kind: type) -> bool:
    """Whether objects of a class made in Python can be given where numbers, arrays or sequences are wanted."""
    return any(is_users_method(kind, name, lookup(kind, name)) for name in _OF_VALUES)


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
    """The block. Special methods of ``classes`` and other ``functions`` are observed; whatever else of Python's the C
    code called by ``called_from`` calls ends the observation."""

    def __init__(
        self,
        rec: Recorder,
        classes: list[type],
        functions: Iterable[FunctionType] = (),
        called_from: CodeType | None = None,
    ) -> None:
        self._rec = rec
        self._called_from = called_from or call_c.__code__
        self._net: Net | None = None
        self._changed: list[tuple[FunctionType, CodeType, CodeType]] = []  # what runs now, and what did
        self._functions = {id(function): function for function in functions}
        for kind in classes:
            _require_observable(rec, kind)
            for name, method in _special_methods(kind):
                rec.class_attribute(kind, name)
                function = method if type(method) is FunctionType else self._getter(method)
                if type(function) is FunctionType:
                    self._functions[id(function)] = function

    def _getter(self, descriptor: Any) -> Any:
        """The function of a property."""
        source = self._rec.source_of(descriptor)
        if source is not None:
            self._rec.reach(descriptor.fget, self._rec.log.source(source, "{p}.fget", f"{source}", descriptor.fget))
        return descriptor.fget

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
        if rec.net is None:  # else an outer block's net hears of all
            self._net = Net(rec, self._called_from, leaves_library=self._called_from is not call_c.__code__)
            self._net.begin()
        for function in self._functions.values():
            if rec.is_own(function) or rec.policy.native(function) is not None:
                continue
            rec.twin(function)  # what the function is made of is read
            observed = with_hooks(function, _OnThisThread(rec.actor))
            rec.register(observed, code_of(function))
            self._changed.append((function, observed, function.__code__))
            LENT[id(observed)] = code_of(function)
            function.__code__ = observed

    def __exit__(self, raised: type[BaseException] | None, *_: Any) -> None:
        self._end()
        is_interrupted = raised is not None and not issubclass(raised, Exception)  # perhaps where the net listened
        if self._net is not None and self._net.escaped and not is_interrupted:
            self._rec.refuse(f"code ran unobserved: {', '.join(sorted(set(self._net.escaped))[:3])}")

    def _end(self) -> None:
        for function, observed, code in self._changed:
            function.__code__ = code
            LENT.pop(id(observed), None)
        if self._net is not None:
            self._net.end()
        _ONE_BLOCK.release()


def make_class(rec: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``function``, a part of the interpreter that makes classes, makes. It calls methods of the bases and of what
    is in the class."""
    if rec.net is not None and not rec.net.hears_of(make_class.__code__):
        rec.refuse("a class is made while C code calls a special method")
    if function is builtins.__build_class__:
        called = [rec.class_attribute(type(base), "__mro_entries__") for base in args[2:] if not is_class(base)]
        kwargs = _with_observed_metaclass(rec, args[2:], kwargs)
    else:
        bases, space = args[-2:]
        called = [rec.class_attribute(base, "__init_subclass__") for base in bases if is_class(base)]
        kinds = [type(value) for value in space.values()]
        called += [rec.class_attribute(kind, "__set_name__") for kind in kinds if is_python_class(kind)]
    functions = [inner for one in called if type(inner := _function_of(rec, one)) is FunctionType]
    with Exposed(rec, [], functions, make_class.__code__):
        return function(*args, **kwargs)


def _with_observed_metaclass(rec: Recorder, bases: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a class statement, whose metaclass is called observed, if it is not the library's own."""
    hint = kwargs.get("metaclass", type)

    def metaclass(bases: tuple[Any, ...]) -> Any:
        most_derived = hint
        for kind in map(type, bases if is_class(hint) else ()):
            most_derived = kind if issubclass(kind, most_derived) else most_derived
        return most_derived

    def call_metaclass(*args: Any, **more: Any) -> Any:
        return rec.invoke(metaclass(args[1]), args, more)

    def prepared(*args: Any, **more: Any) -> Any:
        return rec.invoke(rec.hooks.load_attr("__prepare__", metaclass(args[1])), args, more)

    meta = metaclass(tuple(filter(is_class, bases)))
    if is_class(meta) and (not is_python_class(meta) or rec.policy.is_library(meta.__module__)):
        if meta is not type:
            return kwargs
    elif hasattr(meta, "__prepare__"):
        call_metaclass.__prepare__ = prepared  # type: ignore[attr-defined]
    return {**kwargs, "metaclass": call_metaclass}


def _function_of(rec: Recorder, attribute: Any) -> Any:
    if type(attribute) not in (classmethod, staticmethod):
        return attribute
    inner, at = attribute.__func__, rec.source_of(attribute)
    return inner if at is None else rec.reach(inner, rec.log.source(at, "{p}.__func__", f"{at}", inner))


def _is_iterator(kind: type) -> bool:
    return kind in ITERATORS or (not is_python_class(kind) and lookup(kind, "__next__") is not MISSING)


def _items_looked_at(rec: Recorder, iterator: Any) -> Any:
    """What an iterator gives to C code, which looks at the numbers."""
    for value in iterator:
        yield looked_at(rec, value)


def judged(rec: Recorder, value: Any) -> Any:
    """What a function gives to C code, which compares it with others or makes a number or text of it."""
    if rec.net is None:  # else it hears of methods that are called
        for kind in classes_in((value,)):
            if any(is_users_method(kind, name, lookup(kind, name)) for name in _OF_JUDGEMENT):
                rec.refuse(
                    f"C code compares objects of the class {kind.__name__}, which a function of yours gives it, by "
                    "methods of theirs",
                    "give numbers, texts or tuples",
                )
    return looked_at(rec, value)


def settle_parts(rec: Recorder, values: Iterable[Any]) -> None:
    """Numbers that the run keeps in objects of its own: their methods give them to code that looks at them."""
    if rec.symbols:
        for value in values:
            space = instance_dict(value) if is_python_class(type(value)) and rec.source_of(value) is None else None
            for part in list(space.values()) if space is not None else ():
                if type(part) in PLAIN or type(part) in SYMBOLIC or container_of(type(part)) is not None:
                    content(rec, part)


def call_c(rec: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function written in C that looks into its arguments and calls their special methods."""
    for value in (*args, *kwargs.values()):
        content(rec, value)
    if function in _TEXTS or type(getattr(function, "__self__", args[0] if function is operator.mod else None)) is str:
        rec.policy.makes_text(rec, (*args, *kwargs.values()))
    if getattr(function, "__name__", "") in _COMPARE:
        require_lookup_by_value(rec, itertools.chain(args, *map(_items_of_sequence, args)))
    args = tuple([_items_looked_at(rec, x) if _is_iterator(type(x)) else x for x in args])
    values = (*args, *kwargs.values())
    classes = classes_in(values)
    if not classes:
        return function(*args, **kwargs)
    settle_parts(rec, values)
    changes = len(rec.effects.done)
    with Exposed(rec, classes):
        result = function(*args, **kwargs)
    if len(rec.effects.done) != changes:
        _require_constant_comparison(rec, classes)
    return result


def _items_of_sequence(value: Any) -> Iterable[Any]:
    """What a list, tuple or deque holds, past the methods of its class; nothing of others."""
    base = container_of(type(value))
    return base.__iter__(value) if base in SEQUENCES else ()


def _require_constant_comparison(rec: Recorder, classes: list[type]) -> None:
    """How often C code hashes and compares depends on what it has seen before, and a guard does so again."""
    for kind in classes:
        for name in ("__eq__", "__hash__"):
            if type(lookup(kind, name)) is FunctionType:
                rec.refuse(
                    f"something is changed while C code may call the {name} of a {kind.__name__}",
                    "count or log elsewhere: how often it is called is not known",
                )
