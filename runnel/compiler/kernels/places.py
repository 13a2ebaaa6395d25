"""Where values live while a program runs, and how kernels reach them."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from runnel.backends.host.calls import HostFunction
from runnel.compiler.cost.model import PLANNED, Machine, Prediction, predict
from runnel.compiler.cost.work import Block, Work, count
from runnel.core.avals import Shape
from runnel.core.dtypes import DType
from runnel.core.records import field, record
from runnel.graph.node import Value
from runnel.loops.ir import Kernel

GRAIN = 16  # columns are split at whole vectors
GUESSED = 3.0  # units for each operation that the planner counted, at most, where only the run knows how often


class Space(enum.Enum):
    """The kinds of memory a program touches."""

    ARENA = "arena"  # planned, shared by values that are not alive together
    CONSTANT = "constant"  # filled once, when the program is bound
    INPUT = "input"  # arguments of the call
    VARIABLE = "variable"  # state, updated in place
    OUTPUT = "output"  # results, fresh at each call
    SCRATCH = "scratch"  # each thread's own


@record(frozen=False, eq=False)
class Place:
    """A dense block of memory for one value. ``slot`` and ``offset`` (bytes) are set by the memory plan."""

    space: Space
    dtype: DType
    size: int
    label: str
    index: int = 0  # which input, variable or output
    strided: bool = False  # an input that is not dense
    value: np.ndarray | None = None  # of a constant
    slot: int = -1
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


BufferView = tuple[Place, int, Shape]  # memory, offset of the first element, strides in elements


@record(frozen=False, eq=False)
class Access:
    """One buffer of a kernel: which place, from which element on, and with which steps along the kernel's two
    partitioned axes (rows i, columns j), so that what each thread touches is known. A step of None is unknown: all."""

    place: Place
    writes: bool
    offset: int  # elements
    row_step: int | None
    column_step: int | None
    span: int  # elements from the first that one (row, column) point names to the last it reaches through other axes
    steps: tuple[int, ...] = ()  # elements to advance at each iteration of the loops around the call, outermost first
    extent: int | None = None  # elements that one iteration can reach, where that is not the whole place
    before: int = 0  # elements that one point reaches before the first it names, through axes that go backwards

    @property
    def nbytes(self) -> int:
        return self.place.nbytes if self.extent is None else self.extent * self.place.dtype.itemsize

    def reached(self, block: Block, share: float) -> int:
        """Bytes between the first and the last that ``block``, a ``share`` of the call, reaches; without known steps
        that share of the whole."""
        if self.row_step is None or self.column_step is None:
            return int(self.nbytes * share)
        i0, i1, j0, j1 = block
        inner = self.before + self.span
        whole = (i1 - i0 - 1) * abs(self.row_step) + (j1 - j0 - 1) * abs(self.column_step) + inner
        points = (i1 - i0 if self.row_step else 1) * (j1 - j0 if self.column_step else 1) * inner
        return max(min(self.nbytes, min(whole, points) * self.place.dtype.itemsize), 0)


class Hull(NamedTuple):
    """How far axes lead from the first element: how many elements lie before it, and how many from it to the last."""

    before: int
    span: int


def hull(axes: Iterable[tuple[int, int]]) -> Hull:
    """The elements that axes of (extent, step) lead to; an axis may go backwards."""
    lengths = [(extent - 1) * step for extent, step in axes if extent]
    return Hull(-sum(n for n in lengths if n < 0), 1 + sum(n for n in lengths if n > 0))


@record(frozen=False, eq=False)
class Call:
    """A kernel with its arguments: one step of a program, before it is split among threads."""

    kernel: Kernel
    accesses: list[Access]  # in the order of kernel.buffers
    params: list[int]
    rows: int
    columns: int
    split: str  # which axes may be split among threads: "rows", "columns", "both" or ""
    flops: float
    nodes: list[Value] = field(default_factory=list)
    packs: bool = False  # a contraction that copies its second operand into panels
    depth: int = 0  # of a contraction: how many products each element sums
    packed_block: tuple[int, int] | None = None  # rows and columns at whose multiples cutting it repeats little packing
    checks: bool = False  # it may report a fault, after which no Variable may be written
    grain: int = GRAIN  # columns are split at multiples of it
    host: HostFunction | None = None  # what a call of the host calls; its address is among ``params``
    times: int = 1  # how often a run makes this call; a guess where only the run will tell

    _planned: Prediction | None = field(default=None, init=False, repr=False)

    @property
    def bytes_moved(self) -> int:
        """Bytes that must be read and written, each once."""
        return sum(self.traffic(self.work()))

    @property
    def seconds(self) -> float:
        """How long the whole call should take on one thread, as plans see it: the same on every machine."""
        if self._planned is None:
            self._planned = self.predict(PLANNED)
        return self._planned.seconds

    def predict(self, machine: Machine, block: Block | None = None) -> Prediction:
        """How long ``block`` (None: all) should take on one thread of a machine."""
        work = self.work(block)
        return predict(work, *self.traffic(work, block), machine)

    def work(self, block: Block | None = None) -> Work:
        """What ``block`` (None: all) has to compute. What is guessed is no more than ``flops`` allows."""
        tables = {
            b.name: a.place.value
            for b, a in zip(self.kernel.buffers, self.accesses, strict=True)
            if a.place.value is not None
        }
        found = count(self.kernel, self.params, self._whole if block is None else block, tables)
        if found.guessed:
            most = GUESSED * max(self.flops, self.rows * self.columns) * self._share(block)
            found.units = min(found.units, most)
            found.flops = min(found.flops, most / GUESSED)
            found.touched = {name: min(n, most) for name, n in found.touched.items()}
        return found

    def traffic(self, work: Work, block: Block | None = None) -> tuple[int, int]:
        """Bytes that ``block`` has to read and to write; a place that several buffers reach counts once."""
        read: dict[tuple[Place, int], int] = {}
        written: dict[tuple[Place, int], int] = {}
        share = self._share(block)
        whole = self._whole if block is None else block
        for buffer, access in zip(self.kernel.buffers, self.accesses, strict=True):
            if access.place.space is Space.SCRATCH:
                continue
            nbytes = access.reached(whole, share)
            nbytes = int(min(nbytes, work.touched.get(buffer.name, math.inf) * access.place.dtype.itemsize))
            for wanted, held in ((buffer.mode != "out", read), (buffer.mode != "in", written)):
                if wanted:
                    key = (access.place, 0 if nbytes == access.nbytes else access.offset)
                    held[key] = max(held.get(key, 0), nbytes)
        return sum(read.values()), sum(written.values())

    @property
    def _whole(self) -> Block:
        return (0, self.rows, 0, self.columns)

    def _share(self, block: Block | None) -> float:
        if block is None:
            return 1.0
        i0, i1, j0, j1 = block
        return (i1 - i0) * (j1 - j0) / max(self.rows * self.columns, 1)
