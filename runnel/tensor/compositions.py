"""Compile compositions (:mod:`runnel.core.composed`) for eager calls of one signature.

The function is traced for tensors like the arguments, with the derivative that a compiled function has. Its results are
on the tape by one record, whose backward runs a program; where a gradient is differentiated again, the tape is rebuilt
op by op. There is no guard, since callers look a program up by its signature.

A program reads dense memory. An argument whose axes lie in another order, such as an image after a convolution, is
permuted to the order of its memory before the run, and results to the order that op by op results have after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from runnel.backends import context as contexts
from runnel.compiler.entry import compile_graph
from runnel.compiler.lowering.protocol import lowering_for
from runnel.compiler.options import NO_CHOICES, Bindings
from runnel.core.avals import Shape, row_major
from runnel.core.composed import Composition
from runnel.core.dispatch import apply
from runnel.core.errors import RunnelError
from runnel.graph.node import Value
from runnel.ops.shapes.views import inverse_order, permute_p
from runnel.tensor import tensor as tensors
from runnel.tensor.bound import Bound, Feed, any_layout
from runnel.tensor.composing import Run
from runnel.tensor.differentiable.derivative import derivative
from runnel.tensor.differentiable.recorded_call import Taping
from runnel.tensor.differentiable.segments import NotDivisible, StandIns
from runnel.tensor.grad_mode import RECORDING, recording
from runnel.tensor.handle import OutsideHandles
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer


class OfTensors:
    """A composition as a function of its tensors; all other arguments are set."""

    def __init__(self, composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function = composition.function
        self._names = tuple(kwargs)
        values = (*args, *kwargs.values())
        self._settings = tuple(None if isinstance(x, ArrayMethods) else copy(x) for x in values)  # a list may change
        self._places = tuple(i for i, x in enumerate(values) if isinstance(x, ArrayMethods))

    def __call__(self, *arguments: Tensor) -> Any:
        values = list(self._settings)
        for place, x in zip(self._places, arguments, strict=True):
            values[place] = x
        positional = len(values) - len(self._names)
        return self._function(*values[:positional], **dict(zip(self._names, values[positional:], strict=True)))


class Reordered:
    """A function of tensors whose axes are permuted to ``orders`` before a call of ``function``, and its results to
    ``of_results`` after it. None: as they are."""

    def __init__(
        self, function: Callable[..., Any], orders: Sequence[Shape | None], of_results: Sequence[Shape | None]
    ) -> None:
        self._function = function
        self._orders = orders
        self._of_results = of_results

    def __call__(self, *arguments: Tensor) -> Any:
        result = self._function(*map(_permuted, arguments, self._orders))
        if isinstance(result, tuple):
            return tuple(map(_permuted, result, self._of_results))
        return _permuted(result, self._of_results[0])


def _permuted(x: Tensor, order: Shape | None) -> Tensor:
    result: Tensor = x if order is None else apply(permute_p, x, axes=order)
    return result


def _order(x: Tensor) -> Shape | None:
    """Return the order in which the axes of ``x`` lie in memory; None if they lie as they are, or share memory."""
    strides = x.strides
    if strides == row_major(x.shape) or min(strides) <= 0:
        return None
    order = tuple(sorted(range(x.ndim), key=lambda a: (-strides[a], a)))
    return order if order != tuple(range(x.ndim)) else None


def _back(orders: Sequence[Shape | None]) -> list[Shape | None]:
    return [None if order is None else inverse_order(order) for order in orders]


class _NoProgramError(Exception):
    """The function runs op by op."""


def compiled(composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Run:
    """Return the call of ``composition`` for tensors like those among these arguments: a program if possible.
    ``result`` is the result of a call op by op."""
    function = OfTensors(composition, args, kwargs)
    arguments: list[Tensor] = [x.read() for x in (*args, *kwargs.values()) if isinstance(x, ArrayMethods)]
    orders = [_order(x) for x in arguments]
    of_results = [_order(x) for x in (result if isinstance(result, tuple) else (result,))]
    is_reordered = any(orders) or any(of_results)
    inner = Reordered(function, _back(orders), of_results) if is_reordered else function
    try:
        with recording(False):
            in_memory = list(map(_permuted, arguments, orders))
        leaves = [_leaf(x, of.requires_grad) for x, of in zip(in_memory, arguments, strict=True)]
        program = _program(inner, leaves, composition.name)
    except (_NoProgramError, NotDivisible, RunnelError):
        return function
    return Reordered(program, orders, _back(of_results)) if is_reordered else program


def _leaf(x: Tensor, requires_grad: bool) -> Tensor:
    """Return a leaf like ``x``."""
    leaf = tensors.from_storage(x.aval, x._storage, *x._layout)
    leaf.requires_grad = requires_grad and RECORDING.get()
    return leaf


def _program(function: Callable[..., Any], arguments: list[Tensor], name: str) -> Run:
    """Trace ``function`` for ``arguments`` and return the call of its program."""
    tracer = Tracer()
    trace = tracer.trace
    stand_ins = trace.facet(OutsideHandles).stand_ins = StandIns(trace)
    with tracer:
        result = function(*arguments)
        outputs: list[Tensor] = list(result) if isinstance(result, tuple) else [result]
        nodes = tracer.nodes(outputs)
        if not all(_is_computed(x) for x in nodes) or len(set(nodes)) < len(nodes):
            raise _NoProgramError
        live = [(i, x) for i, x in enumerate(outputs) if x.requires_grad]
        ends = list(stand_ins.by_handle.values())
        backward = None
        if live:
            numbers = {id(node): i for i, (_, node) in enumerate(ends)}
            backward = derivative(trace, live, numbers, set(tracer.captures), nodes)
    places = {id(x): i for i, x in enumerate(arguments)}
    values = {node: f"v{places[id(x)]}" for node, x in tracer.captures.items()}
    device = trace.device or contexts.default_device()
    graph = trace.graph([*nodes, *(() if backward is None else backward.residuals)], {}, name)
    compiled = compile_graph(
        graph, Bindings(are_trained=backward is not None), contexts.on(device), NO_CHOICES.stored()
    )
    taping = None
    if backward is not None:
        at_ends = [f"v{places[id(x)]}" for x, _ in ends]
        taping = Taping(backward, graph, compiled, [values[x] for x in graph.inputs], at_ends)
        taping.tapes.is_composition = True
    feeds: list[Feed] = []
    for i, x in enumerate(graph.inputs):
        feed = any_layout(i, values[x], x.aval)
        if taping is not None and i in taping.residual_inputs:
            feed = Feed(feed.address, (f"d{i} = {values[x]}", *feed.lines))
        feeds.append(feed)
    results = [x.aval.on(device) for x in graph.outputs]
    bound = Bound(compiled.program, Tensor, feeds, results, together=() if taping is None else taping.together)
    bound.namespace["dense"] = tensors.dense
    made = [line for i in range(len(outputs)) for line in bound.tensor(f"r{i}", i)]
    returned = ", ".join(f"r{i}" for i in range(len(outputs)))
    if taping is not None:
        bound.namespace |= taping.names
        made += taping.attach
    run: Run = bound.function(
        f"direct({', '.join(f'v{i}' for i in range(len(arguments)))})",
        "call of a composition",
        setup=[] if taping is None else taping.before,
        when_over=[] if taping is None else taping.after,
        then=[*made, f"return ({returned},)" if isinstance(result, tuple) else f"return {returned}"],
    )
    return run


def _is_computed(node: Value) -> bool:
    """Return whether a result is computed, and not an argument or a view of one."""
    while node.inputs and node.op is not None and lowering_for(node.op).is_view:
        (node,) = node.inputs[:1]
    return bool(node.inputs)
