"""Compile graphs and call them as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from runnel.backends import context as contexts
from runnel.backends.context import CompileContext
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import NO_CHOICES, Bindings, Choices
from runnel.core.avals import ShapedArray
from runnel.core.errors import ArgumentError, DeviceError
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Value
from runnel.graph.verifier import verify
from runnel.tensor.binding import Binding
from runnel.tensor.bound import WRITES, Bound, Feed, any_layout, number
from runnel.tensor.dense import dense
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class GraphFunction:
    """A graph as a function of tensors, one for each input that is not a Variable or a capture.

    A call returns the outputs and updates the Variables. Any number of threads may call it.

    Args:
        graph: the graph, which is verified.
        variables: the Variable for each input of kind VARIABLE.
        context: target, threads and everything else that the program depends on; by default the current context.
        choices: passes, memory planner and memory budget.
        captures: tensors for inputs that are the same at each call and are not arguments.
        numbers: functions that return the number for each input of kind SCALAR at each call.
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
        compiled = compile_graph(graph, bindings, context, choices.stored())
        self.compiled: Final = compiled
        self.program: Final = compiled.program
        self.binding: Final = Binding(compiled, lambda: self.variables)
        fed = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        arguments = [x for x in fed if x not in captures and x not in numbers]
        self._count = len(arguments)
        self._argument_errors = _ArgumentErrors(graph.name, [x.aval.on(context.device) for x in arguments])
        self.call: Final = self._written(context, arguments, captures, numbers)

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        if len(arguments) != self._count:
            raise self._argument_errors(arguments)
        return self.call(*arguments)

    def _written(
        self,
        context: CompileContext,
        arguments: Sequence[Value],
        captures: Mapping[Value, Tensor],
        numbers: Mapping[Value, Callable[[], float]],
    ) -> Callable[..., tuple[Tensor, ...]]:
        """Write the code of a call."""
        device = context.device
        names = {x: f"x{i}" for i, x in enumerate(arguments)}
        everything = ", ".join(names.values())
        space: dict[str, Any] = {"Tensor": Tensor, "dense": dense, "refused": self._argument_errors}
        checks: list[str] = []
        feeds: list[Feed] = []
        for i, x in enumerate(x for x in self.graph.inputs if x.kind is not InputKind.VARIABLE):
            space[f"input{i}"] = x.aval.on(device)
            if x in captures:
                space[f"capture{i}"] = dense(captures[x])
                feeds.append(Feed(f"capture{i}.address"))
            elif x in numbers:
                space[f"number{i}"] = numbers[x]
                feeds.append(number(i, f"number{i}()"))
            else:
                name = names[x]
                checks += [
                    f"if {name}.__class__ is not Tensor: {name} = {name}.read()",
                    f"if {name}._aval is not input{i}: raise refused([{everything}])",
                ]
                feeds.append(any_layout(i, name, x.aval))
        results = [x.aval.on(device) for x in self.graph.outputs]
        bound = Bound(self.program, Tensor, feeds, results, variables=self.binding)
        bound.namespace |= space
        made = [line for i in range(len(results)) for line in bound.tensor(f"r{i}", i)]
        returned = "".join(f"r{i}, " for i in range(len(results)))
        call: Callable[..., tuple[Tensor, ...]] = bound.function(
            f"call({everything})",
            "call of a graph",
            checks=checks,
            after=[WRITES] if self.graph.updates else [],
            then=[*made, f"return ({returned})"],
        )
        return call


class _ArgumentErrors:
    """Makes the error for arguments of the wrong number, shapes or dtypes."""

    def __init__(self, name: str, avals: list[ShapedArray]) -> None:
        self._name = name
        self._avals = avals

    def __call__(self, arguments: Sequence[Tensor]) -> ArgumentError:
        received = [x.aval for x in arguments]
        return ArgumentError(f"[{self._name}] arguments must be tensors {self._avals}; got {received}.")


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
