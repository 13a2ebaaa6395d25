"""The verifier of graphs: invariants that all passes require and preserve.

With ``RUNNEL_VERIFY`` it runs after each pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from runnel.core.errors import MissingRuleError, VerifierError
from runnel.core.tables import Op
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, Result, Value, abstract_results


def verify(graph: Graph, after: str = "") -> None:
    """Raise VerifierError for the first fault of ``graph``; ``after`` names the pass that returned it."""
    for fault in faults(graph):
        origin = f" after pass '{after}'" if after else ""
        raise VerifierError(f"Graph '{graph.name}'{origin}: {fault}.")


def faults(graph: Graph) -> Iterator[str]:
    """Yield a sentence for each fault of a graph."""
    number = printer.numbers(graph)
    known = set(graph.inputs)
    if len(known) < len(graph.inputs):
        yield "an input is listed twice"
    for value, place in number.items():
        for x in value.inputs:
            if number[x] >= place:
                yield f"{_described(value, number)} comes before its input {printer.reference(x, number)}"
        if value.is_input and value not in known:
            yield f"{_described(value, number)} is not among the graph's inputs"
        for rule in _RULES:
            why = rule(value)
            if why:
                yield f"{_described(value, number)} {why}"
    for node, results in graph.nodes.items():
        if len({x.index for x in results}) < len(results):
            yield f"{_described(results[0], number)} has one of its {len(node.avals)} results twice"
    for value in graph.inputs:
        if not value.is_input:
            yield f"{_described(value, number)} is listed as an input"
    for variable, new in graph.updates.items():
        subject = f"the update of {_described(variable, number)}"
        if variable.kind is not InputKind.VARIABLE or variable not in known:
            yield f"{subject} needs a variable among the graph's inputs"
        if new.aval is not variable.aval:
            yield f"{subject} changes its aval to {new.aval!r}"


def _described(value: Value, number: dict[Value, int]) -> str:
    """Return a value with the avals of its node's inputs, and its source line."""
    read = ", ".join(f"{printer.reference(x, number)}: {x.aval!r}" for x in value.inputs)
    return f"`{printer.line(value, number)}`{f' reading {read}' if read else ''}"


def _constant(value: Value) -> str:
    if not value.is_constant:
        return ""
    array = value.value
    if not isinstance(array, np.ndarray):
        return f"must hold an array, and holds {type(array).__name__}"
    if array.shape != value.aval.shape or array.dtype != value.aval.dtype.numpy:
        return f"holds an array of shape {array.shape} and dtype {array.dtype}"
    return "holds an array that is writable" if array.flags.writeable else ""


def _op(value: Value) -> str:
    if not isinstance(value, Result):
        return ""
    node = value.node
    if Op.registry.get(node.op.name) is not node.op:
        return f"applies an op that is not registered as '{node.op.name}'"
    try:
        inferred = abstract_results(node.op, node.inputs, node.attrs)
    except MissingRuleError as missing:
        return f"cannot be checked: {missing}".rstrip(".")
    except Exception as refused:  # a rule may fail on anything that a pass wrote
        return f"does not fit its op: {refused}".rstrip(".")
    if inferred == node.avals and node.avals[value.index] is value.aval:
        return ""
    return f"should be {', '.join(map(repr, inferred))} by table 'abstract_eval'"


_RULES: Final = (_constant, _op)
