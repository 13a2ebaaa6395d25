"""Items and iteration, seldom as it may be: of classes, of what cannot be changed, and of what C code keeps."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


def failing(function):
    """What it gives, or the kind of the error."""

    def step():
        try:
            return function()
        except Exception as error:
            return type(error).__name__, str(error)

    return step


@case
def item_of_a_class():
    class Kind:
        size = 1

        def __class_getitem__(cls, key):
            return cls.size, key

    return around(
        lambda: Kind["x"],
        lambda: setattr(Kind, "size", 2),
        lambda: setattr(Kind, "__class_getitem__", classmethod(lambda cls, key: key)),
    )


@case
def item_of_a_class_without_items():
    class Kind:
        pass

    return around(failing(lambda: Kind["x"]))


@case
def item_of_a_class_by_its_metaclass():
    class Meta(type):
        def __getitem__(cls, key):
            return cls.size, key

        def __len__(cls):
            return cls.size

        def __iter__(cls):
            return iter(range(cls.size))

        def __contains__(cls, value):
            return value == cls.size

    class Kind(metaclass=Meta):
        size = 1

    return around(lambda: (Kind["x"], len(Kind), list(Kind), 1 in Kind), lambda: setattr(Kind, "size", 2))


@case
def default_that_is_none():
    table = defaultdict(None, x=1)
    return around(
        failing(lambda: table["y"]), lambda: setattr(table, "default_factory", int), state=lambda: dict(table)
    )


@case
def default_of_an_inherited_dict():
    class Table(dict):
        made = 1

        def __missing__(self, key):
            return self.made, key

    table = Table(x=1)
    return around(
        lambda: (table["x"], table["y"], table.get("y")),
        lambda: setattr(Table, "made", 2),
        lambda: table.update(y=5),
        lambda: setattr(Table, "__missing__", lambda self, key: 0),
    )


@case
def inherited_dict_without_defaults():
    class Table(dict):
        pass

    table = Table(x=1)
    return around(failing(lambda: table["y"]), lambda: table.update(y=5))


@refused("from outside is set")
def item_of_a_view_of_bytes():
    view = memoryview(bytearray(b"abc"))

    def step():
        view[0] = 1

    return around(step)


@case
def items_that_cannot_be_set():
    values, kept, text = (1, 2), frozenset({1}), "abc"

    def set_item(target):
        target[0] = 5

    def deleted(target):
        del target[0]

    return around(lambda: [failing(lambda f=f, x=x: f(x))() for x in (values, kept, text) for f in (set_item, deleted)])


@refused("an item of a Box from outside is deleted")
def item_of_an_object_deleted():
    one = Box(x=1)

    def step():
        del one[0]

    return around(step)


@refused("an item of a Box from outside is set")
def item_of_an_object_set():
    one = Box(x=1)

    def step():
        one[0] = 1

    return around(step)


@case
def key_of_a_users_class():
    class Key:
        def __init__(self, x):
            self.x = x

        def __hash__(self):
            return hash(self.x)

        def __eq__(self, other):
            return self.x == other.x

    one = Key(1)

    def step():
        table = {}
        table[one] = "one"
        table[Key(1)] = "again"
        return list(table.values()), Key(1) in table, Key(2) in table

    return around(step, lambda: setattr(one, "x", 2))


@case
def membership_by_iteration():
    class Some:
        def __init__(self, *values):
            self.values = values

        def __iter__(self):
            return iter(self.values)

    box = Box(x=1)
    some = Some(box, 3)
    return around(lambda: (box in some, 3 in some, 4 in some), lambda: setattr(some, "values", (4, Box(x=1))))


@case
def membership_by_index():
    class Row:
        def __getitem__(self, i):
            return self.values[i]

    row = Row()
    row.values = [1, 2]
    return around(lambda: (2 in row, 3 in row, list(row), max(row), sum(row)), lambda: row.values.append(3))


@case
def next_of_users_iterators():
    class Count:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    count = Count(7)
    return around(lambda: (next(count, "no"), next(count, "no")), lambda: setattr(count, "n", 9), state=lambda: count.n)


@case
def next_of_no_iterator():
    return around(failing(lambda: next([1])), lambda: None)


@case
def iterator_that_is_none():
    class Wrong:
        def __iter__(self):
            return Box()

    return around(failing(lambda: list(Wrong())), lambda: None)


@case
def id_of_what_is_outside():
    box = Box(one=Box(), two=Box())
    return around(
        lambda: (id(box.one) == id(box.two), id(box.one) == id(box.one)), lambda: setattr(box, "two", box.one)
    )


@refused("id() of a value made")
def id_of_what_is_made():
    return around(lambda: id(Box()) > 0)


@case
def hash_by_a_users_method():
    class Key:
        def __hash__(self):
            return self.x

    key = Key()
    key.x = 1
    return around(lambda: hash(key), lambda: setattr(key, "x", 2), lambda: setattr(Key, "__hash__", lambda self: 9))


@refused("the hash of an object made")
def hash_of_what_is_made():
    return around(lambda: hash(Box()) > 0)


@refused("vars() without an argument")
def names_of_the_frame():
    return around(lambda: vars())


@case
def numbers_of_a_range_and_a_text():
    box = Box(n=4, text="abc")
    return around(
        lambda: (math.fsum(range(box.n)), math.prod(range(1, box.n)), set(box.text), max(box.text)),
        lambda: setattr(box, "n", 5),
        lambda: setattr(box, "text", "abd"),
    )


@case
def dict_with_pairs_for_keys():
    table = {(1, 2): "a", (3, 4): "b"}
    return around(
        lambda: ({**table}, dict(table), table[1, 2], list(table.items())),
        lambda: table.update({(1, 2): "c"}),
        lambda: table.update({(5, 6): "d"}),
    )


@case
def objects_for_keys():
    one, two = Box(x=1), Box(x=2)
    table = {one: "a", two: "b"}
    return around(
        lambda: (table[one], {**table}[two], one in table),
        lambda: table.update({one: "c"}),
        lambda: table.update({two: "d"}),
    )


@case
def keys_that_are_gone():
    one, table = Box(x=1), {}

    def step():
        return table[one], one in table

    return around(failing(step), lambda: table.update({one: "c"}), lambda: table.clear())


def _grown(kind):
    values, box = kind([1, 2, 3]), Box(i=0)

    def step():
        values.append(10)
        values.append(20)
        result = failing(lambda: values[box.i])()
        values.pop()
        values.pop()
        return result

    changes = [lambda i=i: setattr(box, "i", i) for i in (-1, -2, -3, -5, -6, -8, -9, 2, 3, 4, 5)]
    return around(step, *changes, lambda: values.append(4), state=lambda: list(values))


CASES.add(lambda: _grown(list), "item_of_a_list_that_has_grown")
CASES.add(lambda: _grown(deque), "item_of_a_deque_that_has_grown")


@case
def length_of_a_deque_that_is_full():
    values = deque([1, 2, 3], 3)

    def step():
        values.append(len(values))
        return len(values), values[0]

    return around(step, lambda: values.pop(), lambda: values.clear(), state=lambda: list(values))


@case
def order_of_an_ordered_dict():
    table = OrderedDict(a=1, b=2)

    def step():
        table.move_to_end("a")
        return list(table), next(reversed(table))

    return around(
        step, lambda: table.update(c=3), lambda: table.pop("a") and table.update(a=1), state=lambda: list(table)
    )


@case
def results_of_many_kinds():
    box = Box(x=1)

    def step():
        counts = defaultdict(list, {"a": [box.x]})
        last = deque([box.x, 2, 3], 2)
        return counts, last, bytearray([box.x]), OrderedDict(a=box.x), {box.x}, frozenset({box.x}), slice(box.x)

    return around(step, lambda: setattr(box, "x", 2))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name):
    CASES.check(name)
