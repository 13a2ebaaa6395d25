"""Compile compositions (:mod:`runnel.core.composed`) for eager calls of one signature.

The function is traced for tensors like the arguments, with the derivative that a compiled function has. Its results are
on the tape by one record, whose backward runs a program; where a gradient is differentiated again, the tape is rebuilt
op by op. There is no guard, since callers look a program up by its signature.

A program reads dense memory. An argument whose axes lie in another order, such as an image after a convolution, is read
in the order of its memory, and results get the order that op by op results have. The tape leads to the argument itself:
each reading hands its cotangent on, so sums of gradients are rounded as they are op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from runnel.backends import context as contexts
from runnel.compiler.entry import compile_graph, uncollected
from runnel.compiler.lowering.protocol import lowering_for
from runnel.compiler.options import Bindings, Options
from runnel.core.avals import Shape, ShapedArray, aval, row_major
from runnel.core.composed import Composition
from runnel.core.dispatch import apply
from runnel.core.errors import RunnelError
from runnel.core.recall import LESSON
from runnel.core.tables import Op
from runnel.graph.node import Value
from runnel.ops.shapes.views import inverse_order, permute_p, reshape_p
from runnel.tensor import tensor as tensors
from runnel.tensor.bound import Bound, Feed, any_layout
from runnel.tensor.composing import Run
from runnel.tensor.dense import dense
from runnel.tensor.differentiable.derivative import derivative
from runnel.tensor.differentiable.recorded_call import Taping
from runnel.tensor.differentiable.segments import NotDivisible, StandIns
from runnel.tensor.eager import OWN_ARENA, dense_in
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import OutsideHandles
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import left_over
from runnel.tensor.tracer import Tracer
from runnel.tensor.tracing import Trace


class OfTensors:
    """A composition as a function of its tensors; all other arguments are set. ``tensors`` were arguments of
    the call that made it."""

    applies_ops = True
    is_program = False

    def __init__(self, composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function = composition.function
        self.tensors: list[Tensor] = []
        self._args = self._settled(args)
        self._kwargs = {name: self._settled(x) for name, x in kwargs.items()}

    def _settled(self, x: Any) -> Any:
        """Return ``x`` with the numbers of tensors in their place; a list, which may change, is copied."""
        if isinstance(x, ArrayMethods):
            self.tensors.append(x.read())
            return _Place(len(self.tensors) - 1)
        if isinstance(x, slice):
            return slice(*map(self._settled, (x.start, x.stop, x.step)))
        return type(x)(map(self._settled, x)) if isinstance(x, (tuple, list)) else x

    def __call__(self, *arguments: Tensor) -> Any:
        kwargs = {name: _filled(x, arguments) for name, x in self._kwargs.items()}
        return self._function(*_filled(self._args, arguments), **kwargs)


class _Place(NamedTuple):
    """The place of a tensor among the arguments of a call."""

    number: int


def _filled(x: Any, arguments: tuple[Tensor, ...]) -> Any:
    if isinstance(x, _Place):
        return arguments[x.number]
    if isinstance(x, slice):
        return slice(*[_filled(each, arguments) for each in (x.start, x.stop, x.step)])
    return type(x)([_filled(each, arguments) for each in x]) if isinstance(x, (tuple, list)) else x


class Ordered:
    """A function of tensors, with the axes of results of this rank permuted to ``order``."""

    def __init__(self, function: Callable[..., Any], order: Shape) -> None:
        self._function = function
        self._order = order

    applies_ops = True

    def __call__(self, *arguments: Tensor) -> Any:
        result = LESSON.whole(self._function, list(arguments))
        if isinstance(result, tuple):
            return _of_kind(result)(map(self._ordered, result))
        return self._ordered(result)

    def _ordered(self, x: Tensor) -> Tensor:
        return _permuted(x, self._order) if x.ndim == len(self._order) else x


def _of_kind(result: Any) -> Callable[..., Any]:
    """Return what makes a tuple, or named tuple, like ``result`` of its items."""
    return tuple if type(result) is tuple else type(result)._make


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


def _order_of_results(arguments: Sequence[Tensor]) -> Shape | None:
    """Return the order in which the largest argument is dense, as for single ops; None for row-major order."""
    largest = max(arguments, key=lambda x: x.aval.size)
    order = _order(largest)
    if order is None or not dense_in(order, largest.shape, largest.strides):
        return None
    return order


_OPTIONS: Final = Options(is_stored=True, keeps_plan=False, own_arena=OWN_ARENA)


class _NoProgramError(Exception):
    """The function runs op by op."""


def compiled(composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Return the call of ``composition`` for tensors like those among these arguments: a program if possible."""
    with uncollected():
        return _compiled(composition, args, kwargs)


def _compiled(composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    function = OfTensors(composition, args, kwargs)
    arguments, function.tensors = function.tensors, []
    for x in arguments:
        if x._storage is None and x.is_traced:
            raise left_over(f"[{composition.name}] an argument", x.aval)
    of_results = _order_of_results(arguments)
    inner = Ordered(function, of_results) if of_results else function
    try:
        single = _single_op(function, [_leaf(x, x.requires_grad) for x in arguments])
        if single is not None:
            return single
        program = _program(inner, arguments, composition.name)
    except (_NoProgramError, NotDivisible, RunnelError):
        return function
    return Ordered(program, inverse_order(of_results)) if of_results else program


def _leaf(x: Tensor, requires_grad: bool) -> Tensor:
    """Return a leaf like ``x``."""
    leaf = tensors.from_storage(x.aval, x._storage, *x._layout)
    leaf.requires_grad = requires_grad and RECORDING.get()
    return leaf


class _Argument:
    """Argument number ``i`` of a program: ``leaf`` is like it. The program reads its ``memory``, with the axes in their
    order there, as ``name`` in the code of the call; ``back`` is the order of the argument among these axes."""

    def __init__(self, i: int, x: Tensor) -> None:
        self.leaf = self.memory = _leaf(x, x.requires_grad)
        self.name, self.line = f"v{i}", ""
        order = _order(x)
        self.back = None if order is None else inverse_order(order)
        if order is not None:
            strides = tuple([x.strides[a] for a in order])
            of_memory = aval(tuple([x.shape[a] for a in order]), x.dtype, x.device)
            self.memory = tensors.from_storage(of_memory, x._storage, x._layout[0], strides)
            self.name = f"m{i}"
            self.line = f"m{i} = Tensor._over(aval{i}, v{i}._storage, v{i}._layout[0], {strides})"

    def traced(self, trace: Trace, stand_ins: StandIns) -> Tensor:
        """Return the argument of a function that is traced. Its cotangents, one for each reading, are cotangents of the
        argument itself, whatever the order in memory."""
        if self.back is None:
            return self.leaf
        value = _permuted(self.memory, self.back)
        if self.leaf.requires_grad:
            value = tensors.symbolic(tensors.node_of(value, trace))
            value.requires_grad = True
            stand_ins.by_handle[id(self.leaf)] = self.leaf, value
        return value


def _program(function: Callable[..., Any], tensors_like: Sequence[Tensor], name: str) -> Run:
    """Trace ``function`` for tensors like these and return the call of its program."""
    arguments = [_Argument(i, x) for i, x in enumerate(tensors_like)]
    tracer = Tracer()
    trace = tracer.trace
    stand_ins = trace.facet(OutsideHandles).stand_ins = StandIns(trace)
    with tracer:
        result = function(*[x.traced(trace, stand_ins) for x in arguments])
        outputs: list[Tensor] = list(result) if isinstance(result, tuple) else [result]
        nodes = tracer.nodes(outputs)
        if not all(_is_computed(x) for x in nodes) or len(set(nodes)) < len(nodes):
            raise _NoProgramError
        live = [(i, x) for i, x in enumerate(outputs) if x.requires_grad]
        ends = list(stand_ins.by_handle.values())
        places = {id(x.leaf): i for i, x in enumerate(arguments)}
        backward = None
        if live:
            numbers = {id(node): i for i, (_, node) in enumerate(ends)}
            orders = {i: back for i, (x, _) in enumerate(ends) if (back := arguments[places[id(x)]].back) is not None}
            backward = derivative(trace, live, numbers, set(tracer.captures), nodes, orders=orders)
    names = {id(x.memory): x.name for x in arguments}
    values = {node: names[id(x)] for node, x in tracer.captures.items()}
    device = trace.device or contexts.default_device()
    graph = trace.graph([*nodes, *(() if backward is None else backward.residuals)], {}, name)
    compiled = compile_graph(graph, Bindings(are_trained=backward is not None), contexts.on(device), _OPTIONS)
    taping = None
    if backward is not None:
        at_ends = [f"v{places[id(x)]}" for x, _ in ends]
        taping = Taping(backward, graph, compiled, [values[x] for x in graph.inputs], at_ends)
        taping.tapes.is_composition = True
    feeds: list[Feed] = []
    for i, x in enumerate(graph.inputs):
        feed = any_layout(i, values[x], x.aval)
        if taping is not None and i in taping.residual_inputs:
            feed = feed._replace(lines=(f"d{i} = {values[x]}", *feed.lines))
        feeds.append(feed)
    results = [x.aval.on(device) for x in graph.outputs]
    bound = Bound(compiled.program, Tensor, feeds, results, together=() if taping is None else taping.together)
    bound.namespace |= {"dense": dense, "Tensor": Tensor}
    bound.namespace |= {f"aval{i}": x.memory.aval for i, x in enumerate(arguments)}
    made = [line for i in range(len(outputs)) for line in bound.tensor(f"r{i}", i)]
    returned = ", ".join(f"r{i}" for i in range(len(outputs)))
    if isinstance(result, tuple):
        bound.namespace["gathered"] = _of_kind(result)
        returned = f"gathered(({returned},))"
    if taping is not None:
        bound.namespace |= taping.names
        made += taping.attach
    run: Run = bound.function(
        f"direct({', '.join(f'v{i}' for i in range(len(arguments)))})",
        "call of a composition",
        checks=[x.line for x in arguments if x.line],
        setup=[] if taping is None else taping.before,
        when_over=[] if taping is None else taping.after,
        then=[*made, f"return {returned}"],
    )
    if taping is None and not any(x.line for x in arguments):
        vars(run)["started"] = compiled.program, results, [int(values[x][1:]) for x in graph.inputs]
    return run


def _single_op(function: Callable[..., Any], arguments: list[Tensor]) -> SingleOp | None:
    """Return the call of ``function`` if it applies one op to the ``arguments``."""
    tracer = Tracer()
    tracer.trace.facet(OutsideHandles).stand_ins = StandIns(tracer.trace)
    with tracer:
        result = function(*arguments)
        if not isinstance(result, Tensor):
            return None
        node = tracer.node(result)
    places = {id(x): i for i, x in enumerate(arguments)}
    if any(id(x) not in places for x in tracer.captures.values()):
        return None
    return SingleOp.of(node, {node: places[id(x)] for node, x in tracer.captures.items()}, len(arguments))


class SingleOp:
    """The call of a composition that applies one op to its tensors, and gives the result another shape, if any."""

    __slots__ = ("attrs", "known", "op", "order", "reshaped")
    applies_ops = True

    def __init__(self, op: Op, attrs: dict[str, Any], order: tuple[int, ...] | None, reshaped: Any) -> None:
        self.op = op
        self.attrs = attrs
        self.order = order  # of the tensors; None if it is the order of the arguments
        self.reshaped = reshaped
        self.known: tuple[ShapedArray, Shape, Shape] | None = None

    @staticmethod
    def of(node: Value, numbers: dict[Value, int], count: int) -> SingleOp | None:
        """Return the call that computes ``node`` of the inputs with these numbers, among ``count`` tensors; None if
        that takes more ops."""
        reshaped = None
        if node.op is reshape_p:
            reshaped, (node,) = node.attrs, node.inputs
        op = node.op
        if op is None or op.multiple_results or lowering_for(op).is_view or not all(x in numbers for x in node.inputs):
            return None
        order = tuple([numbers[x] for x in node.inputs])
        return SingleOp(op, node.attrs, None if order == tuple(range(count)) else order, reshaped)

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Apply the op."""
        inputs = tensors if self.order is None else tuple([tensors[i] for i in self.order])
        result: Tensor = inputs[0].apply_op(self.op, inputs, self.attrs)
        if self.reshaped is None:
            return result
        if not result.requires_grad and self.known is not None and LESSON.events is None:
            value, before, strides = self.known
            if result._layout[1] == before:  # nobody else has the result
                result._aval, result._layout = value, (result._layout[0], strides)
                return result
        shaped: Tensor = result.apply_op(reshape_p, (result,), self.reshaped)
        if shaped._storage is result._storage and shaped._layout[0] == result._layout[0]:
            self.known = shaped._aval, result._layout[1], shaped._layout[1]
        return shaped


def _is_computed(node: Value) -> bool:
    """Return whether a result is computed, and not an argument or a view of one."""
    while node.inputs and node.op is not None and lowering_for(node.op).is_view:
        (node,) = node.inputs[:1]
    return bool(node.inputs)
