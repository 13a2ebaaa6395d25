"""Cotangents on a walk over the tape: the steps of the walk, and the sums that are pending for their tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.core.errors import GradientError
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import add
from runnel.ops.elementwise.complex_parts import real
from runnel.ops.shapes.assembly import SliceGradient, assembled
from runnel.tensor.handle import Record, T


class Step(NamedTuple):
    """A tensor on the way of a walk, its record, and the tensors that the record leads to. Other walks inside this one
    may replace the record."""

    tensor: Any
    record: Record[Any] | None
    inputs: tuple[Any, ...]


class ResultCotangent(NamedTuple):
    """The cotangent of result ``number`` of an op of several."""

    number: int
    g: Any


# What is pending for a tensor: a cotangent; cotangents of slices of it, to be put together; or, for a joint node,
# cotangents of the results by index.
Cotangent = Any
Pending = dict[int, Cotangent]


def summed(g: Cotangent, tensor: T) -> T:
    """Return a pending cotangent of ``tensor`` as one tensor."""
    total: T = assembled(g, tensor.shape) if isinstance(g, list) else g
    return total


def accumulate(pending: Pending, tensor: T, g: Cotangent) -> None:
    """Add ``g`` to what is pending for ``tensor``."""
    before = pending.get(id(tensor))
    if g.__class__ is tensor.__class__ and g._aval is tensor._aval:  # most cotangents
        pending[id(tensor)] = g if before is None else add(summed(before, tensor), g)
        return
    if isinstance(g, ResultCotangent):
        gs = pending.setdefault(id(tensor), {})
        gs[g.number] = gs[g.number] + g.g if g.number in gs else g.g
        return
    if isinstance(g, SliceGradient):
        if before is None:
            pending[id(tensor)] = [g]
        elif isinstance(before, list):
            before.append(g)
        else:
            pending[id(tensor)] = before + assembled([g], tensor.shape)
        return
    g = like(tensor, g)
    pending[id(tensor)] = g if before is None else summed(before, tensor) + g


def like(tensor: T, g: T) -> T:
    """Return a cotangent of ``tensor`` in its dtype; seeds and rules in Python may have another one."""
    if g.shape != tensor.shape:
        raise GradientError(
            f"[backward] a cotangent of shape {g.shape} reached a tensor of shape {tensor.shape}; "
            "the vjp rule of the op that read it is wrong."
        )
    if g.dtype is tensor.dtype:
        return g
    return cast(g if tensor.dtype.is_complex else real(g), tensor.dtype)
