"""What a function can read from outside, found by walking from its code: closure cells, globals, defaults, attributes.

The walk starts at the function and at the objects among its arguments and follows what the code names: called functions
are walked too. Each thing found is a :class:`Watch`: an expression that reads it again, and a condition that says it
changed. More may be watched than is read; ``guards.py`` turns watches into checks.

Nothing is kept alive by being watched: the user's objects, classes and functions are referred to by ``Weak``. An object
that is told by its identity owns what was made for it (``belongs``): when it is gone, no later call can find it again.
"""

from __future__ import annotations

import array
import enum
import functools
import io
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from runnel.compile.checks import MISSING, cell_contents, shown
from runnel.compile.names import names_in
from runnel.compile.namespaces import Namespace
from runnel.compile.origin import is_foreign, is_ours, is_plain, ticks_clock
from runnel.core.errors import CaptureError
from runnel.core.lifetime import Weak, weakly
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable

IDENTITY: Final = "{v} is not {k}"
LIMIT: Final = 200_000  # watched things; a function that can reach more should be given arguments
_LONGEST: Final = 240  # characters of a name, which grows with the depth at which a thing is found


class Wrapper:
    """An object that calls one Python function, its ``function``: the walk looks through it."""

    __slots__ = ()

    function: Any


@dataclass(slots=True)
class Watch:
    """One thing that a function can read.

    ``read`` is an expression over ``{p}``, the watch's parent; ``changed`` a condition over ``{v}``, what was read
    (empty: nothing to check), and ``{k}``, what is ``expected``. Both may name ``constants``. What is a ``Weak`` among
    these stands for what it refers to. ``by_clock``: it changes only when the state clock ticks.
    """

    parent: int
    read: str
    name: str  # for messages: model.scale
    changed: str
    expected: Any
    by_clock: bool
    constants: dict[str, Any] = field(default_factory=dict)
    was: str = ""  # how messages call what was read, where ``expected`` does not say it

    @property
    def belongs(self) -> bool:
        """Whether what was read owns whatever depends on this watch."""
        return self.changed == IDENTITY and type(self.expected) is Weak


@dataclass(slots=True)
class Found:
    """All watches, parents first; and where tensors and arrays are among them."""

    watches: list[Watch]
    arrays: dict[int, tuple[Any, int]]  # by id: the tensor or array, and its watch
    needs_tape: bool  # whether a reachable tensor requires a gradient


def find(function: types.FunctionType, objects: Sequence[tuple[str, Any]]) -> Found:
    """Walk from ``function`` and from ``objects``, arguments with their names.

    The names that code mentions decide which attributes are looked at, and attributes lead to more code: the walk is
    repeated until no new name turns up.
    """
    names: set[str] = set()
    while True:
        before = len(names)
        walk = _Walk(names)
        walk.visit(-1, "fn", function.__name__, function)
        for i, (name, value) in enumerate(objects):
            walk.visit(-1, f"objects[{i}]", name, value)
        walk.run()
        if len(names) == before:
            return Found(walk.watches, walk.arrays, walk.needs_tape)


class _Walk:
    """One walk with a set of names, which it adds to."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.watches: list[Watch] = []
        self.arrays: dict[int, tuple[Any, int]] = {}
        self.needs_tape = False
        self._seen: dict[int, int] = {}
        self._found: list[tuple[int, str, str, Any, bool, dict[str, Any]]] = []  # by what is looked at now

    def visit(self, parent: int, read: str, name: str, value: Any, by_clock: bool = False, **constants: Any) -> None:
        """Let ``value`` be watched, and what can be read from it. ``read`` may name ``constants``."""
        self._found.append((parent, read, name, value, by_clock, constants))

    def run(self) -> None:
        """Watch what was visited, depth first. However deep things hang on one another, the walk is a loop."""
        waiting: list[tuple[int, str, str, Any, bool, dict[str, Any]]] = []
        while self._found or waiting:
            waiting.extend(reversed(self._found))
            self._found.clear()
            self._watch(*waiting.pop())

    def _watch(self, parent: int, read: str, name: str, value: Any, by_clock: bool, constants: dict[str, Any]) -> None:
        index = len(self.watches)
        if index >= LIMIT:
            raise CaptureError(
                f"[compile] the function can reach more than {LIMIT} things outside itself, the last at '{name}'; pass "
                "what it needs as arguments."
            )
        if len(name) > _LONGEST:
            name = f"{name[: _LONGEST // 3]}…{name[-_LONGEST // 2 :]}"
        watch = Watch(parent, read, name, IDENTITY, value, by_clock, constants)
        self.watches.append(watch)
        if is_plain(value) or isinstance(value, np.generic):
            if value is not None and not isinstance(value, bool):
                watch.changed = "{v} is not {k} and differs({v}, {k})"
            return
        if id(value) in self._seen:
            watch.changed = f"{{v}} is not v{self._seen[id(value)]}"
            watch.expected = _kept(value)
            return
        self._seen[id(value)] = index
        watch.expected = _kept(value)
        for kinds, look in _BY_KIND:
            if isinstance(value, kinds):
                look(self, index, watch, value)
                return
        self._object(index, watch, value)

    # Arrays and state -------------------------------------------------------------------------------------------------

    def _tensor(self, index: int, watch: Watch, value: Tensor) -> None:
        if value.is_traced:
            return
        watch.changed = (  # another tensor can stand in for it
            f"type({{v}}) is not Tensor or {{v}}._aval is not {{k}} or {{v}}.requires_grad != {value.requires_grad}"
        )
        watch.expected, watch.was = value._aval, shown(value)
        self.arrays[id(value)] = (value, index)
        self.needs_tape |= value.requires_grad

    def _variable(self, index: int, watch: Watch, value: Variable) -> None:
        self.visit(index, "{p}.requires_grad", f"{watch.name}.requires_grad", value.requires_grad, True)

    def _ndarray(self, index: int, watch: Watch, value: np.ndarray) -> None:
        self.arrays[id(value)] = (value, index)
        if value.dtype.hasobject:
            watch.changed = f"type({{v}}) is not {{k}} or {{v}}.shape != {value.shape} or {{v}}.dtype != {{dtype}}"
            watch.expected, watch.constants["dtype"] = _kept(type(value)), value.dtype
            for i, item in enumerate(value.flat):
                self.visit(index, f"{{p}}.item({i})", f"{watch.name}.item({i})", item)
            return
        watch.changed = "array_differs({v}, {k})"
        watch.expected = _copied(value)

    # Code -------------------------------------------------------------------------------------------------------------

    def _function(self, index: int, watch: Watch, value: types.FunctionType) -> None:
        if is_foreign(value.__module__):
            return
        code, namespace = value.__code__, value.__globals__
        watch.changed = "({v} is not {k} or {v}.__code__ is not {code}) and {namespace}.differs({v}, {code})"
        # Programs are filed under the code of the function itself, which they must not keep alive; that of others is
        # quicker to compare when it is kept.
        watch.constants |= {"code": code if watch.parent >= 0 else weakly(code), "namespace": Namespace(value)}
        found = names_in(code)
        self.names |= found.attributes
        for i, name in enumerate(code.co_freevars):
            cell = (value.__closure__ or ())[i]
            contents = cell_contents(cell)
            at = f"{{p}}.__closure__[{i}]"
            read = f"cell_contents({at})" if contents is MISSING else f"{at}.cell_contents"
            self.visit(index, read, name, contents)
        builtins = namespace.get("__builtins__", {})
        known = builtins if isinstance(builtins, dict) else vars(builtins)
        for name in found.globals:
            if name in namespace or name not in known:
                self.visit(index, f"{{p}}.__globals__.get({name!r}, MISSING)", name, namespace.get(name, MISSING))
        for name in found.imports:
            module = sys.modules.get(name, MISSING)
            if isinstance(module, types.ModuleType) and not is_foreign(name):
                self.visit(index, f"sys.modules.get({name!r}, MISSING)", name, module)
        if value.__defaults__:
            self.visit(index, "{p}.__defaults__", f"defaults of {value.__name__}", value.__defaults__)
        if value.__kwdefaults__:
            self.visit(index, "{p}.__kwdefaults__", f"defaults of {value.__name__}", value.__kwdefaults__)
        for name in self.names & value.__dict__.keys():
            read = f"{{p}}.__dict__.get({name!r}, MISSING)"
            self.visit(index, read, f"{watch.name}.{name}", value.__dict__[name])

    def _parts(self, index: int, watch: Watch, value: Any) -> None:
        """Something made of other things that are attributes of it: a method, a property, a wrapper."""
        watch.changed, watch.expected = "type({v}) is not {k}", _kept(type(value))
        for part in _PARTS:
            if hasattr(value, part):
                self.visit(index, f"{{p}}.{part}", watch.name, getattr(value, part))

    def _module(self, index: int, watch: Watch, value: types.ModuleType) -> None:
        if not is_foreign(value.__name__):
            self._attributes(index, watch.name, value.__dict__)

    def _class(self, index: int, watch: Watch, value: type) -> None:
        for place, base in enumerate(value.__mro__):
            if is_foreign(base.__module__):
                continue
            for name, attribute in base.__dict__.items():
                is_method = isinstance(attribute, types.FunctionType)
                if name in self.names or (is_method and name.startswith("__")):
                    read = f"{{p}}.__mro__[{place}].__dict__.get({name!r}, MISSING)"
                    self.visit(index, read, f"{watch.name}.{name}", attribute)

    # Containers -------------------------------------------------------------------------------------------------------

    def _sequence(self, index: int, watch: Watch, value: Sequence[Any]) -> None:
        if all(map(is_plain, value)):
            watch.changed = "type({v}) is not {kind} or items_differ({v}, {k})"
            watch.constants["kind"], watch.expected = _kept(type(value)), tuple(value)
            return
        watch.changed = f"type({{v}}) is not {{k}} or len({{v}}) != {len(value)}"
        watch.expected = _kept(type(value))
        for i, item in enumerate(value):
            self.visit(index, f"{{p}}[{i}]", f"{watch.name}[{i}]", item, watch.by_clock)

    def _dict(self, index: int, watch: Watch, value: dict[Any, Any]) -> None:
        watch.changed = "type({v}) is not {kind} or keys_differ({v}, {k})"
        watch.constants["kind"], watch.expected = _kept(type(value)), tuple(map(_kept, value))
        for key, item in value.items():
            self.visit(index, "{p}[{key}]", f"{watch.name}[{shown(key)}]", item, watch.by_clock, key=_kept(key))

    def _set(self, index: int, watch: Watch, value: Any) -> None:
        watch.was = shown(value)
        watch.changed = "type({v}) is not {kind} or members_differ({v}, {k})"
        watch.constants["kind"], watch.expected = _kept(type(value)), tuple(map(_kept, value))

    def _copyable(self, index: int, watch: Watch, value: Any) -> None:
        watch.changed, watch.expected = "differs({v}, {k})", value[:]

    # Objects ----------------------------------------------------------------------------------------------------------

    def _iterator(self, index: int, watch: Watch, value: Any) -> None:
        if isinstance(value, io.IOBase):
            return
        if not is_foreign(type(value).__module__):
            self._object(index, watch, value)
            return
        raise CaptureError(
            f"[compile] '{watch.name}' is an iterator ({type(value).__name__}): a program would not advance it. Call "
            "next() outside of the compiled function and pass what it gives as an argument."
        )

    def _object(self, index: int, watch: Watch, value: Any) -> None:
        kind = type(value)
        attributes = getattr(value, "__dict__", None)
        if ticks_clock(kind):
            self.names.add("forward")
            if isinstance(attributes, dict):
                self._state(index, watch.name, kind, attributes)
        elif isinstance(attributes, dict):
            watch.changed, watch.expected = "type({v}) is not {k}", _kept(kind)
            self._attributes(index, watch.name, attributes, everything=is_ours(kind))
            self.visit(index, "len({p}.__dict__)", f"the attributes of {watch.name}", len(attributes))
        elif _slots(kind) and not is_foreign(kind.__module__):
            watch.changed, watch.expected = "type({v}) is not {k}", _kept(kind)
        if not is_foreign(kind.__module__):
            for name in self.names.intersection(_slots(kind)):
                read = f"getattr({{p}}, {name!r}, MISSING)"
                self.visit(index, read, f"{watch.name}.{name}", getattr(value, name, MISSING))
            self.visit(index, "type({p})", kind.__name__, kind)

    def _state(self, index: int, name: str, kind: type, attributes: dict[str, Any]) -> None:
        """The attributes of a module or an optimizer: setting one ticks the clock, changing a list in one does not."""
        self.visit(index, "len({p}.__dict__)", f"the attributes of {name}", len(attributes), True)
        for key, value in attributes.items():
            by_clock = is_ours(kind) or not isinstance(value, _CONTAINERS)
            self.visit(index, f"{{p}}.__dict__.get({key!r}, MISSING)", f"{name}.{key}", value, by_clock)

    def _attributes(self, index: int, owner: str, attributes: dict[str, Any], everything: bool = False) -> None:
        for name in [key for key in attributes if everything or key in self.names]:
            self.visit(index, f"{{p}}.__dict__.get({name!r}, MISSING)", f"{owner}.{name}", attributes[name])


def _kept(value: Any) -> Any:
    """``value`` as a guard keeps it: a Weak, but for plain values and what the process keeps anyway."""
    if isinstance(value, types.ModuleType):
        return value if is_foreign(value.__name__) else weakly(value)
    if isinstance(value, type):
        return value if is_foreign(value.__module__) else weakly(value)
    return value if is_plain(value) else weakly(value)


def _copied(array: np.ndarray) -> np.ndarray:
    copy = np.empty_like(array, order="K")
    copy[...] = array
    return copy


def _slots(kind: type) -> tuple[str, ...]:
    """The names in ``__slots__`` of a class and its bases."""
    found: list[str] = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(found)


_CONTAINERS: Final = (list, tuple, deque, dict, set, frozenset, bytearray, array.array)
_PARTS: Final = ("__func__", "__self__", "func", "args", "keywords", "fget", "function")
_BY_KIND: Final[tuple[tuple[Any, Callable[[_Walk, int, Watch, Any], None]], ...]] = (
    (Tensor, _Walk._tensor),
    (Variable, _Walk._variable),
    (np.ndarray, _Walk._ndarray),
    (types.FunctionType, _Walk._function),
    (types.ModuleType, _Walk._module),
    (enum.Enum, lambda walk, index, watch, value: None),
    (
        (types.MethodType, functools.partial, property, staticmethod, classmethod, functools.cached_property, Wrapper),
        _Walk._parts,
    ),
    (type, _Walk._class),
    ((list, tuple, deque), _Walk._sequence),
    (dict, _Walk._dict),
    ((set, frozenset), _Walk._set),
    ((bytearray, array.array), _Walk._copyable),
    (Iterator, _Walk._iterator),
)
