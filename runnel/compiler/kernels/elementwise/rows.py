"""The passes of a row kernel: which values each pass along the row computes, and which it spills for a later one."""

from __future__ import annotations

from runnel.compiler.cost.costs import chain_is_costly
from runnel.compiler.fusion.cluster import Cluster
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, MemorySpace
from runnel.compiler.kernels.lowering import is_reduction
from runnel.graph.node import Value


class Passes:
    """``level`` of a member: the length of the longest chain of reductions that it depends on, which is the first pass
    that can compute it. ``spilled``: costly full-rank members that a later pass needs too, with the memory that holds
    them in between: that of a value stored later, if there is one."""

    def __init__(self, cluster: Cluster, views: dict[Value, Strided], targets: dict[Value, list[Allocation]]) -> None:
        self.cluster = cluster
        self.views = views
        self.inside = set(cluster.members)
        self.level: dict[Value, int] = {}
        for node in cluster.members:
            below = max((self.level[b] for b in self._producers(node)), default=0)
            self.level[node] = below + (1 if is_reduction(node) else 0)
        self.last = max(self.level.values(), default=0)
        self.spilled: dict[Value, Allocation] = {}
        if cluster.reduced and self.last > 0:
            self._keep(targets)

    def reductions(self, level: int) -> list[Value]:
        """The reductions of pass ``level``."""
        return [n for n in self.cluster.members if is_reduction(n) and self.level[n] == level + 1]

    def full(self, level: int, among: dict[Value, list[Allocation]]) -> list[Value]:
        """The full-rank members of ``among`` that pass ``level`` is the first to compute."""
        members = [n for n in self.cluster.members if n in among and n not in self.cluster.reduced_members]
        return [n for n in members if self.level[n] == level]

    def _producers(self, node: Value) -> list[Value]:
        return [b for b in (self.views[x].base for x in node.inputs) if b in self.inside]

    def _keep(self, targets: dict[Value, list[Allocation]]) -> None:
        borrowed: set[Allocation] = set()
        last_use = self._last_uses(targets)
        before: set[Value] = set()  # the values of earlier passes
        for k in range(1, self.last + 1):
            before |= self._computed(k - 1, targets)
            for node in self._needed(self._roots(k, targets), targets, before):
                if node in before and chain_is_costly(node, self.inside, self.views):
                    allocation = self._memory(node, last_use[node], targets, borrowed)
                    borrowed.add(allocation)
                    self.spilled[node] = allocation

    def _roots(self, level: int, targets: dict[Value, list[Allocation]]) -> list[Value]:
        """The values that pass ``level`` must compute at each point: operands of its reductions and stored values."""
        return [b for n in self.reductions(level) for b in self._producers(n)] + self.full(level, targets)

    def _last_uses(self, targets: dict[Value, list[Allocation]]) -> dict[Value, int]:
        """The last pass that may read each full-rank member if nothing else is spilled."""
        return {node: k for k in range(self.last + 1) for node in self._computed(k, targets)}

    def _computed(self, level: int, targets: dict[Value, list[Allocation]]) -> set[Value]:
        """The full-rank members that pass ``level`` would compute if nothing were spilled."""
        computed: set[Value] = set()
        stack = self._roots(level, targets)
        while stack:
            node = stack.pop()
            if node not in computed and node not in self.cluster.reduced_members:
                computed.add(node)
                stack += self._producers(node)
        return computed

    def _needed(self, roots: list[Value], targets: dict[Value, list[Allocation]], before: set[Value]) -> list[Value]:
        """The full-rank members that ``roots`` need and that are neither stored nor spilled already, outermost
        first."""
        needed: dict[Value, None] = {}
        stack = [n for n in roots if n not in self.cluster.reduced_members]
        while stack:
            node = stack.pop(0)
            if node in needed or node in self.spilled:
                continue
            if node in targets and node not in roots:
                continue
            needed[node] = None
            if node in roots or node not in before or not chain_is_costly(node, self.inside, self.views):
                stack += [b for b in self._producers(node) if b not in self.cluster.reduced_members]
        return list(needed)

    def _memory(
        self, node: Value, last_use: int, targets: dict[Value, list[Allocation]], borrowed: set[Allocation]
    ) -> Allocation:
        """The memory of a value that is stored after the last read of ``node``, or new memory."""
        for other in self.cluster.members:
            later = (
                other in targets and other not in self.cluster.reduced_members and self.level[other] > self.level[node]
            )
            if later and self.level[other] >= last_use and other.aval.dtype is node.aval.dtype:
                allocation = targets[other][0]
                if allocation.space in (MemorySpace.ARENA, MemorySpace.OUTPUT) and allocation not in borrowed:
                    return allocation
        return Allocation(MemorySpace.ARENA, node.aval.dtype, node.aval.size, "row")
