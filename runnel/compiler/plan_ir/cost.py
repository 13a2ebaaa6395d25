"""The predicted time of a kernel on a block of its domain: the work, counted from its loops, and rates of machines.

A unit is the time of one float32 addition at the machine's peak rate for vectors. Extents that are only known at run
time (the positions in a bucket) are taken as large as possible, and the count is marked as guessed. Plans use
:data:`PLANNED` and the constants below it, so that they are the same on every machine. Reports use measured rates.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.dtypes import DType
from runnel.core.records import field, record
from runnel.loops import ir, scalar, uses

Block = tuple[int, int, int, int]  # i0, i1, j0, j1

# In units, as measured (docs/debug/profiling.md says how).
_VECTOR: Final = 8.0  # an instruction with any number of lanes
_LOADED, _STORED = 0.5, 1.0  # a float32 in a vector
_APART, _CROWDED, _CROWDS = 16.0, 25.0, 4  # a float32 that is not adjacent; more for powers of two in its step, up to 4
_NEAR: Final = 7.0  # a float32 in scratch memory that is not adjacent: only there steps are constants
_ROOMY: Final = 256  # least step in bytes whose powers of two count
_CHAIN: Final = 35.0  # the latency of an accumulator's update
_LOOP: Final = 40.0  # to begin and end a loop over vectors
_TAIL: Final = 150.0  # to store less than a whole vector
_TURN: Final = 8.0  # an iteration of a loop without vectors
_JOIN: Final = 40.0  # to combine the lanes of an accumulator
_CALLED: Final = 2500.0  # to begin a product
_TILE: Final = 350.0  # to load and store a tile's sums
_RAGGED: Final = 700.0  # the same where the columns are not whole vectors
_TILE_ROWS, _TILE_COLUMNS, _GRAIN, _FEWEST = 6, 16, 8, 4  # a tile of fewer rows is bound by latency
_COPIED: Final = 2.0  # an element that is packed
_HOST: Final = 1e5  # a Python function of unknown cost
_LEVELS: Final[dict[str, _Level]] = {}  # by name of kernel
_MOST_LEVELS: Final = 4096


@record(frozen=False)
class Work:
    """``flops`` counts products, with tails padded to whole vectors; ``touched`` counts the elements of each
    buffer that loops load or store; ``guessed``: the true work is known only at run time."""

    units: float = 0.0
    flops: float = 0.0
    touched: dict[str, float] = field(default_factory=dict)
    guessed: bool = False


def count(kernel: ir.Kernel, params: Sequence[int], block: Block, tables: Mapping[str, np.ndarray[Any, Any]]) -> Work:
    """Return the work of ``block``; ``tables`` are the buffers with constant contents."""
    level = _LEVELS.get(kernel.name)
    if level is None:
        if len(_LEVELS) >= _MOST_LEVELS:
            _LEVELS.clear()
        level = _LEVELS[kernel.name] = _level(kernel.body, vector=None)
    known: dict[Any, float | None] = {p.name: float(v) for p, v in zip(kernel.params, params, strict=True)}
    known |= {bound: float(v) for bound, v in zip(ir.RangeBound, block, strict=True)}
    counting = _Counting(known, tables)
    counting.add(level, 1.0, 1.0)
    return counting.work


@record(frozen=False)
class _Level:
    """The statements of one loop, without nested loops. ``each`` is the work of an iteration in units."""

    each: float = 0.0
    chain: float = 0.0
    accumulators: int = 0
    lets: list[ir.Let] = field(default_factory=list)
    loops: list[tuple[ir.For, _Level]] = field(default_factory=list)
    products: list[ir.Product | ir.Contract] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    apart: list[tuple[ir.Stride | None, float]] = field(default_factory=list)  # steps from lane to lane, widths
    stores: int = 0


def _level(body: Iterable[ir.Stmt], vector: ir.Var | None) -> _Level:
    """Count statements inside the loop over vectors of variable ``vector``, if there is one."""
    level = _Level()
    arithmetic = moved = 0.0
    for stmt in body:
        if isinstance(stmt, ir.For):
            inside = stmt.var if stmt.kind == "vec" else vector
            level.loops.append((stmt, _level(stmt.body, inside)))
            continue
        if isinstance(stmt, ir.Product | ir.Contract):
            level.products.append(stmt)
            continue
        if isinstance(stmt, ir.Host):
            level.each = _HOST
            continue
        if isinstance(stmt, ir.Acc):
            level.accumulators += vector is None
        elif isinstance(stmt, ir.Update):
            level.chain = _CHAIN * _width(stmt.value)
        elif isinstance(stmt, ir.Let) and vector is None:
            level.lets.append(stmt)
        for value in uses.operands(stmt):
            for part in uses.parts(value):
                if isinstance(part, ir.Apply):
                    arithmetic += part.op.cost * _width(part)
                elif isinstance(part, ir.Load):
                    moved += _move(level, part.buffer, part.index, part.dtype, vector) * _LOADED
        if isinstance(stmt, ir.Store):
            moved += _move(level, stmt.buffer, stmt.index, stmt.value.dtype, vector) * _STORED
            level.stores += 1
    level.each += (ir.LANES if vector is not None else _VECTOR) * (arithmetic + moved)
    return level


def _move(level: _Level, buffer: str, index: ir.Index, dtype: DType, vector: ir.Var | None) -> float:
    """Note an access; returns the width of its elements where these are adjacent, else 0: see ``apart``."""
    level.touched.append(buffer)
    width = dtype.itemsize / 4
    if vector is None:
        return width
    if any(_varies(value, vector) for value, _ in index.gathered):
        level.apart.append((None, width))
        return 0.0
    steps = [step for var, step in index.terms if var == vector and step != 1]
    level.apart += [(step, width) for step in steps]
    return 0.0 if steps else width


def _width(value: ir.Expr) -> float:
    """Return the width of a value relative to a float32."""
    if isinstance(value, ir.Apply) and value.op is scalar.cast:
        return max(value.dtype.itemsize, value.args[0].dtype.itemsize) / 4
    return max(value.dtype.itemsize / 4, 0.5)


def _varies(value: ir.Expr, vector: ir.Var) -> bool:
    return any(
        (isinstance(part, ir.Position) and part.var is vector)
        or (isinstance(part, ir.Load) and any(var == vector for var, _ in part.index.terms))
        for part in uses.parts(value)
    )


class _Counting:
    """Walks the levels with the numbers of one call. None is a number that is known only at run time."""

    def __init__(self, known: dict[Any, float | None], tables: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self.known = known
        self.tables = tables
        self.work = Work()
        self._limits: set[str] = set()  # names whose number is an upper limit
        self._limited = False  # whether the last number depends on one

    def add(self, level: _Level, times: float, lanes: float) -> None:
        """Count ``level`` for this number of iterations and lanes."""
        for let in level.lets:
            self._limited = False
            self.known[let.name] = self._number(let.value)
            if self._limited:
                self._limits.add(let.name)
        each = level.each + sum(self._elsewhere(step, width) * lanes for step, width in level.apart)
        self.work.units += times * (max(each, level.chain) + level.accumulators * _JOIN)
        for name in level.touched:
            self.work.touched[name] = self.work.touched.get(name, 0.0) + times * lanes
        for product in level.products:
            self._product(product, times)
        for loop, inside in level.loops:
            begin, end = self._bound(loop.begin), self._bound(loop.end)
            trip_count = max(end - begin, 0.0)
            self.known[loop.var.name] = (begin + end - 1) / 2
            if loop.kind == "vec":
                steps = math.ceil(trip_count / ir.LANES)
                self.work.units += times * (_LOOP + (_TAIL * inside.stores if trip_count % ir.LANES else 0.0))
                self.add(inside, times * steps, trip_count / steps if steps else 0.0)
            else:
                self.work.units += times * trip_count * _TURN
                self.add(inside, times * trip_count, lanes)

    def _product(self, product: ir.Product | ir.Contract, times: float) -> None:
        if isinstance(product, ir.Product):
            m, n, k = (self._bound(x) for x in (product.m, product.n, product.k))
            adjacent_a, adjacent_b = self._stride(product.a_k) == 1, self._stride(product.b_col) == 1
        else:
            i0, i1, j0, j1 = (self._bound(bound) for bound in ir.RangeBound)
            m, n, k = i1 - i0, j1 - j0, self._bound(product.k)
            if product.batch is not None:
                times *= m
                m, n = self._bound(product.batch.m), self._bound(product.batch.n)
            adjacent_a, adjacent_b = self._stride(product.a_k) == 1, self._stride(product.b_col) == 1
        for name in (product.a, product.b, product.c):
            self.work.touched[name] = math.inf
        columns = math.ceil(n / _GRAIN) * _GRAIN
        rows = m // _TILE_ROWS * _TILE_ROWS + (max(m % _TILE_ROWS, _FEWEST) if m % _TILE_ROWS else 0)
        width = (product.operands if isinstance(product, ir.Contract) else product.dtype).itemsize / 4
        tiles = math.ceil(m / _TILE_ROWS) * math.ceil(n / _TILE_COLUMNS)
        packed = k * n if not adjacent_b or m >= 192 else 0.0
        packed += 0.0 if adjacent_a or n < 192 else m * k
        self.work.flops += times * 2.0 * rows * columns * k * width
        ragged = math.ceil(m / _TILE_ROWS) if n % _GRAIN else 0
        self.work.units += times * (_CALLED + tiles * _TILE + ragged * _RAGGED + packed * _COPIED * width)

    def _elsewhere(self, step: ir.Stride | None, width: float) -> float:
        """Return the cost of an element that is not adjacent to the one before it. Steps with a large power of two lead
        to few sets of the caches."""
        if isinstance(step, int) and step:
            return _NEAR
        away = 0 if step is None else int(abs(self._stride(step)) * width * 4)
        if away == 0:
            return _LOADED * width if step is not None else _APART * width
        crowded = max((away & -away).bit_length() - _ROOMY.bit_length(), 0)
        return _APART * width + _CROWDED * min(crowded, _CROWDS)

    # Numbers ----------------------------------------------------------------------------------------------------------

    def _bound(self, bound: Any) -> float:
        """Return the value of a bound, at least 1 where it is unknown."""
        if isinstance(bound, int):
            return float(bound)
        number = self.known.get(bound if isinstance(bound, ir.RangeBound) else bound.name)
        if number is None or (isinstance(bound, ir.Ref) and bound.name in self._limits):
            self.work.guessed = True
        return 1.0 if number is None else number

    def _stride(self, stride: ir.Stride) -> float:
        return float(stride) if isinstance(stride, int) else self.known.get(stride.name) or 0.0

    def _number(self, value: ir.Expr) -> float | None:
        """Return the mean of an integer outside vectors; None if it is known only at run time."""
        if isinstance(value, ir.Const):
            return float(value.value)
        if isinstance(value, ir.RangeBound):
            return self.known.get(value)
        if isinstance(value, ir.Ref | ir.Param):
            self._limited |= value.name in self._limits
            return self.known.get(value.name)
        if isinstance(value, ir.Position):
            return self.known.get(value.var.name)
        if isinstance(value, ir.Load):
            return self._loaded(value)
        numbers = [self._number(x) for x in value.args]
        if value.op is scalar.minimum:
            self._limited |= None in numbers
            return min((x for x in numbers if x is not None), default=None)
        rule = _ARITHMETIC.get(value.op)
        if rule is None or None in numbers:
            return None
        return float(rule(*numbers))

    def _loaded(self, load: ir.Load) -> float | None:
        """Return the mean of a table's elements along the loops around."""
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


@record
class Machine:
    """Rates of ``threads`` threads together. ``flops``: float32 operations per second of fused multiply-adds.
    ``levels``: sizes of a working set in bytes, each with the bytes per second read and written. ``call``: seconds to
    start a kernel."""

    flops: float
    levels: tuple[tuple[int, float, float], ...]
    threads: int = 1
    call: float = 8e-9

    def rates(self, footprint: float) -> tuple[float, float]:
        """Return bytes read and written per second in a working set of ``footprint`` bytes, interpolated between levels
        in the logarithm."""
        at = bisect.bisect_left(self.levels, footprint, key=lambda level: level[0])
        if at in (0, len(self.levels)):
            _, read, write = self.levels[min(at, len(self.levels) - 1)]
            return read, write
        (low, *before), (high, *after) = self.levels[at - 1], self.levels[at]
        share = (footprint - low) / (high - low)
        read, write = (1 / ((1 - share) / x + share / y) for x, y in zip(before, after, strict=True))
        return read, write


@record
class Prediction:
    """Seconds for arithmetic alone, and for moving bytes alone."""

    arithmetic: float
    memory: float
    call: float

    @property
    def seconds(self) -> float:
        return self.call + math.hypot(self.arithmetic, self.memory)


def predict(work: Work, read: float, written: float, machine: Machine) -> Prediction:
    """Predict the time of a block on one thread of ``machine`` while all its threads are equally busy."""
    threads = machine.threads
    reads, writes = machine.rates((read + written) * threads)
    arithmetic = (work.units * 2 + work.flops / PRODUCTS) * threads / machine.flops
    return Prediction(arithmetic, (read / reads + written / writes) * threads, machine.call)


PRODUCTS: Final = 0.92  # the share of the machine's rate that the best products reach
PLANNED: Final = Machine(
    flops=90e9,
    levels=((1 << 14, 90e9, 200e9), (1 << 18, 60e9, 80e9), (1 << 22, 45e9, 45e9), (1 << 26, 18e9, 9e9)),
)  # an ordinary core of a shared server of 2021


ORDINARY_RATE: Final = 40e9  # operations per second
PRODUCT_RATE: Final = 90e9  # the same in products of matrices
HOST_RATE: Final = ORDINARY_RATE / 1000  # the same in host calls
BYTE_RATE: Final = 15e9  # per second
CALL_SECONDS: Final = 30e-9  # seconds to start a kernel
