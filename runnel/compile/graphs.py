"""From a graph to a program that runs: the way into the compiler for whoever has a graph, traced or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.backends.host import memory
from runnel.compile.binding import Binding
from runnel.compile.launching import WRITES, function, launch, names
from runnel.compile.native import Recipe, dense
from runnel.core.errors import ArgumentError, DeviceError
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.graph.verifier import verify
from runnel.tensor import tensor as tensors
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def compile_graph(
    graph: Graph,
    bindings: Mapping[Value, Variable],
    context: CompileContext | None = None,
    *,
    memory_budget: int | None = None,
) -> GraphExecutable:
    """``graph`` as a program.

    Args:
        graph: what to compute; it is checked.
        bindings: the Variable for each of its inputs of kind VARIABLE.
        context: target, threads and whatever else the program depends on; the present one by default.
        memory_budget: bytes that the program may take beside its inputs and outputs.
    """
    verify(graph)
    wanted = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
    missing = [x for x in wanted if x not in bindings or bindings[x].aval.unplaced is not x.aval]
    if missing or len(bindings) > len(wanted):
        raise ArgumentError(
            f"[compile_graph] bindings give a Variable of its shape and dtype for each of {wanted}; they do not for "
            f"{missing}, and there are {len(bindings)}."
        )
    context = contexts.current() if context is None else context
    for variable in bindings.values():
        if variable.device is not context.device:
            raise DeviceError(
                f"[compile_graph] {variable.described} is on {variable.device}, and the program on "
                f"{context.device}; move one of them."
            )
    with contexts.entered(context):
        return GraphExecutable(graph, [bindings[x] for x in wanted], memory_budget)


class GraphExecutable:
    """The program of a graph, bound to ``variables``. Called with a tensor for each other input, it gives the outputs
    and updates the Variables; any number of threads may call it."""

    def __init__(self, graph: Graph, variables: list[Variable], memory_budget: int | None) -> None:
        self.graph: Final = graph
        self.variables: Final = variables
        self.recipe: Final = Recipe(graph, memory_budget, is_trained=bool(graph.updates))
        self.program, *preparations = self.recipe.programs()
        arguments = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        self._device = self.recipe.context.device
        self._avals = [x.aval.on(self._device) for x in arguments]
        inputs = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        written = [i for i, x in enumerate(inputs) if x in graph.updates]
        self.binding: Final = Binding(
            self.program, lambda: self.variables, written, len(arguments), (), preparations[0] if preparations else None
        )
        lines = launch(bool(inputs), [WRITES] if written else [])
        space = names(self.program, self.binding.pool, self.binding)
        self._launch: Callable[[Any], None] = function("launch(frame)", lines, space, "launch of a graph")

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        found = [x.aval for x in arguments]
        if found != self._avals:
            raise ArgumentError(f"[{self.graph.name}] takes tensors {self._avals}; received {found}.")
        program, pool = self.program, self.binding.pool
        given = [dense(x.read()) for x in arguments]
        made = [memory.allocate(nbytes) for nbytes in program.outputs]
        arena = program.lent_arena()
        frame = pool.take()
        if arena is not None:
            frame.bases[0] = arena.address
        for slot, x in enumerate(given, 2):
            frame.bases[slot] = x.address
        for slot, storage in enumerate(made, program.first_output):
            frame.bases[slot] = storage.address
        self._launch(frame)
        outputs = zip(self.graph.outputs, program.output_of, strict=True)
        return tuple([tensors.from_storage(x.aval.on(self._device), made[i]) for x, i in outputs])
