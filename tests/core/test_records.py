"""Records: what dataclasses would be, without compiling methods for each class."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from runnel.core.records import asdict, field, fields, is_record, record, replace


@record
class Point:
    """A place."""

    x: int
    y: int = 2
    unit: ClassVar[str] = "m"

    @property
    def norm(self) -> int:
        return abs(self.x) + abs(self.y)


@record
class Named(Point):
    name: str = field(default="", compare=False)


@record(frozen=False)
class Bag:
    items: list[int] = field(default_factory=list)
    size: int = 0
    hidden: Any = field(default=None, init=False, repr=False)


@record(eq=False, slots=False)
class Other:
    value: float


@record
class Empty:
    pass


def test_arguments_are_the_fields() -> None:
    assert (Point(1).x, Point(1).y, Point(y=3, x=1).y, Point(1).norm) == (1, 2, 3, 3)
    assert str(inspect.signature(Point)) == "(x, y=2)" and Point.__match_args__ == ("x", "y")
    assert (Named(1, 2, "a").name, Named(1).y) == ("a", 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=1)  # type: ignore[call-arg]


def test_there_is_nothing_beside_the_fields() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 1  # type: ignore[attr-defined]
    assert not hasattr(Point(1), "__dict__") and Point.unit == "m" and Point.__doc__ == "A place."
    assert vars(Other(1.0)) == {"value": 1.0}


def test_values_are_compared_and_hashed() -> None:
    assert Point(1) == Point(1, 2) != Point(2) and hash(Point(1)) == hash(Point(1, 2))
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Point(1) != Named(1) and Named(1, name="a") == Named(1, name="b")
    assert Empty() == Empty() and Other(1.0) != Other(1.0) and len({Other(1.0), Other(1.0)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bag())


def test_each_has_its_own_defaults() -> None:
    first, second = Bag(), Bag()
    first.items.append(1)
    assert (second.items, first.hidden, Bag([3], 1).items) == ([], None, [3])
    second.hidden = 4
    assert Bag() == Bag([]) and second != Bag()


def test_they_show_their_fields() -> None:
    assert repr(Named(1, name="a")) == "Named(x=1, y=2, name='a')" and repr(Bag([1])) == "Bag(items=[1], size=0)"


def test_another_with_other_values() -> None:
    assert replace(Named(1, 5, "a"), x=2) == Named(2, 5, "a") and replace(Named(1, 5, "a"), x=2).name == "a"
    with pytest.raises(TypeError):
        replace(Point(1), z=1)


def test_as_dicts() -> None:
    assert asdict(Bag([1])) == {"items": [1], "size": 0, "hidden": None}
    assert asdict({"a": [Point(1)], "b": (Other(2.0),)}) == {"a": [{"x": 1, "y": 2}], "b": ({"value": 2.0},)}


def test_copies_and_pickles_are_equal() -> None:
    named = Named(1, 2, "a")
    for other in (copy.copy(named), copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert other == named and other.name == "a" and other is not named


def test_kinds_of_records() -> None:
    assert is_record(Point) and not is_record(int) and [f.name for f in fields(Bag)] == ["items", "size", "hidden"]


def test_patterns_take_fields_by_position() -> None:
    match Named(1, 2, "a"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "a")
