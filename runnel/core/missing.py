"""Unknown keywords and missing names: messages with a remedy, and hooks for the spellings of other libraries.

The message of a missing name is computed when somebody reads it, so that ``hasattr`` stays cheap.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from runnel.core.errors import ArgumentError, MissingNameError


class Spellings(NamedTuple):
    """Hooks for the names of other libraries.

    Attributes:
        keywords: translates the keyword arguments of a call: (function's name, kwargs, parameters) -> kwargs.
        positions: translates a call with too many positional arguments: (function's name, args, kwargs, names of the
            positional parameters, parameters) -> (args, kwargs), or None.
        equivalent: returns the expression to write for a name that a module or class lacks, or "":
            (owner, name) -> str.
        elsewhere: the same for a name of any other owner, if no own name is similar.
    """

    keywords: Callable[[str, dict[str, Any], Collection[str]], dict[str, Any]]
    positions: Callable[
        [str, tuple[Any, ...], dict[str, Any], Sequence[str], Collection[str]],
        tuple[tuple[Any, ...], dict[str, Any]] | None,
    ]
    equivalent: Callable[[str, str], str]
    elsewhere: Callable[[str, str], str]


_spellings = Spellings(
    lambda name, kwargs, parameters: kwargs, lambda *call: None, lambda owner, name: "", lambda owner, name: ""
)


def connect(spellings: Spellings) -> None:
    """Use ``spellings`` from now on."""
    global _spellings
    _spellings = spellings


def known_keywords(name: str, kwargs: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return ``kwargs`` under the names of the function's ``parameters``; ArgumentError for an unknown keyword."""
    known = _spellings.keywords(name, kwargs, parameters)
    for keyword in known:
        if keyword not in parameters:
            raise ArgumentError(f"[{name}] takes no argument '{keyword}'; {_accepted(keyword, parameters)}.")
    return known


def known_positions(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[str], parameters: Collection[str]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a call that has more positions than ``places`` as the function takes them, or None."""
    return _spellings.positions(name, args, kwargs, places, parameters)


def _accepted(keyword: str, parameters: Iterable[str]) -> str:
    accepted = [p for p in parameters if p != "self"]
    if not accepted:
        return "it takes none by name"
    near = difflib.get_close_matches(keyword, accepted, 1)
    return (f"did you mean '{near[0]}'? It takes " if near else "it takes ") + ", ".join(accepted)


def missing(
    owner: str, name: str, names: Callable[[], Iterable[str]], elsewhere: Callable[[], str] = str
) -> AttributeError:
    """Return the error for ``owner.name``, where ``owner`` is a module or a class.

    Args:
        names: returns the names that ``owner`` has.
        elsewhere: returns an expression to write instead, if another module has the name.
    """
    if name.startswith("_"):  # asked by protocols such as copying and pickling
        return AttributeError(f"[{owner}] there is no attribute '{name}'.")
    return MissingNameError(lambda: f"[{owner}] there is no '{name}'{_instead(owner, name, names(), elsewhere())}")


def _instead(owner: str, name: str, names: Iterable[str], elsewhere: str) -> str:
    known = _spellings.equivalent(owner, name) or elsewhere
    if known:
        return f"; {_advice(known)}."
    if _is_module(owner, name):
        return f" before `import {owner}.{name}`: it is a separate module."
    offered = [n for n in names if not n.startswith("_")]
    folded = {n.lower(): n for n in offered}
    near = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, 3)]
    if near:
        return f"; did you mean {' or '.join(near)}?" if len(near) < 3 else f"; did you mean {', '.join(near)}?"
    other = _spellings.elsewhere(owner, name)
    return f"; {_advice(other)}." if other else f"; dir({owner}) lists the names it has."


def _advice(instead: str) -> str:
    """Return what to do, from an expression to write, or from "nothing: " and a reason."""
    return instead.replace("nothing:", "leave it out:") if instead.startswith("nothing:") else f"write {instead}"


def _is_module(owner: str, name: str) -> bool:
    try:
        return importlib.util.find_spec(f"{owner}.{name}") is not None
    except ModuleNotFoundError:  # the owner is not a package
        return False
