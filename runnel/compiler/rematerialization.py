"""Rematerialization: recompute values that are idle at the peak of memory, to fit a memory budget.

The choice follows M. Kirisame et al., "Dynamic Tensor Rematerialization" (arXiv 2006.09616), made ahead of time: the
value with the most bytes times idle calls per second of recomputation, cheap kinds of work first. The recomputed
values are repeated nodes of the graph next to their late readers, with control dependencies
(``optimization_barrier``), so that fusion and planning apply as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runnel.compiler.memory.arena import MemoryPlanner
from runnel.compiler.plan import Planner
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.plan_ir.strides import Strided
from runnel.compiler.rematerialization_candidates import Candidates, RematCandidate
from runnel.core.errors import MemoryBudgetError
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.node import Node, Result, Value, applied, reapplied, results_of
from runnel.ops.conversion import optimization_barrier_p


class Repeated(NamedTuple):
    """The new graph, and the replacement of each node of the old one."""

    graph: Graph
    new: dict[Value, Value]


def repeated(graph: Graph, views: dict[Value, Strided], picks: Sequence[RematCandidate]) -> Repeated:
    """``graph`` in which the late readers of each pick read another computation of its value."""
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
        """``value`` of the first computation, on other inputs. The results of one node remain results of one node."""
        if not isinstance(value, Result):
            return value
        node = value.node
        if node not in self.results:
            self.results[node] = results_of(Node(node.op, inputs, node.attrs, node.avals, node.where))
        return self.results[node][value.index]


ROUNDS = 6  # most plans from one start
SEGMENTS = (2, 4, 8, 16, 32)
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
    """``graph`` planned within ``budget`` bytes. MemoryBudgetError if rematerialization does not achieve that.

    Values are picked one by one, and in whole segments of the program (T. Chen et al., "Training deep nets with
    sublinear memory cost", 2016); of the plans that fit, the fastest by prediction is chosen.
    """
    start = _State.of(Planner(graph, threads, memory_planner=memory_planner, deals=False))
    if budget is None or start.counted <= budget:
        return Fitted(graph, start.plan, budget)
    states = [_picked(start, budget)]
    if states[0].counted > budget or states[0].seconds > start.seconds * CHEAP:
        states += [start.repeating(Candidates(start.planner, start.plan, set()).segments(n)) for n in SEGMENTS]
    if all(state.counted > budget for state in states):
        states.append(_picked(min(states, key=lambda state: state.counted), budget))
    fitting = [state for state in states if state.counted <= budget]
    if not fitting:
        least = min(states, key=lambda state: state.counted)
        raise MemoryBudgetError(
            f"[compile] '{graph.name}' needs at least {least.counted} bytes for intermediate values and results, with "
            f"{len(least.done)} values computed again instead of kept; memory_budget allows {budget}. Nothing was run.",
            least.counted,
        )
    best = min(fitting, key=lambda state: state.seconds)
    return Fitted(best.graph, best.plan, budget, best.done, best.seconds - start.seconds)


class _State(NamedTuple):
    """A graph with its plan, and the values that are computed again."""

    graph: Graph
    planner: Planner
    plan: Plan
    done: tuple[Recomputed, ...]

    @staticmethod
    def of(planner: Planner, done: tuple[Recomputed, ...] = ()) -> _State:
        return _State(planner.graph, planner, planner.plan(), done)

    @property
    def counted(self) -> int:
        return counted(self.plan)

    @property
    def seconds(self) -> float:
        return sum(call.seconds for call in self.plan.calls)

    def repeating(self, picks: Sequence[RematCandidate]) -> _State:
        """Return the state with ``picks`` computed again."""
        again = tuple(Recomputed(p.value, p.nbytes, p.seconds) for p in picks)
        graph = repeated(self.graph, self.planner.views, picks).graph
        planner = Planner(graph, self.planner.threads, memory_planner=self.planner.memory_planner, deals=False)
        return _State.of(planner, self.done + again)


def _picked(state: _State, budget: int) -> _State:
    """Values picked one by one, best first, until it fits or no pick helps."""
    fruitless: set[Value] = set()
    most = len(state.plan.arena.lives)
    for _ in range(ROUNDS):
        if state.counted <= budget:
            break
        target = state.plan.arena.peak - (state.counted - budget)
        picks = Candidates(state.planner, state.plan, fruitless).choose(target, most)
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
