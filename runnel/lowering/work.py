"""What a kernel has to do for a block of its domain, counted from its loops: arithmetic and multiply-adds of products.

A unit is the time of one addition of float32 numbers, where vectors of them are added as fast as the machine can. What
the run alone can tell (how many positions a bucket has) is taken as large as it can be; the count says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from runnel.codegen import uses
from runnel.loops import scalar
from runnel.loops.ir import (
    LANES,
    Acc,
    Apply,
    Const,
    Contract,
    Expr,
    For,
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

Block = tuple[int, int, int, int]  # i0, i1, j0, j1

# In units, as measured (docs/profiling.md says how).
_VECTOR: Final = 8.0  # an instruction, whatever its lanes
_LOADED, _STORED = 0.5, 1.0  # a float32 in a vector
_APART: Final = 5.0  # as many times that where elements do not lie side by side
_CHAIN: Final = 70.0  # what the next step of an accumulator waits for
_LOOP: Final = 130.0  # to begin and end a loop over vectors
_TURN: Final = 25.0  # of a loop without vectors
_JOIN: Final = 250.0  # to combine the lanes of an accumulator
_CALLED: Final = 2500.0  # to begin a product
_TILE: Final = 350.0  # to load and store a tile's sums
_TILE_ROWS, _TILE_COLUMNS, _GRAIN = 6, 16, 8
_COPIED: Final = 2.0  # an element that is packed
_SHAPES: dict[str, _Level] = {}  # by name of kernel
_KEPT: Final = 4096


@dataclass(slots=True)
class Work:
    """``flops`` are those of products, tails filled up to whole vectors; ``gathered`` counts what is read from buffers
    whose elements are looked up; ``guessed`` says that only the run knows."""

    units: float = 0.0
    flops: float = 0.0
    gathered: dict[str, float] = field(default_factory=dict)
    guessed: bool = False


def count(kernel: Kernel, params: Sequence[int], block: Block, tables: Mapping[str, np.ndarray[Any, Any]]) -> Work:
    """The work of ``block``; ``tables`` are the buffers whose contents the plan knows."""
    found = _SHAPES.get(kernel.name)
    if found is None:
        if len(_SHAPES) >= _KEPT:
            _SHAPES.clear()
        found = _SHAPES[kernel.name] = _level(kernel.body, vector=None)
    known: dict[Any, float | None] = {p: float(v) for p, v in zip(kernel.params, params, strict=True)}
    known |= {bound: float(v) for bound, v in zip(RangeBound, block, strict=True)}
    counting = _Counting(known, tables)
    counting.add(found, 1.0, 1.0)
    return counting.work


@dataclass(slots=True)
class _Level:
    """The statements of one loop, without those of the loops inside it. ``each`` is the work in units each time."""

    each: float = 0.0
    chain: float = 0.0
    accumulators: int = 0
    lets: list[Let] = field(default_factory=list)
    loops: list[tuple[For, _Level]] = field(default_factory=list)
    products: list[Product | Contract] = field(default_factory=list)
    gathered: list[str] = field(default_factory=list)


def _level(body: Iterable[Stmt], vector: Var | None) -> _Level:
    """``vector``: the variable of the loop over vectors that these statements are in."""
    level = _Level()
    arithmetic = moved = 0.0
    for stmt in body:
        if isinstance(stmt, For):
            inside = stmt.var if stmt.kind == "vec" else vector
            level.loops.append((stmt, _level(stmt.body, inside)))
            continue
        if isinstance(stmt, Product | Contract):
            level.products.append(stmt)
            continue
        if isinstance(stmt, Acc):
            level.accumulators += vector is None
        elif isinstance(stmt, Update):
            level.chain = _CHAIN * _width(stmt.value)
        elif isinstance(stmt, Let) and vector is None:
            level.lets.append(stmt)
        loads: list[tuple[str, Index, float]] = []
        for value in uses.operands(stmt):
            for part in uses.parts(value):
                if isinstance(part, Apply):
                    arithmetic += part.op.cost * _width(part)
                elif isinstance(part, Load):
                    loads.append((part.buffer, part.index, part.dtype.itemsize / 4))
        for buffer, index, width in loads:
            moved += _LOADED * width * _apart(index, vector)
            if index.gathered:
                level.gathered.append(buffer)
        if isinstance(stmt, Store):
            moved += _STORED * stmt.value.dtype.itemsize / 4 * _apart(stmt.index, vector)
    lanes = LANES if vector is not None else _VECTOR
    level.each = lanes * max(arithmetic, moved)
    return level


def _width(value: Expr) -> float:
    """How much of a vector a value takes, beside a float32."""
    if isinstance(value, Apply) and value.op is scalar.cast:
        return max(value.dtype.itemsize, value.args[0].dtype.itemsize) / 4
    return max(value.dtype.itemsize / 4, 0.5)


def _apart(index: Index, vector: Var | None) -> float:
    """What an access costs more because its elements do not lie side by side."""
    if vector is None:
        return 1.0
    if any(step != 1 for var, step in index.terms if var is vector):
        return _APART
    return _APART if any(_varies(value, vector) for value, _ in index.gathered) else 1.0


def _varies(value: Expr, vector: Var) -> bool:
    return any(
        (isinstance(part, Position) and part.var is vector)
        or (isinstance(part, Load) and any(var == vector for var, _ in part.index.terms))
        for part in uses.parts(value)
    )


class _Counting:
    """Walks the levels with the numbers of one call. A number of None is known to the run alone."""

    def __init__(self, known: dict[Any, float | None], tables: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.known = known
        self.tables = tables
        self.work = Work()

    def add(self, level: _Level, times: float, lanes: float) -> None:
        """``level`` run so often, over so many lanes each time."""
        for let in level.lets:
            self.known[let.name] = self._number(let.value)
        self.work.units += times * (max(level.each, level.chain) + level.accumulators * _JOIN)
        for name in level.gathered:
            self.work.gathered[name] = self.work.gathered.get(name, 0.0) + times * lanes
        for product in level.products:
            self._product(product, times)
        for loop, inside in level.loops:
            begin, end = self._bound(loop.begin), self._bound(loop.end)
            turns = max(end - begin, 0.0)
            self.known[loop.var] = (begin + end - 1) / 2
            if loop.kind == "vec":
                self.work.units += times * _LOOP
                self.add(inside, times * math.ceil(turns / LANES), lanes * min(max(turns, 1.0), LANES))
            else:
                self.work.units += times * turns * (_TURN if not inside.loops else 2 * _TURN)
                self.add(inside, times * turns, lanes)

    def _product(self, product: Product | Contract, times: float) -> None:
        if isinstance(product, Product):
            m, n, k = (self._bound(x) for x in (product.m, product.n, product.k))
            adjacent_a, adjacent_b = self._stride(product.a_k) == 1, self._stride(product.b_col) == 1
        else:
            i0, i1, j0, j1 = (self._bound(bound) for bound in RangeBound)
            m, n, k = i1 - i0, j1 - j0, self._bound(product.k)
            if product.batch is not None:
                times *= m
                m, n = self._bound(product.batch.m), self._bound(product.batch.n)
            adjacent_a, adjacent_b = self._stride(product.a_k) == 1, self._stride(product.b_col) == 1
        columns = math.ceil(n / _GRAIN) * _GRAIN
        width = product.dtype.itemsize / 4
        tiles = math.ceil(m / _TILE_ROWS) * math.ceil(n / _TILE_COLUMNS)
        packed = k * n if not adjacent_b or m >= 192 else 0.0
        packed += 0.0 if adjacent_a or n < 192 else m * k
        self.work.flops += times * 2.0 * m * columns * k * width
        self.work.units += times * (_CALLED + tiles * _TILE + packed * _COPIED * width)

    # Numbers ----------------------------------------------------------------------------------------------------------

    def _bound(self, bound: Any) -> float:
        """How large a bound is; the run knows of 1 at least."""
        if isinstance(bound, int):
            return float(bound)
        found = self.known.get(bound.name if isinstance(bound, Ref) else bound)
        if found is None:
            self.work.guessed = True
        return 1.0 if found is None else found

    def _stride(self, stride: Stride) -> float:
        return float(stride) if isinstance(stride, int) else self.known.get(stride) or 0.0

    def _number(self, value: Expr) -> float | None:
        """What an integer outside of vectors is, on average; None if the run alone can tell."""
        if isinstance(value, Const):
            return float(value.value)
        if isinstance(value, Param | RangeBound):
            return self.known.get(value)
        if isinstance(value, Ref):
            return self.known.get(value.name)
        if isinstance(value, Position):
            return self.known.get(value.var)
        if isinstance(value, Load):
            return self._loaded(value)
        numbers = [self._number(x) for x in value.args]
        if value.op is scalar.minimum:
            self.work.guessed |= None in numbers
            return min((x for x in numbers if x is not None), default=None)
        rule = _ARITHMETIC.get(value.op)
        if rule is None or None in numbers:
            return None
        return float(rule(*numbers))

    def _loaded(self, load: Load) -> float | None:
        """The mean of what a table holds along the loops around."""
        table = self.tables.get(load.buffer)
        if table is None or load.index.gathered or not load.index.terms:
            return None
        step = min(abs(int(self._stride(s))) for _, s in load.index.terms) or 1
        part = table.reshape(-1)[int(self._stride(load.index.offset)) :: step]
        return float(part.mean()) if len(part) else None


_ARITHMETIC: Final[dict[scalar.ScalarOp, Any]] = {
    scalar.add: lambda x, y: x + y,
    scalar.sub: lambda x, y: x - y,
    scalar.mul: lambda x, y: x * y,
    scalar.maximum: max,
    scalar.floor_divide: lambda x, y: x // y if y else 0.0,
    scalar.cast: lambda x: x,
}
