"""Functions of nested containers with JAX's names: flatten, unflatten, map, reduce, transpose, register."""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from runnel.core import pytree
from runnel.core.errors import ArgumentError
from runnel.core.public import methods


class DictKey(NamedTuple):
    """A step of a path into a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """A step of a path into a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class GetAttrKey(NamedTuple):
    """A step of a path into a dataclass or named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """A step of a path into an instance of a registered class."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[DictKey | SequenceKey | GetAttrKey | FlattenedIndexKey, ...]


@methods
class PyTreeDef:
    """The structure of a tree: its nesting, keys and classes. It can be compared and hashed. None has no leaves."""

    __slots__ = ("_has_leaf", "_structure")

    def __init__(self, structure: pytree.Structure, has_leaf: tuple[bool, ...]) -> None:
        self._structure = structure
        self._has_leaf = has_leaf  # for each place of a leaf: False for None

    @property
    def num_leaves(self) -> int:
        return sum(self._has_leaf)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ArgumentError(f"[tree_unflatten] leaves must have {self.num_leaves} items; got {len(values)}.")
        rest = iter(values)
        return pytree.unflatten(self._structure, [next(rest) if there else None for there in self._has_leaf])

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of ``tree`` at this structure's leaves. The tree must begin with this structure."""
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
        """Return the path of each leaf."""
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
    """Return the steps from a container to its children."""
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
    """Return the children of ``value``, a container like ``branch``, in the order of the keys of ``branch``."""
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
        raise _differs(path, f"a {kind.__name__} with other static parts", "different ones")
    return children


def _differs(path: str, expected: str, received: str) -> ArgumentError:
    where = f"at {path} " if path else ""
    return ArgumentError(f"[tree_map] {where}all trees must have {expected} like the first; got {received}.")


T = TypeVar("T", bound=type)
Predicate = Callable[[Any], bool] | None
_MISSING: Final = object()


def tree_flatten(tree: Any, is_leaf: Predicate = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of ``tree`` from left to right, and its structure.

    Containers are tuples, named tuples, lists, dicts in the order of insertion, dataclasses and registered classes.
    None is a container without children. Everything else is a leaf.

    Args:
        tree: the tree.
        is_leaf: a function that returns whether a container, or None, is a leaf.

    Example:
        >>> rn.tree.flatten({"a": 1, "b": (2, 3)})
        ([1, 2, 3], PyTreeDef({'a': *, 'b': (*, *)}))
    """
    leaves, structure = pytree.flatten(tree, is_leaf)
    none_is_leaf = is_leaf is not None and is_leaf(None)
    has_leaf = tuple(none_is_leaf or x is not None for x in leaves)
    return [x for x, there in zip(leaves, has_leaf, strict=True) if there], PyTreeDef(structure, has_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of the structure ``treedef`` with these leaves."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Predicate = None) -> list[Any]:
    """Return the leaves of ``tree``, as :func:`tree_flatten` does."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Predicate = None) -> PyTreeDef:
    """Return the structure of ``tree``, as :func:`tree_flatten` does."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Predicate = None) -> Any:
    """Return the tree of ``f(leaf, *parts)`` for each leaf of ``tree`` and the parts of the other trees at its place.

    Raises:
        ArgumentError: a tree in ``rest`` does not begin with the structure of ``tree``.

    Example:
        >>> rn.tree.map(lambda x, y: x + y, [1, (2, 3)], [10, (20, 30)])
        [11, (22, 33)]
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: Predicate = None
) -> Any:
    """Reduce the leaves from left to right by a function of two, starting with ``initializer``."""
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise ArgumentError("[tree_reduce] a tree without leaves must have an initializer.")
    return functools.reduce(function, leaves)


def tree_all(tree: Any, *, is_leaf: Predicate = None) -> bool:
    """Return whether all leaves are true."""
    return builtins.all(map(bool, tree_leaves(tree, is_leaf)))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Transpose a tree of the structure ``outer_treedef`` of trees of the structure ``inner_treedef``.

    None for ``inner_treedef`` is the structure of the first inner tree.
    """
    inner = outer_treedef.flatten_up_to(pytree_to_transpose)
    if not inner and inner_treedef is None:
        raise ArgumentError("[tree_transpose] inner_treedef must be given for a tree without leaves.")
    form = tree_structure(inner[0]) if inner_treedef is None else inner_treedef
    columns = [form.flatten_up_to(part) for part in inner]
    return form.unflatten([outer_treedef.unflatten(row) for row in zip(*columns, strict=True)])


def tree_flatten_with_path(tree: Any, is_leaf: Predicate = None) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return pairs (path, leaf) of ``tree`` and its structure, as :func:`tree_flatten` does."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    return list(zip(treedef.paths(), leaves, strict=True)), treedef


def tree_leaves_with_path(tree: Any, is_leaf: Predicate = None) -> list[tuple[KeyPath, Any]]:
    """Return pairs (path, leaf) of ``tree``."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Predicate = None) -> Any:
    """Do the same as :func:`tree_map`, with the path of the leaf as the first argument of ``f``."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*row) for row in zip(treedef.paths(), leaves, *columns, strict=True)])


def keystr(path: KeyPath) -> str:
    """Return a path as text, such as ``['layers'][0].weight``."""
    return "".join(map(str, path))


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Register a class as a container for all functions of trees.

    Args:
        nodetype: the class.
        flatten_func: a function from an instance to the pair (children, static part).
        unflatten_func: a function that returns an instance, called as ``unflatten_func(static part, children)``.
    """
    pytree.register(nodetype, flatten_func, unflatten_func)


def register_pytree_node_class(cls: T) -> T:
    """Decorate a class to register it as a container by its methods.

    ``tree_flatten(self)`` and ``tree_unflatten(cls, static, children)`` work as in :func:`register_pytree_node`.
    """
    for name in ("tree_flatten", "tree_unflatten"):
        if not hasattr(cls, name):
            raise ArgumentError(f"[register_pytree_node_class] {cls.__name__} must define the method {name}.")
    pytree.register(cls, cls.tree_flatten, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: T, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None
) -> T:
    """Register a class whose fields ``data_fields`` are children and whose fields ``meta_fields`` are static.

    By default, the fields of a dataclass with ``static=True`` in their metadata are static, the others are children.
    """
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise ArgumentError("[register_dataclass] must get a dataclass, or data_fields and meta_fields.")
        fields = dataclasses.fields(nodetype)
        meta_fields = [f.name for f in fields if f.metadata.get("static")]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(instance: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(instance, name) for name in data], tuple(getattr(instance, name) for name in meta)

    def unflatten(static: tuple[Any, ...], children: Sequence[Any]) -> Any:
        instance: Any = object.__new__(nodetype)
        for name, value in (*zip(meta, static, strict=True), *zip(data, children, strict=True)):
            object.__setattr__(instance, name, value)
        return instance

    pytree.register(nodetype, flatten, unflatten)
    return nodetype
