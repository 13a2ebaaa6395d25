"""Errors that come up in a forward say in which module, by its path; nothing else about them changes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.core import switches
from runnel.core.errors import ArgumentError, ShapeError

X = rn.ones((2, 4))
Caller = Callable[[nn.Module, Any], Any]


class Block(nn.Module):
    def __init__(self, size: int = 7) -> None:
        self.linear1 = nn.Linear(4, 8)
        self.linear2 = nn.Linear(size, 4)

    def forward(self, x: Any) -> Any:
        return self.linear2(self.linear1(x))


class Encoder(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        self.layers = nn.ModuleList(blocks)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Network(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(x))


def eager(model: nn.Module, x: Any) -> Any:
    return model(x)


def compiled(model: nn.Module, x: Any) -> Any:
    return rn.compile(model)(x)


def printed(call: Caller, model: nn.Module, x: Any = X) -> str:
    """The traceback of the error that a call ends with, as it is printed."""
    try:
        call(model, x)
    except Exception as error:
        return "".join(traceback.format_exception(error))
    raise AssertionError("no error")


def notes(call: Caller, model: nn.Module, x: Any = X) -> list[str]:
    with pytest.raises(Exception) as caught:
        call(model, x)
    return list(getattr(caught.value, "__notes__", []))


both = pytest.mark.parametrize("call", [eager, compiled])


@both
def test_the_path_is_in_the_traceback_as_printed(call: Caller) -> None:
    text = printed(call, Network(Encoder(Block(8), Block(7))))
    assert "ShapeError: [linear] x of shape (2, 8) does not go with a weight of shape (4, 7)" in text
    *_, note = text.splitlines()
    assert note.startswith("In encoder.layers.1.linear2 (Linear) of Network, at ")
    assert note.rpartition(":")[2].rstrip(".").isdecimal() and "test_whereabouts.py:" in note


@both
def test_the_traceback_has_the_users_lines_and_few_of_ours(call: Caller) -> None:
    text = printed(call, Network(Encoder(Block(7))))
    for line in ("self.head(self.encoder(x))", "x = layer(x)", "return self.linear2(self.linear1(x))"):
        assert line in text
    assert text.count("/runnel/") <= (2 if call is compiled else 0)
    with switches.override(debug=1):
        assert printed(call, Network(Encoder(Block(7)))).count("/runnel/") > 5


@both
def test_there_is_one_note(call: Caller) -> None:
    assert len(notes(call, Network(Encoder(Block(7))))) == 1


def test_parts_of_the_package_are_named_too() -> None:
    (note,) = notes(eager, Network(Encoder(Block(8))))
    assert note.startswith("In head.2 (Linear) of Network, at ")
    (note,) = notes(eager, nn.TransformerEncoderLayer(8, 2, 16), rn.ones((3, 5, 4)))
    assert "of TransformerEncoderLayer" in note


def test_a_lone_module() -> None:
    (note,) = notes(eager, nn.Linear(3, 2))
    assert note.startswith("In Linear, at ")


def test_a_shared_module_has_the_first_name_in_its_caller() -> None:
    shared = nn.Linear(7, 4)

    class Twice(nn.Module):
        def __init__(self) -> None:
            self.first = self.second = shared

        def forward(self, x: Any) -> Any:
            return self.second(x)

    (note,) = notes(eager, nn.Sequential(nn.Identity(), Twice()))
    assert note.startswith("In 1.first (Linear) of Sequential")


def test_modules_that_are_reached_through_others_or_held_by_nobody() -> None:
    class Reaching(nn.Module):
        def __init__(self) -> None:
            self.parts = nn.ModuleDict({"a": nn.Sequential(nn.Linear(7, 4))})

        def forward(self, x: Any) -> Any:
            return self.parts["a"][0](x)  # type: ignore[index]

    class Making(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.Linear(7, 4)(x)

    (note,) = notes(eager, Reaching())
    assert note.startswith("In parts.a.0 (Linear) of Reaching")
    (note,) = notes(eager, nn.Sequential(Making()))
    assert note.startswith("In 0.<Linear> (Linear) of Sequential")


class Stop(Exception):
    """A user's own."""


def test_the_error_itself_stays_what_it_was() -> None:
    stop = Stop("here", 3)

    class Raising(nn.Module):
        def forward(self, x: Any) -> Any:
            raise stop

    with pytest.raises(Stop) as caught:
        nn.Sequential(nn.Sequential(Raising()))(X)
    assert caught.value is stop and stop.args == ("here", 3)
    assert stop.__notes__[0].startswith("In 0.0 (Raising) of Sequential, at ")


def test_inputs_of_layers_are_explained() -> None:
    with pytest.raises(ArgumentError, match=r"\[Linear\] x must be a tensor; got \[1, 2\] \(list\)") as caught:
        nn.Sequential(nn.Linear(2, 3))([1, 2])
    assert caught.value.__notes__[0].startswith("In 0 (Linear) of Sequential")
    with pytest.raises(ArgumentError, match=r"\[Linear\] missing a required argument: 'x'"):
        nn.Linear(2, 3)()


def test_the_note_does_not_keep_the_model() -> None:
    with pytest.raises(ShapeError) as caught:
        nn.Sequential(nn.Linear(3, 2))(X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is ShapeError and type(again.__notes__[0]) is str
    assert again.__notes__ == caught.value.__notes__


def test_a_module_without_forward() -> None:
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"\[Empty\] must define forward\(\)"):
        Empty()(X)


def test_control_flow_by_exceptions_works() -> None:
    class Leaving(nn.Module):
        def forward(self, x: Any) -> Any:
            raise StopIteration

    class Catching(nn.Module):
        def __init__(self) -> None:
            self.inner = Leaving()

        def forward(self, x: Any) -> Any:
            try:
                return self.inner(x)
            except StopIteration:
                return x

    assert Catching()(X) is X
    assert rn.compile(Catching())(X).shape == X.shape
