"""Pytrees: nested containers as a list of leaves and a structure.

Containers are tuples (named ones too), lists, dicts, dataclasses and what :func:`register` was told about; everything
else is a leaf. A structure is hashable, and equal for equal nesting, keys, classes and static parts.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from runnel.core.errors import ArgumentError


class Registered(NamedTuple):
    """How the instances of a registered class are taken apart, into children and what is static, and put together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, tuple[Any, ...]], Any]


_REGISTERED: Final[dict[type, Registered]] = {}


def register(kind: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[..., Any]) -> None:
    """Make instances of ``kind`` (not of its subclasses) containers. ``flatten`` gives the children and what is static;
    ``unflatten`` makes an instance of the latter and a tuple of children, in this order."""
    if not isinstance(kind, type):
        raise ArgumentError(f"[register_pytree_node] the node must be a class; got a {type(kind).__name__}.")
    if kind in _REGISTERED or kind in _BUILT_IN:
        raise ArgumentError(f"[register_pytree_node] {kind.__name__} is a container already; register it once.")
    _REGISTERED[kind] = Registered(flatten, unflatten)


def is_registered(kind: type) -> bool:
    """Return whether :func:`register` made ``kind`` a container."""
    return kind in _REGISTERED


def registered_apart(value: Any) -> tuple[str, Any, list[Any]]:
    """Return the name of an instance's registered class, its static part, and its children."""
    kind = type(value)
    opened = _apart(value, kind, _REGISTERED[kind])
    return _name_of(kind), opened.names.value if isinstance(opened.names, Static) else None, list(opened.rest)


def registered_together(name: str, static: Any, children: Iterable[Any]) -> Any:
    """Rebuild an instance from the results of :func:`registered_apart`; LookupError if no class of this name is
    registered."""
    for kind, registered in _REGISTERED.items():
        if _name_of(kind) == name:
            return registered.unflatten(static, tuple(children))
    raise LookupError(f"no class {name} is registered here: import its module, or call register_pytree_node, first")


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class Static:
    """The static part of a registered container. Unhashable parts are copied, so that later changes do not affect the
    structure; they are compared when hashes are equal."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any) -> None:
        try:
            self._hash = hash(value)
        except TypeError:
            value, self._hash = copy.deepcopy(value), 0
        self.value = value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and bool(self.value == other.value)


class Branch:
    """A container: its class, the names of its children (keys, fields; None where they are counted; the static part of
    a registered container), and those.

    Nesting has no limit: what looks at all of a structure walks it in a loop, and the hash is made with the branch.
    """

    __slots__ = ("_hash", "children", "kind", "names")

    def __init__(self, kind: type, names: Names, children: tuple[Structure, ...]) -> None:
        self.kind = kind
        self.names = names
        self.children = children
        self._hash = hash((kind, names, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if not (isinstance(a, Branch) and isinstance(b, Branch)) or a._hash != b._hash:
                return False
            if a.kind is not b.kind or a.names != b.names or len(a.children) != len(b.children):
                return False
            pairs += zip(a.children, b.children, strict=True)
        return True

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(paths(self))})"


class _Leaf:
    """The structure of a leaf."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


LEAF: Final = _Leaf()
Names = tuple[Any, ...] | Static | None
Structure = Branch | _Leaf
Predicate = Callable[[Any], bool]


def flatten(tree: Any, is_leaf: Predicate | None = None) -> tuple[list[Any], Structure]:
    """Return the leaves of ``tree`` from left to right, and its structure. ``is_leaf`` may accept further leaves."""
    leaves: list[Any] = []
    above: list[_Open] = []
    now = _Open(tree, tuple, None, iter((tree,)))
    while True:
        for value in now.rest:
            opened = None if is_leaf is not None and is_leaf(value) else _opened(value)
            if opened is None:
                leaves.append(value)
                now.children.append(LEAF)
                continue
            above.append(now)
            if not len(above) % _CHECKED:
                _check_loop(above)
            now = opened
            break
        else:
            if not above:
                return leaves, now.children[0]
            new = Branch(now.kind, now.names, tuple(now.children))
            now = above.pop()
            now.children.append(new)


class _Open:
    """A container that is being walked: what is left of its items, and the structures of those before."""

    __slots__ = ("children", "kind", "names", "rest", "value")

    def __init__(self, value: Any, kind: type, names: Names, items: Iterator[Any]) -> None:
        self.value = value
        self.kind = kind
        self.names = names
        self.rest = items
        self.children: list[Structure] = []


_CHECKED: Final = 1000  # levels of nesting between two looks for a container that holds itself


_BUILT_IN: Final = frozenset({tuple, list, dict, OrderedDict})


def _opened(value: Any) -> _Open | None:
    kind = type(value)
    registered = _REGISTERED.get(kind) if _REGISTERED else None
    if registered is not None:
        return _apart(value, kind, registered)
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return _Open(value, kind, None, iter(value))
    if kind is dict or kind is OrderedDict:
        return _Open(value, kind, tuple(value), iter(value.values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value) if hasattr(value, f.name))
        return _Open(value, kind, names, iter([getattr(value, name) for name in names]))
    return None


def _apart(value: Any, kind: type, registered: Registered) -> _Open:
    pair = registered.flatten(value)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ArgumentError(
            f"[register_pytree_node] the function that flattens a {kind.__name__} must return the pair (children, what "
            f"is static); it returned a {type(pair).__name__}."
        )
    return _Open(value, kind, Static(pair[1]), iter(pair[0]))


def _check_loop(above: list[_Open]) -> None:
    if len({id(opened.value) for opened in above[1:]}) < len(above) - 1:
        raise ArgumentError("[tree] a container among the arguments or results holds itself; pass its parts instead.")


def divided(value: Any) -> tuple[type, Names, list[Any]] | None:
    """Return the class of a container, the names of its children as in :class:`Branch`, and the children; None for a
    leaf."""
    opened = _opened(value)
    return None if opened is None else (opened.kind, opened.names, list(opened.rest))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return the tree of this structure with these leaves; containers are new."""
    rest = iter(leaves)
    if isinstance(structure, _Leaf):
        return next(rest)
    above: list[tuple[Branch, Iterator[Structure], list[Any]]] = []
    branch, below, items = structure, iter(structure.children), list[Any]()
    while True:
        for child in below:
            if isinstance(child, _Leaf):
                items.append(next(rest))
                continue
            above.append((branch, below, items))
            branch, below, items = child, iter(child.children), []
            break
        else:
            tree = _built(branch, items)
            if not above:
                return tree
            branch, below, items = above.pop()
            items.append(tree)


def _built(branch: Branch, children: list[Any]) -> Any:
    kind, names = branch.kind, branch.names
    if isinstance(names, Static):
        return _REGISTERED[kind].unflatten(names.value, tuple(children))
    if kind is tuple or kind is list:
        return kind(children)
    if names is None:
        return kind(*children)  # a named tuple
    if kind is dict or kind is OrderedDict:
        return kind(zip(names, children, strict=True))
    instance: Any = object.__new__(kind)  # fields only: __init__ and __post_init__ have run when the original was made
    for name, child in zip(names, children, strict=True):
        object.__setattr__(instance, name, child)
    return instance


def paths(structure: Structure) -> list[str]:
    """Return the path from the tree to each leaf: ``[0].weight``."""
    listed: list[str] = []
    stack: list[tuple[str, Structure]] = [("", structure)]
    while stack:
        path, now = stack.pop()
        if isinstance(now, _Leaf):
            listed.append(path)
            continue
        names = now.names if isinstance(now.names, tuple) else range(len(now.children))
        pattern = "[{!r}]" if now.kind in (dict, list, tuple) or isinstance(now.names, Static) else ".{}"
        steps = [(path + pattern.format(name), child) for name, child in zip(names, now.children, strict=True)]
        stack.extend(reversed(steps))
    return listed
