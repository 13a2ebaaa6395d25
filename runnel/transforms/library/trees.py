"""Nested containers as JAX handles them: mapped, taken apart into leaves and a structure, put together, registered."""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from runnel.core import pytree
from runnel.core.errors import ArgumentError
from runnel.transforms.library.treedef import KeyPath, PyTreeDef

T = TypeVar("T", bound=type)
Predicate = Callable[[Any], bool] | None
_MISSING: Final = object()


def tree_flatten(tree: Any, is_leaf: Predicate = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of ``tree`` from left to right, and its structure.

    Containers are tuples (named ones too), lists, dicts in the order of insertion, dataclasses and registered classes.
    None is a container without children; everything else is a leaf, and so is what ``is_leaf`` accepts.
    """
    leaves, structure = pytree.flatten(tree, is_leaf)
    none_is_leaf = is_leaf is not None and is_leaf(None)
    has_leaf = tuple(none_is_leaf or x is not None for x in leaves)
    return [x for x, there in zip(leaves, has_leaf, strict=True) if there], PyTreeDef(structure, has_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of the structure ``treedef`` with these leaves."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Predicate = None) -> list[Any]:
    """The leaves of ``tree``, as :func:`tree_flatten` gives them."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Predicate = None) -> PyTreeDef:
    """The structure of ``tree``, as :func:`tree_flatten` gives it."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Predicate = None) -> Any:
    """The tree of ``f(leaf, *parts)`` for each leaf of ``tree``, with the parts of the trees ``rest`` in its place.
    Those begin with the structure of ``tree``; else ArgumentError."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: Predicate = None
) -> Any:
    """``function`` applied to the leaves from left to right, two at a time, beginning with ``initializer``."""
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise ArgumentError("[tree_reduce] a tree without leaves needs an initializer.")
    return functools.reduce(function, leaves)


def tree_all(tree: Any, *, is_leaf: Predicate = None) -> bool:
    """Whether all leaves are true."""
    return builtins.all(map(bool, tree_leaves(tree, is_leaf)))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of the structure ``outer_treedef`` of trees of the structure ``inner_treedef``, inside out. Without the
    latter, it is that of the first of those."""
    inner = outer_treedef.flatten_up_to(pytree_to_transpose)
    if not inner and inner_treedef is None:
        raise ArgumentError("[tree_transpose] a tree without leaves does not say what inner_treedef is; pass it.")
    form = tree_structure(inner[0]) if inner_treedef is None else inner_treedef
    columns = [form.flatten_up_to(part) for part in inner]
    return form.unflatten([outer_treedef.unflatten(row) for row in zip(*columns, strict=True)])


def tree_flatten_with_path(tree: Any, is_leaf: Predicate = None) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """As :func:`tree_flatten`, with pairs of a leaf's path and the leaf."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    return list(zip(treedef.paths(), leaves, strict=True)), treedef


def tree_leaves_with_path(tree: Any, is_leaf: Predicate = None) -> list[tuple[KeyPath, Any]]:
    """Pairs of a leaf's path and the leaf."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Predicate = None) -> Any:
    """As :func:`tree_map`; ``f`` is given the leaf's path first."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*row) for row in zip(treedef.paths(), leaves, *columns, strict=True)])


def keystr(path: KeyPath) -> str:
    """A path as text: ``['layers'][0].weight``."""
    return "".join(map(str, path))


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Make instances of ``nodetype`` containers, for every function that takes trees. ``flatten_func(instance)`` gives
    the children, and what is static; ``unflatten_func(static, children)`` makes an instance of those."""
    pytree.register(nodetype, flatten_func, unflatten_func)


def register_pytree_node_class(cls: T) -> T:
    """A class decorator: instances are containers by their methods ``tree_flatten(self)`` and
    ``tree_unflatten(cls, static, children)``, as in :func:`register_pytree_node`."""
    for name in ("tree_flatten", "tree_unflatten"):
        if not hasattr(cls, name):
            raise ArgumentError(f"[register_pytree_node_class] {cls.__name__} has no method {name}; define it.")
    pytree.register(cls, cls.tree_flatten, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    nodetype: T, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None
) -> T:
    """Make the fields ``data_fields`` of a class the children of its instances, and ``meta_fields`` what is static.
    Without these, the fields of a dataclass whose metadata has ``static=True`` are static, and the others children."""
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise ArgumentError("[register_dataclass] takes a dataclass, or data_fields and meta_fields.")
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
