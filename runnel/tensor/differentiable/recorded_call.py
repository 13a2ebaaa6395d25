"""Write the lines of a call whose results can be differentiated (:mod:`runnel.tensor.bound`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runnel.backends import context
from runnel.backends.host.locks import StateLock
from runnel.compiler.entry import CompiledGraph
from runnel.core.lifetime import Weak
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind
from runnel.tensor.differentiable.derivative import Derivative
from runnel.tensor.differentiable.record import Call, Tapes
from runnel.tensor.kept_values import Hold, ReadVariables


def _row(parts: Iterable[str]) -> str:
    """Return the items of a tuple as code."""
    return "".join(f"{part}, " for part in parts)


class Taping:
    """``before`` and ``after`` the run, while the frame is the call's own, and ``attach`` when there are results. They
    read the values of the call; ``names`` are the other names that they need. The inputs with numbers in
    ``residual_inputs`` are ``d0``, ``d1``, ... as the program reads them.

    Outputs that only backward programs read live and die ``together``, so they share one block of memory."""

    def __init__(
        self,
        derivative: Derivative,
        graph: Graph,
        compiled: CompiledGraph,
        values: Sequence[str],
        ends: Sequence[str],
        variables: Sequence[Weak] = (),
        locks: Sequence[StateLock] = (),
    ) -> None:
        """Write the lines for a program of ``graph``. ``values`` are expressions for its inputs that are not Variables,
        and ``ends`` for the tensors outside that gradients lead to; ``locks`` are those of its Variables."""
        program = compiled.program
        own_inputs = [x for x in graph.inputs if x.kind is InputKind.VARIABLE]
        others = [x for x in graph.inputs if x.kind is not InputKind.VARIABLE]
        residuals = set(derivative.residuals)
        results = {program.output_of[i] for i, node in enumerate(graph.outputs) if node not in residuals}
        self.together = frozenset(range(len(program.outputs))).difference(results)
        slots: list[int] = []
        memory: dict[str, None] = {}
        read: dict[int, Any] = {}
        self.residual_inputs: set[int] = set()
        for node in derivative.stored:
            if node in residuals or not node.is_input:
                place = program.output_of[graph.outputs.index(node)]
                memory["shared" if place in self.together else f"s{place}"] = None
                slots.append(program.first_output + place)
            elif node.kind is InputKind.VARIABLE:
                number = own_inputs.index(node)
                read[number] = variables[number]()
                slots.append(program.first_variable + number)
            else:
                number = others.index(node)
                self.residual_inputs.add(number)
                memory[f"d{number}._storage"] = None
                slots.append(2 + number)
        inputs: list[str] = []
        for node in derivative.inputs:
            if node.kind is InputKind.VARIABLE:
                read[own_inputs.index(node)] = variables[own_inputs.index(node)]()
            elif node.kind is InputKind.SCALAR:
                inputs.append(f"F[{others.index(node)}]")
            else:
                value = values[others.index(node)]
                inputs += [f"{value}._storage", f"{value}._layout"]
        with context.entered(compiled.recipe.context):
            self.tapes = Tapes(derivative, variables, own_inputs, graph.name, compiled.recipe.options)
        self.names: dict[str, Any] = {"attach": self.tapes.attach, "Call": Call, "Hold": Hold, "TAPES": self.tapes}
        self.before = [f"inputs = ({_row(inputs)})", "hold = None"]
        self.after = ["B = frame.bases", f"addresses = ({_row(f'B[{slot}]' for slot in slots)})"]
        pins = "()"
        if variables:
            pins = "pins"
            self.after.append("pins = frame.pins")
        if read:
            self.names |= {"HELD": ReadVariables(read), "LOCKS": locks}
            self.before[-1] = "hold = Hold(HELD, LOCKS)"
            self.after.append("hold.pins = pins")
        taped = _row(f"r{place}" for place, _ in derivative.taped)
        call = f"Call(TAPES, ({_row(ends)}), inputs, addresses, ({_row(memory)}), {pins}, hold)"
        self.attach = [f"attach(({taped}), {call})"]
