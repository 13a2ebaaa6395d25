"""Declared graphs: declare operations first, then let a session run what you fetch as one program."""

from runnel.core import public
from runnel.declarative.calls import call, constant
from runnel.declarative.control import cond, scan, while_loop
from runnel.declarative.files import load, save
from runnel.declarative.function import function
from runnel.declarative.gradients import gradients
from runnel.declarative.graph import Graph, default_graph, reset_default_graph
from runnel.declarative.knowledge import infer, infers_inputs
from runnel.declarative.named import NamedGraph
from runnel.declarative.operation import Declared as Declared, Operation as Operation
from runnel.declarative.session import Session
from runnel.declarative.state import (
    all_variables,
    assign,
    assign_add,
    assign_sub,
    group,
    initializer,
    placeholder,
    variable,
    variable as Variable,
)
from runnel.declarative.text import to_dot, to_svg, to_text
from runnel.declarative.training import minimize

__all__ = [
    "Graph",
    "NamedGraph",
    "Session",
    "Variable",
    "all_variables",
    "assign",
    "assign_add",
    "assign_sub",
    "call",
    "cond",
    "constant",
    "default_graph",
    "function",
    "gradients",
    "group",
    "infer",
    "infers_inputs",
    "initializer",
    "load",
    "minimize",
    "placeholder",
    "reset_default_graph",
    "save",
    "scan",
    "to_dot",
    "to_svg",
    "to_text",
    "variable",
    "while_loop",
]

public.offer(globals(), __all__)
del public
