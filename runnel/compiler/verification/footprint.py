"""The bytes that a block of a kernel call accesses, by interpreting the kernel's indices over the block's loops.

This is the verifier's own analysis, from the loop IR and the call's params alone: it shares nothing with ``partition``
and ``memory``, which it checks. Positions that depend on data are assumed to be anywhere in the range of the index
expression. Sets of bytes are runs: sorted ranges that do not touch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from runnel.compiler.plan_ir.calls import BufferAccess, Call
from runnel.compiler.plan_ir.cost import Block
from runnel.core.dtypes import int64
from runnel.core.errors import VerifierError
from runnel.core.records import record, replace
from runnel.loops import ir, scalar
from runnel.loops.uses import parts

Runs = np.ndarray[Any, np.dtype[np.int64]]  # (n, 2): begin and end of ranges, ascending, apart from one another

LARGEST: Final = 1 << 16  # runs of one footprint; finer ones are not looked into


class TooLarge(Exception):
    """A footprint of more than ``LARGEST`` runs."""


def runs_of(start: int, steps: list[tuple[int, int, int]], size: int) -> Runs:
    """Return the bytes of the elements start + Σ stride·x for all begin ≤ x < end."""
    runs: Runs = np.array([[start * size, start * size + size]], np.int64)
    for begin, end, stride in sorted(steps, key=lambda s: abs(s[2])):
        count = end - begin
        if count <= 0:
            return np.empty((0, 2), np.int64)
        first = begin * stride if stride >= 0 else (end - 1) * stride
        step = abs(stride) * size
        runs = runs + first * size
        if step == 0 or count == 1:
            continue
        if len(runs) == 1 and step <= runs[0, 1] - runs[0, 0]:
            runs[0, 1] += (count - 1) * step
            continue
        if len(runs) * count > LARGEST:
            raise TooLarge
        shifts = np.arange(count, dtype=np.int64) * step
        runs = merged((runs[None, :, :] + shifts[:, None, None]).reshape(-1, 2))
    return runs


def merged(runs: Runs) -> Runs:
    """Return any ranges as runs: sorted, and joined where they touch."""
    if len(runs) < 2:
        return runs
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    reach = np.maximum.accumulate(runs[:, 1])
    first = np.concatenate([[True], runs[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([runs[first, 0], reach[last]], axis=1)


def common(a: Runs, b: Runs) -> tuple[int, int] | None:
    """Return a range of bytes that is in both; None if there is none."""
    if not len(a) or not len(b) or a[-1, 1] <= b[0, 0] or b[-1, 1] <= a[0, 0]:
        return None
    candidate = np.minimum(np.searchsorted(b[:, 1], a[:, 0], side="right"), len(b) - 1)
    begin = np.maximum(a[:, 0], b[candidate, 0])
    end = np.minimum(a[:, 1], b[candidate, 1])
    hits = np.flatnonzero(begin < end)
    return (int(begin[hits[0]]), int(end[hits[0]])) if len(hits) else None


def missing(part: Runs, whole: Runs) -> tuple[int, int] | None:
    """Return a run of ``part`` that does not lie in ``whole``; None if all do."""
    if not len(part):
        return None
    if not len(whole):
        return int(part[0, 0]), int(part[0, 1])
    holder = np.maximum(np.searchsorted(whole[:, 0], part[:, 0], side="right") - 1, 0)
    outside = (part[:, 0] < whole[holder, 0]) | (part[:, 1] > whole[holder, 1])
    at = np.flatnonzero(outside)
    return (int(part[at[0], 0]), int(part[at[0], 1])) if len(at) else None


Axis = ir.RangeBound | str  # a loop over the block, or the name of another loop's variable
Loop = tuple[Axis, int, int, int]  # axis, first value, one past its last, stride
Path = tuple[int, frozenset[tuple[Axis, int]]]  # first element, and the stride along each axis
Interval = tuple[int, int] | None  # inclusive; None: any integer
_INDIRECT = 16 * LARGEST  # runs by a table: most are adjacent
_CORNERS: dict[scalar.ScalarOp, Callable[[int, int], int]] = {
    scalar.add: operator.add,
    scalar.sub: operator.sub,
    scalar.mul: operator.mul,
    scalar.floor_divide: lambda p, q: p // q if q else 0,  # by divisors of one sign
}


@record
class Footprint:
    """One access of a block: the bytes it may access, relative to its place's first; ``path`` is the map from points to
    elements: equal paths access the same element at the same point."""

    access: BufferAccess
    buffer: str
    writes: bool
    contracted: bool  # an operand of a contraction: read again while the epilogue runs
    runs: Runs
    path: Path | None  # None: depends on data


def footprints(call: Call, block: Block) -> list[Footprint]:
    """Return the footprints of ``block`` of ``call``, in the order of the kernel's statements. May raise TooLarge."""
    return list(_Walk(call, block).block(call.kernel.body))


class _Walk:
    """One pass over a kernel's statements, with the ranges of the loops and values in scope."""

    def __init__(self, call: Call, block: Block) -> None:
        self.edges = dict(zip(ir.RangeBound, block, strict=True))
        self.params = {p.name: v for p, v in zip(call.kernel.params, call.params, strict=True)}
        self.accesses = {b.name: a for b, a in zip(call.kernel.buffers, call.accesses, strict=True)}
        self.loops: dict[str, tuple[Axis, int, int]] = {}  # variable → its axis, first value, one past its last
        self.lets: dict[str, Interval] = {}
        self.tables: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = {}  # Lets of elements of constants
        self.yielded: set[tuple[Any, ...]] = set()
        # Of the parts of one statement's expressions:
        self.known_intervals: dict[int, Interval] = {}
        self.known_tables: dict[int, np.ndarray[Any, np.dtype[np.int64]] | None] = {}

    def integer(self, value: ir.Bound | ir.Stride) -> int:
        if isinstance(value, ir.RangeBound):
            return self.edges[value]
        if isinstance(value, ir.Ref):
            known = self.lets[value.name]
            return known[1] if known is not None else 1 << 40  # its upper bound
        return self.params[value.name] if isinstance(value, ir.Param) else value

    def block(self, body: tuple[ir.Stmt, ...]) -> Iterator[Footprint]:
        for stmt in body:
            self.known_intervals.clear()
            self.known_tables.clear()
            if isinstance(stmt, ir.For):
                begin, end = self.integer(stmt.begin), self.integer(stmt.end)
                axis = stmt.begin if isinstance(stmt.begin, ir.RangeBound) else stmt.var.name
                for first, last in self.trips(stmt, begin, end):
                    self.loops[stmt.var.name] = (axis, first, last)
                    yield from self.block(stmt.body)
            elif isinstance(stmt, ir.Contract):
                yield from self.contraction(stmt)
            elif isinstance(stmt, ir.Product):
                yield from self.product(stmt)
            elif isinstance(stmt, ir.Let):
                yield from self.loads(stmt.value)
                self.lets[stmt.name] = self.interval(stmt.value)
                table = self.table(stmt.value)
                self.tables.pop(stmt.name, None)
                if table is not None:
                    self.tables[stmt.name] = table
            elif isinstance(stmt, ir.Update | ir.Check):
                yield from self.loads(stmt.value)
            elif isinstance(stmt, ir.Host):
                for name, access in self.accesses.items():
                    last = access.span
                    if last:
                        whole = ir.Index(((ir.Var(f"all {name}"), 1),))
                        self.loops[f"all {name}"] = (f"all {name}", 0, last)
                        yield from self.touch(name, whole, writes=access.writes)
            elif isinstance(stmt, ir.Store):
                yield from self.loads(stmt.value)
                for expr, _ in stmt.index.gathered:
                    yield from self.loads(expr)
                yield from self.touch(stmt.buffer, stmt.index, writes=True)

    def trips(self, loop: ir.For, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the loop's range; one iteration at a time where a constant table gives the extents of loops
        inside it."""
        if begin >= end:
            return []
        read = [s.value for s in loop.body if isinstance(s, ir.Let) and isinstance(s.value, ir.Load)]
        by_table = any(
            self.accesses[x.buffer].allocation.value is not None and any(var == loop.var for var, _ in x.index.terms)
            for x in read
        )
        if by_table and _goes_by_values(loop.body):
            return [(i, i + 1) for i in range(begin, end)]
        return [(begin, end)]

    def loads(self, expr: ir.Expr) -> Iterator[Footprint]:
        for part in parts(expr):
            if isinstance(part, ir.Load):
                yield from self.touch(part.buffer, part.index, writes=False)

    def touch(
        self, buffer: str, index: ir.Index, *, writes: bool, extents: tuple[tuple[int, int, int], ...] = ()
    ) -> Iterator[Footprint]:
        """Yield the footprint of one index (with ``extents``: of the elements those steps away), once for each
        index."""
        is_bounded = self.accesses[buffer].is_bounded
        if is_bounded and not writes:
            if (buffer,) not in self.yielded:
                self.yielded.add((buffer,))
                yield self.everything(buffer, writes)
            return
        loops = [(*self.loops[var.name], self.integer(stride)) for var, stride in index.terms]
        reach = [(self.interval(expr), self.integer(stride)) for expr, stride in index.gathered]
        known = [self.table(expr) for expr, _ in index.gathered]
        key = (buffer, index, writes, tuple(loops), tuple(reach), extents)
        if key in self.yielded and not any(t is not None for t in known):
            return
        self.yielded.add(key)
        offset = self.integer(index.offset)
        path = None if reach or extents else _path(self.accesses[buffer].offset + offset, loops)
        steps = [*((begin, end, stride) for _, begin, end, stride in loops), *extents]
        shifts = np.zeros(1, np.int64)
        for (interval, stride), table in zip(reach, known, strict=True):
            if table is not None:
                shifts = np.unique(shifts[:, None] + table[None, :] * stride)
            elif interval is None:
                yield self.everything(buffer, writes)
                return
            else:
                steps.append((interval[0], interval[1] + 1, stride))
        footprint = self.footprint(buffer, writes, offset, steps, path)
        if any(t is not None for t in known):
            if len(footprint.runs) * len(shifts) > _INDIRECT:
                raise TooLarge
            size = self.accesses[buffer].allocation.dtype.itemsize
            runs = merged((footprint.runs[None, :, :] + shifts[:, None, None] * size).reshape(-1, 2))
            if len(runs) > LARGEST:
                raise TooLarge
            footprint = replace(footprint, runs=runs)
        if is_bounded:
            inside = np.clip(footprint.runs, 0, self.accesses[buffer].allocation.nbytes)
            footprint = replace(footprint, runs=inside[inside[:, 0] < inside[:, 1]])
        yield footprint

    def table(self, expr: ir.Expr) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Return all values of an expression that reads a constant table; None for other expressions."""
        if id(expr) not in self.known_tables:
            self.known_tables[id(expr)] = self._table(expr)
        return self.known_tables[id(expr)]

    def _table(self, expr: ir.Expr) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        if isinstance(expr, ir.Ref):
            return self.tables.get(expr.name)
        if isinstance(expr, ir.Apply) and expr.op is scalar.cast and expr.dtype.itemsize == 8:
            return self.table(expr.args[0])
        if isinstance(expr, ir.Apply) and expr.dtype is int64 and len(expr.args) == 2:
            return self.table_of(expr)
        if not isinstance(expr, ir.Load):
            return None
        access = self.accesses[expr.buffer]
        if access.allocation.value is None or not expr.dtype.is_integer:
            return None
        at = np.full(1, access.offset + self.integer(expr.index.offset), np.int64)
        for var, stride in expr.index.terms:
            _, begin, end = self.loops[var.name]
            at = np.unique(at[:, None] + np.arange(begin, end) * self.integer(stride))
        for part, stride in expr.index.gathered:
            known = self.table(part)
            if known is None:
                return None
            at = np.unique(at[:, None] + known * self.integer(stride))
        values = access.allocation.value.reshape(-1)
        if len(at) and (at[0] < 0 or at[-1] >= len(values)):
            return None  # reported as out of bounds
        return np.unique(values[at]).astype(np.int64)

    def table_of(self, expr: ir.Apply) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """Apply an operation to a table's numbers where the other operand is known."""
        tables = [self.table(argument) for argument in expr.args]
        ranges = [self.interval(argument) for argument in expr.args]
        for table, other in ((0, 1), (1, 0)):
            values, known = tables[table], ranges[other]
            if values is not None and known is not None and known[0] == known[1]:
                operands = [values, np.int64(known[0])] if table == 0 else [np.int64(known[0]), values]
                return np.unique(expr.op.numpy(*operands)).astype(np.int64)
        return None

    def footprint(
        self,
        buffer: str,
        writes: bool,
        offset: int,
        steps: list[tuple[int, int, int]],
        path: Path | None,
        contracted: bool = False,
    ) -> Footprint:
        access = self.accesses[buffer]
        size = access.allocation.dtype.itemsize
        start = offset + access.offset
        return Footprint(access, buffer, writes, contracted, runs_of(start, steps, size), path)

    def everything(self, buffer: str, writes: bool) -> Footprint:
        access = self.accesses[buffer]
        return Footprint(access, buffer, writes, False, np.array([[0, access.allocation.nbytes]], np.int64), None)

    def contraction(self, stmt: ir.Contract) -> Iterator[Footprint]:
        """Yield both operands for the block's rows and columns, then the block of the result."""
        rows = (self.edges[ir.RangeBound.I0], self.edges[ir.RangeBound.I1])
        columns = (self.edges[ir.RangeBound.J0], self.edges[ir.RangeBound.J1])
        k = (0, self.integer(stmt.k))
        number = self.integer
        batch = stmt.batch
        a: list[tuple[int, int, int]] = []
        b: list[tuple[int, int, int]] = []
        c: list[tuple[int, int, int]] = []
        path: Path | None = None
        if batch is not None:
            a, b, c = ([(*rows, number(step))] for step in (batch.a_step, batch.b_step, batch.c_step))
            rows, columns = (0, number(batch.m)), (0, number(batch.n))
        else:
            loops: list[Loop] = [(ir.RangeBound.I0, *rows, number(stmt.c_row)), (ir.RangeBound.J0, *columns, 1)]
            path = _path(self.accesses[stmt.c].offset, loops)
        if rows[0] >= rows[1] or columns[0] >= columns[1]:
            return
        if k[1]:
            if stmt.indirect is None:
                a += [(*rows, number(stmt.a_row)), (*k, number(stmt.a_k))]
                yield self.footprint(stmt.a, False, 0, a, None, contracted=True)
            else:
                yield self.footprint(stmt.indirect.rows, False, 0, [(*rows, 1)], None)
                yield self.footprint(stmt.indirect.ks, False, 0, [(*k, 1)], None)
                yield self.indirect(stmt.a, stmt.indirect, rows)
            pairs = 2 if stmt.panels is not None and stmt.operand_dtype is not None else 1
            b.append((0, -(-k[1] // pairs), number(stmt.b_k)))
            if stmt.panels is not None:
                width = stmt.panels.width
                panels = (columns[0] // width, -(-columns[1] // width))
                b += [(*panels, number(stmt.panels.step)), (0, width * pairs, 1)]
            else:
                b.append((*columns, number(stmt.b_col)))
            yield self.footprint(stmt.b, False, 0, b, None, contracted=True)
        c += [(*rows, number(stmt.c_row)), (*columns, 1)]
        yield self.footprint(stmt.c, True, 0, c, path)

    def indirect(self, buffer: str, operand: ir.IndirectOperand, rows: tuple[int, int]) -> Footprint:
        """Return the elements that the lists lead to for these rows, and no others: what lies between may not be
        written yet, such as the border of a padded array."""
        elements: Runs = np.array([[0, 1]], np.int64)
        for name, part in ((operand.rows, slice(*rows)), (operand.ks, slice(None))):
            access = self.accesses[name]
            if access.allocation.value is None:
                raise VerifierError(f"The list '{name}' of offsets is no constant.")
            first = np.unique(access.allocation.value[access.offset :][part]).astype(np.int64)
            offsets = merged(np.stack([first, first + 1], axis=1))
            if len(elements) * len(offsets) > _INDIRECT:
                raise TooLarge
            begins = elements[:, 0, None] + offsets[:, 0]
            ends = elements[:, 1, None] + offsets[:, 1] - 1  # of two ranges the sums are a range
            elements = merged(np.stack([begins, ends], axis=2).reshape(-1, 2))
        access = self.accesses[buffer]
        return Footprint(
            access, buffer, False, True, (elements + access.offset) * access.allocation.dtype.itemsize, None
        )

    def product(self, stmt: ir.Product) -> Iterator[Footprint]:
        """Yield the three matrices from wherever the indices of their first elements may be."""
        m, n, k = (self.integer(x) for x in (stmt.m, stmt.n, stmt.k))
        number = self.integer
        matrices = [
            (stmt.a, stmt.a_at, False, ((0, m, number(stmt.a_row)), (0, k, number(stmt.a_k)))),
            (stmt.b, stmt.b_at, False, ((0, k, number(stmt.b_k)), (0, n, number(stmt.b_col)))),
            (stmt.c, stmt.c_at, True, ((0, m, number(stmt.c_row)), (0, n, 1))),
        ]
        if not (m and n):
            return
        for buffer, at, writes, extents in matrices:
            for expr, _ in at.gathered:
                yield from self.loads(expr)
            if writes or k:
                yield from self.touch(buffer, at, writes=writes, extents=extents)

    def interval(self, expr: ir.Expr) -> Interval:
        """Return the integers that ``expr`` may be."""
        if id(expr) not in self.known_intervals:
            self.known_intervals[id(expr)] = self._interval(expr)
        return self.known_intervals[id(expr)]

    def _interval(self, expr: ir.Expr) -> Interval:
        if isinstance(expr, ir.Param):
            return self.params[expr.name], self.params[expr.name]
        if isinstance(expr, ir.RangeBound):
            return self.edges[expr], self.edges[expr]
        if isinstance(expr, ir.Const):
            return (int(expr.value), int(expr.value)) if expr.dtype.is_integer else None
        if isinstance(expr, ir.Position):
            _, begin, end = self.loops[expr.var.name]
            return begin, end - 1
        if isinstance(expr, ir.Ref):
            return self.lets.get(expr.name)
        if isinstance(expr, ir.Apply) and expr.op in (scalar.maximum, scalar.minimum) and expr.dtype.is_integer:
            x, y = (self.interval(argument) for argument in expr.args)
            return _limited(expr, x, y)
        if isinstance(expr, ir.Apply) and expr.op in _CORNERS and expr.dtype is int64:
            x, y = (self.interval(argument) for argument in expr.args)
            corners = [_CORNERS[expr.op](p, q) for p in x for q in y] if x and y else []
            return (min(corners), max(corners)) if corners else None
        if isinstance(expr, ir.Apply) and expr.op is scalar.cast and expr.args[0].dtype.is_integer:
            return self.interval(expr.args[0]) if expr.dtype.itemsize == 8 else None
        if isinstance(expr, ir.Load) and expr.dtype.is_integer:
            table = self.table(expr)
            if table is not None and len(table):
                return int(table[0]), int(table[-1])
            limits = np.iinfo(expr.dtype.numpy)
            return int(limits.min), int(limits.max)
        return None


def _goes_by_values(body: tuple[ir.Stmt, ...]) -> bool:
    """Return whether a loop or product of ``body`` has an extent bound by a Let."""
    for stmt in body:
        if isinstance(stmt, ir.Product) and any(isinstance(n, ir.Ref) for n in (stmt.m, stmt.n, stmt.k)):
            return True
        if isinstance(stmt, ir.For) and (isinstance(stmt.end, ir.Ref) or _goes_by_values(stmt.body)):
            return True
    return False


def _limited(expr: ir.Apply, x: Interval, y: Interval) -> Interval:
    """Return the range of a maximum or minimum; unknown operands have the range of their dtype."""
    limits = np.iinfo(expr.dtype.numpy)
    whole = (int(limits.min), int(limits.max))
    a, b = x or whole, y or whole
    choose = max if expr.op is scalar.maximum else min
    return choose(a[0], b[0]), choose(a[1], b[1])


def _path(first: int, loops: list[Loop]) -> Path:
    """Return the place of an access at each point; axes along which the block has one value only shift it."""
    first += sum(begin * stride for _, begin, end, stride in loops if end - begin == 1)
    return first, frozenset((axis, stride) for axis, begin, end, stride in loops if stride and end - begin > 1)
