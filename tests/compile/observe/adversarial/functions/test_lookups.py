"""Where Python looks for an attribute, seldom as it may be: on metaclasses, behind ``super``, in functions and modules,
and where nothing is found or may be set."""

from __future__ import annotations

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


def failing(function, *errors):
    """What it gives, or the text of the error."""

    def step():
        try:
            return function()
        except (AttributeError, TypeError, ImportError, *errors) as error:
            return type(error).__name__, str(error)

    return step


@case
def getattribute_that_finds_nothing():
    class Base:
        def __getattribute__(self, name):
            if name.startswith("no_"):
                raise AttributeError(name)
            return object.__getattribute__(self, name)

    class Hooked(Base):
        def __getattr__(self, name):
            return self.default, name

    one = Hooked()
    one.default = 1
    return around(lambda: one.no_such, lambda: setattr(one, "default", 2), lambda: setattr(Hooked, "__getattr__", len))


@case
def getattribute_that_finds_nothing_and_no_hook():
    class Strict:
        def __getattribute__(self, name):
            raise AttributeError(f"no {name}")

    one = Strict()
    return around(failing(lambda: one.x), lambda: setattr(Strict, "__getattr__", lambda self, name: name * 2))


@case
def property_without_a_getter():
    class Mute:
        x = property(None, lambda self, value: None)

    one = Mute()
    return around(failing(lambda: one.x), lambda: setattr(Mute, "x", property(lambda self: 7)))


@case
def property_without_a_setter():
    class Fixed:
        x = property(lambda self: 1)

    one = Fixed()

    def step():
        one.x = 2

    return around(failing(step), lambda: setattr(Fixed, "x", 3), state=lambda: vars(one))


@case
def property_without_a_deleter():
    class Fixed:
        x = property(lambda self: 1)

    one = Fixed()

    def step():
        del one.x

    return around(failing(step))


@case
def attribute_of_an_object_without_room():
    class Slotted:
        __slots__ = ("x",)

    one = Slotted()

    def step():
        one.y = 1

    return around(failing(step))


@case
def deleted_and_not_there():
    one = Box()

    def step():
        del one.x

    return around(failing(step), lambda: setattr(one, "x", 1), state=lambda: sorted(vars(one)))


@refused("is deleted")
def slot_deleted():
    class Slotted:
        __slots__ = ("x",)

    one = Slotted()
    one.x = 1

    def step():
        del one.x

    return around(step)


@refused("__name__ of the class")
def name_of_a_class_set():
    class Kind:
        pass

    def step():
        Kind.__name__ = "Other"

    return around(step)


@refused("through its metaclass")
def set_through_a_metaclass():
    class Meta(type):
        def __setattr__(cls, name, value):
            super().__setattr__(name, value + 1)

    class Kind(metaclass=Meta):
        pass

    def step():
        Kind.x = 1

    return around(step)


@refused("after an attribute was set")
def names_of_a_class_that_was_changed():
    class Kind:
        x = 1

    def step():
        Kind.y = 2
        return sorted(name for name in Kind.__dict__ if len(name) == 1)

    return around(step)


@case
def metaclass_that_looks_up():
    class Meta(type):
        answer = 1

        def __getattribute__(cls, name):
            return (name, type.__getattribute__(Meta, "answer")) if name == "x" else super().__getattribute__(name)

    class Kind(metaclass=Meta):
        pass

    return around(lambda: Kind.x, lambda: setattr(Meta, "answer", 2))


@case
def method_and_value_of_a_metaclass():
    class Meta(type):
        size = 3

        def shown(cls):
            return cls.__name__, cls.size

        def __getattr__(cls, name):
            return name, cls.size

        doubled = property(lambda cls: cls.size * 2)

    class Kind(metaclass=Meta):
        pass

    return around(
        lambda: (Kind.shown(), Kind.size, Kind.other, Kind.doubled),
        lambda: setattr(Meta, "size", 4),
        lambda: setattr(Meta, "shown", lambda cls: "changed"),
        lambda: setattr(Kind, "other", 5),
    )


@case
def nothing_on_a_class():
    class Kind:
        pass

    return around(failing(lambda: Kind.x), lambda: setattr(Kind, "x", 1))


@case
def descriptor_on_a_class():
    class Shown:
        def __init__(self, text):
            self.text = text

        def __get__(self, value, kind):
            return self.text, value is None, kind.__name__

    class Kind:
        x = Shown("one")

    return around(lambda: Kind.x, lambda: setattr(vars(Kind)["x"], "text", "two"), lambda: setattr(Kind, "x", 3))


def _family():
    class Described:
        number = 1

        def __get__(self, value, kind):
            return self.number, value is None, kind.__name__

    class Base:
        static = staticmethod(lambda x=1: x)
        of_class = classmethod(lambda cls, x=1: (cls.__name__, x))
        computed = property(lambda self: self.y + 1)
        described = Described()
        plain = 10

        def method(self):
            return self.y

    class Kind(Base):
        def step(self):
            return (
                super().static(), super().of_class(), super().computed, super().described, super().plain,
                super().method(), super().__class__.__name__,
            )  # fmt: skip

        @classmethod
        def made(cls):
            return super().of_class(), super().plain, super().method(Box(y=9))

    one = Kind()
    one.y = 5
    return one, Kind, Base, Described


for _name in ("static", "of_class", "computed", "plain", "method", "described", "number", "y"):

    def _behind_super(name=_name):
        one, kind, base, described = _family()
        changes = {
            "static": lambda: setattr(base, "static", staticmethod(lambda: 2)),
            "of_class": lambda: setattr(base, "of_class", classmethod(lambda cls: (2,))),
            "computed": lambda: setattr(base, "computed", property(lambda self: 2)),
            "plain": lambda: setattr(base, "plain", 11),
            "method": lambda: setattr(base, "method", lambda self: (self.y,)),
            "described": lambda: setattr(base, "described", described()),
            "number": lambda: setattr(described, "number", 2),
            "y": lambda: setattr(one, "y", 6),
        }
        return around(lambda: (one.step(), kind.made()), changes[name])

    CASES.add(_behind_super, f"super_{_name}")


@case
def nothing_behind_super():
    class Base:
        pass

    class Kind(Base):
        def step(self):
            return super().missing

    one = Kind()
    return around(failing(one.step), lambda: setattr(Base, "missing", 1))


@case
def another_super():
    class Base:
        x = 1

    class Kind(Base):
        x = 2

        def step(self):
            above = super
            return above(Kind, self).x, self.x

    one = Kind()
    return around(one.step, lambda: setattr(Base, "x", 3))


@case
def set_while_it_runs_and_read_behind_super():
    class Base:
        x = 1

    class Kind(Base):
        def step(self):
            Base.x = self.y
            return super().x

    one = Kind()
    one.y = 5
    return around(one.step, lambda: setattr(one, "y", 6), state=lambda: Base.x)


@case
def parts_of_functions():
    def function(x=1, *, y=2):
        return x + y

    function.note = 3

    def step():
        return (
            function.__name__, function.__defaults__, function.__kwdefaults__, function.note, function.__code__.co_name,
            sorted(function.__dict__), function.__call__(), "inner" in function.__globals__,
        )  # fmt: skip

    def other(x=1, *, y=2):
        return 0

    return around(
        step,
        lambda: setattr(function, "__defaults__", (5,)),
        lambda: setattr(function, "note", 4),
        lambda: setattr(function, "more", 4),
        lambda: setattr(function, "__name__", "renamed"),
        lambda: setattr(function, "__code__", other.__code__),
    )


@refused("__closure__ of a function")
def closure_of_a_function():
    kept = [1]

    def function():
        return kept

    return around(lambda: function.__closure__[0].cell_contents)


@case
def parts_of_methods():
    class Kind:
        def method(self, x=1):
            return x

    bound = Kind().method
    Kind.method.note = 1
    return around(
        lambda: (bound.__name__, bound.note, bound.__func__.__defaults__, bound.__class__.__name__),
        lambda: setattr(Kind.method, "note", 2),
        lambda: setattr(Kind.method, "__defaults__", (2,)),
    )


@case
def note_of_a_function_set_and_read():
    def function():
        return 0

    box = Box(x=1)

    def step():
        function.note = box.x
        return function.note

    return around(step, lambda: setattr(box, "x", 2), state=lambda: vars(function))


@case
def import_of_what_is_not_there():
    def step():
        from tests.compile.observe.adversarial import nowhere  # type: ignore[attr-defined]

        return nowhere

    return around(failing(step))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name):
    CASES.check(name)
