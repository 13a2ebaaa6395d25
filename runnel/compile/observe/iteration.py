"""C iterators, which read their arguments only when advanced: the functions they call run observed."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final

from runnel.compile.observe import answers, containers, operators
from runnel.compile.observe.plain import Call, returning
from runnel.compile.observe.recorder import Recorder

_NONE: Final[tuple[int, ...]] = ()
_ALL: Final = tuple(range(64))
# The places of the arguments that each class iterates over, and of those that it calls.
_ITERATED: Final[dict[Any, tuple[int, ...]]] = {
    itertools.repeat: _NONE, itertools.count: _NONE, itertools.chain: _ALL, itertools.product: _ALL,
    itertools.zip_longest: _ALL, itertools.compress: (0, 1), itertools.dropwhile: (1,), itertools.takewhile: (1,),
    itertools.filterfalse: (1,),
}  # fmt: skip
_CALLED: Final[dict[Any, tuple[int, ...]]] = {
    itertools.accumulate: (1,), itertools.groupby: (1,), itertools.dropwhile: (0,), itertools.takewhile: (0,),
    itertools.filterfalse: (0,),
}  # fmt: skip
_CALLED_BY_NAME: Final = ("func", "key")
_DECIDE: Final = (itertools.dropwhile, itertools.takewhile, itertools.filterfalse)


def iterator_call(rec: Recorder, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """What to call in place of ``kind(*args, **kwargs)``, of a class of ``itertools``."""
    iterated, called = _ITERATED.get(kind, (0,)), _CALLED.get(kind, _NONE)
    values = [
        answers.iterable(rec, x) if i in iterated else _argument(rec, kind, x, i in called) for i, x in enumerate(args)
    ]
    named = {name: _argument(rec, kind, x, name in _CALLED_BY_NAME) for name, x in kwargs.items()}
    if kind is itertools.compress and len(values) == 2:
        values[1] = _truths(rec, values[1])
    if kind is itertools.accumulate and len(values) < 2 and named.get("func") is None:
        named["func"] = rec.callback(operator.add)
    if kind is itertools.groupby and len(values) < 2 and named.get("key") is None:
        values = [_looked_at(rec, x) for x in values]  # they are compared
        named = {name: _looked_at(rec, x) if name == "iterable" else x for name, x in named.items()}
    arguments = [x for i, x in enumerate(args) if i not in iterated and i not in called] + list(kwargs.values())
    classes = rec.classes_in(arguments)
    if not classes:
        return kind, tuple(values), named
    with rec.exposed(classes):  # C code asks them for numbers now
        return returning(kind(*values, **named))


def _looked_at(rec: Recorder, values: Any) -> Iterator[Any]:
    return (containers.content(rec, value) for value in values)


def _truths(rec: Recorder, values: Any) -> Iterator[bool]:
    return (operators.truth(rec, value) for value in values)


def _argument(rec: Recorder, kind: type, value: Any, is_called: bool) -> Any:
    """An argument that is not iterated over."""
    if not is_called:
        return containers.content(rec, value)
    if kind in _DECIDE:
        return decides(rec, value)
    if value is None:
        return None
    return (rec.judged if kind is itertools.groupby else rec.callback)(value)


def decides(rec: Recorder, function: Any) -> Callable[[Any], bool]:
    """A function whose results C code takes for true or false; None: it asks the items themselves."""
    if function is None:
        return lambda value: operators.truth(rec, value)
    return lambda value: operators.truth(rec, rec.invoke(function, (value,)))


def filtered(rec: Recorder, function: Any, values: Any) -> Iterator[Any]:
    """``filter(function, values)``."""
    return filter(decides(rec, function), answers.iterable(rec, values))
