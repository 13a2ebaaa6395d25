"""Graphs that were not traced, as callable functions: compiled, and bound to Variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.compile import disk_cache
from runnel.compile.binding import Binding
from runnel.compile.compiled_program import dense
from runnel.compile.launching import TAKE, WRITES, launch, names
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import NO_CHOICES, Bindings, Choices
from runnel.core.avals import ShapedArray, row_major
from runnel.core.errors import ArgumentError, DeviceError
from runnel.core.generated import function
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.graph.verifier import verify
from runnel.tensor.tensor import Tensor, placed
from runnel.tensor.variable import Variable


class GraphFunction:
    """``graph`` as a function. Called with a tensor for each input that is no Variable, it gives the outputs and
    updates the Variables; any number of threads may call it.

    Args:
        graph: what to compute; it is checked.
        variables: the Variable for each of its inputs of kind VARIABLE.
        context: target, threads and whatever else the program depends on; the present one by default.
        choices: passes, memory planner and memory budget.
        captures: tensors for inputs that are the same at each call, and no arguments.
        numbers: for each input of kind SCALAR what gives its number at each call.
    """

    def __init__(
        self,
        graph: Graph,
        variables: Mapping[Value, Variable],
        context: CompileContext | None = None,
        *,
        choices: Choices = NO_CHOICES,
        captures: Mapping[Value, Tensor] = MappingProxyType({}),
        numbers: Mapping[Value, Callable[[], float]] = MappingProxyType({}),
    ) -> None:
        verify(graph)
        context = contexts.current() if context is None else context
        slots = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        _require_variables(slots, variables, context)
        self.graph: Final = graph
        self.variables: Final = [variables[x] for x in slots]
        bindings = Bindings(are_trained=bool(graph.updates))
        compiled = compile_graph(graph, bindings, context, choices.stored(disk_cache))
        self.program, self.hoisted_constants, self.recipe = (
            compiled.program,
            compiled.hoisted_constants,
            compiled.recipe,
        )
        inputs = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        arguments = [x for x in inputs if x not in captures and x not in numbers]
        places = {x: i for i, x in enumerate(inputs)}
        written = [i for i, x in enumerate(slots) if x in graph.updates]
        self.binding: Final = Binding(
            self.program,
            lambda: self.variables,
            written,
            len(inputs),
            [places[x] for x in numbers],
            compiled.hoisted_constants,
        )
        self._count = len(arguments)
        self._argument_errors = _ArgumentErrors(graph.name, [x.aval.on(context.device) for x in arguments])
        self.call: Final = self._written(context, arguments, places, captures, numbers, bool(written))

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        if len(arguments) != self._count:
            raise self._argument_errors(arguments)
        return self.call(*arguments)

    def _written(
        self,
        context: CompileContext,
        arguments: Sequence[Value],
        places: Mapping[Value, int],
        captures: Mapping[Value, Tensor],
        numbers: Mapping[Value, Callable[[], float]],
        writes: bool,
    ) -> Callable[..., tuple[Tensor, ...]]:
        """The code of a call, for a small program takes no longer than a few dozen lines of Python."""
        program, device = self.program, context.device
        avals = [x.aval.on(device) for x in arguments]
        space: dict[str, Any] = {
            **names(program, self.binding.pool, self.binding), "Tensor": Tensor, "dense": dense, "placed": placed,
            "refused": self._argument_errors,
        }  # fmt: skip
        checks: list[str] = []
        fill: list[str] = []
        addresses: dict[int, str] = {}
        for i, (x, value) in enumerate(zip(arguments, avals, strict=True)):
            space[f"aval{i}"] = value
            checks += [
                f"if x{i}.__class__ is not Tensor: x{i} = x{i}.read()",
                f"if x{i}._aval is not aval{i}: raise refused([{', '.join(f'x{k}' for k in range(len(avals)))}])",
                f"if x{i}._layout[1] != {row_major(value.shape)} or x{i}._storage is None: x{i} = dense(x{i})",
            ]
            addresses[2 + places[x]] = f"x{i}._storage.address + x{i}._layout[0] * {value.dtype.itemsize}"
        for i, (x, tensor) in enumerate(captures.items()):
            space[f"capture{i}"] = dense(tensor)
            addresses[2 + places[x]] = f"capture{i}.address"
        if numbers:
            fill.append("F = frame.floats")
        for i, (x, number) in enumerate(numbers.items()):
            space[f"number{i}"] = number
            fill.append(f"F[{places[x]}] = number{i}()")
        for i, nbytes in enumerate(program.outputs):
            fill.append(f"s{i} = allocate({nbytes})")
            addresses[program.first_output + i] = f"s{i}.address"
        results: list[str] = []
        for i, (x, place) in enumerate(zip(self.graph.outputs, program.output_of, strict=True)):
            space[f"result{i}"] = x.aval.on(device)
            results.append(f"placed(result{i}, s{place}, 0, {row_major(x.aval.shape)}),")
        run = launch(addresses, bool(self.variables), [WRITES] if writes else [])
        head = f"call({', '.join(f'x{i}' for i in range(len(avals)))})"
        lines = [*checks, *TAKE, *fill, *run, f"return ({' '.join(results)})"]
        call: Callable[..., tuple[Tensor, ...]] = function(head, lines, space, "call of a graph")
        return call


class _ArgumentErrors:
    """Makes the error for arguments that a graph does not take."""

    def __init__(self, name: str, avals: list[ShapedArray]) -> None:
        self._name = name
        self._avals = avals

    def __call__(self, arguments: Sequence[Tensor]) -> ArgumentError:
        received = [x.aval for x in arguments]
        return ArgumentError(f"[{self._name}] takes tensors {self._avals}; received {received}.")


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
