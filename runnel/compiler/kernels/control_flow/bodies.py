"""Bodies of loops: the calls of a graph that is planned once, and bound to the memory of the program around it, memory
that may move on at each iteration. ``scans`` and ``control`` say what is bound to what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from runnel.compiler.kernels.copies import alone
from runnel.compiler.kernels.places import Access, Call, Place, Space
from runnel.compiler.schedule.repeat import AnySpan, Repeat
from runnel.core.avals import Shape, row_major
from runnel.graph.graph import Graph
from runnel.graph.node import Input, InputKind, Value


@dataclass(eq=False, slots=True)
class Piece:
    """Calls in order and the loops among them."""

    calls: list[Call] = field(default_factory=list)
    spans: list[AnySpan] = field(default_factory=list)

    def add(self, calls: Sequence[Call]) -> None:
        """Calls that do something."""
        self.calls += [c for c in calls if c.rows and c.columns]

    def join(self, other: Piece) -> None:
        """Append ``other``, whose spans move to where they now are."""
        for span in other.spans:
            span.moved(len(self.calls))
        self.calls += other.calls
        self.spans += other.spans


@dataclass(eq=False, slots=True)
class BodyPlan:
    """The calls of a body's graph, on places that stand for what they will be bound to."""

    piece: Piece
    inputs: list[Place]  # of the inputs that are not Variables
    variables: dict[Value, Place]
    outputs: list[Place]
    output_of: list[int]


class Binding(NamedTuple):
    """What stands at a body's place: memory from element ``offset`` on, ``step`` further at each iteration."""

    place: Place
    offset: int = 0
    step: int = 0


Bindings = dict[Place, Binding]
PlanBody = Callable[[Graph, dict[Value, Shape]], BodyPlan]
Results = dict[int, list[Place]]  # where the results that are used are wanted, by index


def variable_for(x: Value, index: int) -> Value:
    return Input(x.aval, InputKind.VARIABLE, x.name or f"carry{index}")


def value_copy(like: Value, place: Place, source: Binding) -> Call:
    """A dense value of the aval of ``like`` copied to ``place``."""
    shape = like.aval.shape
    return dense_copy(shape, (source.place, source.offset, row_major(shape)), place, like)


def dense_copy(shape: Shape, source: alone.Lie, place: Place, node: Value) -> Call:
    return alone.elementwise(shape, [source], (place, 0, row_major(shape)), lambda loads: loads[0], node)


def bound_body(
    plan: BodyPlan, graph: Graph, inputs: dict[Value, Binding], outputs: list[Binding], count: int | None = None
) -> Piece:
    """A copy of a body's calls on the memory of the program; in a loop of ``count`` iterations."""
    bindings: Bindings = {}
    ordinary = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
    for x, place in zip(ordinary, plan.inputs, strict=True):
        if x in inputs:  # all but carries that nobody reads
            bindings[place] = inputs[x]
    for x, place in plan.variables.items():
        bindings[place] = inputs[x]
    piece = Piece(list(plan.piece.calls))
    for node, index, binding in zip(graph.outputs, plan.output_of, outputs, strict=True):
        place = plan.outputs[index]
        if place in bindings:  # the same value is wanted twice
            another = Place(Space.OUTPUT, place.dtype, place.size, place.label)
            piece.add([value_copy(node, another, Binding(place))])
            place = another
        bindings[place] = binding
    in_loop = count is not None
    piece.calls = [_call(call, bindings, count or 1, in_loop) for call in piece.calls]
    piece.spans = [_span(span, bindings, in_loop) for span in plan.piece.spans]
    return piece


def _call(call: Call, bindings: Bindings, count: int, in_loop: bool) -> Call:
    accesses = [_access(a, bindings, in_loop) for a in call.accesses]
    return replace(call, accesses=accesses, params=list(call.params), times=call.times * count)


def _access(access: Access, bindings: Bindings, in_loop: bool) -> Access:
    binding = bindings.get(access.place)
    own = (0 if binding is None else binding.step,) if in_loop else ()
    if binding is None:
        return replace(access, steps=(*own, *access.steps))
    extent = access.place.size if access.extent is None else access.extent
    return replace(
        access,
        place=binding.place,
        offset=access.offset + binding.offset,
        steps=(*own, *access.steps),
        extent=None if extent == binding.place.size else extent,
    )


def _span(span: AnySpan, bindings: Bindings, in_loop: bool) -> AnySpan:
    inner = [_span(s, bindings, in_loop) for s in span.inner]
    if isinstance(span, Repeat):
        return replace(span, inner=inner)
    flag = None if span.flag is None else _access(span.flag, bindings, in_loop)
    return replace(span, inner=inner, flag=flag)
