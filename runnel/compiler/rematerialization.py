"""Rematerialization: recompute values that are idle at the peak of memory, to fit a memory budget.

The choice follows M. Kirisame et al., "Dynamic Tensor Rematerialization" (arXiv 2006.09616), made ahead of time: the
value with the most bytes times idle calls per second of recomputation, cheap kinds of work first. The recomputed
values are repeated nodes of the graph next to their late readers, with control dependencies
(``optimization_barrier``), so that fusion and planning apply as usual.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from runnel.compiler.lowering.protocol import lowering_of
from runnel.compiler.memory.arena import MemoryPlanner
from runnel.compiler.memory.placement import Placement, place
from runnel.compiler.plan import plan_placed
from runnel.compiler.plan_ir import cost
from runnel.compiler.plan_ir.calls import Allocation, MemorySpace
from runnel.compiler.plan_ir.plan import Life, Plan
from runnel.compiler.plan_ir.strides import Strided
from runnel.core import tables
from runnel.core.errors import MemoryBudgetError
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Node, Result, Value, applied, reapplied, results_of
from runnel.ops.conversion import optimization_barrier_p

LONGEST = 400  # most nodes that are repeated for one value
SMALL = 4  # a value may be kept alive for another with so many times its bytes


class RematCandidate(NamedTuple):
    """A value to be computed again: for which readers, after which value, by which nodes; its bytes and seconds."""

    value: Value
    users: tuple[Value, ...]
    after: Value
    repeated: frozenset[Value]
    read: frozenset[Value]  # the inputs of the repetition
    first: int  # the first call during which it is idle
    last: int
    nbytes: int
    seconds: float
    extended: tuple[tuple[Value, int, int], ...]  # values that live longer for it, and during which calls
    kind: int  # the largest ``recompute_rank`` of the nodes that are repeated

    @property
    def rank(self) -> tuple[int, float]:
        """Cheap kinds first; then by bytes times idle time per second of work, descending."""
        return (self.kind, -self.nbytes * (self.last - self.first + 1) / self.seconds)


class Candidates:
    """The candidates of one plan. Values in ``fruitless`` were tried before."""

    def __init__(self, placement: Placement, plan: Plan, fruitless: set[Value]) -> None:
        self.sources = placement.sources
        self.plan = plan
        self.views = placement.views
        self.fruitless = fruitless
        self.time: dict[Value, int] = {}
        self.at: dict[int, Value] = {}  # a result of each call
        self.touched: dict[Allocation, list[int]] = {}
        cluster_of = placement.clustering.cluster_of
        for index, call in enumerate(plan.calls):
            for node in call.nodes:
                if node in cluster_of and self.time.setdefault(node, index) == index:
                    self.at[index] = node
            for access in call.accesses:
                if access.allocation.space is MemorySpace.ARENA:
                    self.touched.setdefault(access.allocation, []).append(index)
        self.readers: dict[Value, list[Value]] = {}
        for node in cluster_of:
            for x in node.inputs:
                self.readers.setdefault(self.views[x].base, []).append(node)
        self.value_of: dict[Allocation, Value] = {}  # the largest one: others may be parts of it, stored in place
        for node, allocation in placement.sources.items():
            known = self.value_of.get(allocation)
            if allocation.space is MemorySpace.ARENA and (known is None or node.aval.size >= known.aval.size):
                self.value_of[allocation] = node
        self._of_call: set[Value] = set()  # the values that depend on arguments, not on Variables alone
        for node in placement.graph.values:
            own = node.is_input and node.kind is not InputKind.VARIABLE
            if own or any(x in self._of_call for x in node.inputs):
                self._of_call.add(node)
        self._known: dict[tuple[Value, int], RematCandidate | None] = {}

    def choose(self, target: int, most: int) -> list[RematCandidate]:
        """Picks that are estimated to reduce the live bytes to ``target`` at every call; at most ``most``."""
        alive = np.zeros(len(self.plan.calls) + 1, np.int64)
        for life in self.plan.arena.lives:
            alive[life.first : life.last + 1] += life.nbytes
        chosen: list[RematCandidate] = []
        needed: set[Value] = set()
        dropped: set[Value] = set()
        live_until: dict[Value, int] = {}
        while len(chosen) < most:
            fullest = int(alive.argmax())
            if chosen and alive[fullest] <= target:
                break
            picks = [self._pick(life, fullest) for life in self.plan.arena.lives if life.first < fullest < life.last]
            usable = [p for p in picks if p is not None and p.value not in needed | dropped and not p.read & dropped]
            if not usable:
                break
            candidate = min(usable, key=lambda p: (*p.rank, self.time[p.value]))
            alive[candidate.first : candidate.last + 1] -= candidate.nbytes
            for base, first, last in candidate.extended:
                begin = max(first, live_until.get(base, first))
                alive[begin : last + 1] += base.aval.nbytes
                live_until[base] = max(begin, last + 1)
            chosen.append(candidate)
            dropped.add(candidate.value)
            needed |= candidate.read
        return chosen

    def segments(self, count: int) -> list[list[RematCandidate]]:
        """Picks of all values that are idle at the arena's peak, except inputs of later segments, in ``count`` segments
        by the time of computation, the earliest first: each segment's values are computed again together."""
        fullest = self.plan.arena.peak_call
        lives = [life for life in self.plan.arena.lives if life.first < fullest < life.last]
        idle = [candidate for candidate in (self._alone(life, fullest) for life in lives) if candidate is not None]
        cuts = self._cuts(idle, count, fullest)
        groups: dict[int, list[RematCandidate]] = {}
        for candidate in sorted(idle, key=lambda p: self.time[p.value]):
            groups.setdefault(bisect.bisect_left(cuts, self.time[candidate.value]), []).append(candidate)
        return [picks for group in groups.values() if (picks := self._segment(group, fullest))]

    def _cuts(self, idle: list[RematCandidate], count: int, fullest: int) -> list[int]:
        """Return the last call of each segment but the last: segments have about equal bytes, and few bytes cross the
        cuts."""
        handed = np.zeros(len(self.plan.calls) + 1, np.int64)  # bytes that cross each call, up to the peak
        for life in self.plan.arena.lives:
            reads = [t for t in self.touched[life.allocation] if t <= fullest]
            handed[life.first : max(reads, default=life.first)] += life.nbytes
        produced = np.zeros(len(self.plan.calls) + 1, np.int64)
        for candidate in idle:
            produced[self.time[candidate.value]] += candidate.nbytes
        total = np.cumsum(produced)
        share = total[-1] / count
        cuts: list[int] = []
        for number in range(1, count):
            near = np.flatnonzero((abs(total - number * share) <= share / 2) & (produced > 0))
            if len(near):
                cut = int(near[np.argmin(handed[near])])
                if not cuts or cut > cuts[-1]:
                    cuts.append(cut)
        return cuts

    def _segment(self, group: list[RematCandidate], fullest: int) -> list[RematCandidate]:
        """Return one segment's picks. Values that are read after it, up to the peak, are kept, and from then on their
        operands, too."""
        begin, end = self.time[group[0].value], self.time[group[-1].value]
        inner = [p for p in group if not any(end < self.time[u] <= fullest for u in self.readers[p.value])]
        if not inner:
            return []
        repeated = {p.value for p in inner}
        gone = {self.sources[value] for value in repeated}
        stack = list(repeated)
        while stack:
            for base in {self.views[x].base for x in stack.pop().inputs} - repeated:
                until = self._last_touch(base)
                is_gone = until is None or self.sources.get(base) in gone
                if is_gone or (until is not None and until <= fullest and self.time.get(base, -1) >= begin):
                    if lowering_of(base).index_bound(base) is not None:
                        return []
                    repeated.add(base)
                    stack.append(base)
        after = min(inner, key=lambda p: p.last).after
        return [p._replace(after=after, repeated=frozenset(repeated)) for p in inner]

    def _alone(self, life: Life, fullest: int) -> RematCandidate | None:
        """Return the pick of an idle value without what must be repeated for it, which its segment tells. Transformed
        weights are kept: they are small, and computing a segment again where they are read is early for the others."""
        idle = self._idle(life, fullest)
        if idle is None or idle[0] not in self._of_call:
            return None
        value, first, last = idle
        late = self._late_readers(value, last, fullest)
        if late is None or lowering_of(value).index_bound(value) is not None:
            return None
        seconds, kind = _work(value)
        nothing: frozenset[Value] = frozenset()
        return RematCandidate(value, *late, nothing, nothing, first, last, life.nbytes, seconds, (), kind)

    def _pick(self, life: Life, fullest: int) -> RematCandidate | None:
        """Return the pick of a value that is idle at the call ``fullest``; None if it cannot be computed again."""
        idle = self._idle(life, fullest)
        if idle is None:
            return None
        value, first, last = idle
        key = (value, last)
        if key not in self._known:
            self._known[key] = self._repetition(value, life.nbytes, first, last, fullest)
        return self._known[key]

    def _idle(self, life: Life, fullest: int) -> tuple[Value, int, int] | None:
        """Return the value of a life that nothing touches at the call ``fullest``, and the first and last such call."""
        value = self.value_of.get(life.allocation)
        if value is None or value in self.fruitless or value not in self.time:
            return None
        touched = self.touched[life.allocation]
        before = max((t for t in touched if t <= fullest), default=-1)
        after = min((t for t in touched if t > fullest), default=-1)
        return None if before in (-1, fullest) or after == -1 else (value, before + 1, after - 1)

    def _late_readers(self, value: Value, last: int, fullest: int) -> tuple[tuple[Value, ...], Value] | None:
        """Return the readers of a value after the call ``last``, and the value after which it is computed again."""
        users = tuple(u for u in self.readers.get(value, ()) if self.time.get(u, -1) > last)
        after = next((self.at[t] for t in range(last, fullest - 1, -1) if t in self.at), None)
        if not users or after is None or any(self.time.get(u, -1) < 0 for u in self.readers[value]):
            return None
        return users, after

    def _repetition(self, value: Value, nbytes: int, first: int, last: int, fullest: int) -> RematCandidate | None:
        late = self._late_readers(value, last, fullest)
        if late is None:
            return None
        repeated: dict[Value, None] = {value: None}
        read: set[Value] = set()
        stack = [value]
        flops, loaded, kind, saved = 0.0, nbytes, 0, nbytes
        extended: list[tuple[Value, int, int]] = []
        while stack:
            node = stack.pop()
            if lowering_of(node).index_bound(node) is not None or len(repeated) > LONGEST:
                return None
            seconds, its_kind = _work(node)
            flops, kind = flops + seconds, max(kind, its_kind)
            for base in {self.views[x].base for x in node.inputs} - repeated.keys():
                if base in read:
                    continue
                until = self._last_touch(base)
                small = base.aval.nbytes * SMALL <= nbytes
                if until is None or self.sources.get(base) is self.sources[value] or (until <= fullest and not small):
                    repeated[base] = None
                    stack.append(base)
                    continue
                read.add(base)
                loaded += base.aval.nbytes
                if until <= last:
                    extended.append((base, until + 1, last + 1))
                    saved -= base.aval.nbytes if until <= fullest else 0
        if saved <= 0:
            return None
        return RematCandidate(
            value, *late, frozenset(repeated), frozenset(read), first, last, saved,
            max(flops, loaded / cost.BYTE_RATE) + cost.CALL_SECONDS,
            tuple(extended), kind,
        )  # fmt: skip

    def _last_touch(self, base: Value) -> int | None:
        """Return the last call at which ``base`` is available; None if it never is."""
        allocation = self.sources.get(base)
        if allocation is None or allocation.space is not MemorySpace.ARENA:
            return None if allocation is None and base.op is not None else len(self.plan.calls)
        return self.touched.get(allocation, [-1])[-1]


def _work(node: Value) -> tuple[float, int]:
    """Return the seconds of a node's operations, and its kind of work."""
    lowering = lowering_of(node)
    price = tables.cost.get(node.op) if node.op is not None else None
    flops = float(price(*(x.aval for x in node.inputs), **node.attrs)) if price is not None else float(node.aval.size)
    return flops / lowering.rate, lowering.recompute_rank


class Repeated(NamedTuple):
    """The new graph, and the replacement of each node of the old one."""

    graph: Graph
    new: dict[Value, Value]


def repeated(graph: Graph, views: dict[Value, Strided], picks: Sequence[RematCandidate]) -> Repeated:
    """Return ``graph`` in which the late readers of each pick read another computation of its value."""
    return _Rewriting(graph, views, picks).run()


class _Part(NamedTuple):
    """A node of the new graph, before it is created: ``node`` itself (no pick); its recomputation for a pick; or itself
    as an operand of a pick (``late``)."""

    node: Value
    candidate: int = -1
    late: bool = False


class _Rewriting:
    def __init__(self, graph: Graph, views: dict[Value, Strided], picks: Sequence[RematCandidate]) -> None:
        self.graph = graph
        self.views = views
        self.picks = picks
        self.reads_late = {(user, candidate.value): i for i, candidate in enumerate(picks) for user in candidate.users}
        self.new: dict[_Part, Value] = {}
        self.results: dict[Node, tuple[Result, ...]] = {}
        self.shared: dict[tuple[Value, tuple[Value, ...], bool], Value] = {}  # recomputed values of picks at one point

    def run(self) -> Repeated:
        """Create all values that the roots depend on; iterative, so depth is no limit."""
        stack = [_Part(root) for root in reversed((*self.graph.inputs, *self.graph.roots))]
        while stack:
            part = stack[-1]
            if part in self.new:
                stack.pop()
                continue
            parts = self._parts(part)
            missing = [p for p in parts if p not in self.new]
            if missing:
                stack += reversed(missing)
            else:
                self.new[part] = self._make(part, tuple(self.new[p] for p in parts))
        old = {part.node: node for part, node in self.new.items() if part.candidate < 0}
        graph = Graph(
            self.graph.inputs,
            [old[o] for o in self.graph.outputs],
            {variable: old[new] for variable, new in self.graph.updates.items()},
            self.graph.name,
            [old[x] for x in self.graph.effects],
        )
        return Repeated(graph, old)

    def _parts(self, part: _Part) -> list[_Part]:
        node, number, late = part
        if number < 0:
            late_reads = [self.reads_late.get((node, self.views[x].base), -1) for x in node.inputs]
            return [_Part(x, candidate) for x, candidate in zip(node.inputs, late_reads, strict=True)]
        candidate = self.picks[number]
        if late:
            return [_Part(node), _Part(candidate.after)]
        if self.views[node].base is not node:
            source, *after = node.inputs
            return [_Part(source, number), *map(_Part, after)]
        return [_Part(x, number, self.views[x].base not in candidate.repeated) for x in node.inputs]

    def _make(self, part: _Part, inputs: tuple[Value, ...]) -> Value:
        node, number, late = part
        if number < 0:
            return node if inputs == node.inputs else self._with_inputs(node, inputs)
        if late and node.is_constant:
            return node
        key = (node, inputs, late)
        if key not in self.shared:
            remade = (
                applied(optimization_barrier_p, inputs, {}, node.aval, node.where) if late else reapplied(node, inputs)
            )
            self.shared[key] = remade
        return self.shared[key]

    def _with_inputs(self, value: Value, inputs: tuple[Value, ...]) -> Value:
        """Return ``value`` of the first computation, on other inputs. Results of one node remain results of one
        node."""
        if not isinstance(value, Result):
            return value
        node = value.node
        if node not in self.results:
            self.results[node] = results_of(Node(node.op, inputs, node.attrs, node.avals, node.where))
        return self.results[node][value.index]


ROUNDS = 6  # most plans from one start
SEGMENTS = (2, 4, 8, 16, 32, 64, 128)
FURTHER = 0.9  # of the budget: what values picked one by one should reach, since estimates are low near the least size
NEAR = 2  # numbers of segments that are planned, of those that are estimated to need least
ONE_BY_ONE = 600  # calls of a plan up to which values are also picked one by one, which takes long for more
CHEAP = 1.1  # times the seconds without a budget: good enough to stop the search


@record
class Recomputed:
    """A value that is computed again: its name, the bytes that it frees meanwhile, and the predicted seconds."""

    node: Value
    nbytes: int
    seconds: float


@record
class Fitted:
    """A graph that fits, its plan, the values that are computed again, and the predicted cost of that."""

    graph: Graph
    plan: Plan
    budget: int | None
    recomputed: tuple[Recomputed, ...] = ()
    extra_seconds: float = 0.0


def counted(plan: Plan) -> int:
    """Return the bytes that a budget bounds: the arena and the results, which each call allocates, but not arguments,
    Variables and constants."""
    return plan.arena.peak + sum(allocation.nbytes for allocation in plan.outputs)


def fit(graph: Graph, threads: int, budget: int | None, memory_planner: MemoryPlanner | None = None) -> Fitted:
    """Plan ``graph`` within ``budget`` bytes. MemoryBudgetError if rematerialization does not achieve that.

    Values are picked one by one, and in whole segments of the program (T. Chen et al., "Training deep nets with
    sublinear memory cost", 2016); of the plans that fit, the fastest by prediction is chosen.
    """
    start = _State.of(graph, threads, memory_planner)
    if budget is None or start.counted <= budget:
        return Fitted(graph, start.plan, budget)
    states = [_picked(start, budget)] if len(start.plan.calls) <= ONE_BY_ONE else []
    if not any(state.counted <= budget and state.seconds <= start.seconds * CHEAP for state in states):
        states += _in_segments(start, budget)
    if all(state.counted > budget for state in states):
        states.append(_picked(min(states, key=lambda state: state.counted), int(budget * FURTHER)))
    fitting = [state for state in states if state.counted <= budget]
    if not fitting:
        least = min(states, key=lambda state: state.counted)
        raise MemoryBudgetError(
            f"[compile] '{graph.name}' needs at least {least.counted} bytes for intermediate values and results, with "
            f"{len(least.done)} values computed again instead of kept; memory_budget allows {budget}. Nothing was run.",
            least.counted,
        )
    best = min(fitting, key=lambda state: state.seconds)
    return Fitted(best.placement.graph, best.plan, budget, best.done, best.seconds - start.seconds)


def _in_segments(start: _State, budget: int) -> list[_State]:
    """Return states with segments of the program computed again: as few as fit, else all."""
    candidates = Candidates(start.placement, start.plan, set())
    choices = [groups for n in SEGMENTS if (groups := candidates.segments(n))]
    states: list[_State] = []
    for groups in sorted(choices, key=_needed)[:NEAR]:
        states.append(start.repeating([pick for group in groups for pick in group]))
        few, enough = 0, len(groups)
        while states[-1].counted <= budget and enough - few > 1:
            middle = (few + enough) // 2
            state = start.repeating([pick for group in groups[:middle] for pick in group])
            if state.counted > budget:
                few = middle
            else:
                enough = middle
                states.append(state)
        if states[-1].counted <= budget:
            break
    return states


def _needed(groups: list[list[RematCandidate]]) -> int:
    """Return the bytes that segments need beyond what is alive at the peak without their values, at most."""
    sizes = [sum(pick.nbytes for pick in group) for group in groups]
    return max(sizes) - sum(sizes)


class _State(NamedTuple):
    """A graph with its plan, and the values that are computed again."""

    placement: Placement
    plan: Plan
    threads: int
    memory_planner: MemoryPlanner | None
    done: tuple[Recomputed, ...]

    @staticmethod
    def of(
        graph: Graph, threads: int, memory_planner: MemoryPlanner | None, done: tuple[Recomputed, ...] = ()
    ) -> _State:
        placement = place(graph)
        plan = plan_placed(placement, threads, memory_planner, deals=False)
        return _State(placement, plan, threads, memory_planner, done)

    @property
    def counted(self) -> int:
        return counted(self.plan)

    @property
    def seconds(self) -> float:
        return sum(call.seconds for call in self.plan.calls)

    def repeating(self, picks: Sequence[RematCandidate]) -> _State:
        """Return the state with ``picks`` computed again."""
        again = tuple(Recomputed(p.value, p.nbytes, p.seconds) for p in picks)
        graph = repeated(self.placement.graph, self.placement.views, picks).graph
        return _State.of(graph, self.threads, self.memory_planner, self.done + again)


def _picked(state: _State, budget: int) -> _State:
    """Pick values one by one, best first, until it fits or no pick helps."""
    fruitless: set[Value] = set()
    most = len(state.plan.arena.lives)
    for _ in range(ROUNDS):
        if state.counted <= budget:
            break
        target = state.plan.arena.peak - (state.counted - budget)
        picks = Candidates(state.placement, state.plan, fruitless).choose(target, most)
        if not picks:
            break
        trial = state.repeating(picks)
        if trial.counted < state.counted:
            state = trial
        elif len(picks) > 1:
            most = len(picks) // 4 or 1
        else:
            fruitless.add(picks[0].value)
    return state
