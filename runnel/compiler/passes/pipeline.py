"""Pipelines: passes in the order they run in, and the usual pipeline of compiled programs.

A pipeline never changes; adding a pass returns another one. Dead nodes need no pass: a graph lists only the nodes that
its outputs and updates depend on.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from runnel.compiler.passes.decompose import decompose, in_bodies, without_unused_results
from runnel.compiler.passes.merge_rows import merge_rows
from runnel.compiler.passes.permutes import flip_transposed_products, sink_permutes
from runnel.compiler.passes.simplify import fold_constants, merge_common_subexpressions, simplify
from runnel.core import switches
from runnel.core.arrays import short_repr
from runnel.core.errors import PassError, VerifierError
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.verifier import verify


@record
class Pass:
    """A function from graph to graph.

    Args:
        name: by which others are placed before and after it, and by which errors and reports call it.
        doc: what it does, in a sentence.
        run: the function. It takes the graph and returns one with the same inputs, and with results of the same shapes
            and dtypes. A pass that keeps every value to the bit keeps compiled programs equal to eager code.
        needs: properties of graphs that passes before this one must have given.
        gives: properties that graphs have after it.
        nested: ``run(graph, rewritten)`` gets the whole pipeline, too, as a function for graphs inside the graph.
        is_own: it is Runnel's, and tested; the results of others are verified at each compilation.
    """

    name: str
    doc: str
    run: Callable[..., Graph]
    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    nested: bool = False
    is_own: bool = False


class Pipeline:
    """Passes in the order they run in. Pipelines of equal passes are equal."""

    __slots__ = ("_hash", "names", "passes")

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self.passes: Final = tuple(passes)
        for pass_ in self.passes:
            _require_pass(pass_)
        self.names: Final = tuple(p.name for p in self.passes)
        self._hash = zlib.crc32(repr(self.names).encode())  # the same in every process, since pipelines are pickled
        for pass_ in self.passes:
            if self.names.count(pass_.name) > 1:
                raise PassError(f"[passes] two passes are called '{pass_.name}'; choose another name for one of them.")

    def insert(self, pass_: Pass, *, after: str | None = None, before: str | None = None) -> Pipeline:
        """Return this pipeline with one more pass: after the one called ``after``, before ``before``, or at the end.

        PassError if no pass has that name, or if one has the name of the new one.
        """
        if after is not None and before is not None:
            raise PassError(f"[passes] '{_name(pass_)}' can be placed after one pass or before one; received both.")
        place = len(self.passes)
        if after is not None:
            place = self._place(after) + 1
        elif before is not None:
            place = self._place(before)
        return Pipeline((*self.passes[:place], pass_, *self.passes[place:]))

    def without(self, *names: str) -> Pipeline:
        """Return this pipeline without the passes of these names. PassError if a name is unknown."""
        places = {self._place(name) for name in names}
        return Pipeline(p for place, p in enumerate(self.passes) if place not in places)

    def require(self, *properties: str) -> None:
        """Raise PassError unless each pass gets what it needs, and graphs have ``properties`` in the end."""
        provided: set[str] = set()
        for pass_ in self.passes:
            for missing in pass_.needs:
                if missing not in provided:
                    raise PassError(
                        f"[passes] '{pass_.name}' needs '{missing}', which no pass before it gives; "
                        f"{self._remedy(missing)}."
                    )
            provided.update(pass_.gives)
        for missing in properties:
            if missing not in provided:
                raise PassError(f"[passes] programs need '{missing}', which no pass gives; {self._remedy(missing)}.")

    def run(self, graph: Graph, keep: bool = False) -> tuple[Graph, list[tuple[str, Graph]]]:
        """Return the graph after all passes; and, with ``keep``, each pass's name with its result.

        VerifierError if a pass returns a graph with another interface than it got.
        """
        self.require()
        graphs: list[tuple[str, Graph]] = []
        if switches.verify.value:
            verify(graph, after="trace")
        for pass_ in self.passes:
            before, graph = graph, pass_.run(graph, self.rewritten) if pass_.nested else pass_.run(graph)
            if not pass_.is_own:
                _require_same_interface(before, graph, pass_.name)
            if switches.verify.value or not pass_.is_own:
                verify(graph, after=pass_.name)
            if keep:
                graphs.append((pass_.name, graph))
        return graph, graphs

    def rewritten(self, graph: Graph) -> Graph:
        """Return the graph after all passes."""
        return self.run(graph)[0]

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise PassError(f"[passes] no pass is called {name!r}; there are {', '.join(self.names) or 'none'}.")
        return self.names.index(name)

    def _remedy(self, missing: str) -> str:
        givers = [p.name for p in self.passes if missing in p.gives]
        return f"'{givers[0]}' gives it: place it earlier" if givers else f"insert a pass that gives '{missing}'"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Pipeline) and self.passes == other.passes)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline, (self.passes,)  # hashes of names differ between processes

    def __repr__(self) -> str:
        return f"<pipeline: {', '.join(self.names) or 'no passes'}>"


def _name(pass_: object) -> str:
    return pass_.name if isinstance(pass_, Pass) else short_repr(pass_)


def _require_pass(pass_: object) -> None:
    if not isinstance(pass_, Pass):
        raise PassError(
            f"[passes] a pipeline is made of passes; received {short_repr(pass_)}. Write Pass(name, doc, run)."
        )
    if not (isinstance(pass_.name, str) and pass_.name and callable(pass_.run)):
        raise PassError(f"[passes] a pass has a name and a function; received {pass_!r}.")
    for properties in (pass_.needs, pass_.gives):
        if not (isinstance(properties, tuple) and all(isinstance(x, str) for x in properties)):
            raise PassError(
                f"[passes] what '{pass_.name}' needs and gives are tuples of names; received {properties!r}."
            )


def _require_same_interface(before: Graph, after: object, name: str) -> None:
    """Raise VerifierError unless ``after`` can be called and used as ``before``."""
    for fault in _changes(before, after):
        raise VerifierError(f"Graph '{before.name}' after pass '{name}': {fault}.")


def _changes(before: Graph, after: object) -> Iterable[str]:
    if not isinstance(after, Graph):
        yield f"a graph is expected, and it returned {short_repr(after)}"
        return
    if after.inputs != before.inputs:
        yield f"its inputs are {list(after.inputs)}, and were {list(before.inputs)}"
    if len(after.outputs) != len(before.outputs):
        yield f"it has {len(after.outputs)} results, and had {len(before.outputs)}"
    for number, (old, new) in enumerate(zip(before.outputs, after.outputs, strict=False)):
        if new.aval is not old.aval:
            yield f"result {number} is {new.aval!r}, and was {old.aval!r}"
    if list(after.updates) != list(before.updates):
        yield f"it updates {list(after.updates)}, and updated {list(before.updates)}"
    if len(after.effects) != len(before.effects):
        yield f"it has {len(after.effects)} side effects, and had {len(before.effects)}"


_own = partial(Pass, is_own=True)

_EXPAND: Final = _own(
    "decompose",
    "ops that are made of simpler ones become those",
    decompose,
    gives=("decomposed",),
)
_SIMPLIFY: Final = _own(
    "simplify",
    "algebra that keeps every bit: x·1, views of views, casts to the same dtype",
    simplify,
)

USUAL: Final = Pipeline(
    (
        _own(
            "unused_results",
            "loops make and carry only what is used",
            without_unused_results,
        ),
        _own(
            "bodies",
            "the passes run on the bodies of loops and branches",
            in_bodies,
            gives=("decomposed bodies",),
            nested=True,
        ),
        _EXPAND,
        _own(
            "fold",
            "nodes that read only constants become constants",
            fold_constants,
        ),
        _SIMPLIFY,
        _own(
            "sink_permutes",
            "regions of a graph are computed in the order of axes that their borders want",
            sink_permutes,
        ),
        _own(
            "merge_rows",
            "what is computed from a product of matrices is computed in its rows and columns",
            merge_rows,
        ),
        _own(
            "common_subexpressions",
            "equal values are computed once",
            merge_common_subexpressions,
        ),
        _own(
            "transposed_products",
            "a product that is only read transposed is computed transposed",
            flip_transposed_products,
        ),
    )
)

NO_PASSES: Final = Pipeline()  # for a primitive op
EXPANSION: Final = Pipeline((_EXPAND, _SIMPLIFY))  # for a composite op

REQUIRED: Final = ("decomposed", "decomposed bodies")  # properties of a graph that becomes a program
