"""Tracing a function once: its graph, and where each input comes from and each result goes.

Everything that must be known of a call besides the graph is written down here as data, so that running a program, and
comparing a later trace with it, need nothing of the trace. Variables, and classes that are returned, stand in it as
``Weak``: a capture keeps nothing of the user's alive.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from runnel.compile.differentiable.derivative import Derivative, NotDivisible, derivative
from runnel.compile.floats import LookedAt, TracedFloat, traced_float
from runnel.compile.guards import Guard
from runnel.compile.origin import is_plain
from runnel.compile.signature import Arguments, Role, leaf_names, take_apart
from runnel.compile.watch import Found
from runnel.compile.writes import written_at
from runnel.core import dtypes
from runnel.core.avals import aval
from runnel.core.dtypes import DType
from runnel.core.errors import CaptureError, GradientError, SideEffectError
from runnel.core.lifetime import Weak
from runnel.core.pytree import Structure, flatten, unflatten
from runnel.graph.graph import Graph, InputKind, Node
from runnel.graph.hashing import structural_hash
from runnel.tensor import tape, tensor as tensors, tracing
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Origin(enum.Enum):
    """Where an input of a program comes from at each call."""

    LEAF = "argument"  # number of the leaf among the arguments
    FLOAT = "float argument"  # the same
    CAPTURED = "captured"  # number of the watch that reads it
    GRADIENT = "gradient"  # Weak, of the Variable whose .grad it is
    GETTER = "getter"  # a function that gives a float


class Source(NamedTuple):
    origin: Origin
    what: Any


class Result(enum.Enum):
    """What a leaf of the returned value is at each call."""

    TENSOR = "tensor"  # number of a result of the graph
    FLOAT = "float"  # the same
    LEAF = "argument"  # number of the leaf among the arguments: the object itself
    VALUE = "value"  # a plain value that the trace gave
    OBJECT = "object"  # Weak, of a Variable or class that the trace gave
    ARRAY = "array"  # a NumPy array that the trace gave, to be copied


class Tape(enum.Enum):
    """Whether a returned tensor can be differentiated by the caller."""

    NONE = "none"
    FREED = "freed"  # its tape was used up inside
    LIVE = "live"


class Returned(NamedTuple):
    result: Result
    what: Any
    tape: Tape = Tape.NONE


class Gradient(enum.Enum):
    """What becomes of a Variable's ``.grad``."""

    TENSOR = "tensor"  # a result of the graph
    NONE = "none"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True)
class Capture:
    """One trace."""

    graph: Graph
    sources: tuple[Source, ...]  # of the inputs that are no Variables, in the graph's order
    variables: tuple[Weak, ...]  # of the inputs that are, in the graph's order
    written: frozenset[int]  # numbers of them
    structure: Structure  # of what the function returns
    returned: tuple[Returned, ...]
    gradients: tuple[tuple[Weak, Gradient, int], ...]
    absent_gradients: tuple[Weak, ...]
    derivative: Derivative | None = None
    least_kept: bool = False  # whether the derivative computes again whatever can be

    @property
    def uses_grads(self) -> bool:
        """Whether it reads or sets the ``.grad`` of a Variable."""
        read = any(source.origin is Origin.GRADIENT for source in self.sources)
        return read or bool(self.gradients) or bool(self.absent_gradients)

    @property
    def digest(self) -> bytes:
        """The graph's identity."""
        return structural_hash(self.graph)

    def same_as(self, other: Capture) -> bool:
        """Whether two traces found the same program."""
        return self.identity() == other.identity() and self.digest == other.digest

    def identity(self) -> tuple[Any, ...]:
        """All but the graph, comparable by ``==``."""
        returned = [(r.result, r.tape, type(r.what), _comparable(r.what)) for r in self.returned]
        sources = [(s.origin, _comparable(s.what) if s.origin is not Origin.GETTER else None) for s in self.sources]
        return (
            sources, [_comparable(v) for v in self.variables], self.structure, returned,
            [(_comparable(v), how, i) for v, how, i in self.gradients],
            None if self.derivative is None else self.derivative.identity(),
        )  # fmt: skip

    def bound_variables(self) -> list[Variable]:
        """Those of ``variables``, during a call that can reach them."""
        found = [v for reference in self.variables if (v := reference()) is not None]
        if len(found) < len(self.variables):
            raise CaptureError(
                f"[compile] a Variable that '{self.graph.name}' uses was dropped by another thread during the call."
            )
        return found

    @property
    def owners(self) -> list[tuple[str, Variable]]:
        """The Variables that the program is bound to, with their names."""
        found = [v() for v in (*self.variables, *(v for v, _, _ in self.gradients), *self.absent_gradients)]
        return [(v.name or "a Variable", v) for v in found if v is not None]


def _comparable(value: Any) -> Any:
    if type(value) is Weak:
        return id(value())
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype, value.tobytes())
    return repr(value) if isinstance(value, (float, complex, np.generic)) else value


def capture(
    function: FunctionType, arguments: Arguments, found: Found, keep_grads: bool, name: str, least_kept: bool = False
) -> Capture:
    """Trace ``function``. Raises LookedAt when a float argument must be fixed, SideEffectError when it changed
    something that it can reach outside, NotDivisible where its derivative is no program.

    With ``least_kept`` backward programs compute again whatever can be."""
    trace = tracing.Trace(tensors.serial_now())
    trace.known_arrays = {key: x for key, (x, _) in found.arrays.items() if isinstance(x, np.ndarray)}
    names = leaf_names(function.__code__, arguments.structure)
    leaves, sources = _symbolic(trace, arguments, names)
    args, kwargs = unflatten(arguments.structure, leaves)
    unchanged = Guard(found.watches, ())
    mode = RECORDING.get()
    try:
        with tracing.activate(trace):
            value = function(*args, **kwargs)
            _check_refusal(trace)
            _check_arguments(function.__name__, leaves, arguments, args, kwargs)
            returning = _Returning(trace, arguments, leaves)
            returned_leaves, structure = flatten(value)
            returned = tuple([returning.of(x) for x in returned_leaves])
            gradients = tuple(_gradients(trace, returning, keep_grads))
            live = [
                (i, x) for i, (x, r) in enumerate(zip(returned_leaves, returned, strict=True)) if r.tape is Tape.LIVE
            ]
            backward = None
            if live:
                taped = {id(x): i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad}
                steady = _steady(trace, arguments, sources)
                backward = derivative(trace, live, taped, steady, returning.nodes, least_kept)
    except Exception as error:
        if isinstance(trace.refusal, LookedAt):
            _check_side_effects(unchanged, function, arguments)  # the function will be traced again
            raise trace.refusal from error
        raise
    if RECORDING.get() is not mode:
        RECORDING.set(mode)
        raise SideEffectError(
            f"[compile] '{function.__name__}' left the gradient mode changed; a program would not repeat that. Use "
            "`with runnel.set_grad_enabled(flag):` inside."
        )
    _check_side_effects(unchanged, function, arguments)
    updates = {
        node: tensors.node_of(trace.values[variable], trace)
        for variable, node in trace.variables.items()
        if variable in trace.written
    }
    of_variable = {node: variable for variable, node in trace.variables.items()}
    sources.update(_captured(trace, found))
    sources.update({node: Source(Origin.GRADIENT, Weak(v)) for v, node in trace.gradient_inputs.items()})
    sources.update({node: Source(Origin.GETTER, getter) for getter, node in trace.scalars})
    residuals = () if backward is None else backward.residuals
    graph = trace.graph([*returning.nodes, *residuals], updates, name)
    variables = [of_variable[n] for n in graph.inputs if n in of_variable]
    return Capture(
        graph,
        tuple([sources[n] for n in graph.inputs if n not in of_variable]),
        tuple(map(Weak, variables)),
        frozenset(i for i, v in enumerate(variables) if v in trace.written),
        structure,
        returned,
        gradients,
        tuple(map(Weak, trace.absent_gradients)),
        backward,
        least_kept,
    )


def _steady(trace: tracing.Trace, arguments: Arguments, sources: dict[Node, Source]) -> set[Node]:
    """The inputs that are tensors, which never change: a NumPy array may, and a number has no memory of its own."""
    given = {node for node, source in sources.items() if arguments.tags[source.what][0] is Role.TENSOR}
    return given | {node for held, node in trace.captures.values() if isinstance(held, Tensor)}


def _symbolic(trace: tracing.Trace, arguments: Arguments, names: list[str]) -> tuple[list[Any], dict[Node, Source]]:
    """The leaves as the function sees them while it is traced."""
    leaves: list[Any] = []
    sources: dict[Node, Source] = {}
    differentiated = arguments.differentiated
    for i, (leaf, tag) in enumerate(zip(arguments.leaves, arguments.tags, strict=True)):
        if tag[0] is Role.FLOAT:
            node = trace.input(aval((), dtypes.float64), InputKind.SCALAR, names[i])
            sources[node] = Source(Origin.FLOAT, i)
            leaves.append(traced_float(node, frozenset({i})))
        elif tag[0] in (Role.TENSOR, Role.ARRAY):
            node = trace.input(tag[1], InputKind.ARGUMENT, names[i])
            sources[node] = Source(Origin.LEAF, i)
            leaves.append(tensors.symbolic(node))
            leaves[-1].requires_grad = i in differentiated
        else:
            leaves.append(leaf)
    return leaves, sources


def _check_refusal(trace: tracing.Trace) -> None:
    """An error about a traced value counts even if the function caught it: eager code would not have raised it."""
    if trace.refusal is not None:
        raise trace.refusal


def _check_arguments(name: str, leaves: list[Any], arguments: Arguments, args: Any, kwargs: Any) -> None:
    after, nested = take_apart(args, kwargs)
    if nested != arguments.structure or any(a is not b for a, b in zip(leaves, after, strict=True)):
        raise SideEffectError(
            f"[compile] '{name}' changed a list, dict or dataclass among its arguments; a program would not "
            "repeat that. Return the new value instead."
        )
    differentiated = arguments.differentiated
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf._is_rebound:
            raise SideEffectError(
                f"[compile] '{name}' wrote into an argument (x[i] = v, or an in-place method), which changes the "
                "caller's tensor; write into a copy (x.clone()), and return it."
            )
        if isinstance(leaf, Tensor) and i in differentiated and leaf.requires_grad:
            if leaf._grad is not None:
                raise NotDivisible("it accumulates the gradient of an argument")
        elif isinstance(leaf, Tensor) and (leaf.requires_grad or leaf._grad is not None):
            raise SideEffectError(
                f"[compile] '{name}' called requires_grad_() on an argument, which changes the caller's tensor; use "
                "runnel.grad inside, or call requires_grad_() before the call."
            )


def _check_side_effects(unchanged: Guard, function: FunctionType, arguments: Arguments) -> None:
    if unchanged.holds(function, arguments.objects):
        return
    changed = unchanged.changed(function, arguments.objects)
    name, change = changed if changed is not None else ("", "it cannot be told what")
    watched = [w.expected() if type(w.expected) is Weak else w.expected for w in unchanged.watches]
    functions = [function, *(f for f in watched if isinstance(f, FunctionType))]
    place = written_at([f.__code__ for f in functions], name)
    raise SideEffectError(
        f"[compile] '{function.__name__}' changed something outside itself{place}: {change}. A program would not "
        "repeat that: return the value, or keep it in a Variable."
    )


def _captured(trace: tracing.Trace, found: Found) -> dict[Node, Source]:
    sources: dict[Node, Source] = {}
    for key, (held, node) in trace.captures.items():
        place = found.arrays.get(key)
        if place is None:
            raise CaptureError(
                f"[compile] the function used a tensor ({node.aval}) at {node.where} that was made outside, in a place "
                "where later calls cannot look for it; pass it as an argument."
            )
        sources[node] = Source(Origin.CAPTURED, place[1])
        if isinstance(held, Tensor) and held.requires_grad and RECORDING.get():
            raise CaptureError(
                f"[compile] a captured tensor at {node.where} requires a gradient; pass it as an argument."
            )
    return sources


def _gradients(trace: tracing.Trace, returning: _Returning, keep_grads: bool) -> list[tuple[Weak, Gradient, int]]:
    """What becomes of the ``.grad`` of each Variable that the function set."""
    found: list[tuple[Weak, Gradient, int]] = []
    for variable, value in trace.gradients.items():
        if value is None:
            found.append((Weak(variable), Gradient.NONE, -1))
        elif variable in trace.consumed and not keep_grads:
            found.append((Weak(variable), Gradient.CONSUMED, -1))
        elif value.read()._node is not trace.gradient_inputs.get(variable):
            found.append((Weak(variable), Gradient.TENSOR, returning.result(value.read())))
    return found


class _Returning:
    """Takes down what the function returns, leaf by leaf."""

    def __init__(self, trace: tracing.Trace, arguments: Arguments, leaves: list[Any]) -> None:
        self.trace = trace
        self.nodes: list[Node] = []
        self._leaves = {
            id(x): i for i, (x, tag) in enumerate(zip(leaves, arguments.tags, strict=True)) if tag[0] is Role.OBJECT
        }

    def of(self, leaf: Any) -> Returned:
        if type(leaf) is TracedFloat:
            return Returned(Result.FLOAT, self.result(leaf._tensor))
        if isinstance(leaf, Tensor):
            return Returned(Result.TENSOR, self.result(leaf), _tape_of(leaf))
        if id(leaf) in self._leaves:
            return Returned(Result.LEAF, self._leaves[id(leaf)])
        if isinstance(leaf, np.ndarray):
            return Returned(Result.ARRAY, leaf.copy())
        if isinstance(leaf, (Variable, type)):
            return Returned(Result.OBJECT, Weak(leaf))
        if is_plain(leaf) or isinstance(leaf, (np.generic, DType)):
            return Returned(Result.VALUE, leaf)
        raise CaptureError(
            f"[compile] the function returned a {type(leaf).__name__}; a program returns tensors, numbers, strings and "
            "None, in tuples, lists, dicts and dataclasses."
        )

    def result(self, tensor: Tensor) -> int:
        self.nodes.append(tensors.node_of(tensor, self.trace))
        return len(self.nodes) - 1


def _tape_of(tensor: Tensor) -> Tape:
    if not tensor.requires_grad:
        return Tape.NONE
    try:
        tape.needed_order([tensor])
    except GradientError:
        return Tape.FREED
    return Tape.LIVE
