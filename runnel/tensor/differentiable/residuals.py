"""Choose residuals: the cheapest set of values from which cheap ops recompute the rest.

The set is a minimum cut between the values known anyway and those that the backward pass reads; cutting a value costs
its bytes. The cut is found by maximum flow along shortest augmenting paths (J. Edmonds, R. Karp, "Theoretical
improvements in algorithmic efficiency for network flow problems", 1972). Expensive values are not recomputed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

from runnel.compiler.lowering.protocol import cost_of, lowering_of
from runnel.graph.graph import topological
from runnel.graph.node import Value

_CHEAP: Final = 8  # units of one addition, of one element of a pointwise op
_WITHOUT_END: Final = 1 << 62

Place = tuple[Value | None, bool]  # a node's way in (False) or out (True); None: the source and the sink
_SOURCE: Final[Place] = (None, False)
_SINK: Final[Place] = (None, True)


def to_keep(
    read: Collection[Value], free: Collection[Value], *, recompute: bool = False, late: bool = False
) -> list[Value]:
    """Return the nodes to keep so that all of ``read`` can be computed.

    Nodes in ``free`` cost nothing; inputs that are not in it cost their bytes. With ``recompute`` everything may be
    recomputed, whatever it costs. Of the sets with the same cost, the one nearest to the inputs is returned or, if
    ``late``, the one nearest to ``read``."""
    nodes = topological(read)
    room: dict[Place, dict[Place, int]] = {_SOURCE: {}, _SINK: {}}
    for node in nodes:
        if node.is_constant:
            continue
        room.setdefault((node, False), {})[node, True] = 0 if node in free else _price(node)
        room.setdefault((node, True), {})
        if node.op is None or node in free or not (recompute or is_cheap(node)):
            room[_SOURCE][node, False] = _WITHOUT_END
        for x in node.inputs:
            if not x.is_constant:
                room[x, True][node, False] = _WITHOUT_END
    for node in read:
        if not node.is_constant:
            room[node, True][_SINK] = _WITHOUT_END
    near = _fill(room)
    if late:
        far = _leading_to_sink(room)
        return reachable_cut(read, {node for node in nodes if (node, False) not in far and (node, True) in far})
    return reachable_cut(read, {node for node in nodes if (node, False) in near and (node, True) not in near})


def reachable_cut(read: Collection[Value], stops: Collection[Value]) -> list[Value]:
    """Return the members of ``stops`` that ``read`` depends on directly, without other stops between."""
    pending, visited, cut = list(read), set(), []
    while pending:
        node = pending.pop()
        if node in visited:
            continue
        visited.add(node)
        if node in stops:
            cut.append(node)
        else:
            pending += node.inputs
    return cut


def _price(node: Value) -> int:
    """Return the bytes of a value."""
    return max(1, node.aval.nbytes)


def is_cheap(node: Value) -> bool:
    """Return whether recomputing ``node`` is better than keeping it."""
    lowering = lowering_of(node)
    if lowering.is_view:
        return True
    if not lowering.is_expression or lowering.position_steps(node) is not None:
        return False
    return cost_of(node) <= _CHEAP


def _leading_to_sink(room: dict[Place, dict[Place, int]]) -> set[Place]:
    """Return the places from which more could flow to the sink: the far side of the cut next to it."""
    before: dict[Place, list[Place]] = {}
    for place, targets in room.items():
        for target, free in targets.items():
            if free > 0:
                before.setdefault(target, []).append(place)
    reached, waiting = {_SINK}, [_SINK]
    while waiting:
        for place in before.get(waiting.pop(), ()):
            if place not in reached:
                reached.add(place)
                waiting.append(place)
    return reached


def _fill(room: dict[Place, dict[Place, int]]) -> set[Place]:
    """Push a maximum flow from source to sink; return the places that could still be reached: the near side of the cut
    next to the source."""
    while True:
        came: dict[Place, Place] = {}
        waiting = deque([_SOURCE])
        reached = {_SOURCE}
        while waiting and _SINK not in reached:
            place = waiting.popleft()
            for target, free in room[place].items():
                if free > 0 and target not in reached:
                    reached.add(target)
                    came[target] = place
                    waiting.append(target)
        if _SINK not in reached:
            return reached
        path = [(came[_SINK], _SINK)]
        while path[-1][0] != _SOURCE:
            path.append((came[path[-1][0]], path[-1][0]))
        amount = min(room[a][b] for a, b in path)
        for a, b in path:
            room[a][b] -= amount
            room[b][a] = room[b].get(a, 0) + amount
