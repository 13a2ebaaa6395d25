"""The hooks of an observed run: each does what its instruction did and reports reads and changes to the recorder."""

from __future__ import annotations

import builtins
import functools
import importlib.util
import operator
import sys
from types import CellType, CodeType, FunctionType, GeneratorType
from typing import Any, Final

from runnel.compile.observe import attributes, calls, containers, numbers, operators
from runnel.compile.observe.effects import SET_CELL, SET_ITEM
from runnel.compile.observe.recorder import NotCapturable, Recorder
from runnel.compile.observe.rewriting import Hook, bind, template
from runnel.compile.observe.sources import Source, item_of
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    DICT_VIEWS,
    MISSING,
    PLAIN,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_empty,
    is_python_class,
    is_users_method,
    lookup,
)
from runnel.compile.observe.versions import EMPTY_SELF_ABOVE

Name = tuple[dict[str, Any], str]  # a namespace and a name in it
_OBSERVER: Final = __name__.rpartition(".")[0]
_WITH_NAMESPACE: Final = frozenset({"load_global", "store_global", "delete_global", "import_name", "import_from"})


def to_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return a call as rewritten code unpacks it."""
    return ((kwargs, args), function) if EMPTY_SELF_ABOVE else (kwargs, args, function)


def bound_code(function: FunctionType, actor: Any) -> CodeType:
    """Return the code of a function with methods of ``actor`` as hooks."""
    names = function.__globals__

    def hook(what: Hook) -> Any:
        method = getattr(actor, what.kind)
        if what.kind in _WITH_NAMESPACE:
            return functools.partial(method, (names, what.detail))
        return method if what.detail is None else functools.partial(method, what.detail)

    return bind(template(function.__code__), hook)


class Hooks:
    """The hooks of one recorder, a method each. The detail of a hook, where it has one, comes first."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec

    # Asked by the recorder --------------------------------------------------------------------------------------------

    def bound_code(self, function: FunctionType) -> CodeType:
        return bound_code(function, self)

    def prepared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> calls.Call:
        return calls.prepared(self.rec, function, args, kwargs)

    def symbol(self, value: Any, source: Source) -> Any:
        return numbers.begin(self.rec, value, source)

    def reach_items(self, value: Any) -> None:
        containers.reach_items(self.rec, value)

    # Names ------------------------------------------------------------------------------------------------------------

    def load_global(self, at: Name, _: None) -> Any:
        (names, name), rec = at, self.rec
        space = rec.sources.get(id(names))
        value = names.get(name, MISSING)
        is_own = space is None or (id(names), name) in rec.effects.written
        if value is not MISSING:
            if is_own:
                return value
            return rec.reach_symbolic(value, rec.log.source(space, item_of(name, value), f"global {name}", value))
        if not is_own:
            rec.log.check(space, f"{name!r} in {{v}}", f"global {name}")
        if names.get("__builtins__", builtins) not in (builtins, vars(builtins)):
            rec.refuse("the module has custom built-in names")
        built = vars(builtins).get(name, MISSING)
        known = rec.log.source(None, "{0}", "built-ins", MISSING, (vars(builtins),))
        rec.reach(built, rec.log.source(known, item_of(name, built), f"built-in {name}", built))
        if built is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        return built

    def store_global(self, at: Name, value: Any) -> None:
        (names, name), rec = at, self.rec
        if rec.sources.get(id(names)) is not None:
            rec.effects.will_change(names, dict)
            rec.effects.written.add((id(names), name))
            rec.effects.record(SET_ITEM, names, name, value, f"global {name} = ...")
        names[name] = value

    def delete_global(self, at: Name, _: None) -> None:
        if self.rec.sources.get(id(at[0])) is not None:
            self.rec.refuse(f"the global {at[1]} is deleted", "set it to None")
        del at[0][at[1]]

    def load_cell(self, name: str, cell: CellType) -> Any:
        source = self.rec.cells.get(id(cell))
        if (id(cell), "") in self.rec.effects.written:
            source = None
        if is_empty(cell):
            if source is not None:
                self.rec.log.check(source.parent, "not is_empty({v})", f"variable {source} has no value")
            message = "cannot access free variable '{0}' where it is not associated with a value in enclosing scope"
            raise NameError(message.format(name), name=name)
        value = cell.cell_contents
        return value if source is None else self.rec.reach_symbolic(value, source)

    def store_cell(self, name: str, value: Any, cell: CellType) -> None:
        rec = self.rec
        if id(cell) in rec.cells:
            if is_empty(cell):
                rec.refuse(f"the variable {name} outside gets its first value")
            before = cell.cell_contents
            rec.effects.undo_by(lambda: setattr(cell, "cell_contents", before))
            rec.effects.written.add((id(cell), ""))
            rec.effects.record(SET_CELL, cell, "cell_contents", value, f"{name} = ...")
        cell.cell_contents = value

    def delete_cell(self, name: str, cell: CellType) -> None:
        if id(cell) in self.rec.cells:
            self.rec.refuse(f"the variable {name} outside is deleted")
        del cell.cell_contents

    def import_name(self, at: Name, level: int, from_names: Any) -> Any:
        """Import a module, which later calls find by its name. A first import prepares that."""
        (names, name), rec = at, self.rec
        before = len(sys.modules)
        try:
            module = builtins.__import__(name, names, None, from_names, level)
        except ImportError as problem:
            rec.log.check(None, f"{problem.name!r} in modules", f"module {problem.name}")
            raise
        if len(sys.modules) != before:
            rec.unsettled(f"{name} was imported")
        absolute = importlib.util.resolve_name("." * level + name, _package(names)) if level else name
        found = absolute if from_names else absolute.partition(".")[0]
        if sys.modules.get(found) is not module:
            rec.refuse(f"the module {found} is not in sys.modules", "import it outside")
        if found != absolute:
            rec.log.check(None, f"{absolute!r} not in modules", f"module {absolute}")
        return rec.reach(module, rec.log.source(None, f"modules.get({found!r})", f"module {found}", module))

    def import_from(self, at: Name, module: Any) -> Any:
        try:
            return attributes.read(self.rec, module, at[1])
        except AttributeError:
            name = f"{module.__name__}.{at[1]}"
            value = sys.modules.get(name)
            if value is None:
                self.rec.refuse(f"{at[1]} cannot be imported from {module.__name__}")
            return self.rec.reach(value, self.rec.log.source(None, f"modules.get({name!r})", f"module {name}", value))

    # Attributes and items ---------------------------------------------------------------------------------------------

    def load_attr(self, name: str, value: Any) -> Any:
        return attributes.read(self.rec, value, name)

    def load_super(self, what: tuple[str, bool], function: Any, kind: Any, value: Any) -> Any:
        name, has_arguments = what
        if function is super:
            return attributes.read(self.rec, super(kind, value), name)
        return attributes.read(self.rec, self.rec.passed(function, (kind, value) if has_arguments else ()), name)

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        attributes.write(self.rec, target, name, value)

    def delete_attr(self, name: str, target: Any) -> None:
        attributes.delete(self.rec, target, name)

    def _own_method(self, value: Any, name: str) -> Any:
        """Return a method written in Python that the class of ``value`` has, or None."""
        kind = type(value)
        method = self.rec.class_attribute(kind, name) if is_python_class(kind) else MISSING
        return method if is_users_method(kind, name, method) else None

    def get_item(self, value: Any, key: Any) -> Any:
        rec, kind = self.rec, type(value)
        if kind in PLAIN or kind in SYMBOLIC:
            return rec.concrete_number(value)[containers.content(rec, key)]
        if is_class(value):
            own = self._own_method(value, "__getitem__")
            if own is not None:
                return operators.passed(rec, own, value, key)
            if rec.class_attribute(value, "__class_getitem__") is MISSING:
                raise TypeError(f"type '{value.__name__}' is not subscriptable")
            return rec.invoke(attributes.of_class(rec, value, "__class_getitem__"), (containers.content(rec, key),))
        answer = rec.policy.item(kind)
        if answer is not None:
            return answer(rec, operator.getitem, value, key)
        own = self._own_method(value, "__getitem__")
        if own is not None:
            return operators.passed(rec, own, value, key)
        base = container_of(kind)
        if base is dict and kind is not dict and not containers.has_key(rec, value, key):
            return self._missing(value, key)
        if base is not None:
            return containers.get_item(rec, value, key)
        return containers.content(rec, value)[containers.content(rec, key)]

    def _missing(self, value: Any, key: Any) -> Any:
        """Return what a dict of another class gives for a missing key."""
        rec = self.rec
        method = rec.class_attribute(type(value), "__missing__")
        if type(method) is FunctionType:
            return rec.passed(method, (value, key))
        factory = getattr(value, "default_factory", None)
        attributes.reach_parts(rec, value, ("default_factory",) if method is not MISSING else ())
        if factory is None:
            raise KeyError(key)
        item = rec.passed(factory, ())
        containers.set_key(rec, value, key, item)
        return item

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        rec, kind = self.rec, type(target)
        answer = rec.policy.item(kind)
        if answer is not None:
            answer(rec, operator.setitem, target, key, value)
            return
        own = self._own_method(target, "__setitem__")
        if own is not None:
            operators.passed(rec, own, target, key, value)
            return
        base = container_of(kind)
        if base is dict:
            containers.set_key(rec, target, key, value)
            return
        if base is None and rec.source_of(target) is not None:
            rec.refuse(f"an item of {described(target)} from outside is set")
        containers.change_item(rec, target, key, value)

    def delete_item(self, target: Any, key: Any) -> None:
        rec = self.rec
        own = self._own_method(target, "__delitem__")
        base = container_of(type(target))
        if own is not None:
            operators.passed(rec, own, target, key)
        elif base is dict:
            containers.delete_key(rec, target, key)
        elif base is None and rec.source_of(target) is not None:
            rec.refuse(f"an item of {described(target)} from outside is deleted")
        else:
            containers.change_item(rec, target, key, None, deletes=True)

    # Operators --------------------------------------------------------------------------------------------------------

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        return operators.binary(self.rec, symbol, a, b)

    def unary(self, symbol: str, value: Any) -> Any:
        return operators.unary(self.rec, symbol, value)

    def compare(self, what: tuple[str, bool], a: Any, b: Any) -> Any:
        result = operators.compare(self.rec, what[0], a, b)
        return operators.truth(self.rec, result) if what[1] else result

    def identity(self, inverted: bool, a: Any, b: Any) -> bool:
        return operators.identity(self.rec, a, b, inverted)

    def contains(self, inverted: bool, value: Any, container: Any) -> bool:
        is_in = self._contains(container, value)
        return not is_in if inverted else is_in

    def _contains(self, container: Any, value: Any) -> bool:
        rec, kind = self.rec, type(container)
        if kind in PLAIN or kind in SYMBOLIC:
            return rec.concrete_number(value) in rec.concrete_number(container)
        answer = rec.policy.item(kind)
        if answer is not None:
            return bool(answer(rec, operator.contains, container, value))
        if rec.is_namespace(container):
            name, space = rec.concrete_number(value), rec.source_of(container)
            if space is not None:
                way = f"{name!r} not in {{v}}" if name in container else f"{name!r} in {{v}}"
                rec.log.check(space, way, f"{space}.{name}")
            return name in container
        own = self._own_method(container, "__contains__")
        if own is not None:
            return operators.truth(rec, operators.passed(rec, own, container, value))
        if issubclass(kind, (str, bytes)):  # such as members of an Enum, which are searched
            return containers.content(rec, value) in containers.content(rec, container)
        if kind in DICT_VIEWS or container_of(kind) is None:
            return any(x is value or self.truth(self.compare(("==", False), x, value)) for x in self.iterate(container))
        return containers.is_member(rec, container, value)

    def truth(self, value: Any) -> bool:
        return operators.truth(self.rec, value)

    def length(self, value: Any) -> Any:
        rec, kind = self.rec, type(value)
        if kind in PLAIN or kind in SYMBOLIC:
            return len(rec.concrete_number(value))
        answer = rec.policy.item(kind)
        if answer is not None:
            return answer(rec, len, value)
        own = self._own_method(value, "__len__")
        if own is not None:
            size = operators.passed(rec, own, value)
            if type(numbers.bare(size)) is not int or size < 0:
                raise TypeError(f"__len__() should return a length, returned {type(size).__name__}")
            return size
        if container_of(kind) is not None:
            return containers.length(rec, value)
        return len(containers.content(rec, value))

    def convert(self, how: int, value: Any) -> Any:
        return operators.text(self.rec, operators.CONVERSIONS[how], value) if how else value

    def format(self, how: int, value: Any, spec: Any = "") -> Any:
        return operators.formatted(self.rec, how, value, spec)

    def build_string(self, parts: tuple[Any, ...]) -> Any:
        return numbers.joined(self.rec, parts)

    # Sets, dicts and exceptions ---------------------------------------------------------------------------------------

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        result: set[Any] = set()
        for value in members:
            containers.change(self.rec, result, "add", (value,))
        return result

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(parts[::2], parts[1::2], strict=True):
            containers.set_key(self.rec, result, key, value)
        return result

    def set_add(self, value: Any, members: set[Any]) -> None:
        containers.change(self.rec, members, "add", (value,))

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        containers.set_key(self.rec, table, key, value)

    def raised(self, problem: Any) -> Any:
        """Call a class that is raised."""
        return self.rec.passed(problem, ()) if is_class(problem) and is_python_class(problem) else problem

    # Iteration and patterns -------------------------------------------------------------------------------------------

    def iterate(self, value: Any) -> Any:
        """Return what to iterate over. Items of a list from outside are read when the loop comes to them."""
        rec, kind = self.rec, type(value)
        if kind in PLAIN or kind in SYMBOLIC:
            return rec.concrete_number(value)
        answer = rec.policy.item(kind)
        if answer is not None:
            return answer(rec, iter, value)
        if kind in CONTAINERS:
            return containers.iterated(rec, value)
        method = self._own_method(value, "__iter__")
        if method is not None:
            iterator = operators.passed(rec, method, value)
            return self._steps(iterator) if is_python_class(type(iterator)) else self.iterate(iterator)
        if container_of(kind) is not None:
            return containers.iterated(rec, value)
        if is_python_class(kind) and not is_class(value) and self._own_method(value, "__getitem__") is not None:
            return self._by_index(value)
        if kind in DICT_VIEWS and rec.source_of(value) is None:
            return value
        return containers.content(rec, value)

    def _steps(self, iterator: Any) -> Any:
        """Iterate over an iterator written in Python."""
        step = self.rec.class_attribute(type(iterator), "__next__")
        if step is MISSING:
            raise TypeError(f"iter() returned non-iterator of type '{type(iterator).__name__}'")
        while True:
            try:
                item = operators.passed(self.rec, step, iterator)
            except StopIteration:
                return
            yield item

    def _by_index(self, value: Any) -> Any:
        for i in range(sys.maxsize):
            try:
                item = self.get_item(value, i)
            except (IndexError, StopIteration):
                return
            yield item

    delegate = iterate

    def listed(self, value: Any) -> Any:
        """Return what a list or tuple is made of. C code asks an object for its length, too."""
        kind = type(value)
        is_users = is_python_class(kind) and not self.rec.policy.is_library(str(kind.__module__))
        for name in ("__len__", "__length_hint__") if is_users else ():
            if self._own_method(value, name) is not None:
                self.rec.refuse(
                    f"{described(value)}, which has a custom {name}, is unpacked or made a list",
                    "write a loop over it",
                )
        return self.spread(value)

    def spread(self, value: Any) -> Any:
        """Return the items that the code takes apart."""
        return containers.items(self.rec, value) if type(value) in (list, tuple) else self.iterate(value)

    unpack = spread

    def spread_in_two(self, value: Any) -> Any:
        """Return the items that ``first, *rest = value`` takes apart, which calls ``__iter__`` twice."""
        items = self.spread(value)
        if type(items) is GeneratorType and items.gi_code is Hooks._steps.__code__:
            self.rec.refuse(f"{described(value)} is unpacked with a star", "call next(), then list()")
        return items

    def unpack_mapping(self, value: Any) -> dict[Any, Any]:
        """Return a dict with the items of a mapping that is unpacked."""
        rec, kind = self.rec, type(value)
        methods = [self._own_method(value, name) for name in ("__iter__", "keys", "__getitem__")]
        if container_of(kind) is dict and not any(methods):
            return containers.pairs(rec, value)
        if not is_python_class(kind):
            return dict(containers.content(rec, value))
        keys = rec.passed(attributes.read(rec, value, "keys"), ())
        return self.build_map(tuple([x for key in self.iterate(keys) for x in (key, self.get_item(value, key))]))

    def matched(self, value: Any) -> None:
        """Check whether the class of a value matches patterns of sequences or mappings."""
        kind, source = type(value), self.rec.source_of(value)
        if is_python_class(kind) and source is not None:
            self.rec.log.check(source, "type({v}).__flags__ & 96 != {0}", f"kind of {source}", (kind.__flags__ & 96,))

    def caught(self, problem: BaseException, kinds: Any) -> None:
        """Check what ``except kinds`` catches: a tuple from outside must hold the same classes at later calls."""
        if type(kinds) is tuple:
            containers.reach_items(self.rec, kinds)
            for kind in kinds:
                self.caught(problem, kind)
        elif is_class(kinds) and issubclass(type(problem), kinds):
            self._require_known(problem)

    def _require_known(self, problem: BaseException) -> None:
        """Refuse to go on after a TypeError of a hook, which may differ from the error of the call itself."""
        if type(problem) not in (TypeError, RuntimeError):
            return
        last = problem.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is not None and str(last.tb_frame.f_globals.get("__name__")).startswith(_OBSERVER):
            self.rec.refuse(f"the function catches a {type(problem).__name__} of an operation", "test before it")

    def match_keys(self, subject: Any, keys: Any) -> Any:
        self.rec.refuse("a pattern of 'match' looks for keys", "use if and in")

    def match_class(self, count: int, subject: Any, kind: Any, names: Any) -> Any:
        self.rec.refuse("a pattern of 'match' names a class", "use isinstance()")

    # Calls ------------------------------------------------------------------------------------------------------------

    def enter(self, manager: Any) -> tuple[Any, Any]:
        """Return the value and the exit of a ``with`` block."""
        rec, kind = self.rec, type(manager)
        enter, leave = rec.class_attribute(kind, "__enter__"), rec.class_attribute(kind, "__exit__")
        if enter is MISSING or leave is MISSING:
            with manager:  # raises
                pass
        is_c = type(enter) in C_FUNCTIONS or not is_python_class(kind)
        if is_c and not rec.policy.context_manager(kind):
            lock = "a lock is taken" if kind.__name__.lower().endswith("lock") else ""
            rec.refuse(lock or f"a 'with' block of {described(manager)} cannot be observed", "put it around the call")
        if is_c:
            return lookup(kind, "__enter__").__get__(manager, kind)(), lookup(kind, "__exit__").__get__(manager, kind)
        result = operators.passed(rec, enter, manager)

        def exit(*details: Any) -> Any:
            if details[0] is not None and rec.policy.context_manager(kind):
                return leave.__get__(manager, kind)(*details)
            if details[0] is NotCapturable:  # nothing more is observed
                return False
            outcome = operators.passed(rec, leave, manager, *details)
            if details[0] is None:
                return outcome
            is_caught = operators.truth(rec, outcome)
            if is_caught:
                self._require_known(details[1])
            return is_caught

        return result, exit

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        return to_call(*calls.prepared(self.rec, function, args, {}))

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        *values, names = args
        first = len(values) - len(names)
        kwargs = dict(zip(names, values[first:], strict=True))
        return to_call(*calls.prepared(self.rec, function, tuple(values[:first]), kwargs))

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        values = args[0]
        if type(values) is not tuple or self.rec.source_of(values) is not None:
            values = tuple(self.listed(values))
        kwargs = dict(args[1]) if len(args) > 1 else {}
        return to_call(*calls.prepared(self.rec, function, values, kwargs))


def _package(names: dict[str, Any]) -> str:
    """Return the package of the module with these globals."""
    package = names.get("__package__") or getattr(names.get("__spec__"), "parent", None)
    if package is None:
        package = names["__name__"] if "__path__" in names else names["__name__"].rpartition(".")[0]
    return str(package)
