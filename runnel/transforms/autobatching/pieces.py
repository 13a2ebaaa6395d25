"""Pieces: what a recorded node computes, traced once for one sample and run for any number of rows.

A piece is a call of a module, of a compiled function, of a composition, or of one op. Its trace is vectorized over rows
whose number is a length (:mod:`runnel.core.lengths`), and becomes two programs: ``forward``, and ``backward`` from the
values that are kept and the cotangents of results. Both work on addresses, so that a call makes no tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from runnel.backends import context as contexts
from runnel.compiler.entry import CompiledGraph, compile_graph
from runnel.compiler.options import Bindings, Options
from runnel.compiler.program import Program
from runnel.core import pytree
from runnel.core.avals import ShapedArray, aval
from runnel.core.errors import VerifierError
from runnel.core.lengths import LEAST, Lengths
from runnel.graph.graph import Graph
from runnel.graph.node import Value
from runnel.graph.rewriting import copied, placeholder
from runnel.tensor import tape, tensor as tensors
from runnel.tensor.batching import Batching
from runnel.tensor.creation import asarray
from runnel.tensor.differentiable.derivative import kept_values
from runnel.tensor.differentiable.segments import StandIns
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import OutsideHandles
from runnel.tensor.levels import LevelTensor
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer

_STEPS: Final = 4  # sizes of groups between a power of two and the next one
_OPTIONS: Final = Options(keeps_plan=False)


def rounded_rows(rows: int) -> int:
    """Return the number of rows that a group of ``rows`` runs with: one of few sizes, each of which has programs."""
    step = max(1, 1 << max(0, (rows - 1).bit_length() - _STEPS.bit_length()))
    return max(LEAST, -(-rows // step) * step)


class NotAPieceError(Exception):
    """The call cannot be recorded as a whole: its parts are recorded instead."""


class Operand(NamedTuple):
    """An operand of a piece: ``is_row``, one value for each sample, or one for all; and whether gradients reach it."""

    aval: ShapedArray
    is_row: bool
    needs_gradient: bool


class Place(NamedTuple):
    """A value that a program reads or leaves. ``kind``: an "operand", a tensor from "outside", a "result", a value
    "kept" between the programs, or a "seed", the cotangent of a result. Backward programs leave cotangents."""

    kind: str
    number: int


class Programs:
    """The programs of a trace: for numbers of rows that its conditions admit."""

    def __init__(self, graph: Graph, lengths: Lengths) -> None:
        bindings = Bindings(are_trained=True, lengths=lengths)
        self.compiled: Final[CompiledGraph] = compile_graph(graph, bindings, contexts.current(), _OPTIONS)
        self._by_rows: Final[dict[int, Program]] = {lengths.values[0]: self.compiled.program}

    def at(self, rows: int) -> Program | None:
        """Return the program for this number of rows; None if the trace does not admit it."""
        program = self._by_rows.get(rows)
        if program is None:
            other = self.compiled.at((rows,))
            if other is None:
                return None
            program = self._by_rows[rows] = other.program
        return program


class Trace:
    """A piece vectorized over ``rows``, which are a length.

    Attributes:
        outside: the Variables and tensors that the piece reads besides its operands; gradients may reach them.
        results: the avals of the results for one row; ``live`` are the numbers of those that have gradients.
        forward_inputs, forward_outputs, backward_inputs, backward_outputs: what the programs read and leave.
    """

    def __init__(self, name: str, call: Callable[..., Any], operands: Sequence[Operand], rows: int) -> None:
        self.rows: Final = rows
        self._lengths: Final = Lengths()
        n: Any = self._lengths.symbol(rows)
        tracer = Tracer()
        stand_ins = tracer.trace.facet(OutsideHandles).stand_ins = StandIns(tracer.trace)
        with tracer:
            arguments: list[Tensor] = []
            for i, x in enumerate(operands):
                shape = (n, *x.aval.shape) if x.is_row else x.aval.shape
                argument = tracer.argument(aval(shape, x.aval.dtype), f"x{i}")
                argument.requires_grad = x.needs_gradient
                arguments.append(argument)
            level = Batching(n)
            with level:
                passed = [level.stack(x) if o.is_row else x for x, o in zip(arguments, operands, strict=True)]
                leaves, self.structure = pytree.flatten(call(*passed))
                if not all(isinstance(x, ArrayMethods) for x in leaves):
                    raise NotAPieceError
                outs = [level.all_elements(x.read()) for x in leaves]
            nodes = tracer.nodes(outs)
            if tracer.trace.deferred_error is not None:
                raise tracer.trace.deferred_error
            captures = tracer.captures.values()
            if tracer.calls_python or tracer.numbers or tracer.variables.written or any(map(_is_of_level, captures)):
                raise NotAPieceError
            seeds, gradients = self._gradients(tracer, arguments, outs, stand_ins)
            own = {tracer.node(x): i for i, x in enumerate(arguments)}
        self._divide(tracer, own, nodes, seeds, gradients, name)

    def _gradients(
        self, tracer: Tracer, arguments: Sequence[Tensor], outs: Sequence[Tensor], stand_ins: StandIns
    ) -> tuple[Sequence[tuple[int, Value]], dict[Value, Value]]:
        """Record the derivative; return the placeholders of cotangents by result, and the cotangent of each input."""
        live = [(i, x) for i, x in enumerate(outs) if x.requires_grad] if RECORDING.get() else []
        if not live:
            return [], {}
        seeds = [(i, placeholder(x.aval, f"g{i}")) for i, x in live]
        leaves = {id(x): x for x in (*arguments, *tracer.variables.values.values()) if x.requires_grad}
        leaves |= {id(leaf): leaf for _, leaf in stand_ins.by_handle.values()}
        reached = tape.cotangents([x for _, x in live], [tensors.symbolic(s) for _, s in seeds], leaves.values())
        return seeds, {tracer.node(leaf): tracer.node(g) for leaf, g in reached.values()}

    def _divide(
        self,
        tracer: Tracer,
        own: dict[Value, int],
        nodes: Sequence[Value],
        seeds: Sequence[tuple[int, Value]],
        gradients: dict[Value, Value],
        name: str,
    ) -> None:
        """Divide what was recorded into the forward graph and the backward graph."""
        captures, variables = tracer.captures, tracer.bound_variables
        inputs = tracer.trace.inputs
        others = [x for x in inputs if x not in own]
        self.outside: list[Any] = [variables[x] if x in variables else asarray(captures[x]) for x in others]
        of_input = {x: Place("operand", i) for x, i in own.items()}
        of_input |= {x: Place("outside", i) for i, x in enumerate(others)}
        self.results = [aval(x.aval.shape[1:], x.aval.dtype) for x in nodes]
        self.live = frozenset(i for i, _ in seeds)
        kept = kept_values(list(gradients.values()), {s for _, s in seeds}, {*inputs, *nodes}, False)
        of_result = {x: Place("result", i) for i, x in reversed([*enumerate(nodes)])}
        residuals = [x for x in kept if x not in of_result and x not in of_input]
        of_residual = {x: Place("kept", i) for i, x in enumerate(residuals)}
        places = {**of_residual, **of_result, **of_input}
        self.forward_inputs = [of_input[x] for x in inputs]
        self.forward_outputs = [*(Place("result", i) for i in range(len(nodes))), *of_residual.values()]
        self.forward = Programs(_graph(inputs, [*nodes, *residuals], name, tracer.trace.checks), self._lengths)
        self.backward_inputs = [*(places[x] for x in kept), *(Place("seed", i) for i, _ in seeds)]
        self.backward_outputs = [of_input[x] for x in gradients]
        self.backward = (
            Programs(_graph([*kept, *(s for _, s in seeds)], list(gradients.values()), name), self._lengths)
            if gradients
            else None
        )


def _is_of_level(x: Any) -> bool:
    return isinstance(x, LevelTensor)


def _graph(inputs: Sequence[Value], outputs: Sequence[Value], name: str, checks: Sequence[Value] = ()) -> Graph:
    fresh: dict[Value, Value] = {x: placeholder(x.aval, x.name) for x in inputs}
    known = copied([*outputs, *checks], fresh)
    return Graph([fresh[x] for x in inputs], [known[x] for x in outputs], {}, name, [known[x] for x in checks])


class Piece:
    """A call for one sample, with its operands."""

    def __init__(self, name: str, call: Callable[..., Any], operands: Sequence[Operand]) -> None:
        self.name: Final = name
        self._call: Final = call
        self.operands: Final = tuple(operands)
        self.kinds: Any = ()  # of the results, for those who record
        self._traces: Final = [Trace(name, call, operands, 8)]
        first = self._traces[0]
        self.structure: Final = first.structure
        self.results: Final = first.results
        self.is_single: Final = not isinstance(first.structure, pytree.Branch)
        self.is_tuple: Final = not self.is_single and first.structure == pytree.flatten((0,) * len(first.results))[1]
        self.needs_gradient: Final = [i in first.live for i in range(len(first.results))]

    def at(self, rows: int) -> Trace:
        """Return the trace that admits this number of rows."""
        for trace in self._traces:
            backward = trace.backward
            if trace.forward.at(rows) is not None and (backward is None or backward.at(rows) is not None):
                return trace
        trace = Trace(self.name, self._call, self.operands, rows)
        if len(trace.results) != len(self.results):
            raise VerifierError(f"[autobatch] '{self.name}' returned other results when it was traced again.")
        self._traces.append(trace)
        return trace
