"""Nested containers as a list of leaves and a structure: what functions take and return, looked at element by element.

Containers are tuples (named ones too), lists, dicts and dataclasses; everything else is a leaf. A structure is
hashable, and equal for equal nesting, keys and classes.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple


class Branch(NamedTuple):
    """A container: its class, the names of its children (keys, fields; None where they are counted), and those."""

    kind: type
    names: tuple[Any, ...] | None
    children: tuple[Structure, ...]


class _Leaf:
    """The structure of a leaf."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


LEAF: Final = _Leaf()
Structure = Branch | _Leaf
Predicate = Callable[[Any], bool]


def flatten(tree: Any, is_leaf: Predicate | None = None) -> tuple[list[Any], Structure]:
    """The leaves of ``tree`` from left to right, and its structure. What ``is_leaf`` accepts is not looked into."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Predicate | None) -> Structure:
    kind = type(tree)
    names: tuple[Any, ...] | None = None
    children: Iterable[Any]
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return LEAF
    if kind is tuple or kind is list or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        children = tree
    elif kind is dict or kind is OrderedDict:
        names, children = tuple(tree), tree.values()
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(f.name for f in dataclasses.fields(tree) if hasattr(tree, f.name))
        children = [getattr(tree, name) for name in names]
    else:
        leaves.append(tree)
        return LEAF
    return Branch(kind, names, tuple([_flatten(child, leaves, is_leaf) for child in children]))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves; containers are new."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, _Leaf):
        return next(leaves)
    kind, names = structure.kind, structure.names
    children = [_unflatten(child, leaves) for child in structure.children]
    if kind is tuple or kind is list:
        return kind(children)
    if names is None:
        return kind(*children)  # a named tuple
    if kind is dict or kind is OrderedDict:
        return kind(zip(names, children, strict=True))
    made: Any = object.__new__(kind)  # fields only: __init__ and __post_init__ have run when the original was made
    for name, child in zip(names, children, strict=True):
        object.__setattr__(made, name, child)
    return made
