"""State that is kept where no attribute shows it, and is asked for again: registries of abstract classes, kinds for
patterns, loggers, texts in memory, counters."""

from __future__ import annotations

import abc
import builtins
import functools
import io
import itertools
import logging
import types
import weakref
from collections.abc import Mapping, Sequence

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def registered_class_of_the_user():
    class Base(abc.ABC):
        pass

    class Kind:
        pass

    one = Kind()
    return around(lambda: (isinstance(one, Base), issubclass(Kind, Base)), lambda: Base.register(Kind))


@case
def registered_class_of_python():
    class Base(abc.ABC):
        pass

    return around(lambda: (isinstance(3, Base), issubclass(str, Base)), lambda: Base.register(int))


@case
def sequence_for_patterns():
    class Row:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return (1, 2)[i]

    row = Row()

    def step():
        match row:
            case [a, b]:
                return a, b
            case _:
                return None

    return around(step, lambda: Sequence.register(Row))


@case
def mapping_for_patterns():
    class Table:
        def keys(self):
            return ("a",)

        def __getitem__(self, key):
            return 1

        def get(self, key, default=None):
            return self[key] if key == "a" else default

    table = Table()

    def step():
        match table:
            case {"a": value}:
                return value
            case _:
                return None

    return around(step, lambda: Mapping.register(Table))


@case
def class_of_a_module():
    class Kind(types.ModuleType):
        pass

    module = types.ModuleType("some")
    return around(lambda: type(module).__name__, lambda: setattr(module, "__class__", Kind))


def _logger(text):
    logger = logging.Logger("own")
    handler = logging.StreamHandler(text)
    logger.addHandler(handler)
    return logger


@case
def records_of_a_logger():
    text, box = io.StringIO(), Box(x=1)
    logger = _logger(text)

    def step():
        logger.info("x is %s", box.x)
        logger.log(logging.ERROR, "two")

    return around(
        step, lambda: setattr(box, "x", 2), lambda: logger.setLevel(logging.ERROR), state=lambda: text.getvalue()
    )


@case
def level_of_a_logger():
    logger = _logger(io.StringIO())
    return around(
        lambda: (logger.isEnabledFor(logging.INFO), logger.level),
        lambda: logger.setLevel(logging.ERROR),
        lambda: setattr(logger, "disabled", True),
    )


@refused("a log record is made with objects")
def record_with_objects():
    logger, extra = _logger(io.StringIO()), {"user": "me"}
    return around(lambda: logger.info("text", extra=extra))


@case
def text_in_memory():
    text, box = io.StringIO(), Box(x=1)

    def step():
        count = text.write(f"{box.x} ")
        text.flush()
        return count

    return around(step, lambda: setattr(box, "x", 22), state=lambda: text.getvalue())


@case
def text_printed_to_memory():
    text, box = io.StringIO(), Box(x=1)
    return around(
        lambda: print(box.x, "y", sep="-", end=";", file=text),
        lambda: setattr(box, "x", 22),
        state=lambda: text.getvalue(),
    )


@case
def text_that_the_function_made():
    box = Box(x=1)

    def step():
        text = io.StringIO()
        print("x", box.x, file=text)
        text.write("end")
        return text.getvalue()

    return around(step, lambda: setattr(box, "x", 22))


@refused("writes to a file that the function made")
def file_of_a_users_class_that_the_function_made():
    class Sink(io.StringIO):
        pass

    def step():
        print("x", file=Sink.__new__(Sink))

    return around(step)


@refused("is written in C")
def text_written_with_something_else():
    text = io.StringIO()
    return around(lambda: text.writelines(["a", "b"]))


@case
def counters_with_large_steps():
    count, other = itertools.count(10**6, 10**4), itertools.count(-5, -1)
    return around(
        lambda: (next(count), next(other), next(count)), lambda: next(count), state=lambda: (repr(count), repr(other))
    )


@case
def called_in_other_ways():
    def function(*args, **kwargs):
        return len(args), sorted(kwargs)

    ways = [
        ((1,), {}),
        ((1, 2), {}),
        ((), {}),
        ((1,), {"a": 1}),
        ((), {"a": 1}),
        ((), {"b": 1}),
        ((), {"a": 1, "b": 2}),
    ]
    return function, [*ways, *ways]


@case
def given_another_code():
    def function(x=1):
        return x, "one"

    def other(x=1):
        return x, "two"

    return around(function, lambda: setattr(function, "__code__", other.__code__))


@case
def given_other_defaults():
    def inner(x=1, *, y=2):
        return x, y

    def function():
        return inner()

    return around(
        function,
        lambda: setattr(inner, "__defaults__", (5,)),
        lambda: setattr(inner, "__kwdefaults__", {"y": 6}),
        lambda: inner.__kwdefaults__.update(y=7),
    )


@case
def text_in_a_file_flushed():
    data = io.BytesIO()
    file, box = io.TextIOWrapper(data, write_through=False), Box(x=1)

    def step():
        file.write(f"{box.x} ")
        file.flush()

    return around(step, lambda: setattr(box, "x", 2), state=lambda: data.getvalue())


@refused("is written in C")
def number_written_as_a_text():
    text = io.StringIO()
    return around(lambda: text.write(5))


@case
def slice_from_outside():
    values, box = [1, 2, 3, 4], Box(s=slice(1, 3, 1))
    return around(
        lambda: values[box.s],
        lambda: setattr(box, "s", range(1, 3)),
        lambda: setattr(box, "s", slice(2, 3)),
        lambda: setattr(box, "s", 0),
    )


@case
def names_of_a_code():
    def function(one, two):
        three = one
        return three

    def other(four):
        return four

    return around(lambda: function.__code__.co_varnames, lambda: setattr(function, "__code__", other.__code__))


@case
def names_that_are_built_in():
    vars(builtins)["_told_by_a_test"] = 1

    def step():
        try:
            return _told_by_a_test  # noqa: F821
        except NameError:
            return None

    return around(
        step, lambda: setattr(builtins, "_told_by_a_test", 2), lambda: vars(builtins).pop("_told_by_a_test", None)
    )


@case
def given_defaults_where_there_were_none():
    def inner(x):
        return x

    def function():
        try:
            return inner()
        except TypeError:
            return "missing"

    return around(function, lambda: setattr(inner, "__defaults__", (5,)))


@case
def truth_of_inherited_containers():
    class Row(list):
        pass

    class Table(dict):
        pass

    row, table = Row(), Table(a=1)
    return around(lambda: (bool(row), not table, "yes" if row else "no"), lambda: row.append(1), lambda: table.clear())


@case
def chosen_by_class():
    @functools.singledispatch
    def shown(value):
        return "any"

    class Kind:
        pass

    one = Kind()
    return around(
        lambda: (shown(one), shown(3), shown("x")),
        lambda: shown.register(Kind, lambda value: "kind"),
        lambda: shown.register(int, lambda value: "int"),
    )


def _let_go(change):
    """A function that lets go of an object and asks whether it lives."""

    class Kind:
        pass

    box = Box(kind=Kind, one=Box())
    Kind.one = box.one
    reference = weakref.ref(box.one)
    del box.one

    def step():
        change(box)
        return reference() is None

    return around(step)


@refused("still lives")
def alive_though_an_attribute_of_a_class_was_set():
    def change(box):
        box.kind.one = None

    return _let_go(change)


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name):
    CASES.check(name)
