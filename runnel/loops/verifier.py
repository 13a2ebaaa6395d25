"""The verifier of the loop IR: :func:`verify` raises one sentence for the first rule of ``ir.py`` that is broken.

Kernels are verified before code generation when ``RUNNEL_VERIFY`` is on, and always in tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import numpy as np

from runnel.core import dtypes
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.core.records import field, record
from runnel.loops import printer, scalar, uses
from runnel.loops.ir import (
    Acc,
    Apply,
    Bound,
    Buffer,
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
    Var,
)
from runnel.loops.scalar import REDUCERS, ScalarOp

MODES: Final = ("in", "out", "inout", "tile", "scratch")
_BLOCK_EDGES: Final = {RangeBound.I0: RangeBound.I1, RangeBound.J0: RangeBound.J1}


def verify(kernel: Kernel) -> None:
    """Raise VerifierError, naming kernel, statement and fault, unless ``kernel`` is well-formed."""
    _Checker(kernel).check()


@record(frozen=False, slots=False)
class _Value:
    """A Let in scope."""

    dtype: DType


@record(frozen=False, slots=False)
class _Accumulator:
    """An Acc in scope, and its state."""

    dtype: DType
    depth: int  # how many loops are around its declaration
    in_vec: bool | None = None  # updated inside a vec loop of its scope? None before the first Update
    finished: bool = False  # read, so final


@record(frozen=False, slots=False)
class _Checker:
    """One walk over a kernel: the names in scope and the current statement."""

    kernel: Kernel
    buffers: dict[str, Buffer] = field(default_factory=dict)
    params: frozenset[Param] = frozenset()
    names: dict[str, _Value | _Accumulator | Var] = field(default_factory=dict)
    loops: list[For] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    epilogue: bool = False
    lane_wise: set[str] = field(default_factory=set)  # values that may differ from lane to lane
    at: Stmt | None = None
    checked: set[int] = field(default_factory=set)  # parts of the expressions of this statement

    def fail(self, why: str) -> NoReturn:
        at = "the head" if self.at is None else printer.statement(self.at)
        raise VerifierError(f"Kernel '{self.kernel.name}', at `{at}`: {why}.")

    def check(self) -> None:
        kernel = self.kernel
        declared: set[str] = set()
        for name in [b.name for b in kernel.buffers] + [p.name for p in kernel.params]:
            if name in declared:
                self.fail(f"the name '{name}' is declared twice")
            declared.add(name)
        for buffer in kernel.buffers:
            if buffer.mode not in MODES:
                self.fail(f"buffer '{buffer.name}' has mode '{buffer.mode}'; modes are {', '.join(MODES)}")
        self.buffers = {b.name: b for b in kernel.buffers}
        self.params = frozenset(kernel.params)
        self.block(kernel.body)

    def block(self, body: tuple[Stmt, ...]) -> None:
        outer = dict(self.names)
        for position, stmt in enumerate(body):
            rule = STATEMENT_RULES.get(type(stmt))
            if rule is None:
                self.fail(f"a {type(stmt).__name__} is not a statement")
            self.at = stmt
            self.checked = set()
            if isinstance(stmt, Contract) and (position > 0 or self.loops):
                self.fail("a Contract may only be the first statement of the kernel")
            rule(self, stmt)
        self.names = outer

    def expr(self, expr: Expr) -> DType:
        if id(expr) in self.checked:
            return expr.dtype
        self.checked.add(id(expr))
        rule = EXPRESSION_RULES.get(type(expr))
        if rule is None:
            self.fail(f"a {type(expr).__name__} is not an expression")
        rule(self, expr)
        return expr.dtype

    def define(self, name: str, what: _Value | _Accumulator | Var) -> None:
        if name in self.names or name in self.buffers or any(name == p.name for p in self.params):
            self.fail(f"the name '{name}' is already in scope")
        self.names[name] = what

    def buffer(self, name: str) -> Buffer:
        buffer = self.buffers.get(name)
        if buffer is None:
            self.fail(f"no buffer is called '{name}'")
        return buffer

    def var(self, var: Var) -> None:
        if not isinstance(self.names.get(var.name), Var):
            self.fail(f"'{var.name}' is not the variable of a loop around this statement")

    def stride(self, stride: Stride) -> None:
        if isinstance(stride, Param) and stride not in self.params:
            self.fail(f"the kernel has no param '{stride.name}'")

    def count(self, count: Stride | Ref) -> None:
        if not isinstance(count, Ref):
            self.stride(count)
        elif self.expr(count) is not dtypes.int64 or count.name in self.lane_wise:
            self.fail(f"the bound '{count.name}' is not an int64 known outside vec loops")

    def index(self, index: Index) -> None:
        self.stride(index.offset)
        for var, stride in index.terms:
            self.var(var)
            self.stride(stride)
        for expr, stride in index.gathered:
            if not self.expr(expr).is_integer:
                self.fail(f"a gathered index must be an integer, and `{printer.expression(expr)}` is {expr.dtype.name}")
            self.stride(stride)

    def writable(self, name: str) -> Buffer:
        buffer = self.buffer(name)
        if buffer.mode == "in":
            self.fail(f"buffer '{name}' has mode in, so it may not be stored to")
        self.written.add(name)
        return buffer

    def bounds(self, begin: Bound, end: Bound) -> None:
        if isinstance(begin, RangeBound) or isinstance(end, RangeBound):
            if not isinstance(begin, RangeBound) or _BLOCK_EDGES.get(begin) is not end:
                self.fail("a loop over the call's block runs i0..i1 or j0..j1")
            if any(loop.begin is begin for loop in self.loops):
                self.fail(f"a loop around this one runs over {begin.value}..{end.value} already")
            return
        self.count(begin)
        self.count(end)
        if isinstance(begin, int) and isinstance(end, int) and begin > end:
            self.fail(f"the loop begins at {begin}, after its end {end}")


def _for(c: _Checker, stmt: For) -> None:
    if stmt.kind not in ("seq", "vec"):
        c.fail(f"a loop is seq or vec, not '{stmt.kind}'")
    if stmt.kind == "vec" and any(loop.kind == "vec" for loop in c.loops):
        c.fail("vec loops do not nest")
    c.bounds(stmt.begin, stmt.end)
    outer = dict(c.names)
    c.define(stmt.var.name, stmt.var)
    c.loops.append(stmt)
    c.block(stmt.body)
    c.loops.pop()
    c.names = outer


def _let(c: _Checker, stmt: Let) -> None:
    lanes = {loop.var for loop in c.loops if loop.kind == "vec"}
    if lanes and any(_differs(part, lanes, c) for part in uses.parts(stmt.value)):
        c.lane_wise.add(stmt.name)
    c.define(stmt.name, _Value(c.expr(stmt.value)))


def _differs(part: Expr, lanes: set[Var], c: _Checker) -> bool:
    """Return whether a part of an expression may have other values in other lanes."""
    if isinstance(part, Position):
        return part.var in lanes
    if isinstance(part, Ref):
        return part.name in c.lane_wise or isinstance(c.names.get(part.name), _Accumulator)
    return isinstance(part, Load)


def _acc(c: _Checker, stmt: Acc) -> None:
    if c.epilogue:
        c.fail("an epilogue runs block by block, so it may hold no accumulator")
    reducer = REDUCERS.get(stmt.op)
    if reducer is None:
        c.fail(f"no accumulation is called '{stmt.op}'; there are {', '.join(REDUCERS)}")
    if stmt.dtype.kind not in reducer.kinds:
        c.fail(f"'{stmt.op}' is not defined on {stmt.dtype.name}")
    if stmt.order not in ("blocks", "short", "chain"):
        c.fail(f"an accumulator's order is blocks, short or chain, not '{stmt.order}'")
    c.define(stmt.name, _Accumulator(stmt.dtype, len(c.loops)))


def _update(c: _Checker, stmt: Update) -> None:
    acc = c.names.get(stmt.name)
    if not isinstance(acc, _Accumulator):
        c.fail(f"'{stmt.name}' is not an accumulator in scope")
    if acc.finished:
        c.fail(f"accumulator '{stmt.name}' was read before, so it may not be updated any more")
    if c.expr(stmt.value) is not acc.dtype:
        c.fail(f"a {stmt.value.dtype.name} value cannot update a {acc.dtype.name} accumulator")
    in_vec = any(loop.kind == "vec" for loop in c.loops[acc.depth :])
    if acc.in_vec is not None and acc.in_vec != in_vec:
        c.fail(f"accumulator '{stmt.name}' is updated both inside and outside vec loops")
    acc.in_vec = in_vec


def _store(c: _Checker, stmt: Store) -> None:
    c.index(stmt.index)
    value = c.expr(stmt.value)
    buffer = c.writable(stmt.buffer)
    if value is not buffer.dtype:
        c.fail(f"a {value.name} value cannot be stored in the {buffer.dtype.name} buffer '{stmt.buffer}'")


def _check(c: _Checker, stmt: Check) -> None:
    if any(loop.kind == "vec" for loop in c.loops):
        c.fail("a Check must be outside vec loops; inside, gather what it needs in an accumulator")
    if c.expr(stmt.value) is not dtypes.bool_:
        c.fail(f"a Check is of a bool, not of {stmt.value.dtype.name}")
    if stmt.code == 0:
        c.fail("the code of a Check is not 0, which means that all went well")
    c.stride(stmt.code)


def _contract(c: _Checker, stmt: Contract) -> None:
    if stmt.dtype not in (dtypes.float32, dtypes.float64):
        c.fail(f"a Contract accumulates in float32 or float64, not {stmt.dtype.name}")
    for name, dtype in ((stmt.a, stmt.operands), (stmt.b, stmt.operands), (stmt.c, stmt.dtype)):
        if c.buffer(name).dtype is not dtype:
            c.fail(f"buffer '{name}' is {c.buffer(name).dtype.name} and the Contract {dtype.name}")
    if stmt.operand_dtype is not None and (
        stmt.operand_dtype is not dtypes.bfloat16 or stmt.dtype is not dtypes.float32
    ):
        c.fail(f"a Contract of {stmt.operand_dtype.name} in {stmt.dtype.name}: factors are bfloat16, sums float32")
    if stmt.c in (stmt.a, stmt.b):
        c.fail(f"buffer '{stmt.c}' is both an operand and the result")
    c.writable(stmt.c)
    for param in (stmt.k, stmt.a_row, stmt.a_k, stmt.b_k, stmt.b_col, stmt.c_row):
        c.stride(param)
    if stmt.batch is not None:
        for param in (stmt.batch.m, stmt.batch.n, stmt.batch.a_step, stmt.batch.b_step, stmt.batch.c_step):
            c.stride(param)
        if len(c.kernel.body) > 1:
            c.fail("a batched Contract has no epilogue")
    if stmt.panels is not None:
        c.stride(stmt.panels.step)
        if stmt.batch is not None or stmt.panels.width < 1:
            c.fail("a Contract with panels has no batch, and panels of a column or more")
    if stmt.indirect is not None:
        for name in (stmt.indirect.rows, stmt.indirect.ks):
            if c.buffer(name).dtype is not dtypes.int32:
                c.fail(f"buffer '{name}' is a list of offsets and {c.buffer(name).dtype.name}, not int32")
        if stmt.batch is not None or (stmt.a_row, stmt.a_k) != (0, 0):
            c.fail("an indirect Contract has no batch, and 0 for A's strides")
    c.epilogue = True


def _product(c: _Checker, stmt: Product) -> None:
    if any(loop.kind == "vec" for loop in c.loops):
        c.fail("a Product must be outside vec loops")
    if stmt.dtype not in (dtypes.float32, dtypes.float64):
        c.fail(f"a Product accumulates in float32 or float64, not {stmt.dtype.name}")
    for name, at in ((stmt.a, stmt.a_at), (stmt.b, stmt.b_at), (stmt.c, stmt.c_at)):
        if c.buffer(name).dtype is not stmt.dtype:
            c.fail(f"buffer '{name}' is {c.buffer(name).dtype.name} and the Product {stmt.dtype.name}")
        c.index(at)
    if stmt.c in (stmt.a, stmt.b):
        c.fail(f"buffer '{stmt.c}' is both an operand and the result")
    c.writable(stmt.c)
    for count in (stmt.m, stmt.n, stmt.k):
        c.count(count)
    for stride in (stmt.a_row, stmt.a_k, stmt.b_k, stmt.b_col, stmt.c_row):
        c.stride(stride)


def _host(c: _Checker, stmt: Host) -> None:
    if c.kernel.body != (stmt,):
        c.fail("a Host is the only statement of its kernel")
    for buffer in c.kernel.buffers:
        if buffer.mode == "out":
            c.writable(buffer.name)
    c.stride(stmt.function)


def _const(c: _Checker, expr: Const) -> None:
    if expr.dtype.kind == "bool" and not isinstance(expr.value, bool):
        c.fail(f"the bool constant {expr.value!r} is not True or False")
    if expr.dtype.is_integer:
        limits = np.iinfo(expr.dtype.numpy)
        if not isinstance(expr.value, int) or not limits.min <= expr.value <= limits.max:
            c.fail(f"the constant {expr.value!r} is not a value of {expr.dtype.name}")


def _ref(c: _Checker, expr: Ref) -> None:
    value = c.names.get(expr.name)
    if value is None or isinstance(value, Var):
        c.fail(f"no value called '{expr.name}' is in scope")
    if value.dtype is not expr.dtype:
        c.fail(f"'{expr.name}' is {value.dtype.name}, and is read as {expr.dtype.name}")
    if isinstance(value, _Accumulator):
        if any(expr.name in set(_updated(loop.body)) for loop in c.loops[value.depth :]):
            c.fail(f"accumulator '{expr.name}' is read inside a loop that updates it")
        value.finished = True


def _updated(body: tuple[Stmt, ...]) -> Iterator[str]:
    """Yield the accumulators updated in a block, including its own, which are out of scope around it."""
    for stmt in body:
        if isinstance(stmt, Update):
            yield stmt.name
        elif isinstance(stmt, For):
            yield from _updated(stmt.body)


def _load(c: _Checker, expr: Load) -> None:
    buffer = c.buffer(expr.buffer)
    if buffer.dtype is not expr.dtype:
        c.fail(f"buffer '{expr.buffer}' is {buffer.dtype.name}, and is loaded as {expr.dtype.name}")
    if buffer.mode in ("out", "scratch") and expr.buffer not in c.written:
        c.fail(f"buffer '{expr.buffer}' has mode {buffer.mode}, and is loaded before anything is stored in it")
    c.index(expr.index)


def _position(c: _Checker, expr: Position) -> None:
    c.var(expr.var)
    if not expr.dtype.is_integer:
        c.fail(f"the position along '{expr.var.name}' is an integer, not {expr.dtype.name}")


def _apply(c: _Checker, expr: Apply) -> None:
    argument_dtypes = tuple(c.expr(arg) for arg in expr.args)
    op = expr.op
    if op not in scalar.SCALAR_OPS:
        c.fail(f"'{op.name}' is not in the table of scalar operations")
    if len(argument_dtypes) != op.arity:
        c.fail(f"'{op.name}' takes {op.arity} arguments, not {len(argument_dtypes)}")
    fault = _application_fault(op, argument_dtypes, expr.dtype)
    if fault:
        c.fail(fault)


@functools.lru_cache(maxsize=4096)
def _application_fault(op: ScalarOp, args: tuple[DType, ...], result: DType) -> str:
    """Describe the error of applying ``op`` to these dtypes with this ``result``; return "" if it is valid.

    The NumPy function of an op decides which dtypes it is defined on.
    """
    if op.result == "free":
        if op is scalar.bitcast and (args[0].itemsize != result.itemsize or "bool" in (args[0].kind, result.kind)):
            return f"{args[0].name} and {result.name} have different bits"
        return ""
    operands = args
    if op is scalar.select:
        if args[0] is not dtypes.bool_:
            return f"the condition of a select is a bool, not {args[0].name}"
        operands = args[1:]
    if any(d is not operands[0] for d in operands):
        return f"the arguments of '{op.name}' differ in dtype: {', '.join(d.name for d in args)}"
    expected = dtypes.bool_ if op.result == "bool" else operands[0]
    if result is not expected:
        return f"'{op.name}' of {operands[0].name} is {expected.name}, not {result.name}"
    try:
        value = op.numpy(*(np.ones(1, d.numpy) for d in args))
        kind = dtypes.from_numpy(value.dtype).kind
    except TypeError:
        kind = "undefined"
    return "" if kind == expected.kind else f"'{op.name}' is not defined on {operands[0].name}"


STATEMENT_RULES: Final[dict[type, Callable[[_Checker, Any], None]]] = {
    For: _for,
    Let: _let,
    Acc: _acc,
    Update: _update,
    Store: _store,
    Check: _check,
    Contract: _contract,
    Product: _product,
    Host: _host,
}

EXPRESSION_RULES: Final[dict[type, Callable[[_Checker, Any], None]]] = {
    Const: _const,
    Ref: _ref,
    Load: _load,
    Position: _position,
    Apply: _apply,
    Param: lambda c, e: c.stride(e),
    RangeBound: lambda c, e: None,
}
