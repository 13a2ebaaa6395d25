"""Nested containers under the names of ``jax.tree_util``; registration of classes as containers."""

from runnel.core.namespaces import namespace

NAMES = {
    "PyTreeDef": "runnel.transforms.pytrees:PyTreeDef",
    "keystr": "runnel.transforms.pytrees:keystr",
    "register_dataclass": "runnel.transforms.pytrees:register_dataclass",
    "register_pytree_node": "runnel.transforms.pytrees:register_pytree_node",
    "register_pytree_node_class": "runnel.transforms.pytrees:register_pytree_node_class",
    "tree_all": "runnel.transforms.pytrees:tree_all",
    "tree_flatten": "runnel.transforms.pytrees:tree_flatten",
    "tree_flatten_with_path": "runnel.transforms.pytrees:tree_flatten_with_path",
    "tree_leaves": "runnel.transforms.pytrees:tree_leaves",
    "tree_leaves_with_path": "runnel.transforms.pytrees:tree_leaves_with_path",
    "tree_map": "runnel.transforms.pytrees:tree_map",
    "tree_map_with_path": "runnel.transforms.pytrees:tree_map_with_path",
    "tree_reduce": "runnel.transforms.pytrees:tree_reduce",
    "tree_structure": "runnel.transforms.pytrees:tree_structure",
    "tree_transpose": "runnel.transforms.pytrees:tree_transpose",
    "tree_unflatten": "runnel.transforms.pytrees:tree_unflatten",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
