"""Nested containers under the names of ``jax.tree_util``; registration of classes as containers."""

from runnel.core.namespaces import namespace

NAMES = {
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

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
