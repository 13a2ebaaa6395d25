"""Placements of ``torch.distributed.tensor``: values that programs put into tables. Tensors are not distributed."""

from __future__ import annotations

from dataclasses import dataclass


class Placement:
    """Where the parts of a distributed tensor are."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return True if each process has a part along an axis, ``dim`` if given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return True if each process has all of the tensor."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Return True if each process has a summand."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor."""


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along the axis ``dim``."""

    dim: int


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a summand."""

    reduce_op: str = "sum"
