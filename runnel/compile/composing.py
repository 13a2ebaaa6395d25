"""Programs of compositions (:mod:`runnel.core.composed`) for eager calls of one signature.

The function is traced for tensors that stand for the arguments, with the derivative that a compiled function has: its
results hang on the tape by one record, whose backward runs a program, and which is made anew op by op where a gradient
is differentiated. There is no guard, since whoever calls a program has looked it up by its signature.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from runnel.backends import context as contexts
from runnel.compile.calling import CallWriter, Counter
from runnel.compile.capture import Capture, InputBinding, InputOrigin, StandIns, Tape
from runnel.compile.compiled_program import CompiledProgram
from runnel.compile.differentiable.derivative import derivative
from runnel.compile.differentiable.ends import NotDivisible
from runnel.compile.observe.guard import Guard
from runnel.compile.observe.observation import Observation, Row
from runnel.compile.recipes import Output
from runnel.compiler.kernels.lowering import lowering_for
from runnel.core.avals import row_major
from runnel.core.composed import Composition
from runnel.core.errors import RunnelError
from runnel.graph.node import Value
from runnel.tensor import tensor as tensors
from runnel.tensor.composing import Run
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import OutsideHandles
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer


class OfTensors:
    """A composition with all arguments set but tensors, as a function of these."""

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


class _NoProgramError(Exception):
    """The function runs op by op."""


def compiled(composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """What carries out ``composition`` for the tensors among arguments like these: a program where there can be one."""
    function = OfTensors(composition, args, kwargs)
    arguments: list[Tensor] = [x.read() for x in (*args, *kwargs.values()) if isinstance(x, ArrayMethods)]
    if any(x.strides != row_major(x.shape) for x in arguments):
        return function  # op by op results keep the operands' order of axes
    try:
        observation = _captured(function, [_argument(x) for x in arguments], composition.name)
    except (_NoProgramError, NotDivisible, RunnelError):
        return function
    return CallWriter(CompiledProgram(observation.program), observation, Counter()).direct()


def _argument(x: Tensor) -> Tensor:
    """A leaf that is like ``x``."""
    leaf = tensors.from_storage(x.aval, x._storage, *x._layout)
    leaf.requires_grad = x.requires_grad and RECORDING.get()
    return leaf


class _Arguments(Guard):
    """The guard of calls whose arguments are known to fit: it checks nothing and gives them by their places."""

    def __init__(self, count: int) -> None:
        self.namespace: dict[str, Any] = {}
        self.read_sources = list(range(count))


def _captured(function: OfTensors, arguments: list[Tensor], name: str) -> Observation:
    """The trace of ``function`` for ``arguments``, in the form of a compiled function's."""
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
            invariant = {node for _, node in trace.captures.values()}
            backward = derivative(trace, live, numbers, invariant, nodes)
    places = {id(x): i for i, x in enumerate(arguments)}
    sources: dict[Value, InputBinding] = {
        node: InputBinding(InputOrigin.TENSOR, places[id(x)]) for x, node in trace.captures.values()
    }
    graph = trace.graph([*nodes, *(() if backward is None else backward.residuals)], {}, name)
    captured = Capture(
        graph, tuple([sources[node] for node in graph.inputs]), (), frozenset(),
        tuple([(i, Tape.LIVE if x.requires_grad else Tape.NONE) for i, x in enumerate(outputs)]),
        (), (), backward, trace.device or contexts.default_device(), tuple([places[id(x)] for x, _ in ends]),
    )  # fmt: skip
    recipes: list[Any] = [Output(i) for i in range(len(outputs))]
    recipe = Row(0, recipes) if isinstance(result, tuple) else recipes[0]
    return Observation(_Arguments(len(arguments)), [], recipe, "", captured)


def _is_computed(node: Value) -> bool:
    """Whether a result is none of the arguments, seen differently perhaps."""
    while node.inputs and node.op is not None and lowering_for(node.op).is_view:
        (node,) = node.inputs[:1]
    return bool(node.inputs)
