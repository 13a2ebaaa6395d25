"""An optimizer's step as one program, for eager training: many small ops become one call that updates in place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from runnel.backends import context
from runnel.compile.compiled import Compiled, compile
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings
from runnel.core.avals import common_device
from runnel.tensor import tensor as tensors
from runnel.tensor.binding import Binding
from runnel.tensor.bound import WRITES, Bound, Feed, any_layout, number
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import Variable

Gradients = Mapping[Variable, Tensor]
_MOST_PROGRAMS = 16  # programs of one optimizer


class StepProgram:
    """What ``update`` does with Variables, their gradients and run-time numbers, traced once.

    ``run(structure)`` updates everything in place, if the optimizer's structure and the gradients of ``parameters`` are
    as they were; else it gives False. It is generated code, for a step of a small network is mostly Python.
    """

    def __init__(
        self, structure: Hashable, parameters: Sequence[Variable], update: Callable[[], None], name: str
    ) -> None:
        gradients = {p: g for p in parameters if (g := p.grad) is not None}
        device = common_device(name, [x.aval for pair in gradients.items() for x in pair])
        tracer = Tracer(device)
        traced = tracer.variables
        with tracer:
            for p, g in gradients.items():
                traced.gradients[p] = tracer.argument(g.aval, f"{p.name}.grad")
            update()
            graph = tracer.graph([], name)
        self.program = compile_graph(graph, Bindings(are_trained=True), context.on(device)).program
        getters = list(tracer.numbers.values())
        numbers = range(len(gradients), len(gradients) + len(getters))
        variables = list(traced.nodes)
        written = [i for i, v in enumerate(variables) if v in traced.written]
        self.binding = Binding(self.program, lambda: variables, written, numbers.stop, numbers)
        self.run = self._written(structure, parameters, gradients, getters)

    def _written(
        self,
        structure: Hashable,
        parameters: Sequence[Variable],
        gradients: Gradients,
        getters: Sequence[Callable[[], float]],
    ) -> Callable[[Hashable], bool]:
        space: dict[str, Any] = {
            "CONTEXT": context.current(), "STRUCTURE": structure, "Tensor": Tensor, "context": context.current,
            "dense": tensors.dense,
        }  # fmt: skip
        checks = ["if structure is not STRUCTURE and structure != STRUCTURE: return False"]
        checks.append("if context() is not CONTEXT: return False")
        feeds: list[Feed] = []
        for i, p in enumerate(parameters):
            space[f"p{i}"] = p
            g = gradients.get(p)
            if g is None:
                checks.append(f"if p{i}._grad is not None: return False")
                continue
            space[f"aval{i}"] = g.aval
            checks += [
                f"g{i} = p{i}._grad",
                f"if g{i}.__class__ is not Tensor or g{i}._aval is not aval{i}: return False",
            ]
            feeds.append(any_layout(len(feeds), f"g{i}", g.aval))
        for i, getter in enumerate(getters):
            space[f"number{i}"] = getter
            feeds.append(number(len(feeds), f"number{i}()"))
        bound = Bound(self.program, Tensor, feeds, variables=self.binding)
        bound.namespace |= space
        run: Callable[[Hashable], bool] = bound.function(
            "run(structure)", "step of an optimizer", checks=checks, after=[WRITES], then=["return True"]
        )
        return run


class StepPrograms:
    """The programs of one optimizer, those that ran last in front; the last of them goes when there are too many.

    It has no ``__dict__``, so compiled functions that reach the optimizer do not watch it: it changes no result.
    """

    __slots__ = ("_observed", "_programs")

    def __init__(self) -> None:
        self._programs: list[StepProgram] = []
        self._observed: Compiled | None = None

    def run(
        self, structure: Hashable, parameters: Callable[[], list[Variable]], update: Callable[[], None], name: str
    ) -> None:
        """Update everything in place. Where no program fits the structure and the gradients, one is made."""
        for place, program in enumerate(self._programs):
            if program.run(structure):
                if place:
                    self._programs = [program, *[other for other in self._programs if other is not program]]
                return
        if all(p.grad is None for p in parameters()):
            return
        self._make(structure, parameters(), update, name)
        self.run(structure, parameters, update, name)  # another thread may have changed gradients meanwhile

    def run_observed(self, step: Callable[[Any], object], optimizer: Any) -> None:
        """The same by a compiled function, which knows what an update that a user has written reads."""
        if self._observed is None:
            self._observed = compile(step, keep_grads=True, name=f"{type(optimizer).__name__}.step")
        self._observed(optimizer)

    @context.in_one_context
    def _make(self, structure: Hashable, parameters: list[Variable], update: Callable[[], None], name: str) -> None:
        program = StepProgram(structure, parameters, update, name)
        self._programs = [program, *self._programs[: _MOST_PROGRAMS - 1]]
