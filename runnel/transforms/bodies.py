"""Shared parts of loops and branches: trees of tensors, merged graphs of bodies, and derivatives of bodies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from runnel.core import pytree
from runnel.core.avals import ShapedArray
from runnel.core.errors import DTypeError, ShapeError
from runnel.graph.graph import Graph, topological
from runnel.graph.node import Value
from runnel.graph.rewriting import copied, placeholder
from runnel.ops.conversion import stop_gradient_p
from runnel.tensor import tape
from runnel.tensor.bodies import State, Traced, evaluate
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import recording
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.tensor.tracer import Tracer


class Tree(NamedTuple):
    """The leaves of a tree that are not None, and its structure with all leaves.

    Attributes:
        leaves: the leaves that are not None.
        structure: the structure, in which None is a leaf.
        present: for each leaf of the structure, whether it is not None.
    """

    leaves: list[Any]
    structure: pytree.Structure
    present: tuple[bool, ...]

    def filled(self, values: Sequence[Any]) -> Any:
        """Return the tree with other leaves."""
        rest = iter(values)
        return pytree.unflatten(self.structure, [next(rest) if there else None for there in self.present])

    def paths(self) -> list[str]:
        """Return the path of each leaf, such as ``[0]['h']``; ``itself`` if the tree is a leaf."""
        every = pytree.paths(self.structure)
        return [path or "itself" for path, there in zip(every, self.present, strict=True) if there]

    def same_form(self, other: Tree) -> bool:
        """Return whether both trees have the same structure, and None at the same places."""
        return self.structure == other.structure and self.present == other.present


def take_apart(tree: Any) -> Tree:
    """Return ``tree`` as its leaves and structure."""
    leaves, structure = pytree.flatten(tree)
    present = tuple(leaf is not None for leaf in leaves)
    return Tree([leaf for leaf in leaves if leaf is not None], structure, present)


def tensors_of(tree: Tree) -> list[Tensor]:
    """Return the leaves as tensors. Numbers are placed on the device of the first tensor."""
    device = next((leaf.device for leaf in tree.leaves if isinstance(leaf, ArrayMethods)), None)
    return [leaf.read() if isinstance(leaf, ArrayMethods) else asarray(leaf, device=device) for leaf in tree.leaves]


def require_same(
    name: str, what: str, before: Tree, old_types: Sequence[ShapedArray], after: Tree, new_types: Sequence[ShapedArray]
) -> None:
    """Raise ShapeError or DTypeError unless both trees have the same form, shapes and dtypes."""
    if not before.same_form(after):
        raise ShapeError(f"[{name}] {what} must keep its structure; {_form_text(before)} became {_form_text(after)}.")
    for path, old, new in zip(before.paths(), old_types, new_types, strict=True):
        if old.shape != new.shape:
            raise ShapeError(f"[{name}] {what}, leaf {path}, must keep its shape; {old} became {new}.")
        if old.dtype is not new.dtype:
            raise DTypeError(f"[{name}] {what}, leaf {path}, must keep its dtype; {old} became {new}. Cast it.")


def _form_text(tree: Tree) -> str:
    return repr(tree.filled(["*"] * len(tree.leaves)))


def assigned(*bodies: Traced) -> list[State]:
    """Return the Variables that any of the bodies assigns."""
    return list(dict.fromkeys(variable for body in bodies for variable, _, _ in body.written))


def joined(bodies: Sequence[Traced], written: Sequence[State], name: str) -> tuple[list[Graph], list[Tensor]]:
    """Return graphs with equal inputs for bodies that were traced separately, and the tensors that they read.

    The inputs are the tensors from outside that any of ``bodies`` reads, the arguments, and the values of the
    ``written`` Variables, whose new values follow the outputs.
    """
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


class Linearized(NamedTuple):
    """The nodes of a body and of its derivative, in one graph.

    Attributes:
        inputs: the inputs of the body.
        outputs: the outputs of the body.
        seeds: the cotangents of outputs, by the number of the output.
        cotangents: the cotangents of inputs, by the number of the input.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    seeds: dict[int, Value]
    cotangents: dict[int, Value]

    def linear(self) -> set[Value]:
        """Return the nodes that depend on cotangents."""
        dependent = set(self.seeds.values())
        for node in topological(self.cotangents.values()):
            if any(x in dependent for x in node.inputs):
                dependent.add(node)
        return dependent


def linearize(graph: Graph, numbers: Collection[int], seeded: Collection[int]) -> Linearized:
    """Differentiate by the inputs numbered ``numbers``, given cotangents of the outputs numbered ``seeded``."""
    tracer = Tracer()
    with tracer, recording(True):
        inputs = [tracer.argument(x.aval, x.name) for x in graph.inputs]
        for number in numbers:
            inputs[number].requires_grad = True
        outputs = evaluate(graph, inputs)
        roots = [number for number in seeded if outputs[number].requires_grad]
        seeds = [tracer.argument(outputs[i].aval, f"g{i}") for i in roots]
        leaves = [inputs[number] for number in numbers]
        cotangents = tape.cotangents([outputs[i] for i in roots], seeds, leaves)
        return Linearized(
            tuple(tracer.nodes(inputs)),
            tuple(tracer.nodes(outputs)),
            dict(zip(roots, tracer.nodes(seeds), strict=True)),
            {i: tracer.node(cotangents[id(inputs[i])][1]) for i in numbers if id(inputs[i]) in cotangents},
        )


def depending(graph: Graph, inputs: Sequence[Value]) -> set[Value]:
    """Return the nodes that may have a derivative by ``inputs``."""
    dependent = set(inputs)
    for node in graph.values:
        if node.aval.dtype.is_inexact and node.op is not stop_gradient_p and any(x in dependent for x in node.inputs):
            dependent.add(node)
    return dependent


def with_carries(graph: Graph, own: Sequence[int], first: int, carries: int) -> list[int]:
    """Return the inputs ``own`` and all carries, which are the inputs from ``first`` on, with a derivative by them."""
    active = list(own)
    while True:
        dependent = depending(graph, [graph.inputs[i] for i in active])
        more = [first + j for j in range(carries) if first + j not in active and graph.outputs[j] in dependent]
        more = [i for i in more if graph.inputs[i].aval.dtype.is_inexact]
        if not more:
            return sorted(active)
        active += more
