"""Rematerialisation: values that are idle at the peak of memory are computed again to fit a memory budget.

The choice is that of M. Kirisame et al., "Dynamic Tensor Rematerialization" (arXiv 2006.09616), made ahead of time: the
value with the most bytes times idle calls per second of recomputation; cheap kinds of work first. Nodes of the graph
are repeated, with control dependencies (``optimization_barrier``), so that fusion and planning apply as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runnel.compiler.memory.planner import MemoryPlanner
from runnel.compiler.plan import Plan, Planner
from runnel.compiler.schedule.remat_candidates import Candidates, RematCandidate
from runnel.compiler.schedule.repetition import repeated
from runnel.core.errors import MemoryBudgetError
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.node import Value

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
    """The bytes that a budget bounds: the arena and the results, which each call allocates, but not arguments,
    Variables and constants."""
    return plan.arena.peak + sum(allocation.nbytes for allocation in plan.outputs)


def fit(graph: Graph, threads: int, budget: int | None, memory_planner: MemoryPlanner | None = None) -> Fitted:
    """``graph`` planned within ``budget`` bytes. MemoryBudgetError if rematerialisation does not achieve that.

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
        """The state with ``picks`` computed again."""
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
