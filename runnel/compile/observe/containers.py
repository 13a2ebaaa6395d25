"""Reads and changes of containers: an item, the length, the keys, or everything where C code looks into them.

A container from outside is read item by item, so that only what the run needs is checked. One that the run has changed
is read as it was before the run where later calls will find it so, and as the run's own where it holds values of the
run.
"""

from __future__ import annotations

import contextlib
import enum
from collections import OrderedDict, deque
from collections.abc import Iterator
from types import FunctionType
from typing import Any, Final

from runnel.compile.observe import numbers
from runnel.compile.observe.effects import DELETE_ITEM, SET_ITEM, CallingMethod, Deleting, Setting
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source, is_immortal
from runnel.compile.observe.values import (
    C_FUNCTIONS,
    CONTAINERS,
    DICT_VIEWS,
    FIXED,
    ITERATORS,
    MISSING,
    PLAIN,
    SEQUENCES,
    SETS,
    SYMBOLIC,
    container_of,
    described,
    is_class,
    is_nan,
    is_plain,
    is_python_class,
    is_simple,
    items_of,
    keys_of,
    mro,
    namespace,
)

LARGEST: Final = 100_000  # items of a container that is read in full
_DEEPEST: Final = 50
_OUTSIDE: Final = "pass what is needed of it as an argument"


# Everything -----------------------------------------------------------------------------------------------------------


def content(rec: Recorder, value: Any, depth: int = 0) -> Any:
    """Read a value in full, because C code is given it, and return it.

    C code gets only plain values, tensors and exact containers of these, so it never runs Python code that nobody
    observes. Everything else is refused.
    """
    kind = type(value)
    if kind in PLAIN or kind in SYMBOLIC:
        return rec.concrete_number(value)
    if kind in FIXED or is_class(value) or (kind in C_FUNCTIONS and is_immortal(value)):
        return value
    if kind is FunctionType:  # compared by identity
        rec.pinned(value)
        return value
    if kind is slice:
        return slice(*[content(rec, part, depth + 1) for part in (value.start, value.stop, value.step)])
    source = rec.source_of(value)
    if kind in CONTAINERS or kind is OrderedDict or (kind in DICT_VIEWS and source is None):
        if depth > _DEEPEST:
            rec.refuse(f"{described(value)} is nested more than {_DEEPEST} deep")
        reach_items(rec, value)
        return _looked_through(rec, value, kind, depth)
    if kind in ITERATORS:
        if source is not None:
            rec.refuse(
                f"'{source}' is an iterator made outside, which the function advances",
                "call next() outside the compiled function and pass what it returns as an argument",
            )
        return value
    rec.policy.look_into(rec, value, source)
    return value


def _looked_through(rec: Recorder, value: Any, kind: Any, depth: int) -> Any:
    """Read what a container holds. Symbols of a container that the run made are replaced in a copy."""
    if issubclass(kind, dict):
        parts = {content(rec, key, depth + 1): content(rec, item, depth + 1) for key, item in value.items()}
        same = all(a is b for a, b in zip(parts.values(), value.values(), strict=True))
        return value if same or kind is not dict else parts
    known = list(value)
    items = [content(rec, item, depth + 1) for item in known]
    if kind in SETS or kind in DICT_VIEWS or all(a is b for a, b in zip(items, known, strict=True)):
        return value
    return deque(items, value.maxlen) if kind is deque else kind(items)


def reach_items(rec: Recorder, value: Any) -> None:
    """Check everything that a container from outside held when the run began, without looking into its items."""
    rec.require_inherited(value)
    source = rec.source_of(value)
    if source is None or id(value) in rec.effects.replaced:
        return
    base, before = container_of(type(value)), rec.effects.before(value)
    size = base.__len__(before)
    if size > LARGEST:
        rec.refuse(f"'{source}' holds {size} items, all of which are read", _OUTSIDE)
    if base is deque:
        longest(rec, value, source)
    if base is dict:
        keys(rec, value, source)
        for key, item in items_of(before):
            rec.reach(item, item_source(rec, source, key, item))
        return
    items = list(base.__iter__(before))
    listed = "{v}" if _is_exact(rec, value) else "list({1}.__iter__({v}))"
    if base in SETS:
        listed = f"list({listed})"
        if any(map(is_nan, items)):
            _refuse_nan(rec)
    if all(map(is_plain, items)):
        known = rec.memo.setdefault((id(value), "content"), tuple(items))
        rec.log.check(source, f"items_differ({listed}, {{0}})", f"items of {source}", (known, base))
    elif base in SEQUENCES:
        check_length(rec, source, value, base, size)
        for i, item in enumerate(items):
            rec.reach(item, index_source(rec, source, value, base, i, item))
    else:
        known = rec.memo.setdefault((id(value), "content"), tuple(map(id, items)))
        rec.log.check(source, f"ids({listed}) != {{0}}", f"content of {source}", (known, base))
        at = rec.log.source(source, "list({0}.__iter__({p}))", f"members of {source}", MISSING, (base,))
        for i, item in enumerate(items):
            if type(item) not in PLAIN:
                rec.reach(item, rec.log.source(at, f"{{p}}[{i}]", f"member {i} of {source}", item))
                rec.pinned(item)


def laid_out(rec: Recorder, value: Any) -> Any:
    """Read which objects a container holds, in order, and return the container."""
    reach_items(rec, value)
    return value


def longest(rec: Recorder, value: Any, source: Source) -> None:
    """Read how many items a deque may hold."""
    limit = deque.maxlen.__get__(value)
    rec.log.check(source, "{0}.__get__({v}) != {1}", f"{source}.maxlen", (deque.maxlen, rec.constant(limit)))


def _is_exact(rec: Recorder, value: Any) -> bool:
    """Return whether a guard may use a container as such: its class has no methods that would run."""
    kind = type(value)
    return kind in CONTAINERS or kind is OrderedDict or rec.policy.is_transparent(kind)


def _refuse_nan(rec: Recorder) -> None:
    rec.refuse("a container is asked for a NaN, which it finds by identity", "use math.isnan()")


# Sources of parts -----------------------------------------------------------------------------------------------------


def check_length(rec: Recorder, source: Source, value: Any, base: Any, size: int) -> None:
    """Check the length of a container."""
    if _is_exact(rec, value):
        rec.log.check(source, f"len({{v}}) != {size}", f"len({source})", (rec.constant(size),))
    else:
        rec.log.check(source, f"{{0}}.__len__({{v}}) != {size}", f"len({source})", (base,))


def index_source(rec: Recorder, source: Source, value: Any, base: Any, i: int, item: Any) -> Source:
    """Return the source of an item of a sequence."""
    label = f"{source}[{i}]"
    if _is_exact(rec, value):
        return rec.log.source(source, f"{{p}}[{i}]", label, item)
    return rec.log.source(source, f"{{0}}.__getitem__({{p}}, {i})", label, item, (base,))


def item_source(rec: Recorder, source: Source, key: Any, item: Any) -> Source:
    """Return the source of what a dict holds under a key."""
    label = f"{source}[{described(key)}]"
    if type(key) in (str, int):
        way, constants = ("{p}[%r]", ()) if _is_exact(rec, source.value) else ("{0}.__getitem__({p}, %r)", (dict,))
        at = rec.log.source(source, way % key, label, item, constants)
        if source.place is not None and rec.policy.changes_by_version(item):
            at.place = id(source.value), key
        return at
    if is_simple(key):
        return rec.log.source(source, "{1}.__getitem__({p}, {0})", label, item, (key, dict))
    key_at = rec.source_of(key)
    if key_at is None:
        rec.refuse_value(key, f"the dict '{source}'")
    return rec.log.computed("{0}.__getitem__({a0}, {a1})", (source, key_at), label, (dict,))


def keys(rec: Recorder, value: Any, source: Source) -> None:
    """Check which keys a dict had when the run began, and their order."""
    names = tuple(keys_of(rec.effects.before(value)))
    if any(map(is_nan, names)):
        _refuse_nan(rec)
    if all(map(is_plain, names)):
        known = rec.memo.setdefault((id(value), "content"), names)
        rec.log.check(source, "items_differ(keys_of({v}), {0})", f"keys of {source}", (known,))
        return
    known = rec.memo.setdefault((id(value), "content"), tuple(map(id, names)))
    rec.log.check(source, "len({v}) != len({0})", f"len({source})", (known,))
    at = rec.log.source(source, "keys_of({p})", f"keys of {source}", names)
    for i, name in enumerate(names):
        label = f"key {i} of {source}"
        found = rec.log.source(at, f"{{p}}[{i}]", label, name)
        if is_plain(name):
            rec.is_plain(name, found)
            continue
        rec.reach(name, found)
        if type(name) in (tuple, frozenset):
            content(rec, name)
        elif not is_class(name):
            rec.pinned(name)


def c_method(rec: Recorder, value: Any, base: Any, name: str) -> Any:
    """Return the method that a container has from C code, below the methods of Python classes."""
    for kind in mro(type(value)):
        if (not is_python_class(kind) or rec.policy.is_transparent(kind)) and name in namespace(kind):
            return namespace(kind)[name]
    return getattr(base, name)


# Reading --------------------------------------------------------------------------------------------------------------


def length(rec: Recorder, value: Any) -> Any:
    """Return the number of items. Of a list that grows it may differ at later calls."""
    source, base = rec.source_of(value), container_of(type(value))
    effects = rec.effects
    if source is None or id(value) in effects.replaced:
        return base.__len__(value)
    grown = effects.appended.get(id(value), 0)
    if effects.is_changed(value) and not grown:
        reach_items(rec, value)
        return base.__len__(value)
    size = base.__len__(effects.before(value))
    at = rec.log.source(source, "{0}.__len__({p})", f"len({source})", size, (base,))
    if not rec.policy.is_symbolic(rec, int, at):
        check_length(rec, source, value, base, size)
        return size + grown
    number = numbers.begin(rec, size, at)
    return numbers.binary(rec, "+", number, grown, size + grown) if grown else number


def get_item(rec: Recorder, value: Any, key: Any) -> Any:
    """Return ``value[key]`` of a container that uses the ``__getitem__`` of C code."""
    base, source = container_of(type(value)), rec.source_of(value)
    if base is dict:
        return _dict_item(rec, value, _key(rec, key), source)
    key = content(rec, key)
    if source is None:
        return c_method(rec, value, base, "__getitem__")(value, key)
    if type(key) is slice:
        return _slice(rec, value, key, source, base)
    if type(key) not in (int, bool):
        return base.__getitem__(laid_out(rec, value), key)
    return _sequence_item(rec, value, int(key), source, base)


def _slice(rec: Recorder, value: Any, key: slice, source: Source, base: Any) -> Any:
    """Return a slice. The last items of a list that grows are read from its end."""
    effects, first = rec.effects, key.start
    grown = effects.appended.get(id(value), 0)
    is_end = base is list and type(first) is int and first < 0 and key.stop is None and key.step is None
    if not is_end or -first > len(value) or (effects.is_changed(value) and not grown) or id(value) in effects.replaced:
        return base.__getitem__(laid_out(rec, value), key)
    if -first > grown:
        rec.log.check(source, f"{{0}}.__len__({{v}}) < {-first - grown}", f"len({source})", (base,))
    return [_sequence_item(rec, value, i, source, base) for i in range(first, 0)]


def _sequence_item(rec: Recorder, value: Any, key: int, source: Source, base: Any) -> Any:
    effects = rec.effects
    before = effects.before(value)
    size = base.__len__(before)
    if id(value) in effects.replaced:
        return base.__getitem__(value, key)
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
            return rec.reach_symbolic(item, index_source(rec, source, value, base, key + grown, item))
        if not 0 <= key < size:  # an appended item, or none
            check_length(rec, source, value, base, size)
            return base.__getitem__(value, key)
    elif not -size <= key < size:
        check_length(rec, source, value, base, size)
        return base.__getitem__(value, key)
    item = base.__getitem__(before, key)
    return rec.reach_symbolic(item, index_source(rec, source, value, base, key, item))


def _key(rec: Recorder, key: Any) -> Any:
    """Return a key as C code may hash and compare it."""
    key = rec.concrete_number(key)
    if type(key) is frozenset:
        key = content(rec, key)
    if type(key) is tuple:
        key = tuple([_key(rec, x) for x in key]) if not all(map(is_plain, key)) else key
    if is_nan(key):
        _refuse_nan(rec)
    if issubclass(type(key), enum.Enum):
        rec.pinned(key)
    if not _is_key(rec, key):
        rec.refuse_value(key, "a dict or set")
    return key


def _is_key(rec: Recorder, key: Any) -> bool:
    if is_simple(key):
        return True
    return all(_is_key(rec, x) for x in key) if type(key) is tuple else rec.policy.pinned_key(rec, key)


def _place(value: Any, key: Any) -> tuple[int, Any]:
    return id(value), key if is_simple(key) else id(key)


def _dict_item(rec: Recorder, value: dict[Any, Any], key: Any, source: Source | None) -> Any:
    item = dict.get(value, key, MISSING)
    effects = rec.effects
    if source is None or id(value) in effects.replaced or _place(value, key) in effects.written:
        if item is not MISSING:
            return item
    elif item is not MISSING:
        return rec.reach_symbolic(item, item_source(rec, source, key, item))
    has_key(rec, value, key)
    return c_method(rec, value, dict, "__getitem__")(value, key)  # raises, or makes a default


def has_key(rec: Recorder, value: dict[Any, Any], key: Any) -> bool:
    """Return ``key in value`` of a dict."""
    key, source, effects = _key(rec, key), rec.source_of(value), rec.effects
    is_in = dict.__contains__(value, key)
    if source is None or id(value) in effects.replaced or _place(value, key) in effects.written:
        return is_in
    was_in = dict.__contains__(effects.before(value), key)
    if is_simple(key):
        way = "{0} in {v}" if _is_exact(rec, value) else "{1}.__contains__({v}, {0})"
        rec.log.check(source, f"not {way}" if was_in else way, f"{described(key)} in {source}", (key, dict))
    else:
        at = rec.source_of(key)
        if at is not None:
            fails = f"{'not ' if was_in else ''}{{0}}.__contains__({{s0}}, {{s1}})"
            rec.log.check(None, fails, f"{at} in {source}", (dict,), (source, at))
    return is_in


def is_member(rec: Recorder, value: Any, key: Any) -> bool:
    """Return ``key in value`` of a container that uses the ``__contains__`` of C code."""
    base, source = container_of(type(value)), rec.source_of(value)
    if base is dict:
        return has_key(rec, value, key)
    if base in SETS:
        key = _key(rec, key)
        if source is not None and is_plain(key) and not rec.effects.is_changed(value):
            is_in = base.__contains__(value, key)
            fails = f"{'not ' if is_in else ''}{{1}}.__contains__({{v}}, {{0}})"
            rec.log.check(source, fails, f"{described(key)} in {source}", (key, base))
            return bool(is_in)
        return bool(base.__contains__(laid_out(rec, value), key))
    if any(map(is_nan, (key, *base.__iter__(value)))):
        _refuse_nan(rec)
    for item in each(rec, value):
        is_same = item is key if type(item) not in PLAIN and type(item) not in SYMBOLIC else False
        if is_same or rec.hooks.truth(rec.hooks.compare(("==", False), item, key)):
            return True
    return False


def each(rec: Recorder, value: Any) -> Iterator[Any]:
    """Iterate over a sequence, so that items that are not reached are not read."""
    base = container_of(type(value))
    return _each(rec, value, base, deque.__iter__(value) if base is deque else None)


def _each(rec: Recorder, value: Any, base: Any, watch: Iterator[Any] | None) -> Iterator[Any]:
    """Yield the items. ``watch`` is an iterator over a deque, which raises when the deque changes."""
    i = 0
    while i < base.__len__(value) if watch is None else next(watch, MISSING) is not MISSING:
        yield get_item(rec, value, i)
        i += 1
    if rec.source_of(value) is not None:
        rec.concrete_number(length(rec, value))


def iterated(rec: Recorder, value: Any) -> Any:
    """Return what to iterate over in place of an exact container."""
    rec.require_inherited(value)
    source, kind = rec.source_of(value), type(value)
    if source is None or id(value) in rec.effects.replaced:
        return value
    base = container_of(kind)
    if base is dict:
        keys(rec, value, source)
        return value
    if base in SEQUENCES and (not rec.effects.is_changed(value) or id(value) in rec.effects.items_set):
        return each(rec, value)
    return laid_out(rec, value)


def items(rec: Recorder, value: Any) -> Any:
    """Return the items of a list or tuple that is taken apart or copied, with symbols among them."""
    rec.require_inherited(value)
    base = container_of(type(value))
    return list(each(rec, value)) if base is not tuple else tuple(each(rec, value))


def pairs(rec: Recorder, value: Any) -> Any:
    """Return a dict with the items of one that goes into another, with symbols among them."""
    rec.require_inherited(value)
    source = rec.source_of(value)
    if source is None or id(value) in rec.effects.replaced:
        return value
    keys(rec, value, source)
    known: dict[Any, Any] = {}
    for key, item in items_of(value):
        is_own = _place(value, key) in rec.effects.written
        known[key] = item if is_own else rec.reach_symbolic(item, item_source(rec, source, key, item))
    return known


def view(rec: Recorder, value: Any, name: str) -> Any:
    """Return ``value.keys()``, ``values()`` or ``items()`` with symbols among the items. The run may change the dict
    while it iterates over the view."""
    if rec.source_of(value) is None or id(value) in rec.effects.replaced:
        return c_method(rec, value, dict, name)(value)
    if name == "keys":
        keys(rec, value, rec.sources[id(value)])
        mirror = dict.fromkeys(keys_of(value))
    else:
        mirror = dict(pairs(rec, value))
    rec.effects.mirrors.setdefault(id(value), []).append(mirror)
    rec.keep(mirror)
    return getattr(mirror, name)()


# Changing -------------------------------------------------------------------------------------------------------------


def set_key(rec: Recorder, value: Any, key: Any, item: Any) -> None:
    """Do ``value[key] = item`` of a dict."""
    key, store = _key(rec, key), c_method(rec, value, dict, "__setitem__")
    source = rec.source_of(value)
    if source is None:
        store(value, key, item)
        return
    if not is_simple(key) and rec.source_of(key) is None:
        rec.refuse(f"{described(key)} made in the function becomes a key of '{source}'", "make it outside")
    rec.effects.will_change(value, dict)
    store(value, key, item)
    rec.effects.written.add(_place(value, key))
    rec.keep(key)
    rec.effects.mirror(value, key)
    rec.effects.record(Setting(store), value, key, item, f"{source}[...] = ...")


def delete_key(rec: Recorder, value: Any, key: Any) -> None:
    """Do ``del value[key]`` of a dict."""
    key = _key(rec, key)
    has_key(rec, value, key)
    drop, source = c_method(rec, value, dict, "__delitem__"), rec.source_of(value)
    if source is None:
        drop(value, key)
        return
    rec.effects.will_change(value, dict)
    drop(value, key)
    rec.effects.written.add(_place(value, key))
    rec.effects.mirror(value)
    rec.effects.record(Deleting(drop), value, key, None, f"del {source}[...]")


def change_item(rec: Recorder, target: Any, key: Any, value: Any, deletes: bool = False) -> None:
    """Do ``target[key] = value`` or ``del target[key]`` of a list or deque."""
    base, source, effects = container_of(type(target)), rec.source_of(target), rec.effects
    change = DELETE_ITEM if deletes else SET_ITEM
    key = content(rec, key)
    if type(key) is slice and not deletes:
        value = list(rec.hooks.iterate(value))
    if base not in (list, deque) or source is None:
        change(target, key, value)
        return
    size = base.__len__(target)
    stays = not effects.is_changed(target) or id(target) in effects.items_set
    if type(key) is int and stays and -size <= key < size and not deletes:
        check_length(rec, source, target, base, size)
        effects.will_set_item(target, base, key % size)
    else:
        laid_out(rec, target)
        effects.will_change(target, base)
    effects.appended.pop(id(target), None)
    change(target, key, value)
    effects.record(change, target, key, value, f"{source}[...] = ...")


def grow(rec: Recorder, value: Any, name: str, added: list[Any]) -> None:
    """Do ``append``, ``appendleft``, ``extend`` or ``extendleft`` without reading the other items."""
    base, source, effects = container_of(type(value)), rec.source_of(value), rec.effects
    method = c_method(rec, value, base, name)
    args = [added] if name.startswith("extend") else added
    if source is None:
        method(value, *args)
        return
    was_changed = effects.is_changed(value)
    effects.will_change(value, base)
    if base is list and (not was_changed or id(value) in effects.appended):
        effects.appended[id(value)] = effects.appended.get(id(value), 0) + len(added)
    else:
        effects.appended.pop(id(value), None)
    method(value, *args)
    effects.record(CallingMethod(method), value, None, (args, {}), f"{source}.{name}(...)")


def take(rec: Recorder, value: Any, name: str, *index: Any) -> Any:
    """Do ``pop`` or ``popleft`` of a list or deque, which reads one item."""
    base, source, effects = container_of(type(value)), rec.source_of(value), rec.effects
    index = tuple([content(rec, i) for i in index])
    if source is None or not base.__len__(value) or effects.is_changed(value) or not all(type(i) is int for i in index):
        return change(rec, value, name, index)
    item = get_item(rec, value, index[0] if index else 0 if name == "popleft" else -1)
    if base is deque or index:
        at = rec.log.source(source, "{0}.__len__({p})", f"len({source})", MISSING, (base,))
        rec.log.check(at, "not {v}", f"len({source})")
    effects.will_change(value, base)
    method = c_method(rec, value, base, name)
    method(value, *index)
    effects.record(CallingMethod(method), value, None, (list(index), {}), f"{source}.{name}()")
    return item


def change(rec: Recorder, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call any other method that changes a container. All that it holds is read."""
    base, source, effects = container_of(type(value)), rec.source_of(value), rec.effects
    method = c_method(rec, value, base, name)
    if base in SETS:
        args = tuple([_key(rec, x) if name in ("add", "discard", "remove") else x for x in args])
    if source is None:
        return method(value, *args, **(kwargs or {}))
    by_key = name in ("add", "discard") and all(map(is_plain, args))
    if name == "clear":
        effects.will_change(value, base)
        effects.replaced.add(id(value))
    else:
        if not by_key:
            laid_out(rec, value)
        effects.will_change(value, base)
        effects.appended.pop(id(value), None)
    try:
        result = method(value, *args, **(kwargs or {}))
    except Exception:
        with contextlib.suppress(NotImplementedError):
            laid_out(rec, value)
        raise
    if base is dict:
        effects.mirror(value)
    if base is set and name == "pop":  # which member it takes depends on the history of the set
        method, args = set.discard, (result,)
    effects.record(CallingMethod(method), value, None, (list(args), dict(kwargs or {})), f"{source}.{name}(...)")
    return result


def sort(rec: Recorder, value: Any, order: list[Any]) -> None:
    """Put the items of a list into another order; later calls do it again without comparing."""
    source = rec.source_of(value)
    if source is not None:
        rec.effects.will_change(value, list)
        rec.effects.appended.pop(id(value), None)
    list.__setitem__(value, slice(None), order)
    if source is not None:
        change_all = Setting(list.__setitem__)
        rec.effects.record(change_all, value, slice(None), list(order), f"{source}.sort()")
