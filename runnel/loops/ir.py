"""The loop IR: kernels as loops over elements.

Grammar (``verifier.py`` checks it, ``backends.interpreter`` runs it in NumPy, ``backends.cpu`` turns it into LLVM):

    Kernel  := name, buffers: Buffer*, params: Param*, body: Stmt*
    Buffer  := name, dtype, mode: "in" | "out" | "inout"
             | "tile" | "scratch"      the thread's own: a block of a Contract's product; memory that begins undefined
    Stmt    := For(var, begin: Bound, end: Bound, kind: "seq" | "vec", body: Stmt*)
             | Let(name, Expr)                            a value, visible to the statements after it in its block
             | Acc(name, op: "sum"|"prod"|"max"|"min"|"any"|"all", dtype, order)    an accumulator, at its identity
                   order: "blocks" | "short" | "chain"    of its updates, see below
             | Update(name, Expr)                         acc := op(acc, value)
             | Store(buffer, Index, Expr)
             | Check(Expr, code: int | Param)             outside vec loops: if false, sets the thread's fault to code
             | Contract(spec)                             only as first statement of a body: see there
             | Product(spec)                              outside vec loops: a small matrix product, see there
             | Host(Param)                                the only statement of a body: see there
    Bound   := int | Param | Ref                          a Ref of an int64 that is the same in all lanes
             | RangeBound                                 the block of this call: I0 I1 (rows) J0 J1 (columns)
    Expr    := Const(value, dtype) | Ref(name, dtype) | Load(buffer, Index, dtype) | Position(var, dtype)
             | Apply(ScalarOp, args, dtype) | Param | RangeBound          the last two: int64
    Index   := offset: int|Param  +  Σ stride·var         terms: ((Var, stride: int|Param)*), in elements
             | ... + Σ stride·Expr                        gathered: ((Expr, stride)*) an integer expression

A kernel is compiled to ``void k(thread*, args*, i0, i1, j0, j1)`` and computes the block rows [i0, i1) × columns
[j0, j1) of its domain. Its args are, for each buffer, (slot of its base pointer, byte offset), then the params: int64.

Semantics of every backend, so that results depend on op, shapes and dtypes alone:
* each Apply rounds once, in its dtype; nothing is contracted or reassociated;
* a "vec" loop has LANES = 16 lanes whatever the machine: an accumulator updated inside a vec loop that is inside the
  accumulator's scope holds 16 lane-wise partial results (lane = position mod 16, counted from the loop's begin), which
  are combined after the outermost such loop in a fixed tree: lanes l and l+8, then l+4, l+2, l+1;
* an accumulator declared inside a vec loop is separate in each lane;
* sums and products of floats take their updates (inside a vec loop that is inside the accumulator's scope: 16
  positions are one update) in blocks of CHAIN. A block is one chain in loop order, from the identity. Blocks are
  combined pairwise: of n blocks the first h, where h is the largest power of two below n, with the rest. An
  accumulator of order "short" has one block at most; one of order "chain" is one chain of any length. All other
  accumulations are exact, and one chain;
* vec loops do not nest.
"""

from __future__ import annotations

import enum

from runnel.core.dtypes import DType, int64
from runnel.core.records import field, record
from runnel.loops.scalar import ScalarOp

LANES = 16
CHAIN = 64  # updates of an accumulator in one chain
K_BLOCK = 1024  # steps of k in one chain of a product
TILE_ROWS = 48  # most rows of the block in a tile buffer
TILE_BYTES = 2048  # most bytes of a row of that block
TILE_STRIDE = TILE_BYTES + 64  # bytes between its rows, so that they do not compete for cache sets
TILE_K = 256  # largest k of a product that is computed in a tile buffer


@record
class Buffer:
    name: str
    dtype: DType
    mode: str  # "in" | "out" | "inout" | "tile" | "scratch"


@record
class Param:
    """A run-time int64: an extent, a stride or an offset."""

    name: str

    @property
    def dtype(self) -> DType:
        return int64


@record
class Var:
    """A loop variable."""

    name: str


class RangeBound(enum.Enum):
    """The edges of the block a kernel call computes."""

    I0 = "i0"
    I1 = "i1"
    J0 = "j0"
    J1 = "j1"

    @property
    def dtype(self) -> DType:
        return int64


Stride = int | Param


@record
class Index:
    """offset + Σ stride·var + Σ stride·expr, in elements of the buffer."""

    terms: tuple[tuple[Var, Stride], ...] = ()
    offset: Stride = 0
    gathered: tuple[tuple[Expr, Stride], ...] = ()


@record
class Const:
    value: bool | int | float
    dtype: DType


@record
class Ref:
    """A value bound by Let, or an accumulator's result."""

    name: str
    dtype: DType


Bound = int | Param | Ref | RangeBound


@record
class Load:
    buffer: str
    index: Index
    dtype: DType


@record
class Position:
    """The value of a loop variable as an integer (lane-wise in a vec loop)."""

    var: Var
    dtype: DType


@record
class Apply:
    op: ScalarOp
    args: tuple[Expr, ...]
    dtype: DType


Expr = Const | Ref | Load | Position | Apply | Param | RangeBound


@record
class Let:
    name: str
    value: Expr


@record
class Acc:
    name: str
    op: str
    dtype: DType
    order: str = "blocks"  # "blocks" | "short" | "chain"


@record
class Update:
    name: str
    value: Expr


@record
class Store:
    buffer: str
    index: Index
    value: Expr


@record
class Check:
    """Reports the fault ``code`` (not 0) of the program if ``value``, a bool, is false; the kernel continues.
    The last fault of a call is the one reported."""

    value: Expr
    code: Stride


@record
class For:
    var: Var
    begin: Bound
    end: Bound
    kind: str  # "seq" | "vec"
    body: tuple[Stmt, ...]


@record
class Contract:
    """C[i, j] = Σ_k A[i, k]·B[k, j] over the call's block, in float of ``dtype``. For each K_BLOCK steps of k an
    element has one chain of fused multiply-adds, k ascending; the chains' results are combined pairwise, like the
    blocks of an accumulator. Strides are params (C has unit column stride). The statements after it are the epilogue,
    which runs over each finished block of C (with the block's own I0..J1) while it is in cache. A C of mode "tile" is
    that block alone, in scratch memory: the epilogue is its only reader, k is at most TILE_K, and ``c_row`` is the
    constant TILE_STRIDE in elements. With ``batch`` the rows of the call's block count whole matrices and (m, n) are
    params; the epilogue then must be empty. With ``indirect`` A is addressed by offset tables, and its strides are 0.
    With ``panels`` B is packed, its strides are ``panels.width`` and 1, and the block's columns begin with a panel.
    With ``operand_dtype``, bfloat16, A and B are of that dtype: a step of the chain is a pair of k (an odd last k is
    alone), whose products, exact in float32, are added as by the target's dot instruction; panels hold pairs, too.
    """

    a: str
    b: str
    c: str
    dtype: DType
    k: Param
    a_row: Stride
    a_k: Stride
    b_k: Param
    b_col: Param
    c_row: Stride
    batch: BatchSpec | None = None
    indirect: IndirectOperand | None = None
    panels: Panels | None = None
    operand_dtype: DType | None = None

    @property
    def operands(self) -> DType:
        """The dtype of A and B."""
        return self.dtype if self.operand_dtype is None else self.operand_dtype


@record
class Panels:
    """B[k, j] is element (j div width)·step + k·width + j mod width; the last panel is padded to ``width``. With an
    operand dtype, in pairs: (j div width)·step + (k div 2)·2·width + (j mod width)·2 + k mod 2, and an odd last k is
    padded with zeros."""

    step: Param
    width: int


@record
class BatchSpec:
    """A batched contraction: matrix ``t`` of the block has its A at t·a_step, and so on."""

    m: Param
    n: Param
    a_step: Param
    b_step: Param
    c_step: Param


@record
class IndirectOperand:
    """A[i, k] is element rows[i] + ks[k]: two buffers of int32."""

    rows: str
    ks: str


@record
class Product:
    """C[i, j] (+)= Σ_k A[i, k]·B[k, j] for i < m and j < n, in float of ``dtype``: chains of fused multiply-adds,
    combined pairwise as in Contract, the first from 0 or, to ``accumulate``, from C[i, j]. The indices locate
    the first elements; C has unit column stride and is neither A nor B.
    """

    a: str
    a_at: Index
    b: str
    b_at: Index
    c: str
    c_at: Index
    dtype: DType
    m: Count
    n: Count
    k: Count
    a_row: Stride
    a_k: Stride
    b_k: Stride
    b_col: Stride
    c_row: Stride
    accumulate: bool = False


@record
class Host:
    """Calls the host function at the address ``function`` (``backends.host.calls``) with all buffers of the kernel."""

    function: Param


Count = int | Param | Ref
Stmt = For | Let | Acc | Update | Store | Check | Contract | Product | Host


@record
class Kernel:
    name: str
    buffers: tuple[Buffer, ...]
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    doc: str = field(default="", compare=False)
