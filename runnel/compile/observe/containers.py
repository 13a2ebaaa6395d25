"""Reads of containers: an item, the length, the keys, or everything where C code looks into them.

Lists, tuples, dicts, sets and deques, exact or inherited. A container that the run has changed is read as it was before
the run where a later call will find it so, and as the run's own where it holds what the run put there.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe import followed, protocols, symbols
from runnel.compile.observe.classes import MISSING, is_python_class, lookup, mro, namespace
from runnel.compile.observe.guard import keys_of, plain_part
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import (
    CONTAINERS,
    DICT_VIEWS,
    FIXED,
    ITERATORS,
    PLAIN,
    SEQUENCES,
    SETS,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_nan,
    is_plain,
    is_users_method,
)  # fmt: skip

LARGEST: Final = 100_000  # items of a container that is read in full
_DEEPEST: Final = 50


def own_method(kind: type, name: str) -> Any:
    """A method that a class made by a class statement gives to a container; None where the container's own is used."""
    method = lookup(kind, name)
    return method if is_users_method(kind, name, method) else None


def length(rec: Recorder, value: Any) -> int:
    """The number of items of a container."""
    source = rec.source_of(value)
    base = container_of(type(value)) or type(value)
    if source is not None:
        before = rec.effects.before(value)
        size = base.__len__(before)
        if rec.effects.is_changed(value) and base in (dict, set):
            content(rec, value)  # which keys there were decides how many there are now
        else:
            _check_length(rec, source, value, base, size)
    return base.__len__(value)


def counted(rec: Recorder, value: Any) -> int:
    """The same where only the observed code gets the number: of a list that grows it may be another at later calls."""
    source, effects = rec.source_of(value), rec.effects
    if id(value) in effects.states:
        return followed.length(rec, value)
    if type(value) not in CONTAINERS or source is None or id(value) in effects.replaced:
        return length(rec, value)
    grown = effects.appended.get(id(value), 0)
    if effects.is_changed(value) and not grown:
        return length(rec, value)
    size = len(effects.before(value))
    number = rec.reach_symbolic(size, rec.log.source(source, "len({p})", f"len({source})", size))
    return number if not grown else symbols.grown(rec, number, grown)


def items(rec: Recorder, value: Any) -> Any:
    """The items of a list or tuple that the code takes apart, each with where it was found."""
    source, kind = rec.source_of(value), container_of(type(value))
    if source is None or id(value) in rec.effects.replaced:
        return value
    if id(value) in rec.effects.states:
        return followed.items(rec, value) or content(rec, value)
    if rec.effects.is_changed(value):
        return laid_out(rec, value)
    if not _varies(rec, source, kind.__len__(value)) or kind.__len__(value) > followed.MOST:
        reach_items(rec, value)
        return value
    _check_length(rec, source, value, kind, kind.__len__(value))
    parts = enumerate(kind.__iter__(value))
    return kind([symbols.reach(rec, x, index_source(rec, source, value, kind, i, x)) for i, x in parts])


def _varies(rec: Recorder, source: Source, size: int) -> bool:
    varying = rec.session.varying
    return followed.varies(rec, source) or (
        bool(varying) and any(f"{source}[{i}]" in varying for i in range(min(size, followed.MOST)))
    )


def pairs(rec: Recorder, value: dict[Any, Any]) -> dict[Any, Any]:
    """The items of a dict that goes into another one, each with where it was found."""
    source = rec.source_of(value)
    if source is None or id(value) in rec.effects.replaced:
        return value
    if not all(map(is_simple, value)):
        return content(rec, value)
    keys(rec, value, source)
    known: dict[Any, Any] = {}
    for key, item in value.items():
        is_own = (id(value), key if is_simple(key) else id(key)) in rec.effects.written
        known[key] = item if is_own else rec.reach_symbolic(item, item_source(rec, source, key, item))
    return known


def view(rec: Recorder, value: dict[Any, Any], name: str) -> Any:
    """``value.items()`` and its kin, over items with where they were found. Code that goes over the view may change the
    dict meanwhile."""
    if rec.source_of(value) is None or id(value) in rec.effects.replaced:
        return getattr(value, name)()
    if type(value) is not dict or not all(map(is_simple, value)):
        return getattr(content(rec, value), name)()
    mirror = dict(pairs(rec, value))
    rec.effects.mirrors.setdefault(id(value), []).append(mirror)
    rec.keep(mirror)
    return getattr(mirror, name)()


def content(rec: Recorder, value: Any, depth: int = 0) -> Any:
    """Everything that a value holds is read, as C code does that is given it; gives the value."""
    kind = type(value)
    if kind in PLAIN or kind in SYMBOLIC:
        return rec.concrete_number(value)
    if kind in FIXED or is_class(value):
        return value
    if kind is slice:
        for part in (value.start, value.stop, value.step):
            content(rec, part, depth + 1)
        return value
    if is_python_class(kind):
        protocols.check_absent(rec, kind)
    source = rec.source_of(value)
    if kind in DICT_VIEWS and source is None:
        for part in value:
            content(rec, part, depth + 1)
        return value
    if kind in ITERATORS:
        if source is not None:
            rec.refuse(
                f"'{source}' is an iterator made outside, which the function advances",
                "call next() outside of the compiled function and pass what it gives as an argument",
            )
        return value
    base = container_of(kind)
    if base is None:
        if source is not None and is_python_class(kind):
            _plain_part(rec, value, source)
            if lookup(kind, "__eq__") is object.__eq__:
                rec.pinned(value)  # it is compared by which object it is
        rec.policy.look_into(rec, value, source)
        return value
    if depth > _DEEPEST:
        rec.refuse(f"{described(value)} is nested more than {_DEEPEST} deep")
    if source is not None and id(value) not in rec.effects.replaced:
        _watched(rec, value, source, base)
    for item in _items(value, base):
        if type(item) not in PLAIN:
            content(rec, item, depth + 1)
        elif rec.symbols:
            rec.concrete_number(item)
    return value


def looked_at(rec: Recorder, value: Any) -> Any:
    """What code of the user's hands to C code, which looks at numbers, at arrays and into containers."""
    kind = type(value)
    is_read = container_of(kind) is not None or rec.policy.is_looked_at(kind)
    return content(rec, value) if is_read else rec.concrete_number(value)


def _plain_part(rec: Recorder, value: Any, source: Source) -> None:
    """The number or text that an object of an inherited class is to C code."""
    for base in (int, str, float, bytes, complex):
        if issubclass(type(value), base):
            part = plain_part(value, base)
            rec.log.check(
                source, "differs(plain_part({v}, {0}), {1})", f"value of {source}", (base, rec.constant(part))
            )
            return


def _items(value: Any, base: Any) -> list[Any]:
    if base is dict:
        return [*keys_of(value), *dict.values(value)]
    return [] if base is bytearray else list(base.__iter__(value))


def _watched(rec: Recorder, value: Any, source: Source, base: Any) -> None:
    """Check all that a container from outside held when the run began."""
    log, before = rec.log, rec.effects.before(value)
    for part in rec.effects.inputs.get(id(value), ()):
        rec.concrete_number(part)
    size = base.__len__(before)
    listed = "{v}" if _stays_as_it_is(rec, value) else "list({1}.__iter__({v}))"
    if size > LARGEST:
        rec.refuse(f"'{source}' holds {size} items, all of which are read", "pass what is needed as an argument")
    if base is deque:
        longest(rec, value, source)
    if base in SEQUENCES:
        items = list(base.__iter__(before))
        if base in SETS:
            require_lookup_by_value(rec, items)
        if all(map(is_plain, items)):
            known = _memo(rec, value, tuple(items))
            log.check(source, f"items_differ({listed}, {{0}})", f"items of {source}", (known, base))
            return
        _check_length(rec, source, value, base, size)
        for i, item in enumerate(items):
            rec.reach(item, index_source(rec, source, value, base, i, item))
    elif base is dict:
        keys(rec, value, source)
        view = before.items() if type(before) is OrderedDict else dict.items(before)
        for key, item in view:
            rec.reach(item, item_source(rec, source, key, item))
    elif base is bytearray:
        log.check(source, "bytes({v}) != {0}", f"items of {source}", (_memo(rec, value, bytes(before)),))
    else:
        items = list(base.__iter__(before))
        if base in SETS:
            require_lookup_by_value(rec, items)
        if all(map(is_plain, items)):
            known = _memo(rec, value, tuple(items))
            log.check(source, f"items_differ(list({listed}), {{0}})", f"content of {source}", (known, base))
        else:
            known = _memo(rec, value, tuple(map(id, items)))
            log.check(source, f"ids({listed}) != {{0}}", f"content of {source}", (known, base))
            for item in items:
                rec.keep(item)
                if rec.source_of(item) is None and type(item) not in PLAIN:
                    constants = (log.address(item),)
                    rec.reach(item, log.source(source, "by_id({p}, {0})", f"a member of {source}", item, constants))


def longest(rec: Recorder, value: Any, source: Source) -> None:
    """How many items a deque may hold decides what is left in it, and in copies of it."""
    limit = deque.maxlen.__get__(value)
    rec.log.check(source, "{0}.__get__({v}) != {1}", f"{source}.maxlen", (deque.maxlen, rec.constant(limit)))


def reach_items(rec: Recorder, value: Any) -> None:
    """All items of a container are read, and not what these hold in turn."""
    source = rec.source_of(value)
    if source is not None:
        _watched(rec, value, source, container_of(type(value)))


def laid_out(rec: Recorder, value: Any) -> Any:
    """Which objects a container holds, and in which order, is read; gives the container."""
    if container_of(type(value)) not in SEQUENCES:
        return content(rec, value)
    if id(value) not in rec.effects.replaced:
        reach_items(rec, value)
    return value


def has_room(rec: Recorder, value: Any, source: Source, added: int) -> bool:
    """Whether a deque that only grows loses no item by that. If so, later calls are asked the same."""
    limit = deque.maxlen.__get__(value) if issubclass(type(value), deque) else 0
    if limit is None:
        return True
    room = limit - rec.effects.appended.get(id(value), 0) - added
    if len(rec.effects.before(value)) > room:
        return False
    rec.log.check(source, f"{{0}}.__len__({{v}}) > {room}", f"room in {source}", (deque,))
    return True


def _memo(rec: Recorder, value: Any, constant: Any) -> Any:
    """The same constant for the same content, so that a check is made once."""
    return rec.memo.setdefault((id(value), "content"), constant)


def keys(rec: Recorder, value: Any, source: Source) -> None:
    """Check which keys a dict had when the run began, and their order."""
    names = tuple(keys_of(rec.effects.before(value)))
    require_lookup_by_value(rec, names)
    if all(map(is_plain, names)):
        rec.log.check(source, "items_differ(keys_of({v}), {0})", f"keys of {source}", (_memo(rec, value, names),))
        return
    rec.log.check(source, "ids(keys_of({v})) != {0}", f"keys of {source}", (_memo(rec, value, tuple(map(id, names))),))
    at = rec.log.source(source, "keys_of({p})", f"keys of {source}", names)
    for i, name in enumerate(names):
        rec.keep(name)
        if rec.source_of(name) is None and rec.classes_in((name,)):  # whose methods may run when keys are compared
            rec.reach(name, rec.log.source(at, f"{{p}}[{i}]", f"key {i} of {source}", name))


def index_source(rec: Recorder, source: Source, value: Any, base: Any, i: int, item: Any) -> Source:
    """The source of an item of a sequence."""
    label = f"{source}[{i}]"
    if _stays_as_it_is(rec, value):
        return rec.log.source(source, f"{{p}}[{i}]", label, item)
    return rec.log.source(source, f"{{0}}.__getitem__({{p}}, {i})", label, item, (base,))


def _stays_as_it_is(rec: Recorder, value: Any) -> bool:
    """Whether a guard may use a container as such: its class will have no methods of its own, which must not run there
    (``__missing__`` neither)."""
    kind = type(value)
    return kind in (*SEQUENCES, *SETS, dict, OrderedDict) or rec.policy.is_transparent(kind)


def _check_length(rec: Recorder, source: Source, value: Any, base: Any, size: int) -> None:
    if _stays_as_it_is(rec, value):
        rec.log.check(source, f"len({{v}}) != {size}", f"len({source})", (rec.constant(size),))
    else:
        rec.log.check(source, f"{{0}}.__len__({{v}}) != {size}", f"len({source})", (base,))


def item_source(rec: Recorder, source: Source, key: Any, item: Any) -> Source:
    """The source of what a dict holds under a key, which must not run Python code when it is hashed."""
    if type(key) in (str, int):
        is_plain_dict = _stays_as_it_is(rec, source.value)
        way, constants = ("{p}[%r]", ()) if is_plain_dict else ("{0}.__getitem__({p}, %r)", (dict,))
        at = rec.log.source(source, way % key, f"{source}[{key!r}]", item, constants)
        if source.place is not None and rec.policy.changes_by_version(item):
            at.place = id(source.value), key
        return at
    if is_simple(key):
        return rec.log.source(source, "{1}.__getitem__({p}, {0})", f"{source}[{described(key)}]", item, (key, dict))
    if type(key) is tuple or type(key) is FunctionType or is_python_class(type(key)):
        label = f"{source}[{described(key)}]"
        return rec.log.source(source, "by_key({p}, {0})", label, item, (rec.log.address(key),))
    rec.refuse(f"'{source}' has {described(key)} as a key")


# Items ----------------------------------------------------------------------------------------------------------------


def get_item(rec: Recorder, value: Any, key: Any) -> Any:
    """``value[key]`` of a container that uses its own ``__getitem__``."""
    base = container_of(type(value))
    source = rec.source_of(value)
    if source is None or base in (set, frozenset):
        content(rec, value) if source is not None else None
        return _plain_item(rec, value, key)
    if base is dict:
        return _dict_item(rec, value, key, source)
    if type(key) is not int and type(key) is not bool:
        content(rec, value)
        return _plain_item(rec, value, key)
    return _sequence_item(rec, value, key, source, base)


def _plain_item(rec: Recorder, value: Any, key: Any) -> Any:
    if type(key) not in PLAIN:
        content(rec, key)
    if is_simple(key):
        return _own(value, "__getitem__")(value, key)
    return rec.calls_c(_own(value, "__getitem__"), (value, key))


def _own(value: Any, name: str) -> Any:
    """The method that the container itself has, below what a class statement gave it."""
    for base in mro(type(value)):
        if not is_python_class(base) and name in namespace(base):
            return namespace(base)[name]
    raise TypeError(f"'{type(value).__name__}' object is not subscriptable")


def has_key(rec: Recorder, value: dict[Any, Any], key: Any, source: Source | None) -> bool:
    """``key in value``, checked for a dict from outside."""
    require_lookup_by_value(rec, (key,))
    if source is not None and not is_simple(key) and rec.policy.is_pinned_key(rec, key):
        if id(value) not in rec.effects.replaced and (id(value), id(key)) not in rec.effects.written:
            there = "not " if dict.__contains__(rec.effects.before(value), key) else ""
            constants = (rec.log.address(key),)
            rec.log.check(source, f"{{0}} {there}in ids(keys_of({{v}}))", f"{described(key)} in {source}", constants)
        return dict.__contains__(value, key)
    if not is_simple(key):
        rec.hashed(key)
        return rec.calls_c(_own(value, "__contains__"), (value, key))
    if source is None:
        return dict.__contains__(value, key)
    effects = rec.effects
    if id(value) not in effects.replaced and (id(value), key) not in effects.written:
        before = dict.__contains__(effects.before(value), key)
        if _stays_as_it_is(rec, value):
            fails = "{0} not in {v}" if before else "{0} in {v}"
        else:
            fails = f"{'not ' if before else ''}{{1}}.__contains__({{v}}, {{0}})"
        rec.log.check(source, fails, f"{described(key)} in {source}", (key, dict))
    return dict.__contains__(value, key)


def require_lookup_by_value(rec: Recorder, values: Iterable[Any]) -> None:
    """A container looks for these values, and later calls must find equal ones."""
    if any(map(is_nan, values)):
        rec.refuse("a container is asked for a NaN, which it finds by which object it is", "use math.isnan()")


def keys_alone(rec: Recorder, value: dict[Any, Any]) -> dict[Any, Any]:
    """A dict that somebody goes over, who gets its keys and not what it holds."""
    source = rec.source_of(value)
    if source is None or id(value) in rec.effects.replaced or not all(map(is_simple, value)):
        return content(rec, value)
    keys(rec, value, source)
    return value


def is_simple(key: Any) -> bool:
    """Whether looking for a key runs no Python code and hangs on no object's address."""
    return is_plain(key) or is_class(key) or type(key) in FIXED or (type(key) is tuple and all(map(is_plain, key)))


def _dict_item(rec: Recorder, value: dict[Any, Any], key: Any, source: Source) -> Any:
    if not is_simple(key) and rec.policy.is_pinned_key(rec, key):
        effects = rec.effects
        own = id(value) in effects.replaced or (id(value), id(key)) in effects.written
        item = dict.get(value, key, MISSING)
        if own or item is MISSING:
            has_key(rec, value, key, source)
            return value[key]
        return rec.reach_symbolic(item, item_source(rec, source, key, item))
    if not is_simple(key):
        rec.hashed(key)
        return rec.calls_c(_own(value, "__getitem__"), (value, key))
    effects = rec.effects
    is_own = id(value) in effects.replaced or (id(value), key) in effects.written
    item = dict.get(value, key, MISSING)
    if is_own or item is MISSING:
        if not is_own:
            has_key(rec, value, key, source)
        return _own(value, "__getitem__")(value, key) if item is MISSING else item
    return rec.reach_symbolic(item, item_source(rec, source, key, item))


def _sequence_item(rec: Recorder, value: Any, key: int, source: Source, base: Any) -> Any:
    effects = rec.effects
    before = effects.before(value)
    size = base.__len__(before)
    if id(value) in effects.replaced:
        return base.__getitem__(value, key)
    if id(value) in effects.states:
        item = followed.item(rec, value, key)
        if item is not None:
            return item[0]
    set_by_run = effects.items_set.get(id(value))
    if set_by_run is not None:
        if not -size <= key < size or key % size in set_by_run:
            return base.__getitem__(value, key)
    elif effects.is_changed(value):
        grown = effects.appended.get(id(value))
        if grown is None:
            return base.__getitem__(laid_out(rec, value), key)
        if -grown <= key < 0:
            return base.__getitem__(value, key)
        if -size <= key + grown < 0:  # counted from the end, wherever that is
            item = base.__getitem__(before, key + grown)
            return rec.reach_symbolic(item, index_source(rec, source, value, base, int(key + grown), item))
        if not 0 <= key < size:  # what has been appended, or nothing
            _check_length(rec, source, value, base, size)
            return base.__getitem__(value, key)
    elif not -size <= key < size:
        _check_length(rec, source, value, base, size)
        return base.__getitem__(value, key)
    item = base.__getitem__(before, key)
    return rec.reach_symbolic(item, index_source(rec, source, value, base, int(key), item))


def each(rec: Recorder, value: Any, source: Source, base: Any) -> Iterator[Any]:
    """The items of a list or tuple from outside, one by one, so that what is not reached is not read."""
    i = 0
    while i < base.__len__(value):
        yield get_item(rec, value, i)
        i += 1
    if id(value) in rec.effects.states:
        rec.concrete_number(followed.length(rec, value))
    elif not rec.effects.is_changed(value):
        rec.log.check(source, f"len({{v}}) != {i}", f"len({source})")


def is_member(rec: Recorder, value: Any, key: Any) -> bool:
    """``key in value`` of a container that uses its own ``__contains__``."""
    base = container_of(type(value))
    source = rec.source_of(value)
    if base is dict:
        return has_key(rec, value, key, source)
    require_lookup_by_value(rec, (key,))
    content(rec, key)
    if base in (set, frozenset) and source is not None and is_plain(key) and not rec.effects.is_changed(value):
        is_in = base.__contains__(value, key)
        fails = f"{'not ' if is_in else ''}{{1}}.__contains__({{v}}, {{0}})"
        rec.log.check(source, fails, f"{described(key)} in {source}", (key, base))
        return is_in
    content(rec, value)
    return rec.calls_c(base.__contains__, (value, key))
