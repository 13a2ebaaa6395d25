"""The text and the JSON of a graph."""

from __future__ import annotations

import json
import math

from runnel.core.dtypes import float64, int32
from runnel.graph import printer
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind, applied
from runnel.ops.conversion import cast_p
from runnel.ops.elementwise.arithmetic import add_p, mul_p
from runnel.ops.shapes.broadcasting import sum_p
from runnel.ops.shapes.views import reshape_p

from .build import argument, constant, graph, op, variable


def step() -> Graph:
    x, rate, w = argument(2, 3, name="x"), argument(1, 1, name="rate", kind=InputKind.SCALAR), variable(2, 3, name="w")
    scaled = op(mul_p, op(mul_p, x, w, where="model.py:7"), constant([[0.5]]))
    loss = op(reshape_p, op(sum_p, scaled, axes=(0, 1)), shape=())
    return graph([x, rate, w], loss, updates={w: op(add_p, w, rate)}, name="step")


def test_text() -> None:
    assert printer.text(step()) == (
        "graph step:\n"
        "    %0 = argument x : float32[2,3]\n"
        "    %1 = scalar rate : float32[1,1]\n"
        "    %2 = variable w : float32[2,3]\n"
        "    %3 = mul(%0, %2) : float32[2,3]  # model.py:7\n"
        "    %4 = constant 0.5 : float32[1,1]\n"
        "    %5 = mul(%3, %4) : float32[2,3]\n"
        "    %6 = sum(%5, axes=(0, 1)) : float32[1,1]\n"
        "    %7 = reshape(%6, shape=()) : float32[]\n"
        "    %8 = add(%2, %1) : float32[2,3]\n"
        "    return %7\n"
        "    update %2 <- %8\n"
    )


def test_attributes_and_large_constants() -> None:
    many = constant([1, 2], int32)
    text = printer.text(graph([], op(cast_p, many, dtype=float64), many))
    assert text == (
        "graph program:\n"
        "    %0 = constant ... : int32[2]\n"
        "    %1 = cast(%0, dtype=float64) : float64[2]\n"
        "    return %1, %0\n"
    )
    assert printer.text(graph([])) == "graph program:\n    return nothing\n"


def test_json() -> None:
    written = printer.as_json(step())
    assert json.loads(json.dumps(written)) == written
    assert (written["inputs"], written["outputs"], written["updates"]) == ([0, 1, 2], [7], [[2, 8]])
    assert written["nodes"][1] == {
        "id": 1, "op": None, "inputs": [], "attrs": {}, "shape": [1, 1], "dtype": "float32", "where": "",
        "kind": "scalar", "name": "rate",
    }  # fmt: skip
    assert written["nodes"][6]["attrs"] == {"axes": [0, 1]} and written["nodes"][3]["where"] == "model.py:7"
    assert (written["nodes"][4]["kind"], written["nodes"][4]["value"]) == ("constant", "0.5")


def test_json_of_attributes() -> None:
    x = argument(2)
    node = applied(add_p, (x,), {"by": math.inf, "to": float64, "of": None}, x.aval)
    assert printer.as_json(graph([x], node))["nodes"][1]["attrs"] == {"by": "inf", "of": None, "to": "float64"}
