"""The memory of values while a program runs, and the accesses of kernels."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from runnel.backends.host.calls import HostFunction
from runnel.compiler.plan_ir.cost import PLANNED, Block, Machine, Prediction, Work, count, predict
from runnel.core.avals import Shape
from runnel.core.dtypes import DType
from runnel.core.lengths import is_static
from runnel.core.records import field, record
from runnel.graph.node import Value
from runnel.loops.ir import Kernel

GRAIN = 16  # columns are split at whole vectors
GUESSED = 3.0  # most units per counted operation where trip counts are known only at run time


class MemorySpace(enum.Enum):
    """The kinds of memory of a program."""

    ARENA = "arena"  # planned, shared by values that are not alive at the same time
    CONSTANT = "constant"  # filled once, when the program is bound
    INPUT = "input"  # arguments of the call
    VARIABLE = "variable"  # state, updated in place
    OUTPUT = "output"  # results, fresh at each call
    SCRATCH = "scratch"  # each thread's own


class Content(NamedTuple):
    """The values of a constant that depends on lengths: ``make(*arguments)``."""

    make: Callable[..., np.ndarray]
    arguments: tuple[Any, ...]


@record(frozen=False, eq=False)
class Allocation:
    """A dense block of memory for one value. ``slot`` and ``offset`` (bytes) are set by the memory plan."""

    space: MemorySpace
    dtype: DType
    size: int
    label: str
    index: int = 0  # which input, variable or output
    strided: bool = False  # an input that is not dense
    value: np.ndarray | None = None  # of a constant
    content: Content | None = None  # of a constant that depends on lengths
    slot: int = -1
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


def constant(
    label: str, dtype: DType, size: int, make: Callable[..., np.ndarray], arguments: tuple[Any, ...]
) -> Allocation:
    """Return a constant of the values ``make(*arguments)``."""
    if is_static(arguments):
        return Allocation(MemorySpace.CONSTANT, dtype, size, label, value=make(*arguments))
    return Allocation(MemorySpace.CONSTANT, dtype, size, label, content=Content(make, arguments))


BufferView = tuple[Allocation, int, Shape]  # memory, offset of the first element, strides in elements


@record(frozen=False, eq=False)
class BufferAccess:
    """One buffer of a kernel: its place, its first element, and its steps along the kernel's two partitioned axes (rows
    i, columns j), which determine what each thread accesses. A step of None is unknown: the whole place."""

    allocation: Allocation
    writes: bool
    offset: int  # elements
    row_step: int | None
    column_step: int | None
    span: int  # elements from the first of a (row, column) point to its last along other axes
    steps: tuple[int, ...] = ()  # elements to advance at each iteration of the loops around the call, outermost first
    extent: int | None = None  # elements that one iteration can access, if not the whole place
    before: int = 0  # elements that a point accesses before its first one, along axes with negative steps
    past: bool = False  # it reads only what earlier iterations of ``Waves`` wrote, for which there is a barrier
    is_bounded: bool = False  # its kernel computes bounds that keep it inside, which intervals of positions do not show

    @property
    def nbytes(self) -> int:
        return self.allocation.nbytes if self.extent is None else self.extent * self.allocation.dtype.itemsize

    def reached(self, block: Block, share: float) -> int:
        """Return bytes from the first to the last that ``block``, a ``share`` of the call, accesses; with unknown steps
        that share of the whole."""
        if self.row_step is None or self.column_step is None:
            return int(self.nbytes * share)
        i0, i1, j0, j1 = block
        inner = self.before + self.span
        whole = (i1 - i0 - 1) * abs(self.row_step) + (j1 - j0 - 1) * abs(self.column_step) + inner
        points = (i1 - i0 if self.row_step else 1) * (j1 - j0 if self.column_step else 1) * inner
        return max(min(self.nbytes, min(whole, points) * self.allocation.dtype.itemsize), 0)


class Hull(NamedTuple):
    """The extent of axes around the first element: the elements before it, and those from it to the last."""

    before: int
    span: int


def hull(axes: Iterable[tuple[int, int]]) -> Hull:
    """Return the hull of axes of (extent, step); steps may be negative."""
    lengths = [(extent - 1) * step for extent, step in axes if extent]
    return Hull(-sum(n for n in lengths if n < 0), 1 + sum(n for n in lengths if n > 0))


@record(frozen=False, eq=False)
class Call:
    """A kernel with its arguments: one step of a program, before it is partitioned among threads."""

    kernel: Kernel
    accesses: list[BufferAccess]  # in the order of kernel.buffers
    params: list[int]
    rows: int
    columns: int
    split: str  # the axes that may be partitioned among threads: "rows", "columns", "both" or ""
    flops: float
    nodes: list[Value] = field(default_factory=list)
    packs: bool = False  # a contraction that packs its second operand into panels
    depth: int = 0  # of a contraction: the number of products in a sum
    packed_block: tuple[int, int] | None = None  # multiples of rows and columns at which a split repeats little packing
    checks: bool = False  # it may report a fault, after which no Variable may be written
    grain: int = GRAIN  # columns are split at multiples of it
    host: HostFunction | None = None  # the function of a host call; its address is among ``params``
    window: int = 0  # of a call in ``Waves``: rows (> 0) or columns (< 0) of the call for each row of a wave
    times: int = 1  # executions in a run; a guess where that is known only at run time

    _planned: Prediction | None = field(default=None, init=False, repr=False)

    @property
    def bytes_moved(self) -> int:
        """Bytes that must be read and written, each once."""
        return sum(self.traffic(self.work()))

    @property
    def seconds(self) -> float:
        """The predicted seconds of the whole call on one thread, for plans: the same on every machine."""
        if self._planned is None:
            self._planned = self.predict(PLANNED)
        return self._planned.seconds

    def expect_like(self, other: Call) -> None:
        """Predict the seconds from the same call for other lengths, by the number of elements."""
        share = self.rows * self.columns / max(other.rows * other.columns, 1)
        self._planned = Prediction(other.seconds * share, 0.0, 0.0)

    def predict(self, machine: Machine, block: Block | None = None) -> Prediction:
        """Return the prediction for ``block`` (None: all) on one thread of a machine."""
        work = self.work(block)
        return predict(work, *self.traffic(work, block), machine)

    def work(self, block: Block | None = None) -> Work:
        """Return the work of ``block`` (None: all). Guesses are limited in proportion to ``flops``."""
        tables = {
            b.name: a.allocation.value
            for b, a in zip(self.kernel.buffers, self.accesses, strict=True)
            if a.allocation.value is not None
        }
        work = count(self.kernel, self.params, self._whole if block is None else block, tables)
        if work.guessed:
            most = GUESSED * max(self.flops, self.rows * self.columns) * self._share(block)
            work.units = min(work.units, most)
            work.flops = min(work.flops, most / GUESSED)
            work.touched = {name: min(n, most) for name, n in work.touched.items()}
        return work

    def traffic(self, work: Work, block: Block | None = None) -> tuple[int, int]:
        """Return bytes that ``block`` reads and writes; a place of several buffers counts once."""
        read: dict[tuple[Allocation, int], int] = {}
        written: dict[tuple[Allocation, int], int] = {}
        share = self._share(block)
        whole = self._whole if block is None else block
        for buffer, access in zip(self.kernel.buffers, self.accesses, strict=True):
            if access.allocation.space is MemorySpace.SCRATCH:
                continue
            nbytes = access.reached(whole, share)
            nbytes = int(min(nbytes, work.touched.get(buffer.name, math.inf) * access.allocation.dtype.itemsize))
            for is_accessed, bytes_of in ((buffer.mode != "out", read), (buffer.mode != "in", written)):
                if is_accessed:
                    key = (access.allocation, 0 if nbytes == access.nbytes else access.offset)
                    bytes_of[key] = max(bytes_of.get(key, 0), nbytes)
        return sum(read.values()), sum(written.values())

    @property
    def _whole(self) -> Block:
        return (0, self.rows, 0, self.columns)

    def _share(self, block: Block | None) -> float:
        if block is None:
            return 1.0
        i0, i1, j0, j1 = block
        return (i1 - i0) * (j1 - j0) / max(self.rows * self.columns, 1)
