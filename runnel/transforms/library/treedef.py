"""``PyTreeDef``: the structure of a tree as users hold it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from runnel.core import pytree
from runnel.core.errors import ArgumentError
from runnel.core.public import methods


class DictKey(NamedTuple):
    """A step of a path: into a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """A step of a path: into a tuple or a list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class GetAttrKey(NamedTuple):
    """A step of a path: into a dataclass or a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """A step of a path: into what a class was registered with as its children."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[DictKey | SequenceKey | GetAttrKey | FlattenedIndexKey, ...]


@methods
class PyTreeDef:
    """The structure of a tree: equal for trees of equal nesting, keys and classes, and hashable. None has no leaves."""

    __slots__ = ("_has_leaf", "_structure")

    def __init__(self, structure: pytree.Structure, has_leaf: tuple[bool, ...]) -> None:
        self._structure = structure
        self._has_leaf = has_leaf  # for each place of a leaf: False for None

    @property
    def num_leaves(self) -> int:
        return sum(self._has_leaf)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ArgumentError(f"[tree_unflatten] the structure has {self.num_leaves} leaves; received {len(values)}.")
        rest = iter(values)
        return pytree.unflatten(self._structure, [next(rest) if there else None for there in self._has_leaf])

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of ``tree`` in the places of this structure's leaves, which begins with this structure."""
        parts: list[Any] = []
        has_leaf = iter(self._has_leaf)
        stack: list[tuple[pytree.Structure, Any, str]] = [(self._structure, tree, "")]
        while stack:
            structure, value, path = stack.pop()
            if isinstance(structure, pytree.Branch):
                children = _matching(structure, value, path)
                steps = keys_of(structure)
                each = [(c, v, f"{path}{key}") for c, v, key in zip(structure.children, children, steps, strict=True)]
                stack.extend(reversed(each))
            elif next(has_leaf):
                parts.append(value)
            elif value is not None:
                raise _differs(path, "None", f"a {type(value).__name__}")
        return parts

    def paths(self) -> list[KeyPath]:
        """How each leaf is reached."""
        listed: list[KeyPath] = []
        has_leaf = iter(self._has_leaf)
        stack: list[tuple[pytree.Structure, KeyPath]] = [(self._structure, ())]
        while stack:
            structure, path = stack.pop()
            if isinstance(structure, pytree.Branch):
                below = zip(structure.children, keys_of(structure), strict=True)
                stack.extend(reversed([(child, (*path, key)) for child, key in below]))
            elif next(has_leaf):
                listed.append(path)
        return listed

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PyTreeDef) and self._has_leaf == other._has_leaf and self._structure == other._structure
        )

    def __hash__(self) -> int:
        return hash((self._structure, self._has_leaf))

    def __repr__(self) -> str:
        stars = [_STAR if there else None for there in self._has_leaf]
        return f"PyTreeDef({pytree.unflatten(self._structure, stars)!r})"


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def keys_of(branch: pytree.Branch) -> list[Any]:
    """The steps from a container to its children."""
    kind, names = branch.kind, branch.names
    if isinstance(names, pytree.Static):
        return list(map(FlattenedIndexKey, range(len(branch.children))))
    if issubclass(kind, dict):
        return list(map(DictKey, names or ()))
    if names is not None:
        return list(map(GetAttrKey, names))
    if hasattr(kind, "_fields"):
        return list(map(GetAttrKey, kind._fields))
    return list(map(SequenceKey, range(len(branch.children))))


def _matching(branch: pytree.Branch, value: Any, path: str) -> list[Any]:
    """The children of ``value``, which is a container like ``branch``; those of a dict in the order of its keys."""
    divided = pytree.divided(value)
    count = len(branch.children)
    expected = f"a {branch.kind.__name__} of {count}"
    if divided is None:
        raise _differs(path, expected, f"a {type(value).__name__}")
    kind, names, children = divided
    if kind is not branch.kind or len(children) != count:
        raise _differs(path, expected, f"a {kind.__name__} of {len(children)}")
    if isinstance(branch.names, tuple) and isinstance(names, tuple):
        if set(names) != set(branch.names):
            raise _differs(path, f"the keys {list(branch.names)}", f"the keys {list(names)}")
        by_name = dict(zip(names, children, strict=True))
        return [by_name[name] for name in branch.names]
    if names != branch.names:
        raise _differs(path, f"a {kind.__name__} with other static parts", "this one")
    return children


def _differs(path: str, expected: str, received: str) -> ArgumentError:
    where = f"at {path} " if path else ""
    return ArgumentError(f"[tree_map] {where}the first tree has {expected}, another one {received}; make them alike.")
