"""The operands of attention and its gradient by role, with their sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.core.avals import Shape
from runnel.core.errors import ShapeError


class Heads(NamedTuple):
    """The extents of an attention."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    depth: int
    values: int

    @property
    def group(self) -> int:
        """How many heads read the same keys."""
        return self.heads // self.kv_heads if self.kv_heads else 0

    @property
    def parts(self) -> tuple[Shape, Shape, Shape]:
        """The shapes of the gradients of q, k and v as they lie in memory."""
        return (
            (self.batch, self.queries, self.heads, self.depth),
            (self.batch, self.keys, self.kv_heads, self.depth),
            (self.batch, self.keys, self.kv_heads, self.values),
        )


class Roles(NamedTuple):
    """The operands of an attention by their roles; None for what it does not have."""

    main: tuple[Any, ...]  # q, k and v, or the packed array
    mask: Any
    lengths: Any
    key: Any  # of dropout
    bounds: Any


class AttentionOperands(NamedTuple):
    """AttentionOperands that have shapes by their roles, and the extents."""

    main: tuple[Any, ...]
    mask: Any
    lengths: Any
    key: Any
    bounds: Any
    heads: Heads


def roles(
    arrays: tuple[Any, ...], *, packed: bool, masked: bool, limited: bool, dropout: float, ragged: bool, **_: Any
) -> Roles:
    """Sort whatever stands for the operands; ShapeError where their number is wrong."""
    count = 1 if packed else 3
    present = (masked, limited, dropout > 0, ragged)
    if len(arrays) != count + sum(present):
        raise ShapeError(f"[attention] takes {count + sum(present)} operands, got {len(arrays)}.")
    extras = iter(arrays[count:])
    return Roles(arrays[:count], *(next(extras) if is_present else None for is_present in present))


def operands(arrays: tuple[Any, ...], *, packed: bool, **attrs: Any) -> AttentionOperands:
    """Sort what has shapes; ShapeError where the number or rank of arrays is wrong."""
    by_role = roles(arrays, packed=packed, **attrs)
    if any(x.ndim != (5 if packed else 4) for x in by_role.main):
        shapes = ", ".join(str(x.shape) for x in by_role.main)
        raise ShapeError(f"[attention] takes arrays of {5 if packed else 4} axes, got shapes {shapes}.")
    if packed:
        b, t, three, h, d = by_role.main[0].shape
        if three != 3:
            raise ShapeError(f"[attention] axis 2 of packed operands holds q, k and v; it has {three}.")
        return AttentionOperands(*by_role, Heads(b, h, h, t, t, d, d))
    q, k, v = (x.shape for x in by_role.main)
    return AttentionOperands(*by_role, Heads(q[0], q[1], k[1], q[2], k[2], q[3], v[3]))
