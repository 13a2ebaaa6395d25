"""Nested containers as ``torch.utils._pytree`` has them, whose arguments come in another order than JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from runnel.transforms import pytrees


class _Listed(tuple[Any, ...]):
    """The items of a context that is a list, which has no hash."""


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Register a class as a container: ``flatten_fn`` returns (children, context), ``unflatten_fn`` takes both."""

    def flatten(tree: Any) -> tuple[Any, Any]:
        children, context = flatten_fn(tree)
        return children, _Listed(context) if isinstance(context, list) else context

    def unflatten(context: Any, children: Any) -> Any:
        return unflatten_fn(list(children), list(context) if isinstance(context, _Listed) else context)

    pytrees.register_pytree_node(cls, flatten, unflatten)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return the container of ``treespec`` with the ``leaves``."""
    return pytrees.tree_unflatten(treespec, list(leaves))


def tree_iter(tree: Any, is_leaf: Any = None) -> Iterator[Any]:
    """Yield the leaves of a container."""
    yield from pytrees.tree_leaves(tree, is_leaf)


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Any = None) -> Any:
    """Return the container with ``func`` of the leaves of some types, or for which a function is true."""
    is_chosen = kinds if callable(kinds) and not isinstance(kinds, type) else lambda leaf: isinstance(leaf, kinds)
    return pytrees.tree_map(lambda leaf: func(leaf) if is_chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if ``pred`` is true for all leaves."""
    return all(map(pred, pytrees.tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Any = None) -> bool:
    """Return True if ``pred`` is true for any leaf."""
    return any(map(pred, pytrees.tree_leaves(tree, is_leaf)))


def _dict_flatten(tree: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Return values and keys of a dictionary."""
    return list(tree.values()), list(tree)


def _dict_unflatten(values: Any, context: list[Any]) -> dict[Any, Any]:
    """Return the dictionary of keys ``context``."""
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(tree: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Return (key, value) pairs and keys of a dictionary."""
    return list(tree.items()), list(tree)
