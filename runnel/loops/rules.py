"""The forms in which an op is lowered to loops: the rules of table ``lower`` are instances of these.

Ops fill the table, ``compiler`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.core.avals import Shape
from runnel.core.records import record
from runnel.loops.ir import Expr


@record
class Elementwise:
    """result[i] = expr(inputs[i]…): ``expr(avals, *Expr, **attrs) -> Expr``. Inputs have the result's shape, or
    sizes of 1 where they are broadcast. ``avals`` are the input avals followed by the result's. ``literal``: constant
    operands are worth compiling into the code."""

    expr: Callable[..., Expr]
    literal: bool = False


@record
class BoundsChecked(Elementwise):
    """A Elementwise of one integer input whose elements must lie in [0, attrs["extent"]) or equal attrs["allowed"]; a
    program that reads another value stops with an error before it changes any state."""


@record
class IotaLike:
    """result[i] = expr(n, inputs…): like Elementwise, but the rule also gets an integer that depends on the position,
    n = Σ steps·i for ``steps(aval of the result, **attrs)``: ``expr(avals, n, *Expr, **attrs)`` (iota, random
    bits). Nothing else of the result's shape may be in the expression: one kernel serves all shapes."""

    expr: Callable[..., Expr]
    steps: Callable[..., Shape]


@record
class Reduction:
    """result = reduce with ``op`` over attrs["axes"] (kept as size 1)."""

    op: str


@record
class View:
    """No work: each element of the result is one element of the input. ``map(aval_in, aval_out, **attrs)`` returns
    ``(offset, steps)`` per input axis: a list of ``(offset, ((out_axis, step), …))``, i.e. input index =
    offset + Σ step·out_index; or None when this needs a dense copy (a reshape that merges axes)."""

    map: Callable[..., Any]


@record
class DotGeneral:
    """A matrix product: inputs A[..., M, K] and B[..., K, N] (batch axes equal) to [..., M, N]. With ``several``, one
    over attrs["axes"] axes: A[*rows, *inner] and B[*inner, *columns] to [*rows, *columns]; with ``panels``, columns are
    attrs["columns"] and B is packed in panels (``ops.panels``)."""

    several: bool = False
    panels: bool = False


@record
class Padding:
    """result[low + i·step] = x[i] along each axis of attrs["widths"], (low, high, step) for each; all other elements
    are the second input, which has one element."""


@record
class Concatenation:
    """Inputs concatenated along attrs["axis"]."""


@record
class Gather:
    """result[i…, rest] = input[indices[i…], rest] along attrs["axis"]; indices are in range or clamped already."""


@record
class RowWrites:
    """result = x, but result[indices[i], rest] = updates[i, rest] along attrs["axis"], in the order of i; indices are
    in range or clamped already. The result may have the memory of ``x``."""


@record
class ScatterAdd:
    """result = zeros of attrs["shape"]; result[indices[i]] += updates[i] along axis 0, in the order of i."""


@record
class CountingSort:
    """Counting sort of a vector of labels in [0, attrs["rows"]), clamped: the start of each label's positions (rows + 2
    numbers), then the positions, ascending for equal labels."""


@record
class SegmentReduction:
    """result[v] = the reduction ``op`` of updates[p] over the positions p in bucket v of a table from ``CountingSort``.
    Inputs: the table, its labels, the updates. Fuses with elementwise readers."""

    op: str


@record
class Winograd(DotGeneral):
    """A convolution of x[N, H, W, C] with transformed 3×3 filters[36, C, K] (``ops.winograd``)."""


@record
class WinogradGradient:
    """The gradient for those filters, in parts of the sum over tiles."""


@record
class Attention:
    """softmax(scale·q·kᵀ + mask)·v, head by head (``ops.attention_primitives``)."""


@record
class AttentionGradient:
    """The gradients of an attention by q, k and v, or by one packed operand."""


@record
class Sort:
    """The elements along the last axis in order, attrs["descending"] or ascending, and their indices."""


@record
class SmallSolve:
    """x with a·x = b, for square matrices and right sides of few rows and columns; inputs a and b."""


@record
class Scan:
    """A loop of attrs["length"] iterations of attrs["body"]. Inputs: attrs["constants"] values that every iteration
    reads, attrs["carries"] first values of the carries, then xs with an axis 0 of ``length``. The body maps (constants,
    carries, xs[t]) to (new carries, ys[t]); attrs["reverse"] runs t downwards. Results: the final carries, and the ys
    stacked along axis 0."""


@record
class While:
    """Iterations of attrs["body"] while attrs["cond"] is true. Inputs: attrs["constants"] values that both read, then
    the first values of the carries. Both map (constants, carries), to the new carries and to one bool.
    Results: the last carries."""


@record
class Waves:
    """attrs["body"] on rows [begin, end) of all values, one range after another, where later rows read the results of
    earlier ones (``ops.waves``). attrs["advance"] gives the ranges."""


@record
class Cond:
    """One of two graphs: inputs are a bool and the operands, attrs["then"] and attrs["otherwise"] map the operands to
    the results; the other one does not run."""


@record
class HostCall:
    """Runs in NumPy through table ``reference``, as a host call of the program (``kernels/host_calls``)."""


Rule = (
    Elementwise
    | IotaLike
    | Reduction
    | View
    | SegmentReduction
    | DotGeneral
    | Concatenation
    | Gather
    | RowWrites
    | ScatterAdd
    | CountingSort
    | HostCall
)
Lowering = Any
