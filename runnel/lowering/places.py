"""Where values live while a program runs, and how kernels reach them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from runnel.core.dtypes import DType
from runnel.graph.graph import Node
from runnel.loops.ir import Kernel


class Space(enum.Enum):
    """The kinds of memory a program touches."""

    ARENA = "arena"  # planned, shared by values that are not alive together
    CONSTANT = "constant"  # filled once, when the program is bound
    INPUT = "input"  # arguments of the call
    VARIABLE = "variable"  # state, updated in place
    OUTPUT = "output"  # results, fresh at each call
    SCRATCH = "scratch"  # each thread's own


@dataclass(eq=False, slots=True)
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


@dataclass(eq=False, slots=True)
class Access:
    """One buffer of a kernel: which place, from which element on, and with which steps along the kernel's two
    partitioned axes (rows i, columns j), so that what each thread touches is known. A step of None is unknown: all."""

    place: Place
    writes: bool
    offset: int  # elements
    row_step: int | None
    column_step: int | None
    span: int  # elements that one (row, column) point reaches beyond its first, through the other axes
    steps: tuple[int, ...] = ()  # elements to advance at each iteration of the loops around the call, outermost first
    extent: int | None = None  # elements that one iteration can reach, where that is not the whole place

    @property
    def nbytes(self) -> int:
        return self.place.nbytes if self.extent is None else self.extent * self.place.dtype.itemsize


@dataclass(eq=False, slots=True)
class Call:
    """A kernel with its arguments: one step of a program, before it is split among threads."""

    kernel: Kernel
    accesses: list[Access]  # in the order of kernel.buffers
    params: list[int]
    rows: int
    columns: int
    split: str  # which axes may be split among threads: "rows", "columns", "both" or ""
    flops: float
    nodes: list[Node] = field(default_factory=list)
    packs: bool = False  # a contraction that copies its second operand into panels
    depth: int = 0  # of a contraction: how many products each element sums
    checks: bool = False  # it may report a fault, after which no Variable may be written
    times: int = 1  # how often a run makes this call; a guess where only the run will tell

    @property
    def bytes_moved(self) -> int:
        return sum(a.nbytes for a in self.accesses if a.place.space is not Space.SCRATCH)

    @property
    def seconds(self) -> float:
        """A rough prediction on one core: 40 Gflop/s of simple operations (contractions 90), 15 GB/s."""
        return max(self.flops / 40e9, self.bytes_moved / 15e9) + 30e-9
