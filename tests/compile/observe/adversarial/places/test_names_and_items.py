"""Values behind names, in lists and in dicts."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from tests.compile.observe.adversarial.places.uses import Places
from tests.compile.observe.adversarial.stories import Box

PLACES = Places()
place = PLACES.add


GLOBAL = 0


@place
def global_name(use):
    globals().update(GLOBAL=0)
    return lambda: use(GLOBAL), lambda v: globals().update(GLOBAL=v)


@place
def cell(use):
    reference = 0

    def assign(v):
        nonlocal reference
        reference = v

    return lambda: use(reference), assign


@place
def outer_cell(use):
    reference = 0

    def outer():
        return lambda: use(reference)

    def assign(v):
        nonlocal reference
        reference = v

    return lambda: outer()(), assign


@place
def attribute(use):
    box = Box(x=0)
    return lambda: use(box.x), lambda v: setattr(box, "x", v)


@place
def nested_attribute(use):
    box = Box(inner=Box(x=0))
    return lambda: use(box.inner.x), lambda v: setattr(box.inner, "x", v)


@place
def replaced_owner(use):
    box = Box(inner=Box(x=0))
    return lambda: use(box.inner.x), lambda v: setattr(box, "inner", Box(x=v))


@place
def list_item(use):
    items = [0, 0]
    return lambda: use(items[1]), lambda v: items.__setitem__(1, v)


@place
def last_item(use):
    items = [0]
    return lambda: use(items[-1]), lambda v: items.append(v)


@place
def list_slice(use):
    items = [0, 0, 0]
    return lambda: use(items[1:][0]), lambda v: items.__setitem__(1, v)


@place
def dict_item(use):
    table = {"x": 0}
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def dict_get(use):
    table = {"x": 0}
    return lambda: use(table.get("x", -1)), lambda v: table.__setitem__("x", v)


@place
def dict_appearing(use):
    table: dict[str, Any] = {}
    return lambda: use(table.get("x", 0)), lambda v: table.__setitem__("x", v)


@place
def dict_values(use):
    table = {"x": 0}
    return lambda: use(next(iter(table.values()))), lambda v: table.__setitem__("x", v)


@place
def dict_items(use):
    table = {"x": 0}
    return lambda: [use(v) for _, v in table.items()], lambda v: table.__setitem__("x", v)


@place
def tuple_key(use):
    table = {(1, "a"): 0}
    return lambda: use(table[1, "a"]), lambda v: table.__setitem__((1, "a"), v)


@place
def default_dict(use):
    table: Any = collections.defaultdict(int)
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def deque_item(use):
    items = collections.deque([0])
    return lambda: use(items[0]), lambda v: items.appendleft(v)


@place
def user_dict(use):
    table = collections.UserDict(x=0)
    return lambda: use(table["x"]), lambda v: table.__setitem__("x", v)


@place
def user_list(use):
    items = collections.UserList([0])
    return lambda: use(items[0]), lambda v: items.__setitem__(0, v)


@place
def chain_map(use):
    table = collections.ChainMap({}, {"x": 0})
    return lambda: use(table["x"]), lambda v: table.maps[0].__setitem__("x", v)


@pytest.mark.parametrize("name", PLACES.names())
def test_uses(name: str) -> None:
    PLACES.check(name)
