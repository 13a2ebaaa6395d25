"""Write passes over graphs of programs, and attributes of ops, from outside the package (``docs/extend/passes.md``)."""

from runnel.compiler.passes.pipeline import USUAL, Pass, Pipeline
from runnel.core import public
from runnel.core.errors import PassError, VerifierError
from runnel.core.tables import Op, Table
from runnel.graph.graph import Graph
from runnel.graph.node import Constant, Input, Node, Result, Value
from runnel.graph.rewriting import rewrite, substituted
from runnel.passes.patterns import Pattern, Rule, anything, applied, constant, number, op, rewriting
from runnel.passes.written import Written, written

__all__ = [
    "USUAL",
    "Constant",
    "Graph",
    "Input",
    "Node",
    "Op",
    "Pass",
    "PassError",
    "Pattern",
    "Pipeline",
    "Result",
    "Rule",
    "Table",
    "Value",
    "VerifierError",
    "Written",
    "anything",
    "applied",
    "constant",
    "number",
    "op",
    "rewrite",
    "rewriting",
    "substituted",
    "written",
]

INNER = frozenset({"Constant", "Graph", "Input", "Node", "Op", "Result", "Table", "Value"})

public.offer(globals(), __all__, inner=INNER)
del public
