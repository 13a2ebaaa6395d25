"""Nested containers under the names of ``jax.tree``: mapped, taken apart, put together."""

from runnel.core.namespaces import namespace

NAMES = {
    "all": "runnel.transforms.library.trees:tree_all",
    "flatten": "runnel.transforms.library.trees:tree_flatten",
    "flatten_with_path": "runnel.transforms.library.trees:tree_flatten_with_path",
    "leaves": "runnel.transforms.library.trees:tree_leaves",
    "leaves_with_path": "runnel.transforms.library.trees:tree_leaves_with_path",
    "map": "runnel.transforms.library.trees:tree_map",
    "map_with_path": "runnel.transforms.library.trees:tree_map_with_path",
    "reduce": "runnel.transforms.library.trees:tree_reduce",
    "structure": "runnel.transforms.library.trees:tree_structure",
    "transpose": "runnel.transforms.library.trees:tree_transpose",
    "unflatten": "runnel.transforms.library.trees:tree_unflatten",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
