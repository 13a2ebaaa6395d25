"""Nested containers under the names of ``jax.tree_util``; registration of classes as containers."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.transforms.library.treedef import PyTreeDef
    from runnel.transforms.library.trees import (
        keystr,
        register_dataclass,
        register_pytree_node,
        register_pytree_node_class,
        tree_all,
        tree_flatten,
        tree_flatten_with_path,
        tree_leaves,
        tree_leaves_with_path,
        tree_map,
        tree_map_with_path,
        tree_reduce,
        tree_structure,
        tree_transpose,
        tree_unflatten,
    )

__all__ = [
    "PyTreeDef",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "tree_all",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]
_LATE = {
    "PyTreeDef": "runnel.transforms.library.treedef:PyTreeDef",
    "keystr": "runnel.transforms.library.trees:keystr",
    "register_dataclass": "runnel.transforms.library.trees:register_dataclass",
    "register_pytree_node": "runnel.transforms.library.trees:register_pytree_node",
    "register_pytree_node_class": "runnel.transforms.library.trees:register_pytree_node_class",
    "tree_all": "runnel.transforms.library.trees:tree_all",
    "tree_flatten": "runnel.transforms.library.trees:tree_flatten",
    "tree_flatten_with_path": "runnel.transforms.library.trees:tree_flatten_with_path",
    "tree_leaves": "runnel.transforms.library.trees:tree_leaves",
    "tree_leaves_with_path": "runnel.transforms.library.trees:tree_leaves_with_path",
    "tree_map": "runnel.transforms.library.trees:tree_map",
    "tree_map_with_path": "runnel.transforms.library.trees:tree_map_with_path",
    "tree_reduce": "runnel.transforms.library.trees:tree_reduce",
    "tree_structure": "runnel.transforms.library.trees:tree_structure",
    "tree_transpose": "runnel.transforms.library.trees:tree_transpose",
    "tree_unflatten": "runnel.transforms.library.trees:tree_unflatten",
}

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
