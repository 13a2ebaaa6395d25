"""A section of the tape between some results and its ends, walked by itself.

Its cotangents are handed on reading by reading, in the order in which a walk over the whole tape would add them up, so
that sums of gradients are rounded alike however the tape is divided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from runnel.tensor import tape
from runnel.tensor.handle import version
from runnel.tensor.tensor import Tensor


class Stretch(NamedTuple):
    """``order`` is that of ``tape.needed_order``: each tensor after everything it was made of, the ends included."""

    order: list[Tensor]
    ends: Collection[int]  # by id

    def readings(self) -> list[Tensor]:
        """The end of each place where the tape reads one, the latest first."""
        inner = [x for x in reversed(self.order) if id(x) not in self.ends]
        return [x for t in inner for x in t._record.inputs if id(x) in self.ends]  # type: ignore[union-attr]

    def cotangents(self, seeds: Sequence[tuple[Tensor, Any]], create_graph: bool = False) -> list[Any]:
        """What reaches each of the readings, for cotangents of some of the results."""
        pending: tape.Pending = {}
        for tensor, g in seeds:
            tape.accumulate(pending, version(tensor), g)
        reached: list[Any] = []
        records = [tensor._record for tensor in self.order]  # a walk inside of this one may replace them
        for tensor, record in zip(reversed(self.order), reversed(records), strict=True):
            if record is None or id(tensor) in self.ends:
                continue
            if record.freed:
                raise tape.freed(tensor)
            g_sum = pending.pop(id(tensor), None)
            if g_sum is None:
                reached += [None for x in record.inputs if id(x) in self.ends]
                continue
            for x, dx in zip(record.inputs, tape.apply_rule(record, tensor, g_sum, create_graph), strict=True):
                if id(x) in self.ends:
                    dx = dx() if callable(dx) else dx
                    reached.append(tape.like(x, dx) if isinstance(dx, Tensor) else dx)
                elif dx is not None and x.requires_grad:
                    tape.accumulate(pending, x, dx() if callable(dx) else dx)
        return reached
