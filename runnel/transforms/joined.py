"""Merges bodies that were traced one by one and run on the same inputs: two branches, or a loop and its condition."""

from __future__ import annotations

from collections.abc import Sequence

from runnel.graph.graph import Graph
from runnel.graph.rewriting import copied, placeholder
from runnel.tensor.bodies import State, Traced
from runnel.tensor.tensor import Tensor


def assigned(*bodies: Traced) -> list[State]:
    """The Variables that any of the bodies assigns."""
    return list(dict.fromkeys(variable for body in bodies for variable, _, _ in body.written))


def joined(bodies: Sequence[Traced], written: Sequence[State], name: str) -> tuple[list[Graph], list[Tensor]]:
    """Graphs of equal inputs: what any of ``bodies`` reads from outside, then what each was given, then the values of
    ``written`` Variables, whose new values come after the outputs; and the tensors for the first of these."""
    state = {id(variable.read()): place for place, variable in enumerate(written)}
    constants: dict[int, Tensor] = {}
    for body in bodies:
        constants.update({id(x): x for x, _ in body.read if id(x) not in state})
    graphs = [_graph(body, constants, state, written, name) for body in bodies]
    return graphs, list(constants.values())


def _graph(
    body: Traced, constants: dict[int, Tensor], state: dict[int, int], written: Sequence[State], name: str
) -> Graph:
    read = {key: placeholder(tensor.aval, "constant") for key, tensor in constants.items()}
    placeholders = {node: placeholder(node.aval, node.name) for node in body.arguments}
    before = [placeholder(variable.aval, variable.name) for variable in written]
    value_map = dict(placeholders)
    for tensor, node in body.read:
        value_map[node] = before[state[id(tensor)]] if id(tensor) in state else read[id(tensor)]
    place = {variable: i for i, variable in enumerate(written)}
    for variable, node, _ in body.written:
        value_map[node] = before[place[variable]]
    new = {variable: node for variable, _, node in body.written}
    known = copied([*body.outputs, *new.values()], value_map)
    outputs = [known[node] for node in body.outputs]
    outputs += [known[new[variable]] if variable in new else before[i] for i, variable in enumerate(written)]
    return Graph([*read.values(), *placeholders.values(), *before], outputs, {}, name)
