"""Containers that a function changes and reads: what it finds there then, and whether later calls find it so."""

from __future__ import annotations

import bisect
import heapq
from collections import deque

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case = CASES.add


@case
def sorted_after_it_has_grown():
    values, box = [5, 1, 3], Box(x=2)

    def step():
        values.append(box.x)
        values.sort()
        result = values[0], values[-1], values[1], len(values)
        values.append(9)
        return (*result, values[-1], values[-2])

    return around(step, lambda: setattr(box, "x", 7), lambda: values.insert(0, 4), state=lambda: list(values))


@case
def heap_and_bisection_after_it_has_grown():
    values, heap, box = [1, 3, 5], [1, 3, 5], Box(x=2)

    def step():
        values.append(box.x + 10)
        bisect.insort(values, box.x)
        heap.append(box.x + 10)
        heapq.heappush(heap, box.x)
        return values[-1], values[1], heap[0], heap[-1], heap[-2], len(values), len(heap)

    return around(
        step,
        lambda: setattr(box, "x", 0),
        lambda: values.insert(0, -1),
        state=lambda: (list(values), list(heap)),
    )


@case
def item_set_after_it_has_grown():
    values, box = [1, 2, 3], Box(x=2)

    def step():
        values.append(box.x)
        values[-1] = 7
        values[0] = box.x
        return values[-1], values[-2], values[0], len(values)

    return around(step, lambda: setattr(box, "x", 0), lambda: values.insert(0, -1), state=lambda: list(values))


@case
def item_deleted_after_it_has_grown():
    values, box = [1, 2, 3], Box(x=2)

    def step():
        values.append(box.x)
        del values[0]
        return values[-1], values[0], len(values)

    return around(step, lambda: setattr(box, "x", 0), lambda: values.insert(0, -1), state=lambda: list(values))


@case
def cleared_and_filled():
    values, table, members, last = [1, 2], {"a": 1}, {1}, deque([1, 2], 2)
    box = Box(x=2)

    def step():
        for one in (values, table, members, last):
            one.clear()
        values.append(box.x)
        table["b"] = box.x
        members.add(box.x)
        last.append(box.x)
        return values[0], len(values), dict(table), 2 in members, len(last), last[0]

    return around(
        step,
        lambda: setattr(box, "x", 0),
        lambda: values.insert(0, -1),
        lambda: table.update(c=3),
        state=lambda: (list(values), dict(table), set(members), list(last)),
    )


@case
def asked_for_after_it_was_cleared():
    table, box = {"a": 1, "b": 2}, Box(x=2)

    def step():
        table.clear()
        table["b"] = box.x
        return "a" in table, table.get("a"), table.get("b"), table.pop("a", None), table.setdefault("c", 7), len(table)

    return around(step, lambda: table.update(a=5), lambda: setattr(box, "x", 3), state=lambda: dict(table))


@case
def asked_for_after_it_was_deleted():
    table, box = {"a": 1, "b": 2}, Box(x=2)

    def step():
        before = table.pop("a", None), "b" in table
        if "b" in table:
            del table["b"]
        after = "a" in table, "b" in table, table.get("b", 9), len(table), list(table)
        table["a"] = box.x
        return before, after, table["a"], list(table)

    return around(
        step, lambda: table.update(b=5), lambda: setattr(box, "x", 3), lambda: table.clear(), state=lambda: dict(table)
    )


@case
def last_items_taken():
    table, box = {"a": 1, "b": 2, "c": 3}, Box(x=2)

    def step():
        taken = table.popitem()
        rest = dict(table), taken[0] in table, len(table)
        table["a"] = box.x
        return taken, rest, list(table.items())

    return around(step, lambda: table.update(c=5, d=6), lambda: setattr(box, "x", 3), state=lambda: dict(table))


def _changed_meanwhile(change):
    table = {"a": 1, "b": 2}

    def step():
        seen = []
        try:
            for key, value in table.items():
                seen.append((key, value))
                change(table)
        except RuntimeError as error:
            seen.append(str(error))
        return seen

    return around(step, lambda: table.update(a=5, b=6), lambda: table.update(a=7), state=lambda: dict(table))


CASES.add(lambda: _changed_meanwhile(lambda table: table.popitem()), "taken_meanwhile")


CASES.add(lambda: _changed_meanwhile(lambda table: table.clear()), "cleared_meanwhile")


CASES.add(lambda: _changed_meanwhile(lambda table: table.pop("b", None)), "deleted_meanwhile")


CASES.add(lambda: _changed_meanwhile(lambda table: table.update(c=1)), "added_meanwhile")


CASES.add(lambda: _changed_meanwhile(lambda table: table.update(a=1)), "set_meanwhile")


@case
def truth_of_what_was_changed():
    values, table, members, last = [1], {"a": 1}, {1}, deque([1])

    def step():
        taken = [bool(x) for x in (values, table, members, last)]
        for one in (values, members, last):
            if one:
                one.pop()
        table.pop("a", None)
        return taken, [bool(x) for x in (values, table, members, last)]

    return around(
        step,
        lambda: (values.extend([1, 2, 3]), table.update(b=1, c=2), members.update({1, 2, 3}), last.extend([1, 2, 3])),
        state=lambda: (list(values), dict(table), set(members), list(last)),
    )


@case
def objects_for_keys_deleted():
    one, two = Box(x=1), Box(x=2)
    table = {one: 1, two: 2}

    def step():
        if one in table:
            del table[one]
        return len(table), one in table, two in table

    return around(step, lambda: table.update({one: 3}), lambda: table.pop(two), state=lambda: sorted(table.values()))


@case
def extended_by_nothing():
    values, last, box = [], deque(), Box(more=[])

    def step():
        values.extend(box.more)
        last.extend(box.more)
        return bool(values), bool(last), "yes" if values else "no"

    return around(
        step, lambda: (values.append(1), last.append(1)), lambda: (values.clear(), last.clear()), state=lambda: None
    )


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name):
    CASES.check(name)
