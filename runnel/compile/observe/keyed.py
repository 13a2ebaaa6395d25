"""Items stored under keys that may be others at each call, as counters are: ``table[n] = x``, ``rows[n % 8] = x`` and
``seen.add(n)``.

The key is part of the change and is not looked at, as long as the run does not read the container afterwards. What it
would read there depends on the key, so that a later look for where the container was found checks the key first.
"""

from __future__ import annotations

import operator
from types import BuiltinFunctionType
from typing import Any

from runnel.compile.observe import changes, followed, symbols
from runnel.compile.observe.containers import is_simple
from runnel.compile.observe.expressions import Expression, NotWritten
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import SYMBOLIC, is_plain


def stored(rec: Recorder, target: Any, key: Any, value: Any) -> bool:
    """``target[key] = value`` of a dict or list from outside; False where the key is to be looked at."""
    source, bare = rec.sources.get(id(target)), symbols.bare(key)
    if source is None:
        return False
    if type(target) is list:
        return _stored_in_list(rec, target, source, key, bare, value)
    is_attribute = type(bare) is str  # perhaps of an object or module that has this dict
    if type(target) is not dict or is_attribute or id(target) in rec.effects.mirrors:
        return False
    if not is_simple(bare) or not all(map(is_simple, target)):
        return False
    rec.effects.will_change(target, dict)
    target[bare] = value
    rec.effects.written.add((id(target), bare))
    _open(rec, target, key)
    rec.effects.record(changes.SET_ITEM, target, key, value, f"{source}[...] = ...")
    return True


def _stored_in_list(rec: Recorder, target: list[Any], source: Source, key: Any, bare: Any, value: Any) -> bool:
    if followed.changed(rec, target, operator.setitem, (key, value)) is not None:
        return True
    effects, size = rec.effects, len(target)
    is_as_it_was = not effects.is_changed(target) or id(target) in effects.items_set
    if type(bare) is not int or not -size <= bare < size or not is_as_it_was:
        return False
    place = rec.symbols[id(key)]
    rec.log.check(source, "not -len({s0}) <= {s1} < len({s0})", f"whether {place} is in {source}", (), (source, place))
    effects.will_set_item(target, list, bare % size)
    target[bare] = value
    _open(rec, target, key)
    effects.record(changes.SET_ITEM, target, key, value, f"{source}[...] = ...")
    return True


def added(rec: Recorder, function: Any, args: tuple[Any, ...]) -> bool:
    """``members.add(key)`` or ``discard(key)`` of a set from outside; False where the key is to be looked at."""
    if type(function) is not BuiltinFunctionType or function.__name__ not in ("add", "discard"):
        return False
    target = function.__self__
    if type(target) is not set or len(args) != 1 or type(args[0]) not in SYMBOLIC:
        return False
    source = rec.sources.get(id(target))
    if source is None:
        return False
    rec.effects.will_change(target, set)
    function(symbols.bare(args[0]))
    _open(rec, target, args[0])
    method = changes.CallingMethod(getattr(set, function.__name__))
    rec.effects.record(method, target, None, (list(args), {}), f"{source}.{function.__name__}(...)")
    return True


def varies(key: Any) -> bool:
    """Whether a key, or a part of it, may be another one at later calls."""
    return type(key) in SYMBOLIC or (type(key) is tuple and any(type(part) in SYMBOLIC for part in key))


def _open(rec: Recorder, target: Any, key: Any) -> None:
    rec.effects.open_keys.setdefault(id(target), []).extend(key if type(key) is tuple else (key,))


def got(rec: Recorder, function: Any, args: tuple[Any, ...]) -> Any:
    """``table.get(key)`` and ``table.get(key, default)`` in a tuple; None where the key is to be looked at."""
    if type(function) is not BuiltinFunctionType or function.__name__ != "get" or len(args) not in (1, 2):
        return None
    table, default = function.__self__, args[1] if len(args) == 2 else None
    if type(table) is not dict or type(args[0]) not in SYMBOLIC or not all(map(is_plain, table)):
        return None
    if symbols.bare(args[0]) in table:
        return followed.item_at(rec, table, args[0])
    expression = Expression(rec)
    try:
        text = f"{expression.of(args[0])} in {followed.written(rec, table, expression)}"
    except NotWritten:
        return None
    label = f"{rec.symbols[id(args[0])]} in {rec.sources.get(id(table), 'a dict')}"
    rec.is_plain(False, rec.log.computed(text, tuple(expression.operands), label, tuple(expression.constants)))
    return (default,)
