"""The hooks of an observed run: each does what its instruction did and reports reads and changes to the recorder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import CellType, MappingProxyType
from typing import Any, Final

from runnel.compile.observe import (
    answers,
    attributes,
    calls,
    changes,
    containers,
    followed,
    instances,
    operators,
    proxies,
    texts,
)
from runnel.compile.observe.classes import MISSING, is_empty, is_python_class, lookup
from runnel.compile.observe.lengths import ASK_LENGTH
from runnel.compile.observe.plain import (
    CONVERSIONS,
    Name,
    Plain,
    builtins_of,
    match_class,
    match_keys,
    no_context_manager,
    to_call,
)  # fmt: skip
from runnel.compile.observe.recorder import AbstractHooks, Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    DICT_VIEWS,
    ITERATORS,
    PLAIN,
    container_of,
    described,
    is_class,
    is_users_method,
)

_SIMPLE = Plain()


class Hooks(AbstractHooks):
    """The hooks of one recorder."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec

    # Names ----------------------------------------------------------------------------------------------------------

    def load_global(self, at: Name, _: None) -> Any:
        value = self._read_global(at, self.rec.reach_symbolic)
        return _SIMPLE.load_global(at, None) if value is None else value

    def note_global(self, at: Name, _: None) -> None:
        self._read_global(at, self.rec.reach)

    def _read_global(self, at: Name, reach: Callable[[Any, Source], Any]) -> Any:
        names, name = at
        rec = self.rec
        space = rec.sources.get(id(names))
        if (id(names), name) in rec.effects.written:
            return None
        value = names.get(name, MISSING)
        if value is not MISSING:
            if space is not None:
                source = rec.log.source(space, f"{{p}}.get({name!r}, MISSING)", f"global {name}", value)
                return reach(value, source)
            return value
        built = builtins_of(names)
        if space is not None:
            rec.log.check(space, f"{name!r} in {{v}}", f"global {name}")
        builtin = built.get(name, MISSING)
        known = rec.builtins_source(names, built)
        rec.reach(builtin, rec.log.source(known, f"{{p}}.get({name!r}, MISSING)", f"built-in {name}", builtin))
        return None

    def store_global(self, at: Name, value: Any) -> None:
        names, name = at
        rec = self.rec
        if rec.sources.get(id(names)) is not None:
            rec.effects.will_change(names, dict)
            rec.effects.written.add((id(names), name))
            rec.effects.record(changes.SET_ITEM, names, name, value, f"global {name} = ...")
        names[name] = value

    def delete_global(self, at: Name, _: None) -> None:
        self.note_global(at, None)
        names, name = at
        if name in names and self.rec.sources.get(id(names)) is not None:
            self.rec.effects.will_change(names, dict)
            self.rec.effects.written.add((id(names), name))
            self.rec.effects.record(changes.DELETE_ITEM, names, name, None, f"del {name}")
        _SIMPLE.delete_global(at, None)

    def load_cell(self, name: str, cell: CellType) -> Any:
        source = self._found_in(cell)
        value = _SIMPLE.load_cell(name, cell)
        return value if source is None else self.rec.reach_symbolic(value, source)

    def note_cell(self, name: str, cell: CellType) -> None:
        source = self._found_in(cell)
        if source is not None and not is_empty(cell):
            self.rec.reach(_SIMPLE.load_cell(name, cell), source)

    def _found_in(self, cell: CellType) -> Source | None:
        """Where a cell from outside is read. That it is empty is a check; the read itself raises, or finds the name
        elsewhere."""
        source = self.rec.cells.get(id(cell))
        if source is None or (id(cell), "") in self.rec.effects.written:
            return None
        if is_empty(cell):
            self.rec.log.check(source.parent, "not is_empty({v})", f"variable {source} has no value")
        return source

    def store_cell(self, name: str, value: Any, cell: CellType) -> None:
        rec = self.rec
        if id(cell) in rec.cells:
            try:
                before = cell.cell_contents
            except ValueError:
                rec.refuse(f"the variable {name} outside gets its first value")
            rec.effects.undo_by(lambda: setattr(cell, "cell_contents", before))
            rec.effects.overwrites(before)
            rec.effects.written.add((id(cell), ""))
            rec.effects.record(_SET_CELL, cell, "cell_contents", value, f"{name} = ...")
        cell.cell_contents = value

    def delete_cell(self, name: str, cell: CellType) -> None:
        if id(cell) in self.rec.cells:
            self.rec.refuse(f"the variable {name} outside is deleted")
        _SIMPLE.delete_cell(name, cell)

    def import_name(self, at: Name, level: int, names: Any) -> Any:
        return self.rec.importing(at, level, names)

    def import_from(self, at: Name, module: Any) -> Any:
        try:
            return attributes.read(self.rec, module, at[1])
        except AttributeError:
            return _SIMPLE.import_from(at, module)

    # Attributes and items -------------------------------------------------------------------------------------------

    def load_attr(self, name: str, value: Any) -> Any:
        return attributes.read(self.rec, value, name)

    def load_super(self, what: tuple[str, bool], function: Any, kind: Any, value: Any) -> Any:
        name, has_arguments = what
        if function is super:
            return attributes.read(self.rec, super(kind, value), name)
        return attributes.read(self.rec, self.rec.invoke(function, (kind, value) if has_arguments else ()), name)

    def store_attr(self, name: str, value: Any, target: Any) -> None:
        attributes.write(self.rec, target, name, value)

    def delete_attr(self, name: str, target: Any) -> None:
        attributes.delete(self.rec, target, name)

    def get_item(self, value: Any, key: Any) -> Any:
        return answers.get_item(self.rec, value, key)

    def set_item(self, value: Any, target: Any, key: Any) -> None:
        answers.set_item(self.rec, target, key, value)

    def delete_item(self, target: Any, key: Any) -> None:
        answers.delete_item(self.rec, target, key)

    # Operators ------------------------------------------------------------------------------------------------------

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
        is_member = answers.contains(self.rec, container, value)
        return not is_member if inverted else is_member

    def truth(self, value: Any) -> bool:
        return operators.truth(self.rec, value)

    def length(self, value: Any) -> int:
        return answers.length(self.rec, value)

    def convert(self, how: int, value: Any) -> Any:
        return operators.text(self.rec, CONVERSIONS[how], value) if how else value

    def format(self, how: int, value: Any, spec: Any = "") -> str:
        return operators.formatted(self.rec, how, value, spec)

    def build_string(self, parts: tuple[str, ...]) -> str:
        return "".join(parts)

    # Sets, dicts and exceptions -------------------------------------------------------------------------------------

    def build_set(self, members: tuple[Any, ...]) -> set[Any]:
        result: set[Any] = set()
        for value in members:
            self.set_add(value, result)
        return result

    def build_map(self, parts: tuple[Any, ...]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(parts[::2], parts[1::2], strict=True):
            self.map_add(key, value, result)
        return result

    def set_add(self, value: Any, members: set[Any]) -> None:
        texts.look_at(self.rec, value)
        self.rec.hashed(value)
        self.rec.calls_c(set.add, (members, value)) if type(value) not in PLAIN else members.add(value)

    def map_add(self, key: Any, value: Any, table: dict[Any, Any]) -> None:
        answers.set_item(self.rec, table, key, value)

    def raised(self, problem: Any) -> Any:
        """A class that is raised is called."""
        return self.rec.invoke(problem, ()) if is_class(problem) and is_python_class(problem) else problem

    # Iteration and patterns -----------------------------------------------------------------------------------------

    def iterate(self, value: Any) -> Any:
        """What the loop goes over: items of a list from outside are read as the loop comes to them."""
        value = proxies.shown(self.rec, value)
        rec, kind = self.rec, type(value)
        texts.look_at(rec, value)
        if kind in PLAIN or (kind in DICT_VIEWS and rec.source_of(value) is None):
            return value
        if kind in (list, tuple):
            source = rec.source_of(value)
            if source is None or id(value) in rec.effects.replaced:
                return value
            if rec.effects.is_changed(value) and id(value) not in rec.effects.states:
                return containers.laid_out(rec, value)
            return containers.each(rec, value, source, kind)
        if kind is deque and rec.source_of(value) is not None:
            if rec.followed(value) is not None and len(value) <= followed.MOST:
                return followed.each(rec, value)
            return containers.laid_out(rec, value)
        return containers.keys_alone(rec, value) if kind is dict else answers.iterable(rec, value)

    def delegate(self, value: Any) -> Any:
        if type(value) in ITERATORS:
            return containers.content(self.rec, value)
        return self.iterate(value)

    def unpack(self, value: Any) -> Any:
        texts.look_at(self.rec, value)
        return value if type(value) in PLAIN else answers.iterable(self.rec, value)

    def spread(self, value: Any) -> Any:
        rec, kind = self.rec, type(value)
        if container_of(kind) in (list, tuple):
            method = rec.class_attribute(kind, "__iter__") if is_python_class(kind) else None
            if not is_users_method(kind, "__iter__", method):
                return containers.items(rec, value)
        if type(value) in DICT_VIEWS and self.rec.source_of(value) is None:
            return value
        return containers.keys_alone(rec, value) if kind is dict else self.unpack(value)

    def listed(self, value: Any) -> Any:
        kind = type(value)
        if is_python_class(kind) and (container_of(kind) is None or containers.own_method(kind, "__len__") is not None):
            return answers.with_length(self.rec, value)
        return self.spread(value)

    def starred(self, value: Any) -> Any:
        return self.listed(value) if tuple in ASK_LENGTH else self.spread(value)

    def unpack_mapping(self, value: Any) -> Any:
        rec, is_view, value = self.rec, type(value) is MappingProxyType, proxies.shown(self.rec, value)
        kind = type(value)
        if kind is dict:
            return containers.pairs(rec, value)
        if not is_python_class(kind):
            return containers.content(rec, value)
        iterates = rec.class_attribute(kind, "__iter__")
        if iterates is dict.__iter__ and not is_view:  # C code takes what such a dict holds, past its other methods
            return dict(dict.items(containers.content(rec, value)))
        methods = {name: rec.class_attribute(kind, name) for name in ("keys", "__getitem__")} | {"__iter__": iterates}
        if container_of(kind) is dict and not any(is_users_method(kind, n, m) for n, m in methods.items()):
            return dict(containers.content(rec, value))
        keys = rec.invoke(attributes.read(rec, value, "keys"), ())
        return {key: answers.get_item(rec, value, key) for key in answers.iterable(rec, keys)}

    def returned(self, value: Any) -> Any:
        """What a function gives, which C code looks at while it is called."""
        return value if self.rec.net is None else containers.looked_at(self.rec, value)

    def asynchronous(self, value: Any) -> Any:
        self.rec.refuse("asynchronous code cannot be observed")

    def load_asynchronous(self, name: str, manager: Any) -> Any:
        return self.asynchronous(manager)

    def matched(self, value: Any) -> None:
        kind = type(value)
        if is_python_class(kind):
            source = self.rec.source_of(value)
            if source is not None:
                flags = kind.__flags__ & 0x60
                self.rec.log.check(source, "type({v}).__flags__ & 0x60 != {0}", f"kind of {source}", (flags,))

    def match_keys(self, subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return match_keys(self, subject, keys)

    def match_class(self, count: int, subject: Any, kind: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
        rec = self.rec
        if is_class(kind) and container_of(kind) is not None and count:
            containers.content(rec, subject)

        def is_instance(value: Any, pattern: Any) -> bool:
            return instances.is_instance(rec, value, pattern)

        def read(value: Any, name: str) -> Any:
            item = attributes.read(rec, value, name)
            return containers.content(rec, item) if name == "__match_args__" else item

        return match_class(self, is_instance, read, count, subject, kind, names)

    # Calls ----------------------------------------------------------------------------------------------------------

    def enter(self, manager: Any) -> tuple[Any, Any]:
        rec, kind = self.rec, type(manager)
        if not is_python_class(kind):
            answer = rec.policy.context_manager(kind)
            if not answer and lookup(kind, "__enter__") is not MISSING:
                lock = "" if not kind.__name__.lower().endswith("lock") else "a lock is taken"
                rec.refuse(
                    lock or f"a 'with' block of {described(manager)} cannot be observed", "put it around the call"
                )
            return _SIMPLE.enter(manager)
        enter, leave = rec.class_attribute(kind, "__enter__"), rec.class_attribute(kind, "__exit__")
        if enter is MISSING or leave is MISSING:
            raise no_context_manager(manager)
        if not is_users_method(kind, "__enter__", enter) and not rec.policy.context_manager(kind):
            rec.refuse(f"a 'with' block of {described(manager)} cannot be observed")
        result = rec.invoke_special(enter, manager, ())

        def exit(*details: Any) -> Any:
            outcome = rec.invoke_special(leave, manager, details)
            return operators.truth(rec, outcome) if details[0] is not None else outcome

        return result, exit

    def call(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        function, args, kwargs = calls.prepared(self.rec, function, args, {})
        return to_call(function, args, kwargs)

    def call_with_names(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        *values, names = args
        first = len(values) - len(names)
        kwargs = dict(zip(names, values[first:], strict=True))
        function, args, kwargs = calls.prepared(self.rec, function, tuple(values[:first]), kwargs)
        return to_call(function, args, kwargs)

    def call_unpacked(self, args: tuple[Any, ...], function: Any) -> tuple[Any, ...]:
        values = args[0]
        if type(values) is not tuple or self.rec.source_of(values) is not None:
            values = tuple(self.starred(values))
        kwargs = dict(args[1]) if len(args) > 1 else {}
        function, values, kwargs = calls.prepared(self.rec, function, values, kwargs)
        return to_call(function, values, kwargs)


_SET_CELL: Final = changes.Setting(setattr)
