"""What is added to a container by ``extend`` and its like: the items as they are now, and what is there where an
iterator fails after some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.compile.observe.classes import MISSING, lookup
from runnel.compile.observe.containers import content, pairs
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import CONTAINERS, SETS, container_of

_PIECE_BY_PIECE: Final = frozenset({"extend", "extendleft", "update", "__iadd__"})


def items_of(rec: Recorder, args: tuple[Any, ...], base: Any, name: str, change: Callable[..., Any]) -> tuple[Any, ...]:
    """The items of each argument. Where an iterator fails, ``change`` adds those that came before."""
    known: list[Any] = []
    taken: list[Any] = []
    try:
        for x in args:
            known.append(_items(rec, x, base, name, taken))
    except Exception:
        if name in _PIECE_BY_PIECE and (known or taken):
            change(*known, taken)
        raise
    return tuple(known)


def _items(rec: Recorder, value: Any, base: Any, name: str, taken: list[Any]) -> Any:
    """What is added to a container, as it is now. What an iterator gives goes through ``taken``."""
    if type(value) in (bytes, bytearray):
        return bytes(content(rec, value))
    if name == "__ior__" and type(value) is dict:
        return dict(pairs(rec, value))
    if name in ("__ior__", "__iand__", "__isub__", "__ixor__"):
        kind = container_of(type(value))
        content(rec, value)
        return value if kind is None else kind(value)
    if base in SETS and container_of(type(value)) in SETS:  # C code takes what it holds past its methods
        return container_of(type(value))(content(rec, value))
    if type(value) is dict:
        return dict(pairs(rec, value))
    if base is dict and (container_of(type(value)) is dict or lookup(type(value), "keys") is not MISSING):
        return rec.hooks.unpack_mapping(value)
    items = (rec.hooks.listed if base in (list, bytearray) else rec.hooks.spread)(value)
    if type(items) in CONTAINERS and rec.source_of(items) is None:
        return items
    for x in iter(items):
        taken.append(x)
    whole = taken[:]
    taken.clear()
    return whole
