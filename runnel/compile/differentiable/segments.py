"""A function's tape, divided into segments with one entry each.

A part begins at a result that can be differentiated, or at a value that several parts read; it ends at arguments,
Variables and other parts. On the tape around the function each part stands as one record. The walk there meets parts
as it would meet what is in them, so its sums of gradients have the order that they have without dividing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from runnel.tensor import tape
from runnel.tensor.handle import version
from runnel.tensor.stretch import Stretch
from runnel.tensor.tensor import Tensor


class Segment(NamedTuple):
    """What is between ``root`` and the ends of ``stretch``."""

    root: Tensor
    stretch: Stretch


def segments(roots: Sequence[Tensor], ends: Collection[int]) -> list[Segment]:
    """The parts that begin at ``roots`` and stop at ``ends`` (by id) or at leaves, each after those it leads to."""
    order = tape.needed_order(roots, frozenset(ends))
    begin = {id(version(root)) for root in roots}
    stops = {id(x) for x in order if x._record is None or id(x) in ends}
    entered: dict[int, set[int]] = {}  # by id: the beginnings of the parts that read a tensor
    beginnings: list[Tensor] = []
    for tensor in reversed(order):
        record = tensor._record
        if record is None or id(tensor) in stops:
            continue
        readers = entered.pop(id(tensor), set())
        if id(tensor) in begin or len(readers) != 1:
            beginnings.append(tensor)
            readers = {id(tensor)}
        for x in record.inputs:
            entered.setdefault(id(x), set()).update(readers)
    stops.update(map(id, beginnings))
    return [
        Segment(root, Stretch(tape.needed_order([root], frozenset(stops - {id(root)})), stops - {id(root)}))
        for root in reversed(beginnings)
    ]
