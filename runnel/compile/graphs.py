"""Graphs that were not traced, as callable functions: compiled, and bound to Variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.compile import disk_cache
from runnel.compile.binding import Binding
from runnel.compile.launching import WRITES, function, launch, names
from runnel.compile.native import dense
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings, Options
from runnel.core.errors import ArgumentError, DeviceError
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.graph.verifier import verify
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class GraphFunction:
    """``graph`` as a function. Called with a tensor for each input that is no Variable, it gives the outputs and
    updates the Variables; any number of threads may call it.

    Args:
        graph: what to compute; it is checked.
        variables: the Variable for each of its inputs of kind VARIABLE.
        context: target, threads and whatever else the program depends on; the present one by default.
        memory_budget: bytes that the program may take beside its inputs and outputs.
    """

    def __init__(
        self,
        graph: Graph,
        variables: Mapping[Value, Variable],
        context: CompileContext | None = None,
        *,
        memory_budget: int | None = None,
    ) -> None:
        verify(graph)
        context = contexts.current() if context is None else context
        slots = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        _require_variables(slots, variables, context)
        self.graph: Final = graph
        self.variables: Final = [variables[x] for x in slots]
        bindings = Bindings(are_trained=bool(graph.updates))
        compiled = compile_graph(graph, bindings, context, Options(memory_budget=memory_budget, store=disk_cache))
        self.program, self.recipe = compiled.program, compiled.recipe
        arguments = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        self._device = context.device
        self._avals = [x.aval.on(self._device) for x in arguments]
        written = [i for i, x in enumerate(slots) if x in graph.updates]
        self.binding: Final = Binding(
            self.program, lambda: self.variables, written, len(arguments), (), compiled.preparation
        )
        lines = launch(bool(slots), [WRITES] if written else [])
        space = names(self.program, self.binding.pool, self.binding)
        self._launch: Callable[[Any], None] = function("launch(frame)", lines, space, "launch of a graph")

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        avals = [x.aval for x in arguments]
        if avals != self._avals:
            raise ArgumentError(f"[{self.graph.name}] takes tensors {self._avals}; received {avals}.")
        program, pool = self.program, self.binding.pool
        inputs = [dense(x.read()) for x in arguments]
        storages = [program.backend.allocate(nbytes) for nbytes in program.outputs]
        arena = program.lent_arena()
        frame = pool.take()
        if arena is not None:
            frame.bases[0] = arena.address
        for slot, x in enumerate(inputs, 2):
            frame.bases[slot] = x.address
        for slot, storage in enumerate(storages, program.first_output):
            frame.bases[slot] = storage.address
        self._launch(frame)
        outputs = zip(self.graph.outputs, program.output_of, strict=True)
        return tuple([tensors.from_storage(x.aval.on(self._device), storages[i]) for x, i in outputs])


def _require_variables(slots: list[Value], variables: Mapping[Value, Variable], context: CompileContext) -> None:
    missing = [x for x in slots if x not in variables or variables[x].aval.unplaced is not x.aval]
    if missing or len(variables) > len(slots):
        raise ArgumentError(
            f"[graph] takes a Variable of its shape and dtype for each of {slots}; there is none for {missing}, and "
            f"{len(variables)} were given."
        )
    for variable in variables.values():
        if variable.device is not context.device:
            raise DeviceError(
                f"[graph] {variable.described} is on {variable.device}, and the program on {context.device}; "
                f"move one of them."
            )
