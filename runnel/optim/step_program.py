"""An optimizer's step as one program, for eager training: many small ops become one call that updates in place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from runnel.backends import context
from runnel.compiler.entry import compile_graph, uncollected
from runnel.compiler.options import NO_CHOICES, Bindings
from runnel.core.avals import common_device
from runnel.tensor.binding import Binding
from runnel.tensor.bound import WRITES, Bound, Feed, any_layout, number
from runnel.tensor.dense import dense
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer
from runnel.tensor.variable import STATE_VERSION, Variable

_MOST_PROGRAMS = 16  # of one optimizer


def step_program(
    structure: Hashable, parameters: Sequence[Variable], update: Callable[[], None], name: str
) -> Callable[[Hashable], bool]:
    """Trace ``update``, which changes Variables given gradients and hyper-parameters, and return it as a program.

    The program updates everything in place and returns True if the structure of the optimizer is ``structure`` and the
    gradients of ``parameters`` have the same shapes as now; else it returns False.
    """
    gradients = {p: g for p in parameters if (g := p.grad) is not None}
    device = common_device(name, [x.aval for pair in gradients.items() for x in pair])
    tracer = Tracer(device)
    with tracer:
        for p, g in gradients.items():
            tracer.variables.gradients[p] = tracer.argument(g.aval, f"{p.name}.grad")
        update()
        graph = tracer.graph([], name)
    compiled = compile_graph(graph, Bindings(are_trained=True), context.on(device), NO_CHOICES.stored())
    names: dict[str, Any] = {
        "CONTEXT": context.current(), "STRUCTURE": structure, "Tensor": Tensor, "context": context.current,
        "dense": dense,
    }  # fmt: skip
    checks = [
        "if structure is not STRUCTURE and structure != STRUCTURE: return False",
        "if context() is not CONTEXT: return False",
    ]
    feeds: list[Feed] = []
    for i, p in enumerate(parameters):
        names[f"p{i}"] = p
        if p not in gradients:
            checks.append(f"if p{i}._grad is not None: return False")
            continue
        aval = names[f"aval{i}"] = gradients[p].aval
        checks.append(f"g{i} = p{i}._grad")
        checks.append(f"if g{i}.__class__ is not Tensor or g{i}._aval is not aval{i}: return False")
        feeds.append(any_layout(len(feeds), f"g{i}", aval))
    for i, getter in enumerate(tracer.numbers.values()):
        names[f"number{i}"] = getter
        feeds.append(number(len(feeds), f"number{i}()"))
    variables = list(tracer.bound_variables.values())
    bound = Bound(compiled.program, Tensor, feeds, variables=Binding(compiled, lambda: variables))
    bound.namespace |= names
    run: Callable[[Hashable], bool] = bound.function(
        "run(structure)", "step of an optimizer", checks=checks, after=[WRITES], then=["return True"]
    )
    return run


class StepPrograms:
    """The programs of one optimizer, the most recently used first. When there are too many, the last one is dropped.

    It has no ``__dict__``, so compiled functions that reach the optimizer do not watch it: it changes no result.
    """

    __slots__ = ("_programs", "_version")

    def __init__(self) -> None:
        self._programs: list[Callable[[Hashable], bool]] = []
        self._version = -1

    def run(self, optimizer: Any) -> None:
        """Run ``optimizer.update_all()`` as a program. If none fits the structure and the gradients, make one."""
        if self._version != STATE_VERSION.now:
            optimizer.structure()
            self._version = STATE_VERSION.now
        structure = optimizer._structure
        for place, program in enumerate(self._programs):
            if program(structure):
                if place:
                    self._programs = [program, *[other for other in self._programs if other is not program]]
                return
        parameters = [p for group in optimizer.param_groups for p in group.params]
        if any(p.grad is not None for p in parameters):
            self._make(structure, parameters, optimizer)
            self.run(optimizer)  # another thread may have changed gradients meanwhile

    @context.in_one_context
    def _make(self, structure: Hashable, parameters: list[Variable], optimizer: Any) -> None:
        with uncollected():
            program = step_program(structure, parameters, optimizer.update_all, type(optimizer).__name__)
        self._programs = [program, *self._programs[: _MOST_PROGRAMS - 1]]
