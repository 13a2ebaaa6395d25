"""Every rule of the grammar, broken once."""

from __future__ import annotations

from typing import Any

import pytest

from runnel.core.dtypes import bool_, float32, float64, int8, int32
from runnel.core.errors import VerifierError
from runnel.core.records import replace
from runnel.loops import ir, scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    BatchSpec,
    Buffer,
    Const,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    Position,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)
from runnel.loops.verifier import EXPRESSION_RULES, STATEMENT_RULES, verify

from .kernels import (
    BIAS_RELU,
    COLUMN_SUM,
    SOFTMAX,
    ZERO,
    C,
    R,
    along,
    at,
    buffers,
    call,
    columns,
    contraction,
    load,
    ref,
    rows,
)

SPEC = contraction().body[0]


def kernel(*body: Stmt) -> Kernel:
    """``body`` among buffers x (in), y (out), n (int32, in) and the param p."""
    return Kernel("k", (*buffers(x="in", y="out"), Buffer("n", int32, "in")), (Param("p"),), body)


def of(expr: ir.Expr) -> Kernel:
    return kernel(rows(Let("e", expr)))


def contract(**changes: Any) -> Kernel:
    base = contraction()
    steps = BatchSpec(*(Param("k"),) * 5)
    if changes.pop("batched", False):
        changes["batch"] = steps
    return replace(base, body=(replace(SPEC, **changes),))  # type: ignore[type-var]


GOOD = {
    "pointwise": BIAS_RELU,
    "softmax": SOFTMAX,
    "column sum": COLUMN_SUM,
    "contract": contraction(float32, rows(columns(Store("c", at(R, "c_row", C, 1), load("c", R, "c_row", C, 1))))),
    "batched contract": contract(batched=True),
    "one name in two loops": kernel(rows(along("p", Let("t", ZERO)), along("p", Let("t", ZERO)))),
    "gather": of(Load("x", Index((), 0, ((Load("n", at(R, 1), int32), Param("p")),)), float32)),
    "lane-wise position": of(Apply(scalar.cast, (Position(R, int32),), float32)),
    "select": of(Apply(scalar.select, (call(scalar.eq, Const(True, bool_), Const(True, bool_)), ZERO, ZERO), float32)),
}

BAD = {
    "declared twice": (Kernel("k", buffers(x="in"), (Param("x"),), ()), "the name 'x' is declared twice"),
    "mode": (Kernel("k", (Buffer("x", float32, "io"),), (), ()), "mode 'io'"),
    "undefined name": (of(ref("t")), "no value called 't' is in scope"),
    "out of scope": (
        kernel(rows(along("p", Let("t", ZERO)), Let("u", ref("t")))),
        "no value called 't' is in scope",
    ),
    "used before": (kernel(rows(Let("u", ref("t")), Let("t", ZERO))), "no value called 't' is in scope"),
    "shadowed": (kernel(rows(Let("t", ZERO), along("p", Let("t", ZERO)))), "the name 't' is already in scope"),
    "let named as a buffer": (kernel(Let("x", ZERO)), "the name 'x' is already in scope"),
    "variable reused": (kernel(rows(For(R, 0, 4, "seq", ()))), "the name 'i' is already in scope"),
    "ref of another dtype": (
        kernel(rows(Let("t", ZERO), Let("u", Ref("t", float64)))),
        "'t' is float32, and is read as float64",
    ),
    "unknown buffer": (of(load("z", R, 1)), "no buffer is called 'z'"),
    "load of another dtype": (of(Load("x", at(R, 1), float64)), "buffer 'x' is float32, and is loaded as float64"),
    "load of out": (of(load("y", R, 1)), "loaded before anything is stored"),
    "store to in": (kernel(rows(Store("x", at(R, 1), ZERO))), "buffer 'x' has mode in"),
    "store of another dtype": (
        kernel(rows(Store("y", at(R, 1), Const(0, int32)))),
        "a int32 value cannot be stored in the float32 buffer 'y'",
    ),
    "index variable": (of(load("x", C, 1)), "'j' is not the variable of a loop"),
    "let as index variable": (
        kernel(rows(Let("t", ZERO), Let("u", load("x", Var("t"), 1)))),
        "'t' is not the variable of a loop",
    ),
    "unknown stride": (of(load("x", R, "q")), "the kernel has no param 'q'"),
    "unknown offset": (of(Load("x", Index((), Param("q")), float32)), "the kernel has no param 'q'"),
    "float gather": (of(Load("x", Index((), 0, ((ZERO, 1),)), float32)), "a gathered index must be an integer"),
    "nested vec": (kernel(columns(For(R, *(RangeBound.I0, RangeBound.I1), "vec", ()))), "vec loops do not nest"),
    "loop kind": (kernel(columns(kind="simd")), "a loop is seq or vec, not 'simd'"),
    "crossed bounds": (kernel(For(R, RangeBound.I0, RangeBound.J1, "seq", ())), "runs i0..i1 or j0..j1"),
    "half a block": (kernel(For(R, 0, RangeBound.I1, "seq", ())), "runs i0..i1 or j0..j1"),
    "rows in rows": (kernel(rows(For(C, RangeBound.I0, RangeBound.I1, "seq", ()))), "runs over i0..i1 already"),
    "negative range": (kernel(For(R, 4, 2, "seq", ())), "begins at 4, after its end 2"),
    "unknown bound": (kernel(along("q")), "the kernel has no param 'q'"),
    "contract second": (replace(contraction(), body=(rows(), SPEC)), "only be the first statement"),
    "contract in a loop": (replace(contraction(), body=(rows(SPEC),)), "only be the first statement"),
    "contract dtype": (contract(dtype=int32), "accumulates in float32 or float64, not int32"),
    "contract operand dtype": (contract(dtype=float64), "is float32 and the Contract float64"),
    "contract in place": (contract(c="a"), "buffer 'a' is both an operand and the result"),
    "contract param": (contract(k=Param("q")), "the kernel has no param 'q'"),
    "batched epilogue": (
        replace(contraction(), body=(*contract(batched=True).body, rows())),
        "a batched Contract has no epilogue",
    ),
    "accumulating epilogue": (
        contraction(float32, rows(Acc("s", "sum", float32))),
        "an epilogue runs block by block",
    ),
    "accumulation": (kernel(Acc("s", "mean", float32)), "no accumulation is called 'mean'"),
    "accumulation dtype": (kernel(Acc("s", "any", float32)), "'any' is not defined on float32"),
    "accumulation order": (kernel(Acc("s", "sum", float32, "long")), "order is blocks, short or chain, not 'long'"),
    "update of nothing": (kernel(rows(Update("s", ZERO))), "'s' is not an accumulator in scope"),
    "update of a let": (kernel(rows(Let("s", ZERO), Update("s", ZERO))), "'s' is not an accumulator in scope"),
    "update dtype": (
        kernel(Acc("s", "sum", float32), rows(Update("s", Const(0, int32)))),
        "a int32 value cannot update a float32 accumulator",
    ),
    "update after reading": (
        kernel(Acc("s", "sum", float32), Let("t", ref("s")), rows(Update("s", ZERO))),
        "was read before",
    ),
    "read while updated": (
        kernel(Acc("s", "sum", float32), rows(columns(Update("s", ZERO)), Let("t", ref("s")))),
        "is read inside a loop that updates it",
    ),
    "update in and out of lanes": (
        kernel(Acc("s", "sum", float32), rows(Update("s", ZERO)), columns(Update("s", ZERO))),
        "both inside and outside vec loops",
    ),
    "bool constant": (of(Const(1, bool_)), "the bool constant 1 is not True or False"),
    "wide constant": (of(Const(200, int8)), "the constant 200 is not a value of int8"),
    "float position": (of(Position(R, float32)), "is an integer, not float32"),
    "arity": (of(Apply(scalar.add, (ZERO,), float32)), "'add' takes 2 arguments, not 1"),
    "mixed dtypes": (of(call(scalar.add, Const(0, int32), ZERO)), "differ in dtype: int32, float32"),
    "result dtype": (of(Apply(scalar.add, (ZERO, ZERO), float64)), "'add' of float32 is float32, not float64"),
    "comparison dtype": (of(Apply(scalar.lt, (ZERO, ZERO), float32)), "'lt' of float32 is bool, not float32"),
    "undefined op": (of(call(scalar.div, Const(1, int32), Const(1, int32))), "'div' is not defined on int32"),
    "undefined on floats": (of(call(scalar.and_, ZERO, ZERO)), "'and' is not defined on float32"),
    "condition": (of(Apply(scalar.select, (ZERO, ZERO, ZERO), float32)), "the condition of a select is a bool"),
    "bitcast size": (of(Apply(scalar.bitcast, (ZERO,), float64)), "float32 and float64 have different bits"),
    "foreign scalar op": (
        of(Apply(scalar.ScalarOp("mystery", 1, abs), (ZERO,), float32)),
        "'mystery' is not in the table",
    ),
    "not a statement": (kernel(ZERO), "a Const is not a statement"),  # type: ignore[arg-type]
    "not an expression": (of(Let("a", ZERO)), "a Let is not an expression"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", GOOD)
def test_well_formed(name: str) -> None:
    verify(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_ill_formed(name: str) -> None:
    wrong, sentence = BAD[name]
    with pytest.raises(VerifierError) as caught:
        verify(wrong)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(f"Kernel '{wrong.name}', at `")


def test_every_node_has_a_rule() -> None:
    assert set(STATEMENT_RULES) == set(ir.Stmt.__args__)
    assert set(EXPRESSION_RULES) == set(ir.Expr.__args__)
