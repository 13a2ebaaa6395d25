"""Nested containers under the names of ``jax.tree``: mapped, taken apart, put together."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from typing import TYPE_CHECKING

from runnel.core import public

if TYPE_CHECKING:
    from runnel.transforms.library.trees import (
        tree_all as all,
        tree_flatten as flatten,
        tree_flatten_with_path as flatten_with_path,
        tree_leaves as leaves,
        tree_leaves_with_path as leaves_with_path,
        tree_map as map,
        tree_map_with_path as map_with_path,
        tree_reduce as reduce,
        tree_structure as structure,
        tree_transpose as transpose,
        tree_unflatten as unflatten,
    )

__all__ = [
    "all",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]
_LATE = {
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

public.offer(globals(), __all__, _LATE)
del TYPE_CHECKING, public
