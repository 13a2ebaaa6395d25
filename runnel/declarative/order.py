"""The order of a run: which operations are needed, and which of them comes when."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable

from runnel.core.errors import GraphError
from runnel.declarative.operation import Declared, Operation, needed


def ancestors(fetched: Iterable[Operation], fed: Collection[Declared] = ()) -> set[Operation]:
    """``fetched`` and all that they need, where the tensors ``fed`` need nothing. Placeholders that are fed do not run:
    what runs after them does so at once."""
    there = {x.operation for x in fed if x.operation.kind == "placeholder"}
    reached = set(fetched) - there
    rest = list(reached)
    while rest:
        operation = rest.pop()
        for x in (*(x.operation for x in operation.inputs if x not in fed), *operation.control_inputs):
            if x not in reached and x not in there:
                reached.add(x)
                rest.append(x)
    return reached


def ordered(operations: Collection[Operation]) -> list[Operation]:
    """``operations`` so that each comes after those that it needs; where there is a choice, as they were declared.

    Raises:
        GraphError: they need one another in a ring.
    """
    by_number = sorted(operations, key=lambda x: x.number)
    inside = set(operations)
    if all(before.number < x.number for x in by_number for before in needed(x)):
        return by_number
    waits = {x: len({before for before in needed(x) if before in inside}) for x in by_number}
    readers: dict[Operation, list[Operation]] = {x: [] for x in by_number}
    for x in by_number:
        for before in {before for before in needed(x) if before in inside}:
            readers[before].append(x)
    ready = [(x.number, x) for x in by_number if not waits[x]]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        _, operation = heapq.heappop(ready)
        order.append(operation)
        for x in readers[operation]:
            waits[x] -= 1
            if not waits[x]:
                heapq.heappush(ready, (x.number, x))
    if len(order) < len(by_number):
        ring = ", ".join(repr(x.name) for x in by_number if waits[x])
        raise GraphError(f"[graph] these operations need one another, in a ring or behind one: {ring}.")
    return order
