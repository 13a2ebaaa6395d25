"""Hand-written kernels that several tests share, and short spellings for building them."""

from __future__ import annotations

from runnel.core.dtypes import DType, float32
from runnel.loops import scalar
from runnel.loops.ir import (
    Acc,
    Apply,
    Buffer,
    Const,
    Contract,
    Expr,
    For,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)

R, C = Var("i"), Var("j")
ROWS = (RangeBound.I0, RangeBound.I1)
COLUMNS = (RangeBound.J0, RangeBound.J1)


def call(op: scalar.ScalarOp, *args: Expr) -> Apply:
    """``op`` on arguments of one dtype."""
    return Apply(op, args, args[-1].dtype)


def at(*terms: object) -> Index:
    """``at(R, 3, C, 1)`` is the index i*3 + j; a stride may be the name of a param."""
    pairs = zip(terms[::2], terms[1::2], strict=True)
    return Index(tuple((var, Param(s) if isinstance(s, str) else s) for var, s in pairs))  # type: ignore[misc]


def load(buffer: str, *terms: object, dtype: DType = float32) -> Load:
    return Load(buffer, at(*terms), dtype)


def rows(*body: Stmt) -> For:
    return For(R, *ROWS, "seq", body)


def columns(*body: Stmt, kind: str = "vec") -> For:
    return For(C, *COLUMNS, kind, body)


def along(extent: str, *body: Stmt, kind: str = "vec") -> For:
    return For(C, 0, Param(extent), kind, body)


def buffers(**modes: str) -> tuple[Buffer, ...]:
    return tuple(Buffer(name, float32, mode) for name, mode in modes.items())


def ref(name: str) -> Ref:
    return Ref(name, float32)


ZERO = Const(0.0, float32)

BIAS_RELU = Kernel(
    "bias_relu",
    buffers(x="in", b="in", y="out"),
    (Param("ld"),),
    (
        rows(
            columns(
                Let("t", call(scalar.add, load("x", R, "ld", C, 1), load("b", C, 1))),
                Store("y", at(R, "ld", C, 1), call(scalar.maximum, ref("t"), ZERO)),
            )
        ),
    ),
    doc="y = relu(x + b)",
)

SOFTMAX = Kernel(
    "softmax",
    buffers(x="in", y="out"),
    (Param("n"),),
    (
        rows(
            Acc("top", "max", float32),
            along("n", Update("top", load("x", R, "n", C, 1))),
            Acc("total", "sum", float32),
            along(
                "n",
                Let("e", call(scalar.exp, call(scalar.sub, load("x", R, "n", C, 1), ref("top")))),
                Store("y", at(R, "n", C, 1), ref("e")),
                Update("total", ref("e")),
            ),
            along("n", Store("y", at(R, "n", C, 1), call(scalar.div, load("y", R, "n", C, 1), ref("total")))),
        ),
    ),
)

COLUMN_SUM = Kernel(
    "column_sum",
    buffers(x="in", y="out"),
    (Param("m"), Param("ld")),
    (
        columns(
            Acc("s", "sum", float32),
            For(R, 0, Param("m"), "seq", (Update("s", load("x", R, "ld", C, 1)),)),
            Store("y", at(C, 1), ref("s")),
        ),
    ),
)


def contraction(dtype: DType = float32, *epilogue: Stmt) -> Kernel:
    p = {name: Param(name) for name in ("k", "a_row", "a_k", "b_k", "b_col", "c_row")}
    return Kernel(
        "linear",
        (Buffer("a", dtype, "in"), Buffer("b", dtype, "in"), Buffer("c", dtype, "out")),
        tuple(p.values()),
        (Contract("a", "b", "c", dtype, **p), *epilogue),
    )
