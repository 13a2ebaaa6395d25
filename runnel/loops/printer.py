"""Kernels as text and as JSON. The text is stable: golden tests and error messages contain it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from runnel.core.dtypes import DType
from runnel.core.records import fields
from runnel.loops.ir import (
    Acc,
    Apply,
    Bound,
    Check,
    Const,
    Contract,
    Expr,
    For,
    Host,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    Position,
    Product,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Stride,
    Update,
)
from runnel.loops.scalar import ScalarOp

_INDENT: Final = "    "


def text(kernel: Kernel) -> str:
    """Return the kernel as indented pseudo-code, one statement per line, ending in a newline."""
    buffers = ", ".join(f"{b.mode} {b.name}: {b.dtype.name}" for b in kernel.buffers)
    params = ", ".join(p.name for p in kernel.params)
    lines = [f"kernel {kernel.name}({buffers}{'; ' if params else ''}{params}):"]
    if kernel.doc:
        lines.append(f"{_INDENT}# {kernel.doc}")
    _block(kernel.body, 1, lines)
    return "\n".join(lines) + "\n"


def _block(body: tuple[Stmt, ...], depth: int, lines: list[str]) -> None:
    for stmt in body:
        lines.append(_INDENT * depth + statement(stmt))
        if isinstance(stmt, For):
            _block(stmt.body, depth + 1, lines)


def statement(stmt: Stmt) -> str:
    """Return a statement as one line, without the body of a loop."""
    return _STATEMENTS[type(stmt)](stmt)


def expression(expr: Expr) -> str:
    """Return an expression on one line."""
    return _EXPRESSIONS.get(type(expr), repr)(expr)


def index(where: Index) -> str:
    """Return the position in a buffer, as a sum."""
    terms = [_scaled(var.name, stride) for var, stride in where.terms]
    terms += [_scaled(expression(expr), stride) for expr, stride in where.gathered]
    if where.offset != 0 or not terms:
        terms.append(_stride(where.offset))
    return " + ".join(terms)


def _scaled(what: str, stride: Stride) -> str:
    return what if stride == 1 else f"{what}*{_stride(stride)}"


def _stride(stride: Stride) -> str:
    return stride.name if isinstance(stride, Param) else str(stride)


def _bound(bound: Bound) -> str:
    return bound.value if isinstance(bound, RangeBound) else bound.name if isinstance(bound, Ref) else _stride(bound)


def _for(stmt: For) -> str:
    return f"for {stmt.var.name} in {_bound(stmt.begin)}..{_bound(stmt.end)}{' vec' if stmt.kind == 'vec' else ''}:"


def _contract(stmt: Contract) -> str:
    """With row, inner and column strides in place of positions."""
    a = f"{stmt.a}[i*{_stride(stmt.a_row)} + k*{_stride(stmt.a_k)}]"
    if stmt.indirect is not None:
        a = f"{stmt.a}[{stmt.indirect.rows}[i] + {stmt.indirect.ks}[k]]"
    b = f"{stmt.b}[k*{stmt.b_k.name} + j*{stmt.b_col.name}]"
    if stmt.panels is not None:
        width = stmt.panels.width
        panel, row = f"(j div {width})*{stmt.panels.step.name}", f"k*{stmt.b_k.name}"
        b = f"{stmt.b}[{panel} + {row} + j mod {width}]"
        if stmt.operand_dtype is not None:
            b = f"{stmt.b}[{panel} + (k div 2)*{stmt.b_k.name} + (j mod {width})*2 + k mod 2]"
    kind = stmt.dtype.name if stmt.operand_dtype is None else f"{stmt.dtype.name} by {stmt.operand_dtype.name}"
    line = f"{stmt.c}[i*{_stride(stmt.c_row)} + j] = contract {kind} k<{stmt.k.name} of {a}, {b}"
    if stmt.batch is None:
        return line
    batch = stmt.batch
    steps = ", ".join(p.name for p in (batch.a_step, batch.b_step, batch.c_step))
    return f"{line} batched {batch.m.name}x{batch.n.name} by {steps}"


def _product(stmt: Product) -> str:
    """Return a sum over k, with the three extents in angle brackets."""
    a = f"{stmt.a}[{index(stmt.a_at)} + i*{_stride(stmt.a_row)} + k*{_stride(stmt.a_k)}]"
    b = f"{stmt.b}[{index(stmt.b_at)} + k*{_stride(stmt.b_k)} + j*{_stride(stmt.b_col)}]"
    sign = "+=" if stmt.accumulate else "="
    extents = "i<{}, j<{}, k<{}".format(*map(_bound, (stmt.m, stmt.n, stmt.k)))
    c = f"{stmt.c}[{index(stmt.c_at)} + i*{_stride(stmt.c_row)} + j]"
    return f"{c} {sign} product {stmt.dtype.name} {extents} of {a}, {b}"


def _apply(expr: Apply) -> str:
    result = f"[{expr.dtype.name}]" if expr.op.result == "free" else ""
    return f"{expr.op.name}{result}({', '.join(map(expression, expr.args))})"


_STATEMENTS: Final[dict[type, Callable[[Any], str]]] = {
    For: _for,
    Let: lambda s: f"{s.name} = {expression(s.value)}",
    Acc: lambda s: f"{s.name} = {'' if s.order == 'blocks' else s.order + ' '}{s.op} {s.dtype.name}",
    Update: lambda s: f"{s.name} <- {expression(s.value)}",
    Store: lambda s: f"{s.buffer}[{index(s.index)}] = {expression(s.value)}",
    Check: lambda s: f"check {expression(s.value)} else {_stride(s.code)}",
    Contract: _contract,
    Product: _product,
    Host: lambda s: f"host {s.function.name}",
}

_EXPRESSIONS: Final[dict[type, Callable[[Any], str]]] = {
    Const: lambda e: f"{e.value!r}:{e.dtype.name}",
    Ref: lambda e: e.name,
    Load: lambda e: f"{e.buffer}[{index(e.index)}]",
    Position: lambda e: f"{e.var.name}:{e.dtype.name}",
    Apply: _apply,
    Param: lambda e: e.name,
    RangeBound: lambda e: e.value,
}


def as_json(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel as dicts, lists, strings and numbers: each node a dict whose ``node`` names its class."""
    written: dict[str, Any] = _plain(kernel)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, DType | ScalarOp):
        return value.name
    if isinstance(value, RangeBound):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinities
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"node": type(value).__name__, **{f.name: _plain(getattr(value, f.name)) for f in fields(value)}}
