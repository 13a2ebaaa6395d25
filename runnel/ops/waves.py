"""``waves``: a recurrence over rows whose order is data, such as the nodes of trees or the tokens of sequences.

The rows are sorted, so that each *wave*, a range of adjacent rows, depends on earlier waves only. The values that a row
reads of other rows are its *pulls*: the row of a result that a link names, or the sum of the rows whose links name it.
Either is the transpose of the other, so the gradient of ``waves`` is ``waves`` in the opposite direction.
``runnel.recur`` makes the op.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from runnel.core.avals import ShapedArray, aval
from runnel.core.dtypes import INTEGERS, int64
from runnel.core.errors import ShapeError
from runnel.core.tables import Op, abstract_eval, cost, lower, reference
from runnel.graph.graph import Graph
from runnel.graph.hashing import Body
from runnel.graph.interpreter import run
from runnel.graph.node import Value, applied
from runnel.graph.rewriting import placeholder
from runnel.loops.rules import Waves
from runnel.ops.arguments import require_dtype
from runnel.ops.control import graph_cost
from runnel.ops.indexing.gather import take_p
from runnel.ops.indexing.segments import segment_sum_p

waves_p = Op(
    "waves",
    "*constants, *sources, starts, *xs, *, body, advance, constants, sources, pulls, reverse",
    "body: (constants, pulls, xs) to results, all of one number of rows, on rows starts[w] to starts[w + 1] for one "
    "wave w after another, as advance says; until then rows of results are 0.",
    regions=("body", "advance"),
)
lower.register(waves_p, Waves())


class Pull(NamedTuple):
    """A value that rows read of result number ``state``. With ``sums``, row i is the sum of its rows j with
    links[j] = i, where ``source`` is the number of the input that has the counting sort of the links, which follow;
    else row i is row links[i], and ``source`` has the links."""

    state: int
    source: int
    sums: bool


class Parts(NamedTuple):
    """The inputs of a node of ``waves``."""

    constants: tuple[Any, ...]
    sources: tuple[Any, ...]
    starts: Any
    xs: tuple[Any, ...]


def parts_of(inputs: tuple[Any, ...], constants: int, sources: int) -> Parts:
    """Split the inputs of ``waves``."""
    after = constants + sources
    return Parts(inputs[:constants], inputs[constants:after], inputs[after], inputs[after + 1 :])


def pulled(pull: Pull, state: Value, sources: tuple[Value, ...]) -> Value:
    """Return the node of a pull of ``state``."""
    source = sources[pull.source]
    if pull.sums:
        inputs = (source, sources[pull.source + 1], state)
        return applied(segment_sum_p, inputs, {"shape": state.aval.shape}, state.aval)
    return applied(take_p, (state, source), {"axis": 0}, state.aval)


@abstract_eval.rule(waves_p)
def _waves_abstract_eval(
    *inputs: ShapedArray, body: Body, constants: int, sources: int, pulls: tuple[Pull, ...], **attrs: Any
) -> tuple[ShapedArray, ...]:
    parts = parts_of(inputs, constants, sources)
    results = tuple(node.aval for node in body.graph.outputs)
    given = [*parts.constants, *(results[p.state] for p in pulls), *parts.xs]
    expected = [node.aval for node in body.graph.inputs]
    if expected != given:
        raise ShapeError(f"[waves] the body takes {expected}; it was given {given}.")
    for source in (*parts.sources, parts.starts):
        require_dtype("waves", source.dtype, INTEGERS)
    rows = {x.shape[0] if x.ndim else 0 for x in (*results, *parts.xs)}
    if len(rows) != 1:
        raise ShapeError(f"[waves] all xs and results must have one number of rows; got {sorted(rows)}.")
    if parts.starts.ndim != 1 or parts.starts.size < 2:
        raise ShapeError(f"[waves] starts must have two elements or more; got shape {parts.starts.shape}.")
    return results


@reference.rule(waves_p)
def _waves_reference(
    *inputs: Any, body: Body, advance: Body, constants: int, sources: int, pulls: tuple[Pull, ...], **attrs: Any
) -> tuple[Any, ...]:
    parts = parts_of(inputs, constants, sources)
    results = [np.zeros(x.aval.shape, x.aval.dtype.numpy) for x in body.graph.outputs]
    pulling = pulls_graph(pulls, [x.aval for x in body.graph.outputs], [_aval_of(x) for x in parts.sources])
    wave = np.zeros((), np.int64)
    while True:
        (window, wave), _ = run(advance.graph, [parts.starts, wave])
        if not window[0]:
            return tuple(results)
        values, _ = run(pulling, [*results, *parts.sources])
        new, _ = run(body.graph, [*parts.constants, *values, *parts.xs])
        begin, end = window[1:]
        for result, value in zip(results, new, strict=True):
            result[begin:end] = value[begin:end]


def pulls_graph(pulls: tuple[Pull, ...], results: list[ShapedArray], sources: list[ShapedArray]) -> Graph:
    """Return the graph from all results and sources to the pulls."""
    states = [placeholder(x, f"state{i}") for i, x in enumerate(results)]
    indices = [placeholder(x, f"source{i}") for i, x in enumerate(sources)]
    outputs = [pulled(pull, states[pull.state], tuple(indices)) for pull in pulls]
    return Graph([*states, *indices], outputs, {}, "pulls")


def _aval_of(array: Any) -> ShapedArray:
    return aval(array.shape, int64)


@cost.rule(waves_p)
def _waves_cost(*inputs: ShapedArray, body: Body, **attrs: Any) -> int:
    return graph_cost(body.graph)
