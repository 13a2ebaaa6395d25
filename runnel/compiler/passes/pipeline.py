"""The pipeline of passes: running, skipping, inspecting and registering them.

A pass of your own joins the pipeline of compiled programs, or a copy of it, with :meth:`Pipeline.register`::

    pipeline.PIPELINE.register(Pass("fuse_gelu", "tanh forms of gelu become one op", run=fuse_gelu), after="simplify")

Dead nodes need no pass: a graph lists only the nodes that its outputs and updates depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runnel.compiler.passes.bodies import in_bodies, without_unused_results
from runnel.compiler.passes.common_subexpressions import merge_common_subexpressions
from runnel.compiler.passes.expand import expand
from runnel.compiler.passes.fold import fold_constants
from runnel.compiler.passes.merge_rows import merge_rows
from runnel.compiler.passes.simplify import simplify
from runnel.compiler.passes.sink_permutes import sink_permutes
from runnel.compiler.passes.transposed_products import flip_transposed_products
from runnel.core import switches
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.verifier import verify


@record
class Pass:
    """A function from graph to graph that preserves every value to the bit. ``needs`` and ``gives`` name properties of
    graphs: a pass runs after those that give what it needs."""

    name: str
    doc: str
    run: Callable[[Graph], Graph]
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()


class Pipeline:
    """Passes in the order they run in."""

    def __init__(self, passes: Iterable[Pass]) -> None:
        self.passes: tuple[Pass, ...] = ()
        for pass_ in passes:
            self.register(pass_)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.passes)

    def copy(self) -> Pipeline:
        """Another pipeline of the same passes."""
        return Pipeline(self.passes)

    def register(self, pass_: Pass, *, after: str | None = None, before: str | None = None) -> None:
        """Add a pass after the one called ``after`` or before ``before``; at the end if neither is given."""
        if pass_.name in self.names:
            raise ValueError(f"A pass called '{pass_.name}' is in the pipeline already; choose another name.")
        if after is not None and before is not None:
            raise ValueError(f"Pass '{pass_.name}' can be placed after one pass or before one, not both.")
        place = len(self.passes)
        if after is not None:
            place = self._place(after) + 1
        elif before is not None:
            place = self._place(before)
        self.passes = (*self.passes[:place], pass_, *self.passes[place:])

    def remove(self, name: str) -> None:
        """Remove a pass."""
        place = self._place(name)
        self.passes = self.passes[:place] + self.passes[place + 1 :]

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"No pass is called '{name}'; there are {', '.join(self.names)}.")
        return self.names.index(name)

    def run(
        self, graph: Graph, keep: bool = False, skip: frozenset[str] = frozenset()
    ) -> tuple[Graph, list[tuple[str, Graph]]]:
        """The graph after all passes but those in ``skip``; and, with ``keep``, each pass's name with its result."""
        for name in sorted(skip):
            self._place(name)
        running = [p for p in self.passes if p.name not in skip]
        self._check_needs(running)
        graphs: list[tuple[str, Graph]] = []
        if switches.verify.value:
            verify(graph, after="trace")
        for pass_ in running:
            graph = pass_.run(graph)
            if switches.verify.value:
                verify(graph, after=pass_.name)
            if keep:
                graphs.append((pass_.name, graph))
        return graph, graphs

    def _check_needs(self, running: list[Pass]) -> None:
        provided: set[str] = set()
        for pass_ in running:
            for missing in sorted(pass_.needs - provided):
                providers = [p.name for p in self.passes if missing in p.gives]
                by = f"pass '{providers[0]}' gives it: run it, and earlier" if providers else "no pass gives it"
                raise ValueError(f"Pass '{pass_.name}' needs '{missing}', which no pass before it has given; {by}.")
            provided |= pass_.gives


def _optimized(body: Graph) -> Graph:
    return PIPELINE.run(body)[0]


_EXPAND = Pass(
    "expand",
    "ops that are made of simpler ones become those",
    expand,
    gives=frozenset({"expanded"}),
)
_SIMPLIFY = Pass(
    "simplify",
    "algebra that keeps every bit: x·1, views of views, casts to the same dtype",
    simplify,
    gives=frozenset({"simplified"}),
)

PIPELINE = Pipeline(
    (
        Pass(
            "unused_results",
            "loops make and carry only what is used",
            without_unused_results,
        ),
        Pass(
            "bodies",
            "the passes run on the bodies of loops and branches",
            lambda graph: in_bodies(graph, _optimized),
        ),
        _EXPAND,
        Pass(
            "fold",
            "nodes that read only constants become constants",
            fold_constants,
            gives=frozenset({"folded"}),
        ),
        _SIMPLIFY,
        Pass(
            "sink_permutes",
            "regions of a graph are computed in the order of axes that their borders want",
            sink_permutes,
        ),
        Pass(
            "merge_rows",
            "what is computed from a product of matrices is computed in its rows and columns",
            merge_rows,
        ),
        Pass(
            "common_subexpressions",
            "equal values are computed once",
            merge_common_subexpressions,
            gives=frozenset({"unique values"}),
        ),
        Pass(
            "transposed_products",
            "a product that is only read transposed is computed transposed",
            flip_transposed_products,
        ),
    )
)

NO_PASSES = Pipeline(())  # for a primitive op
EXPANSION = Pipeline((_EXPAND, _SIMPLIFY))  # for a composite op


def run(graph: Graph, keep: bool = False, skip: frozenset[str] = frozenset()) -> tuple[Graph, list[tuple[str, Graph]]]:
    """:meth:`Pipeline.run` of :data:`PIPELINE`, the passes of compiled programs."""
    return PIPELINE.run(graph, keep, skip)
