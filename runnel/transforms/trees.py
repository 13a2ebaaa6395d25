"""Trees of tensors as loops and branches take and return them: leaves by path, and None where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel.core import pytree
from runnel.core.avals import ShapedArray
from runnel.core.errors import DTypeError, ShapeError
from runnel.tensor.creation import asarray
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor


class Tree(NamedTuple):
    """What is there of a tree; ``present`` says which leaves are not None."""

    leaves: list[Any]
    structure: pytree.Structure
    present: tuple[bool, ...]

    def filled(self, values: Sequence[Any]) -> Any:
        """The same tree with other leaves."""
        rest = iter(values)
        return pytree.unflatten(self.structure, [next(rest) if there else None for there in self.present])

    def paths(self) -> list[str]:
        """Where each leaf is: ``[0]['h']``; ``itself`` where the tree is one leaf."""
        every = pytree.paths(self.structure)
        return [path or "itself" for path, there in zip(every, self.present, strict=True) if there]

    def same_form(self, other: Tree) -> bool:
        return self.structure == other.structure and self.present == other.present


def take_apart(tree: Any) -> Tree:
    """``tree`` by its leaves."""
    leaves, structure = pytree.flatten(tree)
    present = tuple(leaf is not None for leaf in leaves)
    return Tree([leaf for leaf in leaves if leaf is not None], structure, present)


def tensors_of(tree: Tree) -> list[Tensor]:
    """The leaves as tensors; numbers on the device of the first tensor among them."""
    device = next((leaf.device for leaf in tree.leaves if isinstance(leaf, ArrayMethods)), None)
    return [leaf.read() if isinstance(leaf, ArrayMethods) else asarray(leaf, device=device) for leaf in tree.leaves]


def require_same(
    name: str, what: str, before: Tree, old_types: Sequence[ShapedArray], after: Tree, new_types: Sequence[ShapedArray]
) -> None:
    """Raise unless ``after`` has the form of ``before`` and each leaf its shape and dtype."""
    if not before.same_form(after):
        raise ShapeError(
            f"[{name}] {what} must keep its structure; it began as {_form_text(before)} and became {_form_text(after)}."
        )
    for path, old, new in zip(before.paths(), old_types, new_types, strict=True):
        if old.shape != new.shape:
            raise ShapeError(f"[{name}] {what}, leaf {path}, must keep its shape; {old} became {new}.")
        if old.dtype is not new.dtype:
            raise DTypeError(f"[{name}] {what}, leaf {path}, must keep its dtype; {old} became {new}. Cast it.")


def _form_text(tree: Tree) -> str:
    return repr(tree.filled(["*"] * len(tree.leaves)))
