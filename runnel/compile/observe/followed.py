"""Lists and deques of numbers and texts, and bytearrays, that change from call to call: what they hold is an expression
of the guard.

A change is made to a copy when the guard is evaluated, so that what the run reads behind it is what each call finds.
Such a container counts as one that varies once a check of all its items has ended an earlier trace.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any, Final

from runnel.compile.observe import symbols
from runnel.compile.observe.changes import CallingMethod
from runnel.compile.observe.expressions import Expression, NotWritten
from runnel.compile.observe.guard import ITEMS, LENGTH
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import PLAIN, SINGLETONS, SYMBOLIC

MOST: Final = symbols.PARTS  # items that are read one by one
_LARGEST: Final = 4096  # items that are copied at each call
_KINDS: Final = (list, collections.deque, bytearray)
_VALUES: Final = PLAIN - SINGLETONS
# Changes that fail for no content; others are made at each call, though nothing of the container may be read then.
_CANNOT_FAIL: Final = frozenset(
    {"append", "appendleft", "extend", "extendleft", "insert", "reverse", "rotate", "clear"}
)


def varies(rec: Recorder, source: Source) -> bool:
    """Whether the items of a sequence have changed between calls."""
    varying = rec.session.varying
    return bool(varying) and (f"{ITEMS}{source}" in varying or f"{LENGTH}{source})" in varying)


def state(rec: Recorder, container: Any) -> Source | None:
    """Where the guard finds what a container of plain values holds now; None where it is not followed."""
    effects = rec.effects
    known = effects.states.get(id(container))
    if known is not None:
        return known
    source = rec.source_of(container)
    if source is None or type(container) not in _KINDS or id(container) in effects.replaced:
        return None
    if effects.is_changed(container) or not varies(rec, source) or len(container) > _LARGEST:
        return None
    if not all(type(x) in _VALUES for x in container):
        return None
    rec.log.check(source, "not holds_values({v})", f"types of what {source} holds")
    return source


def changed(rec: Recorder, container: Any, function: Any, args: tuple[Any, ...]) -> Any:
    """``function(container, *args)``, which changes it, in a tuple; None where that is not followed."""
    at = state(rec, container)
    if at is None:
        return None
    expression = Expression(rec)
    try:
        head, whole = expression.constant(function), expression.operand(at)
        written = [expression.of(x) for x in args]
    except NotWritten:
        return None
    if not all(type(x) in _VALUES or type(x) in SYMBOLIC for x in _flat(args)):
        return None
    source, effects = rec.source_of(container), rec.effects
    values = tuple(map(symbols.bare, args))
    try:
        function(container.copy(), *values)
    except (LookupError, ValueError, TypeError):
        return None  # it is looked at, and raises again
    effects.will_change(container, type(container))
    result = function(container, *values)
    effects.inputs.setdefault(id(container), []).extend(_flat(args))
    label = symbols.shortened(f"{function.__name__}() of {at}")
    text = f"changed({head}, {whole}, ({''.join(f'{x}, ' for x in written)}))"
    both = rec.log.computed(text, tuple(expression.operands), label, tuple(expression.constants))
    if type(container) is bytearray or function.__name__ not in _CANNOT_FAIL:
        rec.log.check(both, "not {v}", f"whether {label} can be done")  # by being computed
    effects.states[id(container)] = rec.log.source(both, "{p}[1]", f"{source} after {function.__name__}()")
    effects.appended.pop(id(container), None)
    effects.record(CallingMethod(function), container, None, (list(args), {}), f"{source}.{function.__name__}(...)")
    if result is None:
        return (None,)
    return (symbols.reach(rec, result, rec.log.source(both, "{p}[0]", label, result)),)


def changed_by(rec: Recorder, container: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a method."""
    method = METHODS.get(type(container), {}).get(name)
    if method is None or kwargs:
        return None
    source = rec.source_of(container)
    only_grows = type(container) is list and name in ("append", "extend") and id(container) not in rec.effects.states
    if only_grows and f"{ITEMS}{source}" not in rec.session.varying:
        return None  # what it held stays where it is, whatever its length
    return changed(rec, container, method, args)


def _flat(args: tuple[Any, ...]) -> list[Any]:
    return [x for arg in args for x in (arg if type(arg) in (list, tuple) else (arg,))]


def length(rec: Recorder, container: Any) -> Any:
    """``len(container)`` of one that the run has changed."""
    at = rec.effects.states[id(container)]
    size = len(container)
    return symbols.begin(rec, size, rec.log.source(at, "len({p})", f"len({at})", size))


def item(rec: Recorder, container: Any, index: int) -> Any:
    """``container[index]`` of one that the run has changed, in a tuple; None where there is none."""
    at = rec.effects.states[id(container)]
    if not -len(container) <= index < len(container):
        return None
    return (
        symbols.reach(
            rec, container[index], rec.log.source(at, f"{{p}}[{index}]", f"({at})[{index}]", container[index])
        ),
    )


def items(rec: Recorder, container: Any) -> list[Any] | None:
    """All items of one that the run has changed; None where they are too many."""
    if len(container) > MOST:
        return None
    return list(symbols.parts(rec, list(container), rec.effects.states[id(container)]))


def each(rec: Recorder, container: collections.deque[Any]) -> Iterator[Any]:
    """The items of a deque, which must not change meanwhile."""
    source = state(rec, container)
    if source is None:
        return
    for value in symbols.parts(rec, list(container), source):
        yield value
        if rec.effects.states.get(id(container), source) is not source:
            raise RuntimeError("deque mutated during iteration")


def item_at(rec: Recorder, container: Any, key: Any) -> Any:
    """``container[key]``, where the key may be another at later calls or is a slice, in a tuple; None where the key and
    the container are to be looked at."""
    kind = type(container)
    if kind not in (list, tuple, dict) or (kind is dict and not all(type(x) in PLAIN for x in container)):
        return None
    expression = Expression(rec)
    try:
        whole = written(rec, container, expression)
        text = f"{whole}[{expression.of(key)}]"
        value = container[key if type(key) is slice else symbols.bare(key)]
    except (NotWritten, LookupError, TypeError, ValueError):
        return None
    label = symbols.shortened(f"{rec.source_of(container) or 'a list'}[{_described(rec, key)}]")
    source = rec.log.computed(text, tuple(expression.operands), label, tuple(expression.constants))
    if type(key) is not slice:
        return (symbols.reach(rec, value, source),)
    return (symbols.parts(rec, value, source),) if len(value) <= MOST else None


def written(rec: Recorder, container: Any, expression: Expression) -> str:
    """A container as a text over sources: as it is now, where it is followed."""
    source = rec.source_of(container)
    if source is None:
        return expression.of(container)
    at = state(rec, container)
    if at is None and (rec.effects.is_changed(container) or id(container) in rec.effects.replaced):
        raise NotWritten
    return expression.operand(at or source)


def _described(rec: Recorder, key: Any) -> str:
    if type(key) is slice:
        start, stop = ("" if x is None else _described(rec, x) for x in (key.start, key.stop))
        return f"{start}:{stop}"
    symbol = rec.symbols.get(id(key))
    return repr(key) if symbol is None else str(symbol)


METHODS: Final = {
    kind: {name: getattr(kind, name) for name in names if hasattr(kind, name)}
    for kind, names in (
        (list, ("append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear")),
        (collections.deque, ("append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "remove",
                             "rotate", "reverse", "clear")),
        (bytearray, ("append", "extend", "insert", "pop", "remove", "reverse", "clear")),
    )
}  # fmt: skip
