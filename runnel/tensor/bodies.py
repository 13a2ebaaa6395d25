"""Trace the body of a loop or branch to a separate graph, and evaluate graphs on tensors.

Values from outside become inputs of the body: tensors, traced ones of the trace around it included, and Variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runnel.core.avals import ShapedArray, common_device
from runnel.core.devices import Device
from runnel.core.dispatch import apply
from runnel.core.dtypes import float64
from runnel.core.errors import GradientError, SideEffectError
from runnel.core.tables import Op
from runnel.graph.graph import Graph
from runnel.graph.node import Input, InputKind, Node, Result, Value
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.creation import asarray
from runnel.tensor.effects import Effects, Order, order_of
from runnel.tensor.floats import run_time_number
from runnel.tensor.forward import has_derivative
from runnel.tensor.grad_mode import recording
from runnel.tensor.handle import OutsideHandles
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.tracing import Trace
from runnel.tensor.variable import TracedVariables, Variable

State = Variable | Order  # what a body may change


class BodyTrace(Trace):
    """A trace inside another trace, or inside eager code."""

    is_body = True

    def __init__(self, outer: Trace | None, device: Device | None) -> None:
        super().__init__(
            tensors.serial_now() if outer is None else outer.born, device if outer is None else outer.device
        )
        self._own: set[Value] = set()
        self._foreign: dict[Value, Tensor] = {}
        if outer is not None:
            self.known_arrays = outer.known_arrays
            self.observer = outer.observer
            self.differentiating, self.refuse = outer.differentiating, outer.refuse
            self.looks_at = outer.looks_at
            self.layout_asked = outer.layout_asked
            self.facet(OutsideHandles).stand_ins = outer.facet(OutsideHandles).stand_ins

    def owns(self, node: Value) -> bool:
        return node in self._own or node.is_constant

    def input(self, value: ShapedArray, kind: InputKind, name: str) -> Input:
        node = super().input(value, kind, name)
        self._own.add(node)
        return node

    def record(self, op: Op, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> tuple[Result, ...]:
        if not self._own.issuperset(inputs):
            inputs = tuple([x if self.owns(x) else self._captured(x) for x in inputs])
        results = super().record(op, inputs, attrs)
        self._own.update(results[0].inputs)
        self._own.update(results)
        return results

    def _captured(self, node: Value) -> Value:
        """Return the input for a node of the trace around this one, for which no tensor was read."""
        if node not in self._foreign:
            self._foreign[node] = tensors.symbolic(node)
        return tensors.node_of(self._foreign[node], self)


class Traced(NamedTuple):
    """A traced body.

    Attributes:
        read: the values from outside, as tensors outside, with their input nodes.
        written: the Variables that it assigned and the order of its effects, with the nodes of their values before and
            after.
        custom: the name of a function in it that has a custom derivative; "" if there is none.
    """

    arguments: list[Value]
    outputs: list[Value]
    read: list[tuple[Tensor, Value]]
    written: list[tuple[State, Value, Value]]
    custom: str

    def require_own_derivative(self, name: str, inputs: Sequence[Tensor]) -> None:
        """Raise GradientError if a gradient by ``inputs`` would ignore the custom derivative of a function."""
        if self.custom and any(map(has_derivative, inputs)):
            raise GradientError(
                f"[{name}] '{self.custom}' has a custom derivative, which a gradient through {name} would not use; "
                "call it outside the body, or detach what it reads."
            )


def trace_body(name: str, function: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]) -> Traced:
    """Trace ``function``, which is called with one tensor for each of ``avals`` and returns tensors and numbers.

    It may assign Variables, but not ``.grad``. Floating tensors require a gradient inside, so that ``detach()`` is
    recorded.
    """
    outer = tracing.ACTIVE.trace
    trace = BodyTrace(outer, common_device(name, avals) if avals else None)
    tracer = Tracer(trace=trace)
    traced = tracer.variables
    try:
        with tracer:
            arguments = [tracer.argument(value, f"{name}{i}") for i, value in enumerate(avals)]
            inputs = tracer.nodes(arguments)
            for x in arguments:
                x.requires_grad = x.dtype.is_inexact
                x._is_argument = True
            outputs = tracer.nodes(map(asarray, function(*arguments)))
            updates = tracer.updates()
            order = trace.facet(Effects).order
            token = None if order is None else tracer.node(order.read())
    finally:
        if outer is not None and outer.deferred_error is None:
            outer.deferred_error = trace.deferred_error
    for variable in tracer.gradients_used:
        raise SideEffectError(
            f"[{name}] the function uses the .grad of {variable.described}; take gradients with runnel.grad "
            "inside, or call backward() outside."
        )
    if outer is not None:
        outer.facet(TracedVariables).absent_gradients |= traced.absent_gradients
        outer.custom_derivative = outer.custom_derivative or trace.custom_derivative
    read: list[tuple[Tensor, Value]] = [(_outside(captured), node) for node, captured in tracer.captures.items()]
    read += [(v.read(), node) for node, v in tracer.bound_variables.items() if node not in updates]
    read += [(asarray(run_time_number(getter), float64), node) for node, getter in tracer.numbers.items()]
    written: list[tuple[State, Value, Value]] = [
        (v, node, updates[node]) for node, v in tracer.bound_variables.items() if node in updates
    ]
    if order is not None and order.before is not None and token is not None:
        written.append((order_of(outer, trace.device), order.before, token))
    return Traced(inputs, outputs, read, written, trace.custom_derivative)


def graph_of(name: str, function: Callable[..., Sequence[Tensor]], avals: Sequence[ShapedArray]) -> Graph:
    """Return the graph of ``function``, which is called with one tensor for each of ``avals`` and reads nothing else.
    It can be differentiated in any gradient mode."""
    with Tracer() as tracer, recording(True):
        inputs = [tracer.argument(value, f"{name}{i}") for i, value in enumerate(avals)]
        return Graph(tracer.nodes(inputs), tracer.nodes(function(*inputs)), {}, name)


def _outside(captured: Any) -> Tensor:
    """Return a captured tensor or NumPy array as the trace around the body sees it."""
    return captured if isinstance(captured, Tensor) else asarray(captured)


def evaluate(graph: Graph, values: Sequence[Tensor]) -> list[Tensor]:
    """Evaluate ``graph`` on tensors op by op, with a tape, in the active trace if there is one."""
    known: dict[Value, Any] = dict(zip(graph.inputs, values, strict=True))
    for value in graph.values:
        if value in known:
            continue
        if isinstance(value, Result):
            outs = results(value.node, [known[x] for x in value.inputs])
            known.update((x, outs[x.index]) for x in graph.nodes[value.node])
        else:
            known[value] = leaf(value)
    return [known[value] for value in graph.outputs]


def results(node: Node, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of ``node`` for these tensors."""
    outs = apply(node.op, *inputs, **node.attrs)
    return outs if node.op.multiple_results else (outs,)


def leaf(value: Value) -> Tensor:
    """Return the tensor of a constant, or of an input of the active trace."""
    if tracing.ACTIVE.trace is not None:
        return tensors.symbolic(value)
    return tensors.from_numpy(value.value, value.aval.dtype, copy=False)
