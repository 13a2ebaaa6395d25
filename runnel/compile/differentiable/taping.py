"""The lines that a call's code has more where its results can be differentiated: see ``calling.py``."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from runnel.compile.capture import Origin
from runnel.compile.differentiable.call import Tapes
from runnel.compile.signature import Arguments, Role
from runnel.graph.graph import InputKind
from runnel.tensor.holding import Held, Hold

if TYPE_CHECKING:
    from runnel.compile.guards import Guard
    from runnel.compile.native import Native


class Taping:
    """``before`` and ``after`` the run, while the frame is the call's own, and ``attach`` when there are results. They
    read ``fn`` and ``given``, the arguments' leaves; ``names`` are what else they need."""

    def __init__(self, native: Native, arguments: Arguments, guard: Guard) -> None:
        captured = native.captured
        derivative = captured.derivative
        if derivative is None:
            raise ValueError("the program has no derivative")
        graph, program = captured.graph, native.program
        variables = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        others = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        slots: list[int] = []
        memory: dict[str, None] = {}
        held: dict[int, Any] = {}
        bound = captured.bound_variables()
        for node in derivative.kept:
            if node in derivative.residuals or not node.is_input:
                place = program.output_of[graph.outputs.index(node)]
                memory[f"s{place}"] = None
                slots.append(program.first_output + place)
            elif node.kind is InputKind.VARIABLE:
                number = variables.index(node)
                held[number] = bound[number]
                slots.append(program.first_variable + number)
            else:
                number = others.index(node)
                source = captured.sources[number]
                name = f"a{source.what}" if source.origin is Origin.LEAF else f"d{number}"
                memory[f"{name}._storage"] = None
                slots.append(2 + number)
        wrong = "writes Variables" if captured.written else ""
        if any(tag[0] is Role.ARRAY for tag in arguments.tags):
            wrong = wrong or "was given a NumPy array, which may have changed"
        tapes = Tapes(
            derivative,
            captured.variables,
            arguments.structure,
            graph.name,
            wrong,
            _unchanged(guard, [tag[0] is Role.OBJECT for tag in arguments.tags]),
            native.recipe.memory_budget,
        )
        self.names: dict[str, Any] = {"attach": tapes.attach, "Hold": Hold}
        self.before = ["hold = None"]
        self.after = [f"kept = ({''.join(f'B[{slot}], ' for slot in slots)})", "pins = frame.pins"]
        if held:
            self.names |= {"HELD": Held(held), "LOCKS": native.binding.locks}
            self.before = ["hold = Hold(HELD, LOCKS)"]
            self.after.append("hold.pins = pins")
        results = "".join(f"r{place}, " for place, _ in derivative.taped)
        self.attach = [
            f"attach(({results}), fn, {_leaves(arguments)}, kept, ({''.join(f'{x}, ' for x in memory)}), pins, hold)"
        ]


def _leaves(arguments: Arguments) -> str:
    """The arguments as they are now, whatever is written to them later; what gradients lead to is itself."""
    taped = arguments.differentiated
    parts = [
        f"given[{i}]{'._twin()' if tag[0] is Role.TENSOR and i not in taped else ''}, "
        for i, tag in enumerate(arguments.tags)
    ]
    return f"({''.join(parts)})"


def _unchanged(guard: Guard, watched: Sequence[bool]) -> Any:
    def unchanged(function: FunctionType, leaves: Sequence[Any]) -> bool:
        return guard.holds(function, [x for x, is_watched in zip(leaves, watched, strict=True) if is_watched])

    return unchanged
