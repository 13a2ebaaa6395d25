"""Texts of values that only later calls know: a tensor is shown by its shape and dtype. That is enough for ``print``
and its kin. Whoever looks into such a text, or keeps it, would have another one in a call without a program."""

from __future__ import annotations

from typing import Any, Final

from runnel.compile.observe import symbols
from runnel.compile.observe.recorder import Recorder

_WHOLE: Final = frozenset(  # functions and methods that give a text on whole
    {
        "str", "repr", "ascii", "format", "id", "join", "ljust", "rjust", "center", "strip", "lstrip", "rstrip",
        "expandtabs", "replace", "__add__", "__mod__", "__format__", "__str__", "__repr__",
    }
)  # fmt: skip

_CHANGING: Final = frozenset({"replace", "strip", "lstrip", "rstrip"})  # they may leave out what shows a tensor
LETTERS: Final = frozenset(  # classes whose objects are made of a text's letters, by id
    map(id, (tuple, set, frozenset, zip, enumerate, reversed, bytes, bytearray))
)


def look_at(rec: Recorder, *values: Any) -> None:
    """Somebody looks into these values, or finds something by them."""
    if any(shows_unknown(rec, value) for value in values):
        refuse(rec, "looked into")


def shows_unknown(rec: Recorder, value: Any) -> bool:
    """Whether a value is a text in which a tensor is shown that has no value yet."""
    return issubclass(type(value), str) and rec.policy.shows_unknown(str.__str__(value))  # past methods of its class


def refuse(rec: Recorder, use: str) -> None:
    """Say what became of such a text."""
    rec.refuse(
        f"the text of a tensor is {use}, whose elements are known only when the program runs",
        "print it, or return the tensor",
    )


def given(rec: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """C code is called: what it puts away or gives on whole it has not looked into."""
    name = function.__name__
    if name in _WHOLE or id(function) in rec.policy.passing_on:
        if name == "join":
            look_at(rec, *args[-1:])  # a text: its letters are joined
        elif name in _CHANGING:
            text = function.__self__ if hasattr(function, "__self__") else next(iter(args), None)
            if shows_unknown(rec, text) and not shows_unknown(rec, function(*args, **kwargs)):
                refuse(rec, "looked into")
        return
    owner = getattr(function, "__self__", None)
    named = () if name in symbols.MERGES else kwargs.values()
    look_at(rec, owner, *args[: len(args) - symbols.unseen(function, args)], *named)
