"""Differentiate a traced function: its tape as graphs from residuals and a cotangent to cotangents.

The derivative is recorded in the trace itself: the rules of the tape, applied to symbolic cotangents, record their
ops after the ops of the function. So a backward program computes the same bits as an eager backward pass. Nodes that
depend on a cotangent belong to the backward graph; the other nodes that it reads are candidates for residuals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.dispatch import apply
from runnel.core.records import record
from runnel.graph.graph import Graph, topological
from runnel.graph.hashing import structural_hash
from runnel.graph.node import InputKind, Value, applied
from runnel.graph.rewriting import copied, placeholder
from runnel.ops.convolution.primitives import convolution_input_gradient_p, convolution_p, convolution_weight_gradient_p
from runnel.ops.shapes import assembly
from runnel.ops.shapes.views import inverse_order, permute_p
from runnel.tensor import cotangents as walks, tensor as tensors
from runnel.tensor.differentiable.residuals import reachable_cut, to_keep
from runnel.tensor.differentiable.segments import End, Ends, Kind, NotDivisible, Segment, segments
from runnel.tensor.differentiable.steps import Joint, OfSeveral, Sketcher, Steps, choices, outline, values_of
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import MultiResultRecord, ResultRecord, version
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracing import Trace
from runnel.tensor.variable import TracedVariables

_CONVOLUTIONS: Final = frozenset({convolution_p, convolution_input_gradient_p, convolution_weight_gradient_p})


def stored_layouts(outputs: Sequence[Value], residuals: Sequence[Value]) -> dict[Value, Value]:
    """Return the form in which some ``residuals`` are stored for backward graphs of these ``outputs``: next to
    convolutions, which compute channels-last, images have their channels last. So neither program copies them."""
    ranks = {value.aval.ndim for value in topological(outputs) if value.op in _CONVOLUTIONS}
    return {x: _permuted(x, (0, *range(2, x.aval.ndim), 1)) for x in residuals if x.aval.ndim in ranks}


def unstored(inputs: Sequence[Value], outputs: Sequence[Value], stored: dict[Value, Value]) -> Graph:
    """Return the graph that computes ``outputs`` from ``inputs``, some of which come as they are ``stored``."""
    placeholders = [placeholder(stored.get(x, x).aval, x.name) for x in inputs]
    fresh: dict[Value, Value] = {
        x: _permuted(x_stored, _back(x.aval.ndim)) if x in stored else x_stored
        for x, x_stored in zip(inputs, placeholders, strict=True)
    }
    known = copied(outputs, fresh)
    return Graph(placeholders, [known[o] for o in outputs], {}, "backward")


def as_computed(x: Value, stored: Value, tensor: Tensor) -> Tensor:
    """Return the value of ``x``, given the ``tensor`` of its ``stored`` form."""
    if stored is x:
        return tensor
    return cast(Tensor, apply(permute_p, tensor, axes=_back(x.aval.ndim)))


def _back(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _permuted(x: Value, axes: tuple[int, ...]) -> Value:
    value = aval(tuple(x.aval.shape[i] for i in axes), x.aval.dtype)
    return applied(permute_p, (x,), {"axes": axes}, value, x.where)


class SliceGradient(NamedTuple):
    """Marks the cotangent of a slice, as ``ops.assembly.SliceGradient`` does."""

    axis: int
    start: int


class ResultCotangent(NamedTuple):
    """Marks the cotangent of one of several results, as ``cotangents.ResultCotangent`` does."""

    number: int


class Cotangent(NamedTuple):
    """The result ``output`` of a backward graph, in the form that the tape takes, after its axes are permuted to
    ``order``; None: as they are."""

    output: int
    wrapped: SliceGradient | ResultCotangent | None = None
    order: Shape | None = None


class Late(NamedTuple):
    """An input of a part's record that represents the readings of a phase."""

    phase: int


@record
class Pullback:
    """A graph ``gradients`` from kept values ``reads`` (by number) and cotangents of a part's beginning to cotangents
    of its readings. If the part begins at an op of several results, ``seeds`` are the results with cotangents."""

    gradients: Graph
    reads: tuple[int, ...]
    cotangents: tuple[Cotangent | None, ...]  # of each reading; None if it gets none
    seeds: tuple[int, ...] = ()

    def identity(self) -> tuple[Any, ...]:
        return structural_hash(self.gradients), self.reads, self.cotangents, self.seeds


@record
class Part:
    """A piece of the tape with one beginning, of the aval ``value``, and the ends where it is read.

    The readings come in phases. A phase is handed on after the walk has visited the ends before it in ``inputs``, as a
    walk over the single ops would do; phase 0 is handed on at once.
    """

    value: ShapedArray
    pullbacks: tuple[Pullback, ...]
    inputs: tuple[End | Late, ...]
    phases: tuple[tuple[End, ...], ...]

    def identity(self) -> tuple[Any, ...]:
        return tuple(p.identity() for p in self.pullbacks), self.inputs, self.phases


@record
class Derivative:
    """The derivative of a traced function."""

    stored: tuple[Value, ...]  # nodes of the forward graph that a call keeps: unchanged inputs, and results
    saved: tuple[Value, ...]  # the values of ``stored`` in the layout of the forward graph
    residuals: tuple[Value, ...]  # the last results, which only backward programs read
    parts: tuple[Part, ...]
    taped: tuple[tuple[int, End], ...]  # the places of outputs with a tape, and the ends that they are values of
    former: tuple[int, ...]  # the number of the Variable of each former value
    sketches: tuple[Steps, ...]  # how to rebuild the tape of each part
    read: frozenset[Value]  # values that rules of the rebuilt tape read, however often it is differentiated
    inputs: tuple[Value, ...]  # inputs of the forward graph from which, with ``saved``, these are computed

    def identity(self) -> tuple[Any, ...]:
        """Return what two traces of the same function have in common besides the forward graph."""
        parts = tuple(part.identity() for part in self.parts)
        return parts, self.taped, self.former, tuple(map(outline, self.sketches))


def derivative(
    trace: Trace,
    live: Sequence[tuple[int, Tensor]],
    outside: dict[int, int],
    invariant: Collection[Value],
    results: Sequence[Value],
    recompute: bool = False,
    orders: Mapping[int, Shape] = MappingProxyType({}),
) -> Derivative:
    """Differentiate what the active trace has recorded.

    Args:
        live: the results with a tape, with their places among all outputs.
        outside: the numbers of the leaves for tensors from outside, by id.
        invariant: the inputs, besides Variables, that keep their value after the call.
        results: the values that the function returns anyway.
        recompute: keep as little as possible and recompute the rest, whatever it costs.
        orders: for leaves whose axes lie in another order in memory, their order among the axes of the memory. Their
            cotangents are computed in the order of the memory.
    """
    traced = trace.facet(TracedVariables)
    before = set(traced.written), dict(traced.gradients)
    tape_segments = segments([x for _, x in live], outside)
    ends = Ends(trace, outside, [segment.root for segment in tape_segments])
    with recording(False):
        pulled = [
            [_pulled(segment, seeds, trace) for seeds in _seedings(segment, tape_segments)] for segment in tape_segments
        ]
    if (traced.written, traced.gradients) != before:
        raise NotDivisible("a derivative changes Variables")
    free = {x for x in trace.inputs if x in invariant or _keeps_its_value(x, trace)} | set(results)
    every = [p for of_one in pulled for p in of_one]
    outputs = [x for p in every for x in p.outputs]
    sketcher = Sketcher(trace, ends.of)
    sketches = tuple([sketcher.sketch(segment.stretch) for segment in tape_segments])
    saved = kept_values(outputs, {x for p in every for x in p.seeds}, free, recompute)
    read = {*reachable_cut(outputs, sketcher.values), *sketcher.by_rules}
    read |= {x for joint in _first_read_later(sketches, read) for x in values_of((joint,))}
    read |= {x for x in sketcher.values if not x.aval.dtype.is_inexact}
    reached = set(reachable_cut(read, {*saved, *trace.inputs, *sketcher.seeds})).difference(saved)
    inputs = [x for x in trace.inputs if x in reached]
    saved += [x for x in inputs if x not in free and x.kind is not InputKind.SCALAR]
    stored = stored_layouts(outputs, [x for x in saved if x not in free])
    places = {node: i for i, node in enumerate(saved)}
    parts = tuple(
        _part(segment, of_one, ends, places, stored, orders)
        for segment, of_one in zip(tape_segments, pulled, strict=True)
    )
    taped = tuple((place, ends.of(version(x))) for place, x in live)
    residuals = tuple(stored.get(x, x) for x in saved if x not in free)
    further = tuple(x for x in inputs if x in free or x.kind is InputKind.SCALAR)
    stored_values = tuple(stored.get(x, x) for x in saved)
    return Derivative(
        stored_values, tuple(saved), residuals, parts, taped, ends.former, sketches, frozenset(read), further
    )


def _first_read_later(sketches: Sequence[Steps], read: Collection[Value]) -> Iterator[Joint]:
    """Yield ops of several results of which backward programs ``read`` results without cotangents. Derivatives of these
    readings bring cotangents, for which the rule may read more. A rule of one result always has its cotangent."""
    for steps in sketches:
        numbers = {(step.inputs[0], step.number) for step in steps if isinstance(step, OfSeveral)}
        for place, step in enumerate(steps):
            if isinstance(step, Joint) and any(
                x in read and (place, i) not in numbers for i, x in enumerate(step.outs)
            ):
                yield step


def _keeps_its_value(node: Value, trace: Trace) -> bool:
    traced = trace.facet(TracedVariables)
    return node.kind is InputKind.VARIABLE and not any(traced.nodes[v] is node for v in traced.written)


class _Pulled(NamedTuple):
    """The nodes of the cotangents of a segment, for some seeds."""

    numbers: tuple[int, ...]  # of the results that have seeds
    seeds: Sequence[Value]
    cotangents: list[tuple[Value, SliceGradient | ResultCotangent | None] | None]  # of each reading

    @property
    def outputs(self) -> list[Value]:
        return [result[0] for result in self.cotangents if result is not None]


def _seedings(segment: Segment, others: Sequence[Segment]) -> list[tuple[int, ...]]:
    """Return the choices of results that cotangents can arrive for: any that are read. One result has one choice."""
    root = segment.root
    if not isinstance(root._record, MultiResultRecord):
        return [()]
    readers = [x._record for other in others for x in other.stretch.order if x._record is not None]
    return choices(r.index for r in readers if isinstance(r, ResultRecord) and r.inputs[0] is root)


def _pulled(segment: Segment, numbers: tuple[int, ...], trace: Trace) -> _Pulled:
    root = segment.root
    if isinstance(root._record, MultiResultRecord):
        seeds = [placeholder(root._record.outs[i].aval, f"cotangent{i}") for i in numbers]
        cotangents: list[Any] = [
            walks.ResultCotangent(i, tensors.symbolic(x)) for i, x in zip(numbers, seeds, strict=True)
        ]
    else:
        seeds = [placeholder(root.aval, "cotangent")]
        cotangents = [tensors.symbolic(seeds[0])]
    reached = segment.stretch.cotangents([(root, g) for g in cotangents])
    return _Pulled(numbers, seeds, [None if g is None else _recorded(g, trace) for g in reached])


def _recorded(g: Any, trace: Trace) -> tuple[Value, SliceGradient | ResultCotangent | None]:
    if isinstance(g, assembly.SliceGradient):
        return tensors.node_of(g.g, trace), SliceGradient(g.axis, g.start)
    if isinstance(g, walks.ResultCotangent):
        return tensors.node_of(g.g, trace), ResultCotangent(g.number)
    return tensors.node_of(g, trace), None


def kept_values(outputs: list[Value], seeds: set[Value], free: set[Value], recompute: bool) -> list[Value]:
    """Return the values that the backward programs get, in the order of the graph."""
    order = topological(outputs)
    linear = set(seeds)
    for node in order:
        if any(x in linear for x in node.inputs):
            linear.add(node)
    read = [x for node in order if node in linear for x in node.inputs if x not in linear]
    read += [node for node in outputs if node not in linear]
    cut = set(to_keep(list(dict.fromkeys(read)), free, recompute=recompute, late=True))
    return [node for node in order if node in cut and (node.inputs or node.is_input)]  # the rest are constants


def _part(
    segment: Segment,
    pulled: Sequence[_Pulled],
    ends: Ends,
    places: dict[Value, int],
    stored: dict[Value, Value],
    orders: Mapping[int, Shape],
) -> Part:
    order, stops = segment.stretch
    read = [ends.of(x) for x in segment.stretch.readings()] if orders else []
    of_readings = [orders.get(end.number) if end.kind is Kind.OUTSIDE else None for end in read]
    leading = [(i, ends.of(x)) for i, x in enumerate(order) if id(x) in stops]
    leading = [(i, end) for i, end in leading if end.kind in (Kind.OUTSIDE, Kind.PART)]
    phases: list[list[End]] = [[] for _ in range(len(leading) + 1)]
    for place in reversed(range(len(order))):
        record = order[place]._record
        if record is not None and id(order[place]) not in stops:
            phase = phases[sum(i > place for i, _ in leading)]
            phase += [ends.of(x) for x in record.inputs if id(x) in stops]
    return Part(
        segment.root.aval,
        tuple(_pullback(p, places, stored, of_readings) for p in pulled),
        _inputs(phases, leading),
        tuple(map(tuple, phases)),
    )


def _pullback(
    pulled: _Pulled, places: dict[Value, int], stored: dict[Value, Value], orders: Sequence[Shape | None]
) -> Pullback:
    in_memory: dict[tuple[Value, Shape | None], Value] = {}
    keys = [None if g is None else (g[0], order) for g, order in zip_longest(pulled.cotangents, orders)]
    for x, order in filter(None, keys):
        in_memory[x, order] = x if order is None else _permuted(x, inverse_order(order))
    outputs = list(dict.fromkeys(in_memory.values()))
    operands = sorted((x for x in reachable_cut(outputs, places) if x in places), key=places.__getitem__)
    numbers = {node: i for i, node in enumerate(outputs)}
    cotangents = [
        None if g is None or key is None else Cotangent(numbers[in_memory[key]], g[1], key[1])
        for g, key in zip(pulled.cotangents, keys, strict=True)
    ]
    graph = unstored([*operands, *pulled.seeds], outputs, stored)
    return Pullback(graph, tuple(places[x] for x in operands), tuple(cotangents), pulled.numbers)


def _inputs(phases: list[list[End]], leading: list[tuple[int, End]]) -> tuple[End | Late, ...]:
    """Return what the record of a part leads to first: ends with a tape, and the late phases between them."""
    inputs: list[End | Late] = []
    for i, (_, end) in enumerate(leading):
        phase = len(leading) - i
        inputs += [Late(phase), end] if phases[phase] else [end]
    return () if len(inputs) < 2 else tuple(inputs)
