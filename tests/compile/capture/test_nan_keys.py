"""NaNs as keys and members: a container finds one by which object it is, so that such a function runs eagerly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from runnel.compile import compile
from tests.compile.capture.agreeing import tensor

WAYS: dict[str, Callable[[dict[Any, Any], set[Any], float], Any]] = {
    "item": lambda table, seen, v: table.__setitem__(v, 1),
    "update": lambda table, seen, v: table.update({v: 1}),
    "setdefault": lambda table, seen, v: table.setdefault(v, len(table)),
    "in a tuple": lambda table, seen, v: table.__setitem__((v, 0), 1),
    "asked for in a tuple": lambda table, seen, v: ((v,) in table, table.update({(v,): 2})),
    "add": lambda table, seen, v: seen.add(v),
    "extend a set": lambda table, seen, v: seen.update([v, (v, 2)]),
    "in a frozenset": lambda table, seen, v: seen.add(frozenset([v])),
    "discard": lambda table, seen, v: (seen.discard(v), len(seen), seen.add(v)),
    "a new dict": lambda table, seen, v: (len({v: 1, **table}), table.update({v: 3}))[0],
    "a new set": lambda table, seen, v: (len({v, *seen}), seen.add(v))[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_is_found_by_which_object_it_is(way: str) -> None:
    nan, other = float("nan"), float("nan")

    def sizes(wrap):
        table, seen = {}, set()

        def function(x, v):
            found = WAYS[way](table, seen, v)
            return x * 1, found, len(table), len(seen)

        called = wrap(function)
        return [called(tensor(1, 2), v)[1:] for v in [nan, 2.0, other, float("inf"), nan] * 3]

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert sizes(compile) == sizes(lambda function: function)
