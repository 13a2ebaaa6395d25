"""The text of a kernel is stable and complete; its JSON is JSON."""

from __future__ import annotations

import json
import math

from runnel.core.dtypes import float32, int32
from runnel.loops import printer, scalar
from runnel.loops.ir import Apply, BatchSpec, Const, Contract, Index, Kernel, Load, Param, Position, Ref, Store

from .kernels import BIAS_RELU, COLUMN_SUM, SOFTMAX, R, at, buffers, contraction, rows


def test_pointwise_text() -> None:
    assert printer.text(BIAS_RELU) == (
        "kernel bias_relu(in x: float32, in b: float32, out y: float32; ld):\n"
        "    # y = relu(x + b)\n"
        "    for i in i0..i1:\n"
        "        for j in j0..j1 vec:\n"
        "            t = add(x[i*ld + j], b[j])\n"
        "            y[i*ld + j] = maximum(t, 0.0:float32)\n"
    )


def test_reduction_text() -> None:
    assert printer.text(COLUMN_SUM) == (
        "kernel column_sum(in x: float32, out y: float32; m, ld):\n"
        "    for j in j0..j1 vec:\n"
        "        s = sum float32\n"
        "        for i in 0..m:\n"
        "            s <- x[i*ld + j]\n"
        "        y[j] = s\n"
    )


def test_contract_text() -> None:
    kernel = contraction()
    assert "c[i*c_row + j] = contract float32 k<k of a[i*a_row + k*a_k], b[k*b_k + j*b_col]\n" in printer.text(kernel)
    steps = {name: Param(name) for name in ("m", "n", "a_step", "b_step", "c_step")}
    spec = kernel.body[0]
    assert isinstance(spec, Contract)
    fields = {name: getattr(spec, name) for name in ("k", "a_row", "a_k", "b_k", "b_col", "c_row")}
    batched = Contract("a", "b", "c", float32, **fields, batch=BatchSpec(**steps))
    assert printer.statement(batched).endswith("batched mxn by a_step, b_step, c_step")


def test_expressions() -> None:
    assert printer.expression(Apply(scalar.cast, (Position(R, int32),), float32)) == "cast[float32](i:int32)"
    table = Load("t", Index(((R, 1),), Param("start"), ((Ref("row", int32), 4),)), float32)
    assert printer.expression(table) == "t[i + row*4 + start]"
    assert printer.expression(Load("t", Index(), float32)) == "t[0]"


def test_json_has_every_node() -> None:
    written = printer.as_json(SOFTMAX)
    assert json.loads(json.dumps(written)) == written
    assert written["node"] == "Kernel" and written["buffers"][0] == {
        "node": "Buffer", "name": "x", "dtype": "float32", "mode": "in",
    }  # fmt: skip
    loop = written["body"][0]
    assert loop["kind"] == "seq" and (loop["begin"], loop["end"]) == ("i0", "i1")
    assert [s["node"] for s in loop["body"]] == ["Acc", "For", "Acc", "For", "For"]


def test_json_of_infinity() -> None:
    kernel = Kernel("fill", buffers(y="out"), (), (rows(Store("y", at(R, 1), Const(-math.inf, float32))),))
    store = printer.as_json(kernel)["body"][0]["body"][0]
    assert store["value"] == {"node": "Const", "value": "-inf", "dtype": "float32"}
    assert store["index"]["terms"] == [[{"node": "Var", "name": "i"}, 1]]
