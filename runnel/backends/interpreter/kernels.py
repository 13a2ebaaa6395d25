"""Kernels run in NumPy by the semantics of ``ir.py``: the oracle that generated code is compared with.

Bitwise equal to native code. NumPy computes operations that are exact or correctly rounded (arithmetic, comparison,
select, casts, the order of accumulations, contractions); ``loops.formulas`` computes transcendental functions, step by
step. Every index is checked against the size of its array. A vec loop is a NumPy operation per expression, a seq loop a
Python loop.

Products of pairs of bfloat16 follow the rounding of dot instructions. VDPBF16PS (Intel 64 and IA-32 Architectures
Software Developer's Manual, volume 2) adds the product of the second elements of a pair, then the product of the first
ones, each fused and rounded to nearest; subnormal operands and results are zeros. BFDOT (Arm Architecture Reference
Manual for A-profile, functions BFDotAdd and BFAdd, without FEAT_EBF16) adds the two products, rounded to odd, and then
the sum to the total, rounded to odd; subnormals are zeros likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from runnel.backends.host import calls as host
from runnel.backends.interpreter.locking import on_callers_thread
from runnel.core import dtypes
from runnel.core.conversion import rounded
from runnel.core.dtypes import DType
from runnel.core.errors import VerifierError
from runnel.loops import printer, scalar
from runnel.loops.formulas import table
from runnel.loops.formulas.computed import Computed, fused_multiply_add, sum_to_odd
from runnel.loops.ir import (
    CHAIN,
    K_BLOCK,
    LANES,
    TILE_BYTES,
    TILE_ROWS,
    TILE_STRIDE,
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
)
from runnel.loops.scalar import REDUCERS, ScalarOp
from runnel.loops.uses import parts

Array = np.ndarray[Any, Any]

_SMALLEST: Final = np.finfo(np.float32).smallest_normal


def vdpbf16ps(a: Array, b: Array, total: Array) -> Array:
    """Compute ``total`` + Σ a[:, k]·b[k], for float32 matrices that hold an even number of bfloat16 along k."""
    a, b, total = _flushed(a), _flushed(b), _flushed(total)
    for pair in range(0, a.shape[1], 2):
        for k in (pair + 1, pair):
            total = _flushed(fused_multiply_add(a[:, k, None], b[None, k], total))
    return total


def bfdot(a: Array, b: Array, total: Array) -> Array:
    """Return the same."""
    a, b, wide = (_flushed(x).astype(np.float64) for x in (a, b, total))
    for k in range(0, a.shape[1], 2):
        first, second = a[:, k, None] * b[None, k], a[:, k + 1, None] * b[None, k + 1]
        wide = _odd(wide, _odd(first, second))
    return wide.astype(np.float32)


def _odd(x: Array, y: Array) -> Array:
    """Add numbers that float32 holds, or products of two bfloat16, rounded to odd in float32."""
    total: Array = sum_to_odd(x, y)
    near = total.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    away = np.where(np.abs(back) > np.abs(total), -1, 1).astype(np.int32)
    inexact = np.isfinite(total) & (back != total) & (bits & 1 == 0)
    return _flushed(np.where(inexact, bits + away, bits).astype(np.int32).view(np.float32)).astype(np.float64)


def _flushed(x: Array) -> Array:
    """Replace subnormal numbers by zeros of their sign."""
    flushed: Array = np.where(np.abs(x) < _SMALLEST, np.copysign(np.zeros_like(x), x), x)
    return flushed


ROUNDED_PAIRS: Final[dict[str, Callable[[Array, Array, Array], Array]]] = {"vdpbf16ps": vdpbf16ps, "bfdot": bfdot}


_NO_ORIGINS: Final[Mapping[str, int]] = MappingProxyType({})
_CHUNK: Final = 1024 * LANES  # positions of an independent vec loop evaluated at once


def run(
    kernel: Kernel,
    arrays: dict[str, Array],
    params: dict[str, int],
    i0: int,
    i1: int,
    j0: int = 0,
    j1: int = 1,
    *,
    origins: Mapping[str, int] = _NO_ORIGINS,
    precision: str = "",
) -> int:
    """Compute the block rows [i0, i1) × columns [j0, j1) of ``kernel``'s domain in place; returns the code of the last
    Check that failed, or 0.

    ``arrays`` holds a flat array for each buffer but tiles, of the buffer's dtype (for scratch: memory to use);
    ``params`` a value for each param; ``origins`` the element of the buffer at which its array begins, if not the
    first; ``precision`` the rule for products of pairs of bfloat16 (``dots``), without which their sums are rounded
    once.
    """
    for buffer in kernel.buffers:
        if buffer.mode == "tile":
            continue
        array = arrays.get(buffer.name)
        if array is None or array.ndim != 1 or array.dtype != buffer.dtype.numpy:
            actual = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise VerifierError(
                f"Kernel '{kernel.name}' needs a flat {buffer.dtype.name} array for '{buffer.name}'; it got {actual}."
            )
    for param in kernel.params:
        if param.name not in params:
            raise VerifierError(f"Kernel '{kernel.name}' needs a value for its param '{param.name}'.")
    edges = {RangeBound.I0: i0, RangeBound.I1: i1, RangeBound.J0: j0, RangeBound.J1: j1}
    fault = 0
    with np.errstate(all="ignore"):
        for own, blocks_edges in _blocks(kernel, edges):
            part = _Run(kernel, {**arrays, **own}, params, blocks_edges, origins, precision)
            part.block(kernel.body)
            fault = part.fault or fault
    return fault


def _blocks(kernel: Kernel, edges: dict[RangeBound, int]) -> Iterator[tuple[dict[str, Array], dict[RangeBound, int]]]:
    """Yield the blocks a kernel runs in: the whole, or with a tile buffer the blocks of the product, each with a
    tile."""
    tiles = [b for b in kernel.buffers if b.mode == "tile"]
    if not tiles:
        yield {}, edges
        return
    columns = TILE_BYTES // tiles[0].dtype.itemsize
    for i in range(edges[RangeBound.I0], edges[RangeBound.I1], TILE_ROWS):
        for j in range(edges[RangeBound.J0], edges[RangeBound.J1], columns):
            memory = {b.name: np.empty(TILE_ROWS * TILE_STRIDE // b.dtype.itemsize, b.dtype.numpy) for b in tiles}
            last = {
                RangeBound.I0: i,
                RangeBound.I1: min(i + TILE_ROWS, edges[RangeBound.I1]),
                RangeBound.J0: j,
                RangeBound.J1: min(j + columns, edges[RangeBound.J1]),
            }
            yield memory, last


class _Accumulated:
    """The state of an accumulator: in each lane the current chain, and the pending results of completed ones.

    ``spread`` says that the lanes are partial results, to be combined when the accumulator is read.
    """

    def __init__(self, acc: Acc, lanes: int) -> None:
        self.op = acc.op
        self.dtype = acc.dtype
        self.order = acc.order
        self.has_blocks = REDUCERS[acc.op].has_blocks(acc.dtype)
        self.spread = False
        self.updates = 0
        self.waiting: list[Array] = []
        self.begin(lanes)

    def begin(self, lanes: int) -> None:
        """Begin a new chain in so many lanes."""
        self.lanes = np.full(lanes, REDUCERS[self.op].identity(self.dtype), self.dtype.numpy)

    def update(self, values: Array) -> None:
        if not self.spread:
            self.lanes = self.combine(self.lanes, values)
            self.count()
            return
        for start in range(0, len(values), LANES):
            row = values[start : start + LANES]
            self.lanes[: len(row)] = self.combine(self.lanes[: len(row)], row)
            self.count()

    def count(self) -> None:
        """Count an update; a full block is combined with pending results."""
        self.updates += 1
        if not self.has_blocks:
            return
        if self.order == "short" and self.updates > CHAIN:
            raise VerifierError(f"A short {self.op} has more than {CHAIN} updates.")
        if self.updates % CHAIN == 0 and self.order == "blocks":
            block, others = self.lanes, self.updates // CHAIN - 1
            while others & 1:
                block, others = self.combine(self.waiting.pop(), block), others >> 1
            self.waiting.append(block)
            self.begin(len(block))

    def result(self) -> Array:
        """Return all blocks; then the lanes in their fixed tree: l and l+8, then l+4, l+2, l+1."""
        lanes = self.lanes
        for block in reversed(self.waiting):
            lanes = self.combine(block, lanes)
        while self.spread and len(lanes) > 1:
            half = len(lanes) // 2
            lanes = self.combine(lanes[:half], lanes[half:])
        return lanes

    def combine(self, x: Array, y: Array) -> Array:
        combined: Array = np.asarray(REDUCERS[self.op].combine.numpy(x, y)).astype(self.dtype.numpy, copy=False)
        return combined


class _Run:
    """One call of a kernel. Values are arrays with a lane for each position evaluated at once; 1 outside vec loops."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: dict[str, Array],
        params: dict[str, int],
        edges: dict[RangeBound, int],
        origins: Mapping[str, int],
        precision: str,
    ) -> None:
        self.kernel = kernel
        self.arrays = arrays
        self.params = params
        self.edges = edges
        self.precision = precision
        self.origins = {b.name: self._origin(b, origins) for b in kernel.buffers}
        self.values: dict[str, Array | _Accumulated] = {}
        self.parts: dict[int, Array] | None = None  # of the expression that is being computed
        self.vars: dict[str, Array] = {}
        self.lanes = 1
        self.fault = 0

    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            _STATEMENTS[type(stmt)](self, stmt)

    def integer(self, bound: Bound | Stride) -> int:
        if isinstance(bound, RangeBound):
            return self.edges[bound]
        if isinstance(bound, Ref):
            return int(self.value(bound)[0])
        return int(self.params[bound.name]) if isinstance(bound, Param) else int(bound)

    def position(self, buffer: str, index: Index) -> Array:
        """Return the elements that ``index`` names, checked."""
        at = self.start(index) - self.origins[buffer]
        self.check(buffer, at)
        return at

    def start(self, index: Index) -> Array:
        """Compute offset + Σ stride·var + Σ stride·expr."""
        at = np.full(1, self.integer(index.offset), np.int64)
        for var, stride in index.terms:
            at = at + self.vars[var.name] * self.integer(stride)
        for expr, stride in index.gathered:
            at = at + self.value(expr).astype(np.int64) * self.integer(stride)
        return at

    def _origin(self, buffer: Buffer, origins: Mapping[str, int]) -> int:
        """Return the element of the buffer at which its array begins; a tile's array is a block of the whole
        product."""
        if buffer.mode != "tile":
            return origins.get(buffer.name, 0)
        return self.edges[RangeBound.I0] * (TILE_STRIDE // buffer.dtype.itemsize) + self.edges[RangeBound.J0]

    def check(self, buffer: str, at: Array) -> None:
        size = self.arrays[buffer].size
        bad = at[(at < 0) | (at >= size)]
        if bad.size:
            raise VerifierError(
                f"Kernel '{self.kernel.name}' reaches for {buffer}[{bad[0]}], and it has {size} elements."
            )

    def elements(self, buffer: str, at: Array) -> Array:
        """Return the elements ``at`` of a buffer, checked."""
        inside = at - self.origins[buffer]
        self.check(buffer, inside)
        return self.arrays[buffer][inside]

    def value(self, expr: Expr) -> Array:
        """Return the expression on all lanes; a part that it has several times is computed once."""
        if self.parts is None:
            self.parts = {}
            try:
                return self.value(expr)
            finally:
                self.parts = None
        if id(expr) not in self.parts:
            self.parts[id(expr)] = _EXPRESSIONS[type(expr)](self, expr)
        return self.parts[id(expr)]


def _for(r: _Run, stmt: For) -> None:
    begin, end = r.integer(stmt.begin), r.integer(stmt.end)
    if stmt.kind == "seq":
        for i in range(begin, end):
            r.vars[stmt.var.name] = np.full(1, i, np.int64)
            r.block(stmt.body)
        return
    if begin >= end:
        return
    for name in _updated(stmt.body):
        acc = r.values.get(name)
        if isinstance(acc, _Accumulated) and not acc.spread:
            acc.begin(LANES)
            acc.spread = True
    width = LANES if _depends_on_order(r, stmt) else _CHUNK
    for start in range(begin, end, width):
        positions = np.arange(start, min(start + width, end), dtype=np.int64)
        r.vars[stmt.var.name], r.lanes = positions, len(positions)
        r.block(stmt.body)
    r.lanes = 1


def _statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    for stmt in body:
        yield stmt
        if isinstance(stmt, For):
            yield from _statements(stmt.body)


def _updated(body: tuple[Stmt, ...]) -> set[str]:
    """Return the accumulators of an outer scope that a block updates."""
    inside = {s.name for s in _statements(body) if isinstance(s, Acc)}
    return {s.name for s in _statements(body) if isinstance(s, Update)} - inside


def _loaded(expr: Expr) -> Iterator[str]:
    return (part.buffer for part in parts(expr) if isinstance(part, Load))


def _depends_on_order(r: _Run, loop: For) -> bool:
    """Return whether evaluating more than LANES positions at once could change results."""
    inside = list(_statements(loop.body))
    outer = _updated(loop.body)
    updates = [s for s in inside if isinstance(s, Update) and s.name in outer]
    if len(updates) > len(outer) or any(s not in loop.body for s in updates):
        return True
    stored = [r.arrays[s.buffer] for s in inside if isinstance(s, Store)]
    read = {b for s in inside if isinstance(s, Let | Update | Store) for b in _loaded(s.value)}
    read |= {b for s in inside if isinstance(s, Store) for e, _ in s.index.gathered for b in _loaded(e)}
    return any(np.may_share_memory(r.arrays[b], out) for b in read for out in stored)


def _let(r: _Run, stmt: Let) -> None:
    r.values[stmt.name] = r.value(stmt.value)


def _acc(r: _Run, stmt: Acc) -> None:
    r.values[stmt.name] = _Accumulated(stmt, r.lanes)


def _update(r: _Run, stmt: Update) -> None:
    acc = r.values[stmt.name]
    if not isinstance(acc, _Accumulated):
        raise VerifierError(f"Kernel '{r.kernel.name}', at `{printer.statement(stmt)}`: not an accumulator.")
    acc.update(np.broadcast_to(r.value(stmt.value), (r.lanes,)))


def _store(r: _Run, stmt: Store) -> None:
    at, value = np.broadcast_arrays(r.position(stmt.buffer, stmt.index), r.value(stmt.value))
    r.arrays[stmt.buffer][at] = value


def _check(r: _Run, stmt: Check) -> None:
    if not r.value(stmt.value).all():
        r.fault = r.integer(stmt.code)


def _contract(r: _Run, stmt: Contract) -> None:
    i0, i1 = r.edges[RangeBound.I0], r.edges[RangeBound.I1]
    batch = stmt.batch
    if batch is None:
        _product(r, stmt, (0, 0, 0), range(i0, i1), range(r.edges[RangeBound.J0], r.edges[RangeBound.J1]))
        return
    for t in range(i0, i1):
        starts = (t * r.integer(batch.a_step), t * r.integer(batch.b_step), t * r.integer(batch.c_step))
        _product(r, stmt, starts, range(r.integer(batch.m)), range(r.integer(batch.n)))


def _product(r: _Run, stmt: Contract, starts: tuple[int, int, int], rows: range, columns: range) -> None:
    i = np.arange(rows.start, rows.stop, dtype=np.int64)[:, None]
    j = np.arange(columns.start, columns.stop, dtype=np.int64)[None, :]
    k = np.arange(r.integer(stmt.k), dtype=np.int64)
    at_a = starts[0] + i * r.integer(stmt.a_row) + k[None, :] * r.integer(stmt.a_k)
    if stmt.indirect is not None:
        lists = ((stmt.indirect.rows, i), (stmt.indirect.ks, k[None, :]))
        by_row, by_k = (r.elements(name, at).astype(np.int64) for name, at in lists)
        at_a = by_row + by_k
    column = j * r.integer(stmt.b_col)
    if stmt.panels is not None:
        panel, inside = np.divmod(j, stmt.panels.width)
        column = panel * r.integer(stmt.panels.step) + inside * (1 if stmt.operand_dtype is None else 2)
    row = k * r.integer(stmt.b_k)
    if stmt.panels is not None and stmt.operand_dtype is not None:
        row = k // 2 * r.integer(stmt.b_k) + k % 2
    at_a, at_b = at_a - r.origins[stmt.a], starts[1] + row[:, None] + column - r.origins[stmt.b]
    at_c = starts[2] + i * r.integer(stmt.c_row) + j - r.origins[stmt.c]
    if at_c.size == 0:
        return
    if stmt.operand_dtype is not None:
        _pairs(r, stmt, at_a, at_b, at_c)
    else:
        _chains(r, stmt, at_a, at_b, at_c)


def _host(r: _Run, stmt: Host) -> None:
    function = host.at(r.integer(stmt.function))
    operands = (*function.inputs, *function.outputs)
    arrays = []
    for buffer, operand in zip(r.kernel.buffers, operands, strict=True):
        first = -r.origins[buffer.name]
        array = r.arrays[buffer.name][first : first + math.prod(operand.shape)].reshape(operand.shape)
        array.flags.writeable = buffer.mode != "in"
        arrays.append(array)
    inputs, outputs = arrays[: len(function.inputs)], arrays[len(function.inputs) :]
    r.fault = on_callers_thread(lambda: function.called(inputs, outputs))


def _small_product(r: _Run, stmt: Product) -> None:
    i = np.arange(r.integer(stmt.m), dtype=np.int64)[:, None]
    j = np.arange(r.integer(stmt.n), dtype=np.int64)[None, :]
    k = np.arange(r.integer(stmt.k), dtype=np.int64)
    at_c = r.start(stmt.c_at) + i * r.integer(stmt.c_row) + j - r.origins[stmt.c]
    if at_c.size == 0:
        return
    at_a = r.start(stmt.a_at) + i * r.integer(stmt.a_row) + k[None, :] * r.integer(stmt.a_k) - r.origins[stmt.a]
    at_b = r.start(stmt.b_at) + k[:, None] * r.integer(stmt.b_k) + j * r.integer(stmt.b_col) - r.origins[stmt.b]
    _chains(r, stmt, at_a, at_b, at_c, stmt.accumulate)


def _chains(r: _Run, stmt: Contract | Product, at_a: Array, at_b: Array, at_c: Array, accumulate: bool = False) -> None:
    """Compute, for each block of k, a chain of fused multiply-adds per element, k ascending; combine blocks
    pairwise."""
    for buffer, at in ((stmt.a, at_a), (stmt.b, at_b), (stmt.c, at_c)):
        r.check(buffer, at)
    a, b = r.arrays[stmt.a][at_a], r.arrays[stmt.b][at_b]
    blocks = []
    for first in range(0, max(at_a.shape[1], 1), K_BLOCK):
        begins_at_c = accumulate and first == 0
        chain: Array = r.arrays[stmt.c][at_c] if begins_at_c else np.zeros(at_c.shape, stmt.dtype.numpy)
        for step in range(first, min(first + K_BLOCK, at_a.shape[1])):
            chain = fused_multiply_add(a[:, step, None], b[None, step], chain)
        blocks.append(chain)
    r.arrays[stmt.c][at_c] = _meeting(blocks)


def _meeting(blocks: list[Array]) -> Array:
    """Return the sum of the first blocks, as many as the largest power of two below their number, plus the sum of the
    rest."""
    if len(blocks) == 1:
        return blocks[0]
    half = 1 << (len(blocks) - 1).bit_length() - 1
    return _meeting(blocks[:half]) + _meeting(blocks[half:])


def _pairs(r: _Run, stmt: Contract, at_a: Array, at_b: Array, at_c: Array) -> None:
    """Apply the rule of the precision; without one round sums once, from which any rule differs by a part in 2²⁴ of the
    products' magnitudes for each k and each result."""
    for buffer, at in ((stmt.a, at_a), (stmt.b, at_b), (stmt.c, at_c)):
        r.check(buffer, at)
    a, b = (r.arrays[name][at] for name, at in ((stmt.a, at_a), (stmt.b, at_b)))
    rule = ROUNDED_PAIRS.get(r.precision)
    if rule is None:
        r.arrays[stmt.c][at_c] = a.astype(np.float64) @ b.astype(np.float64)
        return
    odd = a.shape[1] % 2
    wide_a = np.pad(a.astype(np.float32), ((0, 0), (0, odd)))
    wide_b = np.pad(b.astype(np.float32), ((0, odd), (0, 0)))
    starts = range(0, max(wide_a.shape[1], 1), K_BLOCK)
    zeros = np.zeros(at_c.shape, np.float32)
    blocks = [rule(wide_a[:, at : at + K_BLOCK], wide_b[at : at + K_BLOCK], zeros) for at in starts]
    r.arrays[stmt.c][at_c] = _meeting(blocks)


def _ref(r: _Run, expr: Ref) -> Array:
    value = r.values[expr.name]
    return value.result() if isinstance(value, _Accumulated) else value


def _apply(r: _Run, expr: Apply) -> Array:
    args = [r.value(arg) for arg in expr.args]
    special = _SPECIAL.get(expr.op)
    if special is not None:
        return special(*args, expr.dtype)
    if _needs_formula(expr):
        dtypes = [arg.dtype for arg in expr.args]
        values = [Computed(x, dtype) for x, dtype in zip(np.broadcast_arrays(*args), dtypes, strict=True)]
        return cast(Computed, table.result(expr.op, values, expr.dtype)).array
    result: Array = np.asarray(expr.op.numpy(*args)).astype(expr.dtype.numpy, copy=False)
    return result


def _needs_formula(expr: Apply) -> bool:
    """Return whether NumPy's result differs or is unspecified."""
    if expr.op in (scalar.floor_divide, scalar.remainder):
        return expr.dtype.is_float
    return expr.op is scalar.pow_ or expr.op is scalar.fma or expr.op in table.ULP_BOUNDS


def convert(x: Array, dtype: DType) -> Array:
    """Return the op ``cast``: float to integer truncates and saturates, NaN gives 0; as a bool, anything but
    0 is True."""
    if dtype is dtypes.bool_:
        return np.asarray(x != 0)
    if dtypes.from_numpy(x.dtype).is_float and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        whole = np.trunc(x.astype(np.float64))
        above, below = whole >= float(int(limits.max) + 1), whole < float(limits.min)
        result: Array = np.where(above | below | np.isnan(whole), 0, whole).astype(dtype.numpy)
        result[above], result[below] = limits.max, limits.min
        return result
    return rounded(x, dtype)


_SPECIAL: Final[dict[ScalarOp, Callable[..., Array]]] = {
    scalar.cast: convert,
    scalar.bitcast: lambda x, dtype: np.ascontiguousarray(x).view(dtype.numpy),
}

_STATEMENTS: Final[dict[type, Callable[[_Run, Any], None]]] = {
    For: _for,
    Let: _let,
    Acc: _acc,
    Update: _update,
    Store: _store,
    Check: _check,
    Contract: _contract,
    Product: _small_product,
    Host: _host,
}

_EXPRESSIONS: Final[dict[type, Callable[[_Run, Any], Array]]] = {
    Const: lambda r, e: np.full(1, rounded(e.value, e.dtype)),
    Ref: _ref,
    Load: lambda r, e: r.arrays[e.buffer][r.position(e.buffer, e.index)],
    Position: lambda r, e: r.vars[e.var.name].astype(e.dtype.numpy),
    Apply: _apply,
    Param: lambda r, e: np.full(1, r.params[e.name], np.int64),
    RangeBound: lambda r, e: np.full(1, r.edges[e], np.int64),
}
