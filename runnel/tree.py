"""Nested containers under the names of ``jax.tree``: mapped, taken apart, put together."""

from runnel.core.namespaces import namespace

NAMES = {
    "all": "runnel.transforms.pytrees:tree_all",
    "flatten": "runnel.transforms.pytrees:tree_flatten",
    "flatten_with_path": "runnel.transforms.pytrees:tree_flatten_with_path",
    "leaves": "runnel.transforms.pytrees:tree_leaves",
    "leaves_with_path": "runnel.transforms.pytrees:tree_leaves_with_path",
    "map": "runnel.transforms.pytrees:tree_map",
    "map_with_path": "runnel.transforms.pytrees:tree_map_with_path",
    "reduce": "runnel.transforms.pytrees:tree_reduce",
    "structure": "runnel.transforms.pytrees:tree_structure",
    "transpose": "runnel.transforms.pytrees:tree_transpose",
    "unflatten": "runnel.transforms.pytrees:tree_unflatten",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
