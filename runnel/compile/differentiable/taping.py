"""Generated lines of a call whose results can be differentiated (see ``calling.py``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.backends import context
from runnel.compile.compiled_program import CompiledProgram
from runnel.compile.differentiable.call import Call, Tapes
from runnel.compile.observe.observation import Observation
from runnel.graph.node import InputKind
from runnel.tensor.holding import Hold, ReadVariables


def _row(parts: Iterable[str]) -> str:
    """The items of a tuple, as code."""
    return "".join(f"{part}, " for part in parts)


class Taping:
    """``before`` and ``after`` the run, while the frame is the call's own, and ``attach`` when there are results. They
    read the guard's values; ``names`` are what else they need. The inputs with numbers
    in ``residual_inputs`` are ``d0``, ``d1``, ... as the program reads them.

    Outputs that only backward programs read live and die ``together``, so they share one block of memory."""

    def __init__(self, native: CompiledProgram, observation: Observation) -> None:
        captured, guard = native.captured, observation.guard
        derivative = captured.derivative
        if derivative is None:
            raise ValueError("the program has no derivative")
        graph, program = captured.graph, native.program
        variables = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        others = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        own = set(derivative.residuals)
        results = {program.output_of[i] for i, node in enumerate(graph.outputs) if node not in own}
        self.together = frozenset(range(len(program.outputs))).difference(results)
        slots: list[int] = []
        memory: dict[str, None] = {}
        variables_read: dict[int, Any] = {}
        bound = captured.bound_variables()
        self.residual_inputs: set[int] = set()
        for node in derivative.stored:
            if node in derivative.residuals or not node.is_input:
                place = program.output_of[graph.outputs.index(node)]
                memory["shared" if place in self.together else f"s{place}"] = None
                slots.append(program.first_output + place)
            elif node.kind is InputKind.VARIABLE:
                number = variables.index(node)
                variables_read[number] = bound[number]
                slots.append(program.first_variable + number)
            else:
                number = others.index(node)
                self.residual_inputs.add(number)
                memory[f"d{number}._storage"] = None
                slots.append(2 + number)
        inputs: list[str] = []
        for node in derivative.inputs:
            if node.kind is InputKind.VARIABLE:
                variables_read[variables.index(node)] = bound[variables.index(node)]
                continue
            number = others.index(node)
            if node.kind is InputKind.SCALAR:
                inputs.append(f"F[{number}]")
            else:
                value = f"v{guard.read_sources[captured.sources[number].what]}"
                inputs += [f"{value}._storage", f"{value}._layout"]
        with context.entered(native.context):
            self.tapes = Tapes(derivative, captured.variables, variables, graph.name, native.recipe.options)
        self.names: dict[str, Any] = {"attach": self.tapes.attach, "Call": Call, "Hold": Hold, "TAPES": self.tapes}
        self.before = [f"inputs = ({_row(inputs)})", "hold = None"]
        self.after = ["B = frame.bases", f"addresses = ({_row(f'B[{slot}]' for slot in slots)})", "pins = frame.pins"]
        if variables_read:
            self.names |= {"HELD": ReadVariables(variables_read), "LOCKS": native.binding.locks}
            self.before[-1] = "hold = Hold(HELD, LOCKS)"
            self.after.append("hold.pins = pins")
        results = _row(f"r{place}" for place, _ in derivative.taped)
        ends = _row(f"v{guard.read_sources[place]}" for place in captured.ends)
        call = f"Call(TAPES, ({ends}), inputs, addresses, ({_row(memory)}), pins, hold)"
        self.attach = [f"attach(({results}), {call})"]
