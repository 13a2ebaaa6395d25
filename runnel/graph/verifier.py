"""The checker of graphs: what every pass may rely on, and must keep. Runs between passes under ``RUNNEL_VERIFY``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from runnel.core.errors import MissingRuleError, RunnelError, VerifierError
from runnel.core.tables import Op, infer
from runnel.graph import printer
from runnel.graph.graph import Graph, InputKind, Node


def verify(graph: Graph, after: str = "") -> None:
    """Raise VerifierError for the first fault of ``graph``; ``after`` names the pass that has just made it."""
    for fault in faults(graph):
        made = f" after pass '{after}'" if after else ""
        raise VerifierError(f"Graph '{graph.name}'{made}: {fault}.")


def faults(graph: Graph) -> Iterator[str]:
    """Every fault of a graph, a sentence each."""
    number = printer.numbers(graph)
    known = set(graph.inputs)
    if len(known) < len(graph.inputs):
        yield "an input is listed twice"
    for node, place in number.items():
        for x in node.inputs:
            if number[x] >= place:
                yield f"{_shown(node, number)} comes before its input {printer.reference(x, number)}"
        if node.is_input and node not in known:
            yield f"{_shown(node, number)} is not among the graph's inputs"
        for rule in _RULES:
            why = rule(node)
            if why:
                yield f"{_shown(node, number)} {why}"
    for node in graph.inputs:
        if not node.is_input:
            yield f"{_shown(node, number)} is listed as an input"
    for variable, new in graph.updates.items():
        says = f"the update of {_shown(variable, number)}"
        if variable.kind is not InputKind.VARIABLE or variable not in known:
            yield f"{says} needs a variable among the graph's inputs"
        if new.aval is not variable.aval:
            yield f"{says} changes its aval to {new.aval!r}"


def _shown(node: Node, number: dict[Node, int]) -> str:
    """A node with the avals of its inputs, and its source line."""
    read = ", ".join(f"{printer.reference(x, number)}: {x.aval!r}" for x in node.inputs)
    return f"`{printer.line(node, number)}`{f' reading {read}' if read else ''}"


def _leaf(node: Node) -> str:
    if node.op is not None:
        return "is an input and has an op" if node.is_input else ""
    return "has inputs and no op" if node.inputs else ""


def _constant(node: Node) -> str:
    if not node.is_constant:
        return ""
    value = node.value
    if not isinstance(value, np.ndarray):
        return f"holds a {type(value).__name__} and not an array"
    if value.shape != node.aval.shape or value.dtype != node.aval.dtype.numpy:
        return f"holds an array of shape {value.shape} and dtype {value.dtype}"
    return "holds an array that can be written to" if value.flags.writeable else ""


def _op(node: Node) -> str:
    op = node.op
    if op is None:
        return ""
    if Op.registry.get(op.name) is not op:
        return f"applies an op that is not registered as '{op.name}'"
    try:
        inferred = infer[op](*(x.aval for x in node.inputs), **node.attrs)
    except MissingRuleError as missing:
        return f"cannot be checked: {missing}".rstrip(".")
    except (RunnelError, TypeError, ValueError) as refused:
        return f"does not fit its op: {refused}".rstrip(".")
    return "" if inferred is node.aval else f"should be {inferred!r} by table 'infer'"


_RULES: Final = (_leaf, _constant, _op)
