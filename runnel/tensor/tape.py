"""Reverse-mode differentiation over the tape that hangs on tensors.

A tensor made by an op from inputs that need a gradient remembers ``(op, attrs, inputs)``. :func:`cotangents` walks
those records from results back to leaves and applies the rules of table ``vjp``. The rules are written with ops, so the
same walk computes numbers on eager tensors and records a graph on traced ones. It is iterative: depth is no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runnel.core import tables
from runnel.core.errors import GradientError
from runnel.core.tables import Op

if TYPE_CHECKING:
    from runnel.tensor.tensor import Tensor


class Record:
    """How a tensor was made: the op, its attributes and its inputs. ``freed`` once a backward pass has consumed it."""

    __slots__ = ("attrs", "freed", "inputs", "op", "rule")

    def __init__(self, op: Op | None, inputs: tuple[Tensor, ...], attrs: dict[str, Any], rule: Any = None) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.rule = rule  # of a custom_vjp: (g, out) -> cotangents of inputs
        self.freed = False

    def free(self) -> None:
        """Let go of the saved values."""
        self.freed = True
        self.inputs = ()
        self.rule = None


def needed_order(roots: Sequence[Tensor], stops: frozenset[int] = frozenset()) -> list[Tensor]:
    """The tensors on a path from ``roots`` to leaves that need a gradient, each after everything it was made of."""
    order: list[Tensor] = []
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Tensor, int]] = [(root, 0)]
        while stack:
            tensor, i = stack.pop()
            if i == 0:
                if id(tensor) in seen or not tensor.requires_grad:
                    continue
                seen.add(id(tensor))
            record = None if id(tensor) in stops else tensor._record
            if record is not None and record.freed:
                raise GradientError(
                    f"[backward] the tape of a tensor of shape {tensor.shape} was freed by an earlier backward(); "
                    "call the earlier one with retain_graph=True, or compute the value again."
                )
            if record is not None and i < len(record.inputs):
                stack.append((tensor, i + 1))
                stack.append((record.inputs[i], 0))
            else:
                order.append(tensor)
    return order


def cotangents(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    leaves: Iterable[Tensor] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> dict[int, tuple[Tensor, Tensor]]:
    """``{id(leaf): (leaf, cotangent)}`` for ``leaves`` (all leaves of the tape when None), seeded at ``roots``.

    With ``create_graph`` the cotangents can be differentiated again. Only what leads to a leaf is computed.
    """
    wanted = None if leaves is None else frozenset(id(t) for t in leaves)
    order = needed_order(roots, wanted or frozenset())
    alive = _leading_to(order, wanted)
    pending: dict[int, Tensor] = {}
    for root, seed in zip(roots, seeds, strict=True):
        _accumulate(pending, root, seed)
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for tensor in reversed(order):
        g = pending.pop(id(tensor), None)
        if g is None or id(tensor) not in alive:
            continue
        record = tensor._record
        if record is None or (wanted is not None and id(tensor) in wanted):
            found[id(tensor)] = (tensor, g)
            continue
        if any(x._rebound and x._serial > tensor._serial for x in record.inputs):
            raise GradientError(
                f"[backward] an input of the op '{record.op.name if record.op else 'custom_vjp'}' was changed by "
                "x[key] = value after the op had used it; change a copy (x + 0) instead."
            )
        for x, dx in zip(record.inputs, _apply_rule(record, tensor, g, create_graph), strict=True):
            if dx is not None and id(x) in alive:
                _accumulate(pending, x, dx() if callable(dx) else dx)
    if not (retain_graph or create_graph):
        for tensor in order:
            if tensor._record is not None and not (wanted is not None and id(tensor) in wanted):
                tensor._record.free()
    return found


def _leading_to(order: Sequence[Tensor], wanted: frozenset[int] | None) -> set[int]:
    """The tensors of ``order`` from which a wanted leaf can be reached."""
    alive: set[int] = set()
    for tensor in order:
        record = tensor._record
        if wanted is None:
            is_leaf = record is None
        else:
            is_leaf = id(tensor) in wanted
        if is_leaf or (record is not None and any(id(x) in alive for x in record.inputs)):
            alive.add(id(tensor))
    return alive


def _apply_rule(record: Record, out: Tensor, g: Tensor, create_graph: bool) -> Sequence[Any]:
    if create_graph:
        inputs: tuple[Tensor, ...] = record.inputs
        result = out
    else:
        inputs = tuple(x.detach() for x in record.inputs)
        result = out.detach()
        g = g.detach()
    if record.op is None:
        return tuple(record.rule(g, result))
    return tuple(tables.vjp[record.op](g, result, *inputs, **record.attrs))


def _accumulate(pending: dict[int, Tensor], tensor: Tensor, g: Tensor) -> None:
    if g.shape != tensor.shape:
        raise GradientError(
            f"[backward] a cotangent of shape {g.shape} reached a tensor of shape {tensor.shape}; "
            "the vjp rule of the op that read it is wrong."
        )
    before = pending.get(id(tensor))
    pending[id(tensor)] = g if before is None else before + g
