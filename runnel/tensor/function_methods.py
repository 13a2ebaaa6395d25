"""The methods of Tensor and Variable that call functions of arrays."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from runnel.core import public
from runnel.core.dispatch import TensorLike
from runnel.ops import (
    arithmetic,
    broadcasting,
    comparison,
    contraction,
    indexing,
    logic,
    parts,
    pieces,
    precision,
    reductions,
    sorting,
    statistics,
    transcendental,
    updates,
    views,
)
from runnel.ops.arguments import Array, Axis, Operand, gathered
from runnel.ops.linalg import QR
from runnel.ops.sorting import TopK
from runnel.tensor.grad_hooks import GradientHook
from runnel.tensor.late_methods import LateMethod, another, spread, updating

if TYPE_CHECKING:
    from runnel.ops.library.binary_parts import Frexp
    from runnel.ops.library.cumulative import Extremes
    from runnel.ops.library.elimination import FactorLU
    from runnel.ops.library.histograms import Histogram
    from runnel.ops.library.matrices import Slogdet
    from runnel.ops.library.older import TriangularSolve
    from runnel.ops.library.order import Bounds, Ranked
    from runnel.ops.library.reflections import FactorQR
    from runnel.ops.library.unchecked import FactorLUInfo
    from runnel.tensor.library.extremes import _LEFT_OUT

ResultT = TypeVar("ResultT", bound=TensorLike)


@public.methods
class FunctionMethods(TensorLike, Generic[ResultT]):
    """Functions of an array as its methods."""

    __slots__ = ()

    def update(self, name: str, change: Callable[[Any], Any]) -> Self:
        """Give this array the value that ``change`` makes of its present one. ``name`` is for messages."""
        raise NotImplementedError

    def _other(self, view: Any) -> Any:
        """``view`` as a handle that is not this one, so that writing to it leaves this one."""
        raise NotImplementedError

    def abs(self) -> ResultT:
        """|x|; its derivative at 0 is 0."""
        return arithmetic.abs(self)

    def abs_(self) -> Self:
        """Give this array the value of ``abs`` of it and the arguments; returns the array itself."""
        return self.update("abs_", lambda x: arithmetic.abs(x))

    def absolute(self) -> ResultT:
        """|x|; its derivative at 0 is 0."""
        return arithmetic.abs(self)

    def absolute_(self) -> Self:
        """Give this array the value of ``absolute`` of it and the arguments; returns the array itself."""
        return self.update("absolute_", lambda x: arithmetic.abs(x))

    def add(self, other: Operand, *, alpha: float | Array = 1) -> ResultT:
        """x + alpha · other."""
        return updates.add_scaled(self, other, alpha=alpha)

    def add_(self, other: Operand, *, alpha: float | Array = 1) -> Self:
        """Give this array the value of ``add`` of it and the arguments; returns the array itself."""
        return self.update("add_", lambda x: updates.add_scaled(x, other, alpha=alpha))

    def addcdiv(self, a: Operand, b: Operand, *, value: Operand = 1) -> ResultT:
        """x + (value · a) / b, all in the dtype of the result."""
        return updates.addcdiv(self, a, b, value=value)

    def addcdiv_(self, a: Operand, b: Operand, *, value: Operand = 1) -> Self:
        """Give this array the value of ``addcdiv`` of it and the arguments; returns the array itself."""
        return self.update("addcdiv_", lambda x: updates.addcdiv(x, a, b, value=value))

    def addcmul(self, a: Operand, b: Operand, *, value: Operand = 1) -> ResultT:
        """x + (value · a) · b, all in the dtype of the result."""
        return updates.addcmul(self, a, b, value=value)

    def addcmul_(self, a: Operand, b: Operand, *, value: Operand = 1) -> Self:
        """Give this array the value of ``addcmul`` of it and the arguments; returns the array itself."""
        return self.update("addcmul_", lambda x: updates.addcmul(x, a, b, value=value))

    def all(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """Whether all elements over ``axis`` are non-zero."""
        return reductions.all(self, axis, keepdims)

    def amax(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """The greatest element over ``axis``; NaN if there is one."""
        return reductions.max(self, axis, keepdims)

    def amin(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """The smallest element over ``axis``; NaN if there is one."""
        return reductions.min(self, axis, keepdims)

    def any(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """Whether an element over ``axis`` is non-zero."""
        return reductions.any(self, axis, keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> ResultT:
        """The position of the greatest element along ``axis`` (of the first, if several); a NaN counts as the
        greatest."""
        return reductions.argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> ResultT:
        """The position of the smallest element along ``axis`` (of the first, if several); a NaN counts as the
        smallest."""
        return reductions.argmin(self, axis, keepdims)

    def argsort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> ResultT:
        """The int64 positions that :func:`sort` takes elements from: ``take_along_axis(x, argsort(x), axis)`` is
        sorted."""
        return sorting.argsort(self, axis, descending, stable)

    def bitwise_and(self, y: Operand) -> ResultT:
        """Bitwise and of integers, logical and of bools."""
        return logic.bitwise_and(self, y)

    def bitwise_and_(self, y: Operand) -> Self:
        """Give this array the value of ``bitwise_and`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_and_", lambda x: logic.bitwise_and(x, y))

    def bitwise_left_shift(self, y: Operand) -> ResultT:
        """x shifted left by y bits."""
        return logic.bitwise_left_shift(self, y)

    def bitwise_left_shift_(self, y: Operand) -> Self:
        """Give this array the value of ``bitwise_left_shift`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_left_shift_", lambda x: logic.bitwise_left_shift(x, y))

    def bitwise_not(self) -> ResultT:
        """Every bit inverted; of a bool, its negation."""
        return logic.bitwise_invert(self)

    def bitwise_not_(self) -> Self:
        """Give this array the value of ``bitwise_not`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_not_", lambda x: logic.bitwise_invert(x))

    def bitwise_or(self, y: Operand) -> ResultT:
        """Bitwise or of integers, logical or of bools."""
        return logic.bitwise_or(self, y)

    def bitwise_or_(self, y: Operand) -> Self:
        """Give this array the value of ``bitwise_or`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_or_", lambda x: logic.bitwise_or(x, y))

    def bitwise_right_shift(self, y: Operand) -> ResultT:
        """x shifted right by y bits, keeping the sign of signed integers."""
        return logic.bitwise_right_shift(self, y)

    def bitwise_right_shift_(self, y: Operand) -> Self:
        """Give this array the value of ``bitwise_right_shift`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_right_shift_", lambda x: logic.bitwise_right_shift(x, y))

    def bitwise_xor(self, y: Operand) -> ResultT:
        """Bitwise exclusive or of integers, logical one of bools."""
        return logic.bitwise_xor(self, y)

    def bitwise_xor_(self, y: Operand) -> Self:
        """Give this array the value of ``bitwise_xor`` of it and the arguments; returns the array itself."""
        return self.update("bitwise_xor_", lambda x: logic.bitwise_xor(x, y))

    def bmm(self, y: Operand) -> ResultT:
        """The matrix product (Array API): batch axes broadcast, and a vector counts as a row on the left, a column on
        the right."""
        return precision.matmul(self, y)

    def broadcast_to(self, *shape: Any) -> ResultT:
        """``x`` repeated along axes of size 1, and along new leading axes, to ``shape``; -1 leaves an axis as it is."""
        return self._other(broadcasting.broadcast_to(self, gathered(shape)))

    def ceil(self) -> ResultT:
        """x rounded up."""
        return self._other(arithmetic.ceil(self))

    def ceil_(self) -> Self:
        """Give this array the value of ``ceil`` of it and the arguments; returns the array itself."""
        return self.update("ceil_", lambda x: arithmetic.ceil(x))

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> ResultT:
        """``x`` kept within [min, max]; the gradient passes inside and at the bounds."""
        return statistics.clip(self, min, max)

    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """Give this array the value of ``clamp`` of it and the arguments; returns the array itself."""
        return self.update("clamp_", lambda x: statistics.clip(x, min, max))

    def clamp_max(self, max: Operand) -> ResultT:
        """``x`` where it is not above ``max``, which stands elsewhere."""
        return updates.clamp_max(self, max)

    def clamp_max_(self, max: Operand) -> Self:
        """Give this array the value of ``clamp_max`` of it and the arguments; returns the array itself."""
        return self.update("clamp_max_", lambda x: updates.clamp_max(x, max))

    def clamp_min(self, min: Operand) -> ResultT:
        """``x`` where it is not below ``min``, which stands elsewhere."""
        return updates.clamp_min(self, min)

    def clamp_min_(self, min: Operand) -> Self:
        """Give this array the value of ``clamp_min`` of it and the arguments; returns the array itself."""
        return self.update("clamp_min_", lambda x: updates.clamp_min(x, min))

    def clip(self, min: Operand | None = None, max: Operand | None = None) -> ResultT:
        """``x`` kept within [min, max]; the gradient passes inside and at the bounds."""
        return statistics.clip(self, min, max)

    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """Give this array the value of ``clip`` of it and the arguments; returns the array itself."""
        return self.update("clip_", lambda x: statistics.clip(x, min, max))

    def conj(self) -> ResultT:
        """The complex conjugate; of a real array, the array itself."""
        return self._other(parts.conj(self))

    def copy_(self, source: Operand) -> Self:
        """Give this array the value of ``copy`` of it and the arguments; returns the array itself."""
        return self.update("copy_", lambda x: updates.copied(x, source))

    def cos(self) -> ResultT:
        """The cosine."""
        return transcendental.cos(self)

    def cos_(self) -> Self:
        """Give this array the value of ``cos`` of it and the arguments; returns the array itself."""
        return self.update("cos_", lambda x: transcendental.cos(x))

    def div(self, other: Operand, *, rounding_mode: str | None = None) -> ResultT:
        """x / other, rounded down ("floor"), towards 0 ("trunc"), or as it is (None)."""
        return updates.divide_rounded(self, other, rounding_mode=rounding_mode)

    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """Give this array the value of ``div`` of it and the arguments; returns the array itself."""
        return self.update("div_", lambda x: updates.divide_rounded(x, other, rounding_mode=rounding_mode))

    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> ResultT:
        """x / other, rounded down ("floor"), towards 0 ("trunc"), or as it is (None)."""
        return updates.divide_rounded(self, other, rounding_mode=rounding_mode)

    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """Give this array the value of ``divide`` of it and the arguments; returns the array itself."""
        return self.update("divide_", lambda x: updates.divide_rounded(x, other, rounding_mode=rounding_mode))

    def eq(self, y: Operand) -> ResultT:
        """x == y, elementwise."""
        return comparison.equal(self, y)

    def eq_(self, y: Operand) -> Self:
        """Give this array the value of ``eq`` of it and the arguments; returns the array itself."""
        return self.update("eq_", lambda x: comparison.equal(x, y))

    def erf(self) -> ResultT:
        """The error function."""
        return transcendental.erf(self)

    def erf_(self) -> Self:
        """Give this array the value of ``erf`` of it and the arguments; returns the array itself."""
        return self.update("erf_", lambda x: transcendental.erf(x))

    def exp(self) -> ResultT:
        """e to the power x."""
        return transcendental.exp(self)

    def exp_(self) -> Self:
        """Give this array the value of ``exp`` of it and the arguments; returns the array itself."""
        return self.update("exp_", lambda x: transcendental.exp(x))

    def expand(self, *shape: Any) -> ResultT:
        """``x`` repeated along axes of size 1, and along new leading axes, to ``shape``; -1 leaves an axis as it is."""
        return self._other(broadcasting.broadcast_to(self, gathered(shape)))

    def expand_dims(self, axis: int | Sequence[int]) -> ResultT:
        """``x`` with new axes of size 1 at the places ``axis`` of the result."""
        return self._other(views.expand_dims(self, axis))

    def expm1(self) -> ResultT:
        """exp(x) - 1, accurate near 0."""
        return transcendental.expm1(self)

    def expm1_(self) -> Self:
        """Give this array the value of ``expm1`` of it and the arguments; returns the array itself."""
        return self.update("expm1_", lambda x: transcendental.expm1(x))

    def fill_(self, value: float | Array) -> Self:
        """Give this array the value of ``fill`` of it and the arguments; returns the array itself."""
        return self.update("fill_", lambda x: updates.filled(x, value))

    def fix(self) -> ResultT:
        """x rounded toward zero."""
        return self._other(arithmetic.trunc(self))

    def fix_(self) -> Self:
        """Give this array the value of ``fix`` of it and the arguments; returns the array itself."""
        return self.update("fix_", lambda x: arithmetic.trunc(x))

    def flatten(self, start: int = 0, end: int = -1) -> ResultT:
        """The axes ``start`` to ``end`` merged into one."""
        return self._other(views.flatten(self, start, end))

    def flip(self, axis: Axis = None) -> ResultT:
        """``x`` in reverse order along ``axis`` (None: along all)."""
        return self._other(pieces.flip(self, axis))

    def floor(self) -> ResultT:
        """x rounded down."""
        return self._other(arithmetic.floor(self))

    def floor_(self) -> Self:
        """Give this array the value of ``floor`` of it and the arguments; returns the array itself."""
        return self.update("floor_", lambda x: arithmetic.floor(x))

    def floor_divide(self, y: Operand) -> ResultT:
        """x / y rounded toward minus infinity."""
        return arithmetic.floor_divide(self, y)

    def floor_divide_(self, y: Operand) -> Self:
        """Give this array the value of ``floor_divide`` of it and the arguments; returns the array itself."""
        return self.update("floor_divide_", lambda x: arithmetic.floor_divide(x, y))

    def ge(self, y: Operand) -> ResultT:
        """x >= y."""
        return comparison.greater_equal(self, y)

    def ge_(self, y: Operand) -> Self:
        """Give this array the value of ``ge`` of it and the arguments; returns the array itself."""
        return self.update("ge_", lambda x: comparison.greater_equal(x, y))

    def ger(self, y: Array) -> ResultT:
        """The products of each element of the vector ``x`` with each of the vector ``y``."""
        return contraction.outer(self, y)

    def greater(self, y: Operand) -> ResultT:
        """x > y."""
        return comparison.greater(self, y)

    def greater_(self, y: Operand) -> Self:
        """Give this array the value of ``greater`` of it and the arguments; returns the array itself."""
        return self.update("greater_", lambda x: comparison.greater(x, y))

    def greater_equal(self, y: Operand) -> ResultT:
        """x >= y."""
        return comparison.greater_equal(self, y)

    def greater_equal_(self, y: Operand) -> Self:
        """Give this array the value of ``greater_equal`` of it and the arguments; returns the array itself."""
        return self.update("greater_equal_", lambda x: comparison.greater_equal(x, y))

    def gt(self, y: Operand) -> ResultT:
        """x > y."""
        return comparison.greater(self, y)

    def gt_(self, y: Operand) -> Self:
        """Give this array the value of ``gt`` of it and the arguments; returns the array itself."""
        return self.update("gt_", lambda x: comparison.greater(x, y))

    def index_add(self, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> ResultT:
        """``x`` with alpha times row i of ``source`` added to row ``index[i]`` along the axis ``dim``."""
        return updates.index_add(self, dim, index, source, alpha=alpha)

    def index_add_(self, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> Self:
        """Give this array the value of ``index_add`` of it and the arguments; returns the array itself."""
        return self.update("index_add_", lambda x: updates.index_add(x, dim, index, source, alpha=alpha))

    def index_copy(self, dim: int, index: Array, source: Array) -> ResultT:
        """``x`` with row i of ``source`` in place of row ``index[i]`` along the axis ``dim``; the last one counts
        where an index stands twice."""
        return updates.index_copy(self, dim, index, source)

    def index_copy_(self, dim: int, index: Array, source: Array) -> Self:
        """Give this array the value of ``index_copy`` of it and the arguments; returns the array itself."""
        return self.update("index_copy_", lambda x: updates.index_copy(x, dim, index, source))

    def index_fill(self, dim: int, index: Array, value: Operand) -> ResultT:
        """``x`` with ``value``, one number, in the rows at ``index`` along the axis ``dim``."""
        return updates.index_fill(self, dim, index, value)

    def index_fill_(self, dim: int, index: Array, value: Operand) -> Self:
        """Give this array the value of ``index_fill`` of it and the arguments; returns the array itself."""
        return self.update("index_fill_", lambda x: updates.index_fill(x, dim, index, value))

    def index_put(self, indices: Sequence[Array], values: Operand, accumulate: bool = False) -> ResultT:
        """``x`` with ``values`` at ``x[indices]``, a tuple of arrays; with ``accumulate``, added to what is there."""
        return updates.index_put(self, indices, values, accumulate)

    def index_put_(self, indices: Sequence[Array], values: Operand, accumulate: bool = False) -> Self:
        """Give this array the value of ``index_put`` of it and the arguments; returns the array itself."""
        return self.update("index_put_", lambda x: updates.index_put(x, indices, values, accumulate))

    def isfinite(self) -> ResultT:
        """Whether each element is neither infinite nor NaN (always, for integers)."""
        return logic.isfinite(self)

    def isinf(self) -> ResultT:
        """Whether each element is infinite (never, for integers)."""
        return comparison.isinf(self)

    def isnan(self) -> ResultT:
        """Whether each element is not a number (never, for integers)."""
        return comparison.isnan(self)

    def le(self, y: Operand) -> ResultT:
        """x <= y."""
        return comparison.less_equal(self, y)

    def le_(self, y: Operand) -> Self:
        """Give this array the value of ``le`` of it and the arguments; returns the array itself."""
        return self.update("le_", lambda x: comparison.less_equal(x, y))

    def lerp(self, end: Operand, weight: Operand) -> ResultT:
        """x + weight · (end - x), from the nearer end: for |weight| < ½ from ``x``, else from ``end``."""
        return updates.lerp(self, end, weight)

    def lerp_(self, end: Operand, weight: Operand) -> Self:
        """Give this array the value of ``lerp`` of it and the arguments; returns the array itself."""
        return self.update("lerp_", lambda x: updates.lerp(x, end, weight))

    def less(self, y: Operand) -> ResultT:
        """x < y."""
        return comparison.less(self, y)

    def less_(self, y: Operand) -> Self:
        """Give this array the value of ``less`` of it and the arguments; returns the array itself."""
        return self.update("less_", lambda x: comparison.less(x, y))

    def less_equal(self, y: Operand) -> ResultT:
        """x <= y."""
        return comparison.less_equal(self, y)

    def less_equal_(self, y: Operand) -> Self:
        """Give this array the value of ``less_equal`` of it and the arguments; returns the array itself."""
        return self.update("less_equal_", lambda x: comparison.less_equal(x, y))

    def log(self) -> ResultT:
        """The natural logarithm."""
        return transcendental.log(self)

    def log10(self) -> ResultT:
        """The decimal logarithm."""
        return transcendental.log10(self)

    def log10_(self) -> Self:
        """Give this array the value of ``log10`` of it and the arguments; returns the array itself."""
        return self.update("log10_", lambda x: transcendental.log10(x))

    def log1p(self) -> ResultT:
        """log(1 + x), accurate near 0."""
        return transcendental.log1p(self)

    def log1p_(self) -> Self:
        """Give this array the value of ``log1p`` of it and the arguments; returns the array itself."""
        return self.update("log1p_", lambda x: transcendental.log1p(x))

    def log2(self) -> ResultT:
        """The binary logarithm."""
        return transcendental.log2(self)

    def log2_(self) -> Self:
        """Give this array the value of ``log2`` of it and the arguments; returns the array itself."""
        return self.update("log2_", lambda x: transcendental.log2(x))

    def log_(self) -> Self:
        """Give this array the value of ``log`` of it and the arguments; returns the array itself."""
        return self.update("log_", lambda x: transcendental.log(x))

    def log_softmax(self, axis: int = -1, dtype: Any = None) -> ResultT:
        """log(softmax(x)), without cancellation; computed in ``dtype`` if there is one."""
        return precision.log_softmax(self, axis, dtype)

    def logical_and(self, y: Operand) -> ResultT:
        """Whether both are non-zero."""
        return logic.logical_and(self, y)

    def logical_and_(self, y: Operand) -> Self:
        """Give this array the value of ``logical_and`` of it and the arguments; returns the array itself."""
        return self.update("logical_and_", lambda x: logic.logical_and(x, y))

    def logical_not(self) -> ResultT:
        """Whether x is zero."""
        return logic.logical_not(self)

    def logical_not_(self) -> Self:
        """Give this array the value of ``logical_not`` of it and the arguments; returns the array itself."""
        return self.update("logical_not_", lambda x: logic.logical_not(x))

    def logical_or(self, y: Operand) -> ResultT:
        """Whether one of them is non-zero."""
        return logic.logical_or(self, y)

    def logical_or_(self, y: Operand) -> Self:
        """Give this array the value of ``logical_or`` of it and the arguments; returns the array itself."""
        return self.update("logical_or_", lambda x: logic.logical_or(x, y))

    def logical_xor(self, y: Operand) -> ResultT:
        """Whether exactly one of them is non-zero."""
        return logic.logical_xor(self, y)

    def logical_xor_(self, y: Operand) -> Self:
        """Give this array the value of ``logical_xor`` of it and the arguments; returns the array itself."""
        return self.update("logical_xor_", lambda x: logic.logical_xor(x, y))

    def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """log Σ exp(x) over ``axis``, computed beside the greatest element (of complex numbers, the greatest real
        part) so that nothing overflows."""
        return precision.logsumexp(self, axis, keepdims)

    def lt(self, y: Operand) -> ResultT:
        """x < y."""
        return comparison.less(self, y)

    def lt_(self, y: Operand) -> Self:
        """Give this array the value of ``lt`` of it and the arguments; returns the array itself."""
        return self.update("lt_", lambda x: comparison.less(x, y))

    def masked_fill(self, mask: Array, value: Operand) -> ResultT:
        """``x`` with ``value``, a number or an array of one element, where the bool array ``mask`` is True."""
        return updates.masked_fill(self, mask, value)

    def masked_fill_(self, mask: Array, value: Operand) -> Self:
        """Give this array the value of ``masked_fill`` of it and the arguments; returns the array itself."""
        return self.update("masked_fill_", lambda x: updates.masked_fill(x, mask, value))

    def matmul(self, y: Operand) -> ResultT:
        """The matrix product (Array API): batch axes broadcast, and a vector counts as a row on the left, a column on
        the right."""
        return precision.matmul(self, y)

    def maximum(self, y: Operand) -> ResultT:
        """The greater of x and y; of equals, each takes half of the gradient."""
        return arithmetic.maximum(self, y)

    def maximum_(self, y: Operand) -> Self:
        """Give this array the value of ``maximum`` of it and the arguments; returns the array itself."""
        return self.update("maximum_", lambda x: arithmetic.maximum(x, y))

    def mean(self, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> ResultT:
        """The mean over ``axis``, in ``dtype`` if it is given; of integers, in float32."""
        return precision.mean(self, axis, keepdims, dtype)

    def minimum(self, y: Operand) -> ResultT:
        """The smaller of x and y; of equals, each takes half of the gradient."""
        return arithmetic.minimum(self, y)

    def minimum_(self, y: Operand) -> Self:
        """Give this array the value of ``minimum`` of it and the arguments; returns the array itself."""
        return self.update("minimum_", lambda x: arithmetic.minimum(x, y))

    def mm(self, y: Operand) -> ResultT:
        """The matrix product (Array API): batch axes broadcast, and a vector counts as a row on the left, a column on
        the right."""
        return precision.matmul(self, y)

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> ResultT:
        """``x`` with the axis ``source`` moved to the place ``destination``, the others in their order; or several
        axes, each to its place."""
        return self._other(views.moveaxis(self, source, destination))

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> ResultT:
        """``x`` with the axis ``source`` moved to the place ``destination``, the others in their order; or several
        axes, each to its place."""
        return self._other(views.moveaxis(self, source, destination))

    def mul(self, y: Operand) -> ResultT:
        """x · y, elementwise; of bools, x and y."""
        return arithmetic.multiply(self, y)

    def mul_(self, y: Operand) -> Self:
        """Give this array the value of ``mul`` of it and the arguments; returns the array itself."""
        return self.update("mul_", lambda x: arithmetic.multiply(x, y))

    def multiply(self, y: Operand) -> ResultT:
        """x · y, elementwise; of bools, x and y."""
        return arithmetic.multiply(self, y)

    def multiply_(self, y: Operand) -> Self:
        """Give this array the value of ``multiply`` of it and the arguments; returns the array itself."""
        return self.update("multiply_", lambda x: arithmetic.multiply(x, y))

    def mv(self, y: Operand) -> ResultT:
        """The matrix product (Array API): batch axes broadcast, and a vector counts as a row on the left, a column on
        the right."""
        return precision.matmul(self, y)

    def narrow(self, axis: int, start: int, size: int) -> ResultT:
        """``size`` elements along ``axis``, from ``start`` on, which counts from the end if it is negative."""
        return self._other(pieces.narrow(self, axis, start, size))

    def ne(self, y: Operand) -> ResultT:
        """x != y, elementwise."""
        return comparison.not_equal(self, y)

    def ne_(self, y: Operand) -> Self:
        """Give this array the value of ``ne`` of it and the arguments; returns the array itself."""
        return self.update("ne_", lambda x: comparison.not_equal(x, y))

    def neg(self) -> ResultT:
        """-x."""
        return arithmetic.negative(self)

    def neg_(self) -> Self:
        """Give this array the value of ``neg`` of it and the arguments; returns the array itself."""
        return self.update("neg_", lambda x: arithmetic.negative(x))

    def negative(self) -> ResultT:
        """-x."""
        return arithmetic.negative(self)

    def negative_(self) -> Self:
        """Give this array the value of ``negative`` of it and the arguments; returns the array itself."""
        return self.update("negative_", lambda x: arithmetic.negative(x))

    def not_equal(self, y: Operand) -> ResultT:
        """x != y, elementwise."""
        return comparison.not_equal(self, y)

    def not_equal_(self, y: Operand) -> Self:
        """Give this array the value of ``not_equal`` of it and the arguments; returns the array itself."""
        return self.update("not_equal_", lambda x: comparison.not_equal(x, y))

    def outer(self, y: Array) -> ResultT:
        """The products of each element of the vector ``x`` with each of the vector ``y``."""
        return contraction.outer(self, y)

    def permute(self, *axes: Any) -> ResultT:
        """``x`` with its axes in the order ``axes``, each of them once."""
        return self._other(views.permute(self, gathered(axes)))

    def permute_dims(self, *axes: Any) -> ResultT:
        """``x`` with its axes in the order ``axes``, each of them once."""
        return self._other(views.permute(self, gathered(axes)))

    def pow(self, y: Operand) -> ResultT:
        """x to the power y."""
        return self._other(transcendental.pow(self, y))

    def pow_(self, y: Operand) -> Self:
        """Give this array the value of ``pow`` of it and the arguments; returns the array itself."""
        return self.update("pow_", lambda x: transcendental.pow(x, y))

    def prod(self, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> ResultT:
        """The product over ``axis``, in the dtypes of :func:`sum`."""
        return precision.prod(self, axis, keepdims, dtype)

    def ravel(self, start: int = 0, end: int = -1) -> ResultT:
        """The axes ``start`` to ``end`` merged into one."""
        return self._other(views.flatten(self, start, end))

    def reciprocal(self) -> ResultT:
        """1 / x."""
        return transcendental.reciprocal(self)

    def reciprocal_(self) -> Self:
        """Give this array the value of ``reciprocal`` of it and the arguments; returns the array itself."""
        return self.update("reciprocal_", lambda x: transcendental.reciprocal(x))

    def relu(self) -> ResultT:
        """max(x, 0), with derivative 0 at 0."""
        return arithmetic.relu(self)

    def relu_(self) -> Self:
        """Give this array the value of ``relu`` of it and the arguments; returns the array itself."""
        return self.update("relu_", lambda x: arithmetic.relu(x))

    def remainder(self, y: Operand) -> ResultT:
        """What floor division leaves; it has the sign of y."""
        return arithmetic.remainder(self, y)

    def remainder_(self, y: Operand) -> Self:
        """Give this array the value of ``remainder`` of it and the arguments; returns the array itself."""
        return self.update("remainder_", lambda x: arithmetic.remainder(x, y))

    def reshape(self, *shape: Any, copy: bool | None = None) -> ResultT:
        """``x`` under another shape; one size may be -1 and is then computed from the others."""
        return self._other(views.reshape(self, gathered(shape), copy=copy))

    def roll(self, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> ResultT:
        """``x`` moved by ``shift`` along ``axis``; what leaves at one end enters at the other."""
        return self._other(pieces.roll(self, shift, axis))

    def round(self, decimals: int = 0) -> ResultT:
        """x rounded to the nearest integer, ties to even; or to ``decimals`` digits behind the point, as x·10^decimals
        rounded and divided by it."""
        return self._other(arithmetic.round(self, decimals))

    def round_(self, decimals: int = 0) -> Self:
        """Give this array the value of ``round`` of it and the arguments; returns the array itself."""
        return self.update("round_", lambda x: arithmetic.round(x, decimals))

    def rsqrt(self) -> ResultT:
        """1 / sqrt(x)."""
        return transcendental.rsqrt(self)

    def rsqrt_(self) -> Self:
        """Give this array the value of ``rsqrt`` of it and the arguments; returns the array itself."""
        return self.update("rsqrt_", lambda x: transcendental.rsqrt(x))

    def sigmoid(self) -> ResultT:
        """1 / (1 + exp(-x)), the logistic function."""
        return transcendental.sigmoid(self)

    def sigmoid_(self) -> Self:
        """Give this array the value of ``sigmoid`` of it and the arguments; returns the array itself."""
        return self.update("sigmoid_", lambda x: transcendental.sigmoid(x))

    def sign(self) -> ResultT:
        """-1, 0 or 1 by the sign of x; a bool as it is."""
        return arithmetic.sign(self)

    def sign_(self) -> Self:
        """Give this array the value of ``sign`` of it and the arguments; returns the array itself."""
        return self.update("sign_", lambda x: arithmetic.sign(x))

    def sin(self) -> ResultT:
        """The sine."""
        return transcendental.sin(self)

    def sin_(self) -> Self:
        """Give this array the value of ``sin`` of it and the arguments; returns the array itself."""
        return self.update("sin_", lambda x: transcendental.sin(x))

    def softmax(self, axis: int = -1, dtype: Any = None) -> ResultT:
        """exp(x) along ``axis``, divided by its sum; computed in ``dtype`` if there is one."""
        return precision.softmax(self, axis, dtype)

    def split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Array, ...]:
        """``x`` cut along ``axis`` into pieces of ``sizes``; an int is the size of every piece but perhaps the last."""
        return self._other(pieces.split(self, sizes, axis))

    def split_with_sizes(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Array, ...]:
        """``x`` cut along ``axis`` into pieces of ``sizes``; an int is the size of every piece but perhaps the last."""
        return self._other(pieces.split(self, sizes, axis))

    def sqrt(self) -> ResultT:
        """The square root; its derivative at 0 is infinite."""
        return transcendental.sqrt(self)

    def sqrt_(self) -> Self:
        """Give this array the value of ``sqrt`` of it and the arguments; returns the array itself."""
        return self.update("sqrt_", lambda x: transcendental.sqrt(x))

    def square(self) -> ResultT:
        """x · x; of bools int64."""
        return transcendental.square(self)

    def square_(self) -> Self:
        """Give this array the value of ``square`` of it and the arguments; returns the array itself."""
        return self.update("square_", lambda x: transcendental.square(x))

    def sub(self, other: Operand, *, alpha: float | Array = 1) -> ResultT:
        """x - alpha · other."""
        return updates.subtract_scaled(self, other, alpha=alpha)

    def sub_(self, other: Operand, *, alpha: float | Array = 1) -> Self:
        """Give this array the value of ``sub`` of it and the arguments; returns the array itself."""
        return self.update("sub_", lambda x: updates.subtract_scaled(x, other, alpha=alpha))

    def subtract(self, other: Operand, *, alpha: float | Array = 1) -> ResultT:
        """x - alpha · other."""
        return updates.subtract_scaled(self, other, alpha=alpha)

    def subtract_(self, other: Operand, *, alpha: float | Array = 1) -> Self:
        """Give this array the value of ``subtract`` of it and the arguments; returns the array itself."""
        return self.update("subtract_", lambda x: updates.subtract_scaled(x, other, alpha=alpha))

    def sum(self, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> ResultT:
        """The sum over ``axis``."""
        return precision.sum(self, axis, keepdims, dtype)

    def swapaxes(self, first: int = -2, second: int = -1) -> ResultT:
        """``x`` with two axes exchanged: by default the last two, the transpose of a matrix (or of a stack of them)."""
        return self._other(views.transpose(self, first, second))

    def swapdims(self, first: int = -2, second: int = -1) -> ResultT:
        """``x`` with two axes exchanged: by default the last two, the transpose of a matrix (or of a stack of them)."""
        return self._other(views.transpose(self, first, second))

    def take(self, indices: Array, axis: int | None = None) -> ResultT:
        """The elements of ``x`` at ``indices`` along ``axis`` (None: of ``x`` flattened); negatives count from the
        end."""
        return indexing.take(self, indices, axis)

    def take_along_axis(self, indices: Array, axis: int = -1) -> ResultT:
        """For each place, the element of ``x`` at ``indices`` along ``axis``; shapes agree in the other axes."""
        return indexing.take_along_axis(self, indices, axis)

    def tanh(self) -> ResultT:
        """The hyperbolic tangent."""
        return transcendental.tanh(self)

    def tanh_(self) -> Self:
        """Give this array the value of ``tanh`` of it and the arguments; returns the array itself."""
        return self.update("tanh_", lambda x: transcendental.tanh(x))

    def topk(self, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
        """The ``k`` greatest elements along ``axis``, the greatest first, and their int64 positions: a named tuple
        (values, indices)."""
        return sorting.topk(self, k, axis, largest, sorted)

    def transpose(self, first: int = -2, second: int = -1) -> ResultT:
        """``x`` with two axes exchanged: by default the last two, the transpose of a matrix (or of a stack of them)."""
        return self._other(views.transpose(self, first, second))

    def true_divide(self, other: Operand, *, rounding_mode: str | None = None) -> ResultT:
        """x / other, rounded down ("floor"), towards 0 ("trunc"), or as it is (None)."""
        return updates.divide_rounded(self, other, rounding_mode=rounding_mode)

    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Self:
        """Give this array the value of ``true_divide`` of it and the arguments; returns the array itself."""
        return self.update("true_divide_", lambda x: updates.divide_rounded(x, other, rounding_mode=rounding_mode))

    def trunc(self) -> ResultT:
        """x rounded toward zero."""
        return self._other(arithmetic.trunc(self))

    def trunc_(self) -> Self:
        """Give this array the value of ``trunc`` of it and the arguments; returns the array itself."""
        return self.update("trunc_", lambda x: arithmetic.trunc(x))

    def unsqueeze(self, axis: int | Sequence[int]) -> ResultT:
        """``x`` with new axes of size 1 at the places ``axis`` of the result."""
        return self._other(views.expand_dims(self, axis))

    def vecdot(self, y: Array, axis: int = -1) -> ResultT:
        """The sum of the products along ``axis``, with ``x`` conjugated where it is complex."""
        return precision.vecdot(self, y, axis)

    def view(self, *shape: Any, copy: bool | None = None) -> ResultT:
        """``x`` under another shape; one size may be -1 and is then computed from the others."""
        return self._other(views.reshape(self, gathered(shape), copy=copy))

    def zero_(self) -> Self:
        """Give this array the value of ``zero`` of it and the arguments; returns the array itself."""
        return self.update("zero_", lambda x: updates.zeroed(x))

    if TYPE_CHECKING:

        def acos(self) -> ResultT:
            """The arc cosine, in [0, π]."""
            ...

        def acos_(self) -> Self:
            """Give this array the value of ``acos`` of it and the arguments; returns the array itself."""
            ...

        def acosh(self) -> ResultT:
            """The inverse hyperbolic cosine; NaN below 1."""
            ...

        def acosh_(self) -> Self:
            """Give this array the value of ``acosh`` of it and the arguments; returns the array itself."""
            ...

        def addbmm(self, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> ResultT:
            """beta · x + alpha · the sum of the products of stacks of matrices."""
            ...

        def addbmm_(self, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> Self:
            """Give this array the value of ``addbmm`` of it and the arguments; returns the array itself."""
            ...

        def addmm(self, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> ResultT:
            """beta · x + alpha · mat1 · mat2, of matrices."""
            ...

        def addmm_(self, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Self:
            """Give this array the value of ``addmm`` of it and the arguments; returns the array itself."""
            ...

        def addmv(self, mat: Array, vec: Array, *, beta: float = 1, alpha: float = 1) -> ResultT:
            """beta · x + alpha · mat · vec, of a matrix and a vector."""
            ...

        def addmv_(self, mat: Array, vec: Array, *, beta: float = 1, alpha: float = 1) -> Self:
            """Give this array the value of ``addmv`` of it and the arguments; returns the array itself."""
            ...

        def addr(self, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1) -> ResultT:
            """beta · x + alpha · the outer product of two vectors."""
            ...

        def addr_(self, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1) -> Self:
            """Give this array the value of ``addr`` of it and the arguments; returns the array itself."""
            ...

        def adjoint(self) -> ResultT:
            """The last two axes exchanged, of the complex conjugate."""
            ...

        def allclose(self, y: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
            """Whether :func:`isclose` holds everywhere, as a Python bool; in a compiled function, where that is not
            known, ``rn.all(rn.isclose(x, y))`` is."""
            ...

        def aminmax(self, axis: int | None = None, keepdims: bool = False) -> Bounds:
            """The smallest and the greatest element over ``axis``: a named tuple (min, max)."""
            ...

        def angle(self) -> ResultT:
            """The angle of complex numbers in the plane, in [-π, π]; of a real number, 0 or π as its sign is."""
            ...

        def apply_(self, function: Callable[[Any], Any]) -> ResultT:
            """Give each element the value of the Python ``function`` of it, one after the other; returns ``x``."""
            ...

        def arccos(self) -> ResultT:
            """The arc cosine, in [0, π]."""
            ...

        def arccos_(self) -> Self:
            """Give this array the value of ``arccos`` of it and the arguments; returns the array itself."""
            ...

        def arccosh(self) -> ResultT:
            """The inverse hyperbolic cosine; NaN below 1."""
            ...

        def arccosh_(self) -> Self:
            """Give this array the value of ``arccosh`` of it and the arguments; returns the array itself."""
            ...

        def arcsin(self) -> ResultT:
            """The arc sine, in [-π/2, π/2]."""
            ...

        def arcsin_(self) -> Self:
            """Give this array the value of ``arcsin`` of it and the arguments; returns the array itself."""
            ...

        def arcsinh(self) -> ResultT:
            """The inverse hyperbolic sine."""
            ...

        def arcsinh_(self) -> Self:
            """Give this array the value of ``arcsinh`` of it and the arguments; returns the array itself."""
            ...

        def arctan(self) -> ResultT:
            """The arc tangent, in [-π/2, π/2]."""
            ...

        def arctan2(self, x: Operand) -> ResultT:
            """The angle of the point (x, y), in [-π, π]."""
            ...

        def arctan2_(self, x: Operand) -> Self:
            """Give this array the value of ``arctan2`` of it and the arguments; returns the array itself."""
            ...

        def arctan_(self) -> Self:
            """Give this array the value of ``arctan`` of it and the arguments; returns the array itself."""
            ...

        def arctanh(self) -> ResultT:
            """The inverse hyperbolic tangent."""
            ...

        def arctanh_(self) -> Self:
            """Give this array the value of ``arctanh`` of it and the arguments; returns the array itself."""
            ...

        def argwhere(self) -> ResultT:
            """The int64 positions of the elements that are not 0, as rows."""
            ...

        def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> ResultT:
            """result[i, j, …] = the element number storage_offset + i·stride[0] + j·stride[1] + … of ``x`` in
            row-major order, in the shape ``size``."""
            ...

        def as_strided_(self, size: Any, stride: Any, storage_offset: int = 0) -> ResultT:
            """Give ``x`` the value of ``as_strided`` of it; returns it."""
            ...

        def as_strided_scatter(
            self, src: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
        ) -> ResultT:
            """``x`` with ``src`` in place of the elements that :func:`as_strided` names, each once."""
            ...

        def asin(self) -> ResultT:
            """The arc sine, in [-π/2, π/2]."""
            ...

        def asin_(self) -> Self:
            """Give this array the value of ``asin`` of it and the arguments; returns the array itself."""
            ...

        def asinh(self) -> ResultT:
            """The inverse hyperbolic sine."""
            ...

        def asinh_(self) -> Self:
            """Give this array the value of ``asinh`` of it and the arguments; returns the array itself."""
            ...

        def atan(self) -> ResultT:
            """The arc tangent, in [-π/2, π/2]."""
            ...

        def atan2(self, x: Operand) -> ResultT:
            """The angle of the point (x, y), in [-π, π]."""
            ...

        def atan2_(self, x: Operand) -> Self:
            """Give this array the value of ``atan2`` of it and the arguments; returns the array itself."""
            ...

        def atan_(self) -> Self:
            """Give this array the value of ``atan`` of it and the arguments; returns the array itself."""
            ...

        def atanh(self) -> ResultT:
            """The inverse hyperbolic tangent."""
            ...

        def atanh_(self) -> Self:
            """Give this array the value of ``atanh`` of it and the arguments; returns the array itself."""
            ...

        def baddbmm(self, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> ResultT:
            """beta · x + alpha · batch1 · batch2, of stacks of matrices."""
            ...

        def baddbmm_(self, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1) -> Self:
            """Give this array the value of ``baddbmm`` of it and the arguments; returns the array itself."""
            ...

        def bernoulli(
            self, size: Any = None, *, dtype: Any = None, generator: Any = None, key: Any = None, device: Any = None
        ) -> ResultT:
            """1 with probability ``p``, else 0, in the dtype of ``p`` (float32 for a number) or in ``dtype``."""
            ...

        def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Self:
            """Give this array the value of ``bernoulli`` of it and the arguments; returns the array itself."""
            ...

        def bincount(self, weights: Array | None = None, minlength: int = 0) -> ResultT:
            """How often each of the labels 0, 1, … occurs in the vector ``x``, or the sums of their ``weights``, in
            float64 unless these are floats; at least ``minlength`` of them."""
            ...

        def cauchy_(self, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Self:
            """Give this array the value of ``cauchy`` of it and the arguments; returns the array itself."""
            ...

        def cholesky(self, upper: bool = False) -> ResultT:
            """Lower triangular L with ``x`` = L·Lᴴ, of Hermitian positive definite matrices, whose lower triangle is
            read; with ``upper`` Lᴴ."""
            ...

        def cholesky_inverse(self, upper: bool = False) -> ResultT:
            """The inverses of the matrices l·lᴴ, of which ``factor`` is the lower triangular l (``upper``: lᴴ)."""
            ...

        def cholesky_solve(self, factor: Array, upper: bool = False) -> ResultT:
            """x with a·x = ``b`` for the matrices a = l·lᴴ, of which ``factor`` is the lower triangular l (``upper``:
            lᴴ)."""
            ...

        def chunk(self, chunks: int, axis: int = 0) -> tuple[Array, ...]:
            """``x`` cut along ``axis`` into at most ``chunks`` pieces of one size, but perhaps the last (as PyTorch
            cuts)."""
            ...

        def coalesce(self, *ignored: Any) -> ResultT:
            """``x``: tensors are dense, and in the memory of CPUs."""
            ...

        def conj_physical(self) -> ResultT:
            """The complex conjugate."""
            ...

        def conj_physical_(self) -> Self:
            """Give this array the value of ``conj_physical`` of it and the arguments; returns the array itself."""
            ...

        def const_data_ptr(self) -> int:
            """Where the first element lies in memory."""
            ...

        def copysign(self, y: Operand) -> ResultT:
            """|x| with the sign of y, of zeros, too."""
            ...

        def copysign_(self, y: Operand) -> Self:
            """Give this array the value of ``copysign`` of it and the arguments; returns the array itself."""
            ...

        def corrcoef(self) -> ResultT:
            """The correlations of the rows of ``x``, within [-1, 1]; a number for one row."""
            ...

        def cosh(self) -> ResultT:
            """The hyperbolic cosine."""
            ...

        def cosh_(self) -> Self:
            """Give this array the value of ``cosh`` of it and the arguments; returns the array itself."""
            ...

        def count_nonzero(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
            """How many elements over ``axis`` are not 0: int64."""
            ...

        def cov(self, correction: int = 1, fweights: Array | None = None, aweights: Array | None = None) -> ResultT:
            """The covariances of the rows of ``x``, over n - ``correction``, with how often each column counts and how
            much; a number for one row."""
            ...

        def cross(self, y: Array, axis: int = -1) -> ResultT:
            """The vector product along ``axis``, of size 3; other axes broadcast."""
            ...

        def cummax(self, axis: int = -1) -> Extremes:
            """The greatest element up to each one along ``axis``, and its int64 position, of equal ones the last: a
            named tuple (values, indices)."""
            ...

        def cummin(self, axis: int = -1) -> Extremes:
            """The smallest element up to each one along ``axis``, and its int64 position, of equal ones the last: a
            named tuple (values, indices)."""
            ...

        def cumprod(self, axis: int | None = None, dtype: Any = None) -> ResultT:
            """The products of the elements up to each one along ``axis`` (None: of ``x`` flattened), in the dtypes of
            ``sum``."""
            ...

        def cumprod_(self, axis: int | None = None, dtype: Any = None) -> Self:
            """Give this array the value of ``cumprod`` of it and the arguments; returns the array itself."""
            ...

        def cumsum(self, axis: int | None = None, dtype: Any = None) -> ResultT:
            """The sums of the elements up to each one along ``axis`` (None: of ``x`` flattened), in the dtypes of
            ``sum``."""
            ...

        def cumsum_(self, axis: int | None = None, dtype: Any = None) -> Self:
            """Give this array the value of ``cumsum`` of it and the arguments; returns the array itself."""
            ...

        def data_ptr(self) -> int:
            """Where the first element lies in memory."""
            ...

        def deg2rad(self) -> ResultT:
            """Degrees in radians."""
            ...

        def deg2rad_(self) -> Self:
            """Give this array the value of ``deg2rad`` of it and the arguments; returns the array itself."""
            ...

        def dense_dim(self) -> int:
            """The number of axes."""
            ...

        def det(self) -> ResultT:
            """The determinants."""
            ...

        def diag(self, k: int = 0) -> ResultT:
            """The diagonal ``k`` of a matrix; of a vector, the matrix with it there and zeros elsewhere."""
            ...

        def diag_embed(self, offset: int = 0, axis1: int = -2, axis2: int = -1) -> ResultT:
            """Matrices, in the axes ``axis1`` and ``axis2`` of the result, with the last axis of ``x`` on diagonal
            ``offset`` and zeros elsewhere."""
            ...

        def diagflat(self, k: int = 0) -> ResultT:
            """The matrix with all elements of ``x`` on diagonal ``k`` and zeros elsewhere."""
            ...

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ResultT:
            """The elements x[…, i, i + offset, …] of the axes ``axis1`` and ``axis2``, as the last axis."""
            ...

        def diagonal_scatter(self, src: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ResultT:
            """``x`` with ``src`` in the place of ``diagonal(x, offset, axis1, axis2)``, whose shape it has."""
            ...

        def diff(
            self, n: int = 1, axis: int = -1, prepend: Array | None = None, append: Array | None = None
        ) -> ResultT:
            """The differences of neighbours along ``axis``, ``n`` times, with ``prepend`` and ``append`` laid before
            and behind."""
            ...

        def digamma(self) -> ResultT:
            """The derivative of log Γ: -∞ at 0, NaN at -1, -2, …"""
            ...

        def digamma_(self) -> Self:
            """Give this array the value of ``digamma`` of it and the arguments; returns the array itself."""
            ...

        def dim(self) -> int:
            """The number of axes."""
            ...

        def dim_order(self, *ignored: Any) -> tuple[int, ...]:
            """The axes from the outermost in memory to the innermost: their order, which results have."""
            ...

        def dist(self, y: Array, p: float = 2) -> ResultT:
            """The p-norm of x - y."""
            ...

        def dot(self, y: Array) -> ResultT:
            """The product of two vectors; of other arrays the sum over the last axis of ``x`` and the last but one of
            ``y``."""
            ...

        def dsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
            """:func:`tensor_split` along axis 2, into pieces of one size."""
            ...

        def element_size(self) -> int:
            """The size of an element in bytes."""
            ...

        def equal(self, other: Array) -> bool:
            """Whether shapes and all elements are equal, as a Python bool."""
            ...

        def erfc(self) -> ResultT:
            """1 - erf x, with all digits where it is small."""
            ...

        def erfc_(self) -> Self:
            """Give this array the value of ``erfc`` of it and the arguments; returns the array itself."""
            ...

        def erfinv(self) -> ResultT:
            """The y with erf y = x: ±∞ at ±1, NaN beyond."""
            ...

        def erfinv_(self) -> Self:
            """Give this array the value of ``erfinv`` of it and the arguments; returns the array itself."""
            ...

        def exp2(self) -> ResultT:
            """2 to the power x."""
            ...

        def exp2_(self) -> Self:
            """Give this array the value of ``exp2`` of it and the arguments; returns the array itself."""
            ...

        def expand_as(self, other: Array) -> ResultT:
            """``x`` repeated along axes of size 1 and new leading axes to the shape of ``other``."""
            ...

        def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Self:
            """Give this array the value of ``exponential`` of it and the arguments; returns the array itself."""
            ...

        def fill_diagonal_(self, value: Operand, wrap: bool = False) -> Self:
            """Give this array the value of ``fill_diagonal`` of it and the arguments; returns the array itself."""
            ...

        def fliplr(self) -> ResultT:
            """The elements in reverse order along axis 1."""
            ...

        def flipud(self) -> ResultT:
            """The elements in reverse order along axis 0."""
            ...

        def float_power(self, y: Operand) -> ResultT:
            """x to the power y, in float64 or complex128."""
            ...

        def float_power_(self, y: Operand) -> Self:
            """Give this array the value of ``float_power`` of it and the arguments; returns the array itself."""
            ...

        def fmax(self, y: Operand) -> ResultT:
            """The greater of x and y, or the one that is a number."""
            ...

        def fmin(self, y: Operand) -> ResultT:
            """The smaller of x and y, or the one that is a number."""
            ...

        def fmod(self, y: Operand) -> ResultT:
            """What division rounded towards 0 leaves; it has the sign of x (C's fmod)."""
            ...

        def fmod_(self, y: Operand) -> Self:
            """Give this array the value of ``fmod`` of it and the arguments; returns the array itself."""
            ...

        def frac(self) -> ResultT:
            """x - trunc(x): the fraction, with the sign of x."""
            ...

        def frac_(self) -> Self:
            """Give this array the value of ``frac`` of it and the arguments; returns the array itself."""
            ...

        def frexp(self) -> Frexp:
            """The mantissa in ±[0.5, 1) and the int32 exponent with x = mantissa · 2^exponent: a named tuple
            (mantissa, exponent)."""
            ...

        def gather(self, dim: int, index: Array) -> ResultT:
            """result[i, j, …] = x[index[i, j, …], j, …] for ``dim`` 0, and so for other axes: of the shape of
            ``index``, which has as many axes as ``x`` and is no larger along the others."""
            ...

        def gcd(self, y: Operand) -> ResultT:
            """The greatest common divisor of |x| and |y|, integers; of zeros, 0."""
            ...

        def gcd_(self, y: Operand) -> Self:
            """Give this array the value of ``gcd`` of it and the arguments; returns the array itself."""
            ...

        def geometric_(self, p: Any, *, generator: Any = None) -> Self:
            """Give this array the value of ``geometric`` of it and the arguments; returns the array itself."""
            ...

        def geqrf(self) -> FactorQR:
            """R on and above the diagonal, below it the vectors of reflections, and their factors ``tau``, as LAPACK
            has them: for :func:`rn.linalg.householder_product` and :func:`ormqr`."""
            ...

        def get_device(self) -> int:
            """The number of the GPU, or -1: arrays are in the memory of the CPU."""
            ...

        def hardshrink(self, lambd: float = 0.5) -> ResultT:
            """0 within [-lambd, lambd], else x; NaN stays, and passes no gradient."""
            ...

        def heaviside(self, values: Operand) -> ResultT:
            """0 where x is negative, 1 where it is positive, ``values`` where it is 0; NaN stays."""
            ...

        def heaviside_(self, values: Operand) -> Self:
            """Give this array the value of ``heaviside`` of it and the arguments; returns the array itself."""
            ...

        def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> ResultT:
            """How many elements lie in each of ``bins`` equal parts of [min, max], by default from the smallest
            element to the greatest; others count nowhere."""
            ...

        def histogram(
            self,
            bins: Array | int = 10,
            range: Sequence[float] | None = None,
            weight: Array | None = None,
            density: bool = False,
        ) -> Histogram:
            """How many elements (or how much ``weight``) lie in each bin: a named tuple (hist, bin_edges), both
            floats."""
            ...

        def hsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
            """:func:`tensor_split` along axis 1, of vectors along axis 0, into pieces of one size."""
            ...

        def hypot(self, y: Operand) -> ResultT:
            """√(x² + y²), without overflow."""
            ...

        def hypot_(self, y: Operand) -> Self:
            """Give this array the value of ``hypot`` of it and the arguments; returns the array itself."""
            ...

        def i0(self) -> ResultT:
            """The modified Bessel function I₀."""
            ...

        def i0_(self) -> Self:
            """Give this array the value of ``i0`` of it and the arguments; returns the array itself."""
            ...

        def igamma(self, x: Operand) -> ResultT:
            """P(a, x) = ∫₀ˣ tᵃ⁻¹·e⁻ᵗ dt / Γ(a), the regularized incomplete gamma function, in float64 with some 14
            digits."""
            ...

        def igamma_(self, x: Operand) -> Self:
            """Give this array the value of ``igamma`` of it and the arguments; returns the array itself."""
            ...

        def igammac(self, x: Operand) -> ResultT:
            """Q(a, x) = 1 - P(a, x), with the digits of small ones for x > a + 1."""
            ...

        def igammac_(self, x: Operand) -> Self:
            """Give this array the value of ``igammac`` of it and the arguments; returns the array itself."""
            ...

        def index_reduce(
            self, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
        ) -> ResultT:
            """``x`` with the ``reduce`` ("prod", "mean", "amax", "amin", "sum") of all rows i of ``source`` with
            index[i] = k in row k along the axis ``dim``; of what is there too, if ``include_self``."""
            ...

        def index_reduce_(self, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Self:
            """Give this array the value of ``index_reduce`` of it and the arguments; returns the array itself."""
            ...

        def index_select(self, dim: int, index: Array) -> ResultT:
            """The rows at ``index``, a vector of integers, along the axis ``dim``."""
            ...

        def inner(self, y: Array) -> ResultT:
            """The sum over the last axes of both."""
            ...

        def inverse(self) -> ResultT:
            """The inverse of square matrices."""
            ...

        def is_coalesced(self) -> bool:
            """False: there is one process, and tensors are dense."""
            ...

        def is_complex(self) -> bool:
            """Whether the elements are complex numbers."""
            ...

        def is_conj(self) -> bool:
            """Whether the memory of ``x`` is marked as something else than its values: never."""
            ...

        def is_contiguous(self) -> bool:
            """Whether the elements stand in row-major order without gaps."""
            ...

        def is_distributed(self) -> bool:
            """False: there is one process, and tensors are dense."""
            ...

        def is_floating_point(self) -> bool:
            """Whether the elements are floats."""
            ...

        def is_inference(self) -> bool:
            """Whether the memory of ``x`` is marked as something else than its values: never."""
            ...

        def is_neg(self) -> bool:
            """Whether the memory of ``x`` is marked as something else than its values: never."""
            ...

        def is_nonzero(self) -> bool:
            """Whether the one element of ``x`` is not 0."""
            ...

        def is_pinned(self) -> bool:
            """Whether the memory of ``x`` is marked as something else than its values: never."""
            ...

        def is_same_size(self, other: Array) -> bool:
            """Whether two arrays have one shape."""
            ...

        def is_set_to(self, tensor: Array) -> bool:
            """Whether both show the same elements of the same memory."""
            ...

        def is_signed(self) -> bool:
            """Whether the dtype has negative numbers."""
            ...

        def isclose(self, y: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ResultT:
            """Whether |x - y| ≤ atol + rtol·|y|, elementwise; infinities are near themselves, NaN only with
            ``equal_nan``."""
            ...

        def isneginf(self) -> ResultT:
            """Whether each element is -∞."""
            ...

        def isposinf(self) -> ResultT:
            """Whether each element is +∞."""
            ...

        def isreal(self) -> ResultT:
            """Whether each element has the imaginary part 0; NaN has, too."""
            ...

        def istft(
            self,
            n_fft: int,
            hop_length: int | None = None,
            win_length: int | None = None,
            window: Array | None = None,
            center: bool = True,
            normalized: bool = False,
            onesided: bool | None = None,
            length: int | None = None,
            return_complex: bool = False,
        ) -> ResultT:
            """The signal of which ``x``, of shape (frequencies, frames) or (batch, frequencies, frames), is the
            :func:`stft` with the same arguments; the one with the least squares of differences, if there is none."""
            ...

        def kron(self, y: Array) -> ResultT:
            """The Kronecker product: blocks of ``y``, one for each element of ``x``, which is its factor."""
            ...

        def kthvalue(self, k: int, axis: int = -1, keepdims: bool = False) -> Ranked:
            """The ``k``-th smallest element along ``axis``, counted from 1, and its int64 position: a named tuple
            (values, indices)."""
            ...

        def lcm(self, y: Operand) -> ResultT:
            """The least common multiple of |x| and |y|, integers; 0 where one of them is 0."""
            ...

        def lcm_(self, y: Operand) -> Self:
            """Give this array the value of ``lcm`` of it and the arguments; returns the array itself."""
            ...

        def ldexp(self, exponent: Operand) -> ResultT:
            """x · 2^exponent."""
            ...

        def ldexp_(self, exponent: Operand) -> Self:
            """Give this array the value of ``ldexp`` of it and the arguments; returns the array itself."""
            ...

        def lgamma(self) -> ResultT:
            """log |Γ(x)|; infinite at 0, -1, -2, …"""
            ...

        def lgamma_(self) -> Self:
            """Give this array the value of ``lgamma`` of it and the arguments; returns the array itself."""
            ...

        def log_normal_(self, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Self:
            """Give this array the value of ``log_normal`` of it and the arguments; returns the array itself."""
            ...

        def logaddexp(self, y: Operand) -> ResultT:
            """log(eˣ + eʸ), computed beside the greater of them (of complex numbers, that with the greater real part)
            so that nothing overflows."""
            ...

        def logaddexp2(self, y: Operand) -> ResultT:
            """log₂(2ˣ + 2ʸ), computed beside the greater of them so that nothing overflows."""
            ...

        def logcumsumexp(self, axis: int = -1) -> ResultT:
            """log of the running sums of exp(x) along ``axis``, without overflow."""
            ...

        def logdet(self) -> ResultT:
            """The logarithms of determinants: -∞ at 0, NaN below, complex ones for complex matrices."""
            ...

        def logit(self, eps: float | None = None) -> ResultT:
            """log(x / (1 - x)), of x kept within [eps, 1 - eps]; without ``eps``, NaN outside of [0, 1], and the
            derivative too."""
            ...

        def logit_(self, eps: float | None = None) -> Self:
            """Give this array the value of ``logit`` of it and the arguments; returns the array itself."""
            ...

        def lu(self, pivot: bool = True, get_infos: bool = False) -> FactorLU | FactorLUInfo:
            """The factors of ``lu_factor``; with ``get_infos``, those of :func:`lu_factor_ex`."""
            ...

        def lu_solve(self, LU_data: Array, LU_pivots: Array) -> ResultT:
            """x with a·x = ``b``, for the matrix a of which the others are the :func:`lu_factor`."""
            ...

        def map2_(self, first: Array, second: Array, function: Callable[[Any, Any, Any], Any]) -> ResultT:
            """:func:`map_` with two others."""
            ...

        def map_(self, other: Array, function: Callable[[Any, Any], Any]) -> ResultT:
            """Give each element the value of the Python ``function`` of it and that of ``other`` in its place; returns
            ``x``."""
            ...

        def masked_scatter(self, mask: Array, source: Array) -> ResultT:
            """``x`` with the elements of ``source``, in order, where ``mask`` holds; both broadcast to one shape."""
            ...

        def masked_scatter_(self, mask: Array, source: Array) -> Self:
            """Give this array the value of ``masked_scatter`` of it and the arguments; returns the array itself."""
            ...

        def masked_select(self, mask: Array) -> ResultT:
            """The elements of ``x`` where ``mask`` holds, as a vector; the two broadcast."""
            ...

        def matrix_exp(self) -> ResultT:
            """The exponentials Σ xᵏ/k!"""
            ...

        def matrix_power(self, n: int) -> ResultT:
            """The product of ``n`` times the matrix; of the inverse for negative ``n``."""
            ...

        def matrix_transpose(self) -> ResultT:
            """The last two axes exchanged."""
            ...

        def max(
            self, dim: Any = None, keepdim: bool = False, *, axis: Any = _LEFT_OUT, keepdims: Any = _LEFT_OUT
        ) -> ResultT:
            """The greatest element; along ``dim`` a named tuple (values, indices), of equal elements the first one,
            which the gradient goes to; of ``x`` and an array in the place of ``dim``, the greater ones."""
            ...

        def median(self, axis: int | None = None, keepdims: bool = False) -> ResultT:
            """The middle element in order, of an even number the lower of the two, as in PyTorch: a number for all of
            ``x``; along ``axis`` a named tuple (values, indices) with int64 positions."""
            ...

        def min(
            self, dim: Any = None, keepdim: bool = False, *, axis: Any = _LEFT_OUT, keepdims: Any = _LEFT_OUT
        ) -> ResultT:
            """The smallest element, or elements; arguments and results are those of :func:`max`."""
            ...

        def mode(self, axis: int = -1, keepdims: bool = False) -> Ranked:
            """The most frequent element along ``axis``, of several the smallest, and its last int64 position: a named
            tuple (values, indices)."""
            ...

        def msort(self) -> ResultT:
            """:func:`sort` along axis 0."""
            ...

        def multinomial(
            self, num_samples: int, replacement: bool = False, *, generator: Any = None, key: Any = None
        ) -> ResultT:
            """``num_samples`` int64 positions along the last axis of the weights ``x``, a vector or the rows of a
            matrix, which need not sum to 1."""
            ...

        def mvlgamma(self, p: int) -> ResultT:
            """The logarithm of the multivariate Γ of dimension ``p``: p·(p - 1)/4·log π + Σ log Γ(x - j/2) over j <
            p."""
            ...

        def mvlgamma_(self, p: int) -> Self:
            """Give this array the value of ``mvlgamma`` of it and the arguments; returns the array itself."""
            ...

        def nan_to_num(
            self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
        ) -> ResultT:
            """``x`` with ``nan`` (0) for NaN, and ``posinf`` and ``neginf`` for the infinities: by default the
            greatest and the smallest number of the dtype."""
            ...

        def nan_to_num_(
            self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
        ) -> Self:
            """Give this array the value of ``nan_to_num`` of it and the arguments; returns the array itself."""
            ...

        def nanmean(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
            """The mean of the elements over ``axis`` that are numbers; NaN where there are none."""
            ...

        def nanmedian(self, axis: int | None = None, keepdims: bool = False) -> ResultT:
            """:func:`median` of the elements that are numbers; NaN where there are none."""
            ...

        def nanquantile(
            self,
            q: float | Array | Sequence[float],
            axis: int | None = None,
            keepdims: bool = False,
            interpolation: str = "linear",
        ) -> ResultT:
            """:func:`quantile` of the elements that are numbers; NaN where there are none."""
            ...

        def nansum(self, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> ResultT:
            """The sum of the elements over ``axis`` that are numbers."""
            ...

        def narrow_copy(self, dim: int, start: int, length: int) -> ResultT:
            """``narrow``."""
            ...

        def ndimension(self) -> int:
            """The number of axes."""
            ...

        def nelement(self) -> int:
            """The number of elements."""
            ...

        def new(self, *args: Any) -> ResultT:
            """A tensor of the dtype of ``x``: of sizes (zeros), or of data."""
            ...

        def new_empty(self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None) -> ResultT:
            """Zeros of another shape, in the dtype of ``x`` unless one is named."""
            ...

        def new_empty_strided(
            self, size: Sequence[int], stride: Sequence[int], dtype: Any = None, device: Any = None
        ) -> ResultT:
            """A tensor whose values do not matter (zeros), in row-major order whatever ``stride`` says."""
            ...

        def new_full(self, size: Any, fill_value: bool | int | float, dtype: Any = None, device: Any = None) -> ResultT:
            """``fill_value`` in another shape, in the dtype of ``x`` unless one is named."""
            ...

        def new_ones(self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None) -> ResultT:
            """Ones of another shape, in the dtype of ``x`` unless one is named."""
            ...

        def new_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> ResultT:
            """``data`` as a tensor, in the dtype of ``x`` unless one is named."""
            ...

        def new_zeros(self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None) -> ResultT:
            """Zeros of another shape, in the dtype of ``x`` unless one is named."""
            ...

        def nextafter(self, y: Operand) -> ResultT:
            """The number of the dtype next to x on the way to y."""
            ...

        def nextafter_(self, y: Operand) -> Self:
            """Give this array the value of ``nextafter`` of it and the arguments; returns the array itself."""
            ...

        def nonzero(self, as_tuple: bool = False) -> ResultT:
            """The int64 positions of the elements that are not 0, as rows; with ``as_tuple`` a vector for each axis,
            as of ``rn.nonzero``."""
            ...

        def nonzero_static(self, *, size: int, fill_value: int = -1) -> ResultT:
            """The first ``size`` of the positions that :func:`argwhere` gives, and rows of ``fill_value`` if there are
            fewer: a result whose shape does not depend on values, for compiled functions, too."""
            ...

        def norm(
            self, p: float | str | None = "fro", axis: Axis = None, keepdims: bool = False, dtype: Any = None
        ) -> ResultT:
            """The vector norm of order ``p`` over ``axis``; by default that of all elements, of order 2."""
            ...

        def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Self:
            """Give this array the value of ``normal`` of it and the arguments; returns the array itself."""
            ...

        def numel(self) -> int:
            """The number of elements."""
            ...

        def orgqr(self, tau: Array) -> ResultT:
            """The first n columns of H₁·H₂·…·H_k for matrices ``x`` (…, m, n), where Hᵢ = 1 - τᵢ·v·vᴴ: v is column i
            of ``x`` below the diagonal, 1 on it and 0 above, and τᵢ is ``tau[..., i]``."""
            ...

        def ormqr(self, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> ResultT:
            """Q·``other``, or ``other``·Q unless ``left``, with all m columns of the Q of
            :func:`rn.linalg.householder_product`; with ``transpose``, of its adjoint."""
            ...

        def pin_memory(self, *ignored: Any) -> ResultT:
            """``x``: tensors are dense, and in the memory of CPUs."""
            ...

        def pinverse(self, rtol: float | Array | None = None) -> ResultT:
            """The pseudoinverse (E. Moore, R. Penrose): singular values up to ``rtol`` times the greatest count as 0,
            by default max(m, n) times the dtype's eps."""
            ...

        def polygamma(self, n: int) -> ResultT:
            """The derivative ``n`` of digamma."""
            ...

        def polygamma_(self, n: int) -> Self:
            """Give this array the value of ``polygamma`` of it and the arguments; returns the array itself."""
            ...

        def positive(self) -> ResultT:
            """x itself."""
            ...

        def prelu(self, weight: Array) -> ResultT:
            """x where positive, else weight · x."""
            ...

        def put(self, index: Array, source: Array, accumulate: bool = False) -> ResultT:
            """``x`` with the elements of ``source`` at the numbers ``index`` in row-major order, or with
            ``accumulate`` added there."""
            ...

        def put_(self, index: Array, source: Array, accumulate: bool = False) -> Self:
            """Give this array the value of ``put`` of it and the arguments; returns the array itself."""
            ...

        def qr(self, some: bool = True) -> QR:
            """Q with orthonormal columns and an upper triangle R; Q is square unless ``some``."""
            ...

        def quantile(
            self,
            q: float | Array | Sequence[float],
            axis: int | None = None,
            keepdims: bool = False,
            interpolation: str = "linear",
        ) -> ResultT:
            """The elements that a share ``q`` of all does not exceed, along ``axis`` (None: of all of ``x``); between
            two of them as ``interpolation`` says: "linear", "lower", "higher", "nearest" (half to even), "midpoint"."""
            ...

        def rad2deg(self) -> ResultT:
            """Radians in degrees."""
            ...

        def rad2deg_(self) -> Self:
            """Give this array the value of ``rad2deg`` of it and the arguments; returns the array itself."""
            ...

        def random_(self, low: int | None = None, high: int | None = None, *, generator: Any = None) -> Self:
            """Give this array the value of ``random`` of it and the arguments; returns the array itself."""
            ...

        def register_hook(self, hook: Callable[[Any], Any]) -> GradientHook:
            """Call ``hook(gradient)`` whenever the gradient of ``x`` is computed; what it returns, if not None, takes
            the gradient's place."""
            ...

        def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> GradientHook:
            """Call ``hook(x)`` whenever ``backward()`` has added to ``x.grad``, of a leaf."""
            ...

        def renorm(self, p: float, axis: int, maxnorm: float) -> ResultT:
            """``x``, each slice along ``axis`` whose norm of order ``p`` is greater than ``maxnorm`` scaled to that."""
            ...

        def renorm_(self, p: float, axis: int, maxnorm: float) -> Self:
            """Give this array the value of ``renorm`` of it and the arguments; returns the array itself."""
            ...

        def repeat(self, *repetitions: Any) -> ResultT:
            """``x`` repeated as a whole, ``repetitions`` times along each axis; the last ones, if there are fewer than
            axes."""
            ...

        def repeat_interleave(self, repeats: Array | int | Sequence[int], axis: int | None = None) -> ResultT:
            """Each element of ``x`` along ``axis`` (None: of ``x`` flattened) ``repeats`` times in a row: one number,
            or one for each element, which must be known: a compiled function takes those that it does not compute."""
            ...

        def reshape_as(self, other: Array) -> ResultT:
            """``x`` under the shape of ``other``."""
            ...

        def resize_(self, *sizes: Any) -> ResultT:
            """Give ``x`` another shape: its elements in order, as many as fit, and zeros behind them; returns it."""
            ...

        def resize_as_(self, other: Array) -> ResultT:
            """:func:`resize_` to the shape of ``other``."""
            ...

        def resolve_conj(self) -> ResultT:
            """``x`` itself: conjugates and negatives are computed when they are asked for."""
            ...

        def resolve_neg(self) -> ResultT:
            """``x`` itself: conjugates and negatives are computed when they are asked for."""
            ...

        def retain_grad(self) -> None:
            """Let ``backward()`` put the gradient of ``x`` into ``x.grad``, though ``x`` was computed; of a leaf it
            does."""
            ...

        def rot90(self, k: int = 1, axes: Sequence[int] = (0, 1)) -> ResultT:
            """``x`` turned ``k`` times by 90° in the plane of two axes, from the first towards the second."""
            ...

        def scatter(self, dim: int, index: Array, src: Operand, reduce: str | None = None) -> ResultT:
            """``x`` with src[i, j, …] at (index[i, j, …], j, …) for ``dim`` 0, and so for other axes; of several
            sources for one place the last counts."""
            ...

        def scatter_(self, dim: int, index: Array, src: Operand, reduce: str | None = None) -> Self:
            """Give this array the value of ``scatter`` of it and the arguments; returns the array itself."""
            ...

        def scatter_add(self, dim: int, index: Array, src: Operand) -> ResultT:
            """``x`` with src[i, j, …] added at (index[i, j, …], j, …) for ``dim`` 0, and so for other axes."""
            ...

        def scatter_add_(self, dim: int, index: Array, src: Operand) -> Self:
            """Give this array the value of ``scatter_add`` of it and the arguments; returns the array itself."""
            ...

        def scatter_reduce(
            self, dim: int, index: Array, src: Operand, reduce: str, include_self: bool = True
        ) -> ResultT:
            """``x`` with the ``reduce`` ("sum", "prod", "mean", "amax", "amin") of all src[i, j, …] for a place at
            (index[i, j, …], j, …) for ``dim`` 0, and so for other axes; of what is there too, if ``include_self``."""
            ...

        def scatter_reduce_(self, dim: int, index: Array, src: Operand, reduce: str, include_self: bool = True) -> Self:
            """Give this array the value of ``scatter_reduce`` of it and the arguments; returns the array itself."""
            ...

        def select(self, dim: int, index: int) -> ResultT:
            """The part at ``index`` along the axis ``dim``, which it has no longer."""
            ...

        def select_scatter(self, src: Array, dim: int, index: int) -> ResultT:
            """``x`` with ``src`` as its part at ``index`` along the axis ``dim``."""
            ...

        def set_(self, source: Array) -> ResultT:
            """Give ``x`` the value of ``source``, which has the same dtype; later changes of either are not seen by
            the other."""
            ...

        def sgn(self) -> ResultT:
            """-1, 0 or 1 by the sign of x."""
            ...

        def sgn_(self) -> Self:
            """Give this array the value of ``sgn`` of it and the arguments; returns the array itself."""
            ...

        def signbit(self) -> ResultT:
            """Whether each element has a minus sign, -0 included; no bool has one."""
            ...

        def sinc(self) -> ResultT:
            """sin(πx) / (πx), 1 at 0."""
            ...

        def sinc_(self) -> Self:
            """Give this array the value of ``sinc`` of it and the arguments; returns the array itself."""
            ...

        def sinh(self) -> ResultT:
            """The hyperbolic sine."""
            ...

        def sinh_(self) -> Self:
            """Give this array the value of ``sinh`` of it and the arguments; returns the array itself."""
            ...

        def slice_scatter(
            self, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
        ) -> ResultT:
            """``x`` with ``src`` as its slice start:end:step along the axis ``dim``."""
            ...

        def slogdet(self) -> Slogdet:
            """The signs of determinants, and the logarithms of their absolute values: a named tuple (sign,
            logabsdet)."""
            ...

        def sort(
            self, dim: int = -1, descending: bool = False, stable: bool = True, *, axis: Any = _LEFT_OUT
        ) -> ResultT:
            """The elements along ``dim`` in ascending (or ``descending``) order, and their int64 positions: a named
            tuple (values, indices); equal elements keep their order."""
            ...

        def sparse_dim(self) -> int:
            """0: tensors are dense."""
            ...

        def squeeze(self, axis: Axis = None) -> ResultT:
            """``x`` without those of the axes ``axis`` (None: all) that have size 1."""
            ...

        def squeeze_(self, axis: Axis = None) -> ResultT:
            """Leave out those of the axes ``axis`` (None: all) of ``x`` that have size 1; returns it."""
            ...

        def std(
            self,
            axis: Axis = None,
            correction: float | None = 1,
            keepdims: bool = False,
            *,
            unbiased: bool | None = None,
        ) -> ResultT:
            """The square root of the method ``var``, with its arguments."""
            ...

        def stft(
            self,
            n_fft: int,
            hop_length: int | None = None,
            win_length: int | None = None,
            window: Array | None = None,
            center: bool = True,
            pad_mode: str = "reflect",
            normalized: bool = False,
            onesided: bool | None = None,
            return_complex: bool | None = None,
            align_to_window: bool | None = None,
        ) -> ResultT:
            """result[…, k, t] = Σ window[j]·x[…, t·hop_length + j]·exp(-2πi·j·k/n_fft), over j below ``n_fft``."""
            ...

        def storage_offset(self) -> int:
            """How many elements stand in the array's memory before its own: 0, since views of a value are values."""
            ...

        def stride(self, axis: int | None = None) -> ResultT:
            """The steps in elements along each axis, or along one."""
            ...

        def sum_to_size(self, *size: Any) -> ResultT:
            """The sum of ``x`` over the axes along which ``size`` has 1 or no axis: what broadcasting from ``size``
            repeats."""
            ...

        def svd(self, some: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
            """u, s and v with ``x`` = u·diag(s)·vᴴ; u and v are square unless ``some``, and zeros unless
            ``compute_uv``."""
            ...

        def swapaxes_(self, dim0: int, dim1: int) -> ResultT:
            """Exchange two axes of ``x``; returns it."""
            ...

        def swapdims_(self, dim0: int, dim1: int) -> ResultT:
            """Exchange two axes of ``x``; returns it."""
            ...

        def t(self) -> ResultT:
            """The transpose of a matrix; a vector or number itself."""
            ...

        def t_(self) -> ResultT:
            """Transpose the matrix ``x``; returns it."""
            ...

        def take_along_dim(self, indices: Array, axis: int | None = None) -> ResultT:
            """For each place, the element of ``x`` at ``indices`` along ``axis``; shapes broadcast in the other
            axes."""
            ...

        def tan(self) -> ResultT:
            """The tangent."""
            ...

        def tan_(self) -> Self:
            """Give this array the value of ``tan`` of it and the arguments; returns the array itself."""
            ...

        def tensor_split(self, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Array, ...]:
            """``x`` cut along ``axis`` before the given positions, or into so many pieces whose sizes differ by one at
            most, the larger ones first."""
            ...

        def tile(self, *repetitions: Any) -> ResultT:
            """``x`` repeated as a whole, ``repetitions`` times along each axis; the last ones, if there are fewer than
            axes."""
            ...

        def to_dense(self, *ignored: Any) -> ResultT:
            """``x``: tensors are dense, and in the memory of CPUs."""
            ...

        def trace(self, offset: int = 0, dtype: Any = None) -> ResultT:
            """The sum of diagonal ``offset`` of each matrix, in the dtypes of ``sum``."""
            ...

        def transpose_(self, dim0: int, dim1: int) -> ResultT:
            """Exchange two axes of ``x``; returns it."""
            ...

        def triangular_solve(
            self, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
        ) -> TriangularSolve:
            """x with A·x = ``b``, or Aᵀ·x = ``b`` with ``transpose``, for the ``upper`` or the lower triangle of
            ``A``, with 1 on its diagonal where ``unitriangular``; and ``A``."""
            ...

        def tril(self, k: int = 0) -> ResultT:
            """The elements on and below diagonal ``k`` (0: the main one, positive: above it), zeros elsewhere."""
            ...

        def tril_(self, k: int = 0) -> Self:
            """Give this array the value of ``tril`` of it and the arguments; returns the array itself."""
            ...

        def triu(self, k: int = 0) -> ResultT:
            """The elements on and above diagonal ``k`` (0: the main one, positive: above it), zeros elsewhere."""
            ...

        def triu_(self, k: int = 0) -> Self:
            """Give this array the value of ``triu`` of it and the arguments; returns the array itself."""
            ...

        def type(self, dtype: Any = None) -> ResultT:
            """``x`` in another dtype, or PyTorch's type ("torch.FloatTensor", ``FloatTensor``) in its place; without
            one, the name of that type."""
            ...

        def type_as(self, other: Array) -> ResultT:
            """``x`` in the dtype of ``other``."""
            ...

        def unbind(self, axis: int = 0) -> tuple[Array, ...]:
            """The arrays that ``stack`` would put together to ``x``: one for each position along ``axis``."""
            ...

        def unflatten(self, axis: int, sizes: Sequence[int]) -> ResultT:
            """``x`` with the axis ``axis`` split into axes of ``sizes``, one of which may be -1."""
            ...

        def unfold(self, axis: int, size: int, step: int = 1) -> ResultT:
            """The windows of ``size`` elements along ``axis``, ``step`` apart: their number stands in the place of the
            axis, their elements in a new last axis."""
            ...

        def uniform_(self, low: Any = 0.0, high: Any = 1.0, *, generator: Any = None) -> Self:
            """Give this array the value of ``uniform`` of it and the arguments; returns the array itself."""
            ...

        def unique(
            self,
            sorted: bool = True,
            return_inverse: bool = False,
            return_counts: bool = False,
            axis: int | None = None,
        ) -> ResultT:
            """The unique elements in ascending order (whatever ``sorted`` says), or along ``axis`` the unique slices;
            with them, as asked for, for each element the number of its value, and how often each occurs."""
            ...

        def unique_consecutive(
            self, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
        ) -> ResultT:
            """``x``, flattened or along ``axis``, without elements (slices) that are equal to the one before; with
            them, as asked for, for each element the number of its value, and how long each run is."""
            ...

        def unsafe_chunk(self, chunks: int, dim: int = 0) -> tuple[Array, ...]:
            """``chunk``."""
            ...

        def unsafe_split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
            """``split``."""
            ...

        def unsafe_split_with_sizes(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
            """``split``."""
            ...

        def unsqueeze_(self, axis: int) -> ResultT:
            """Give ``x`` another axis of size 1; returns it."""
            ...

        def unstack(self, axis: int = 0) -> tuple[Array, ...]:
            """The arrays that ``stack`` would put together to ``x``: one for each position along ``axis``."""
            ...

        def var(
            self,
            axis: Axis = None,
            correction: float | None = 1,
            keepdims: bool = False,
            *,
            unbiased: bool | None = None,
        ) -> ResultT:
            """The mean square distance from the mean over ``axis``, over n - ``correction``: 1 by default, as in
            PyTorch, and 0 with ``unbiased=False``."""
            ...

        def vdot(self, y: Array) -> ResultT:
            """The product of two vectors, of complex numbers with the conjugates of ``x``."""
            ...

        def view_as(self, other: Array) -> ResultT:
            """``x`` under the shape of ``other``."""
            ...

        def vsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Array, ...]:
            """:func:`tensor_split` along axis 0, into pieces of one size."""
            ...

        def where(self, condition: Array, other: Operand) -> ResultT:
            """``x`` where ``condition`` holds, ``other`` elsewhere."""
            ...

        def xlogy(self, y: Operand) -> ResultT:
            """x · log y, and 0 where x is 0, whatever y is but NaN."""
            ...

        def xlogy_(self, y: Operand) -> Self:
            """Give this array the value of ``xlogy`` of it and the arguments; returns the array itself."""
            ...

    else:
        acos = LateMethod("runnel.ops.library.circular:acos")
        acos_ = LateMethod("runnel.ops.library.circular:acos", updating)
        acosh = LateMethod("runnel.ops.library.circular:acosh")
        acosh_ = LateMethod("runnel.ops.library.circular:acosh", updating)
        addbmm = LateMethod("runnel.ops.library.products:addbmm")
        addbmm_ = LateMethod("runnel.ops.library.products:addbmm", updating)
        addmm = LateMethod("runnel.ops.library.products:addmm")
        addmm_ = LateMethod("runnel.ops.library.products:addmm", updating)
        addmv = LateMethod("runnel.ops.library.products:addmv")
        addmv_ = LateMethod("runnel.ops.library.products:addmv", updating)
        addr = LateMethod("runnel.ops.library.products:addr")
        addr_ = LateMethod("runnel.ops.library.products:addr", updating)
        adjoint = LateMethod("runnel.tensor.library.asking:adjoint")
        allclose = LateMethod("runnel.ops.library.numbers:allclose")
        aminmax = LateMethod("runnel.ops.library.order:aminmax")
        angle = LateMethod("runnel.ops.library.plane:angle")
        apply_ = LateMethod("runnel.tensor.library.reshaping:apply_")
        arccos = LateMethod("runnel.ops.library.circular:acos")
        arccos_ = LateMethod("runnel.ops.library.circular:acos", updating)
        arccosh = LateMethod("runnel.ops.library.circular:acosh")
        arccosh_ = LateMethod("runnel.ops.library.circular:acosh", updating)
        arcsin = LateMethod("runnel.ops.library.circular:asin")
        arcsin_ = LateMethod("runnel.ops.library.circular:asin", updating)
        arcsinh = LateMethod("runnel.ops.library.circular:asinh")
        arcsinh_ = LateMethod("runnel.ops.library.circular:asinh", updating)
        arctan = LateMethod("runnel.ops.library.circular:atan")
        arctan2 = LateMethod("runnel.ops.library.circular:atan2")
        arctan2_ = LateMethod("runnel.ops.library.circular:atan2", updating)
        arctan_ = LateMethod("runnel.ops.library.circular:atan", updating)
        arctanh = LateMethod("runnel.ops.library.circular:atanh")
        arctanh_ = LateMethod("runnel.ops.library.circular:atanh", updating)
        argwhere = LateMethod("runnel.ops.library.sets:argwhere")
        as_strided = LateMethod("runnel.ops.library.strides:as_strided")
        as_strided_ = LateMethod("runnel.tensor.library.reshaping:as_strided_")
        as_strided_scatter = LateMethod("runnel.ops.library.strides:as_strided_scatter")
        asin = LateMethod("runnel.ops.library.circular:asin")
        asin_ = LateMethod("runnel.ops.library.circular:asin", updating)
        asinh = LateMethod("runnel.ops.library.circular:asinh")
        asinh_ = LateMethod("runnel.ops.library.circular:asinh", updating)
        atan = LateMethod("runnel.ops.library.circular:atan")
        atan2 = LateMethod("runnel.ops.library.circular:atan2")
        atan2_ = LateMethod("runnel.ops.library.circular:atan2", updating)
        atan_ = LateMethod("runnel.ops.library.circular:atan", updating)
        atanh = LateMethod("runnel.ops.library.circular:atanh")
        atanh_ = LateMethod("runnel.ops.library.circular:atanh", updating)
        baddbmm = LateMethod("runnel.ops.library.products:baddbmm")
        baddbmm_ = LateMethod("runnel.ops.library.products:baddbmm", updating)
        bernoulli = LateMethod("runnel.random.counts:bernoulli")
        bernoulli_ = LateMethod("runnel.random.filling:bernoulli_of", updating)
        bincount = LateMethod("runnel.ops.library.sets:bincount")
        cauchy_ = LateMethod("runnel.random.filling:cauchy_of", updating)
        cholesky = LateMethod("runnel.ops.library.matrices:cholesky")
        cholesky_inverse = LateMethod("runnel.ops.library.matrices:cholesky_inverse")
        cholesky_solve = LateMethod("runnel.ops.library.matrices:cholesky_solve")
        chunk = LateMethod("runnel.ops.library.joining:chunk", another)
        coalesce = LateMethod("runnel.tensor.library.older_methods:as_it_is")
        conj_physical = LateMethod("runnel.ops.library.numbers:conj_physical", another)
        conj_physical_ = LateMethod("runnel.ops.library.numbers:conj_physical", updating)
        const_data_ptr = LateMethod("runnel.tensor.library.older_methods:data_ptr")
        copysign = LateMethod("runnel.ops.library.circular:copysign")
        copysign_ = LateMethod("runnel.ops.library.circular:copysign", updating)
        corrcoef = LateMethod("runnel.ops.library.products:corrcoef")
        cosh = LateMethod("runnel.ops.library.circular:cosh")
        cosh_ = LateMethod("runnel.ops.library.circular:cosh", updating)
        count_nonzero = LateMethod("runnel.ops.library.sets:count_nonzero")
        cov = LateMethod("runnel.ops.library.products:cov")
        cross = LateMethod("runnel.ops.library.products:cross")
        cummax = LateMethod("runnel.ops.library.cumulative:cummax")
        cummin = LateMethod("runnel.ops.library.cumulative:cummin")
        cumprod = LateMethod("runnel.ops.library.cumulative:cumprod")
        cumprod_ = LateMethod("runnel.ops.library.cumulative:cumprod", updating)
        cumsum = LateMethod("runnel.ops.library.cumulative:cumsum")
        cumsum_ = LateMethod("runnel.ops.library.cumulative:cumsum", updating)
        data_ptr = LateMethod("runnel.tensor.library.older_methods:data_ptr")
        deg2rad = LateMethod("runnel.ops.library.numbers:deg2rad")
        deg2rad_ = LateMethod("runnel.ops.library.numbers:deg2rad", updating)
        dense_dim = LateMethod("runnel.tensor.library.older_methods:dense_dim")
        det = LateMethod("runnel.ops.library.matrices:det")
        diag = LateMethod("runnel.ops.library.triangles:diag")
        diag_embed = LateMethod("runnel.ops.library.triangles:diag_embed")
        diagflat = LateMethod("runnel.ops.library.triangles:diagflat")
        diagonal = LateMethod("runnel.ops.library.triangles:diagonal")
        diagonal_scatter = LateMethod("runnel.ops.library.diagonals:diagonal_scatter")
        diff = LateMethod("runnel.ops.library.cumulative:diff", another)
        digamma = LateMethod("runnel.ops.library.special:digamma")
        digamma_ = LateMethod("runnel.ops.library.special:digamma", updating)
        dim = LateMethod("runnel.tensor.library.asking:dim")
        dim_order = LateMethod("runnel.tensor.library.older_methods:dim_order")
        dist = LateMethod("runnel.ops.library.products:dist")
        dot = LateMethod("runnel.ops.library.products:dot")
        dsplit = LateMethod("runnel.ops.library.joining:dsplit", another)
        element_size = LateMethod("runnel.tensor.library.asking:element_size")
        equal = LateMethod("runnel.tensor.library.likeness:equal")
        erfc = LateMethod("runnel.ops.library.special:erfc")
        erfc_ = LateMethod("runnel.ops.library.special:erfc", updating)
        erfinv = LateMethod("runnel.ops.library.special:erfinv")
        erfinv_ = LateMethod("runnel.ops.library.special:erfinv", updating)
        exp2 = LateMethod("runnel.ops.library.numbers:exp2")
        exp2_ = LateMethod("runnel.ops.library.numbers:exp2", updating)
        expand_as = LateMethod("runnel.tensor.library.asking:expand_as", another)
        exponential_ = LateMethod("runnel.random.filling:exponential_of", updating)
        fill_diagonal_ = LateMethod("runnel.ops.library.diagonals:fill_diagonal", updating)
        fliplr = LateMethod("runnel.ops.library.joining:fliplr", another)
        flipud = LateMethod("runnel.ops.library.joining:flipud", another)
        float_power = LateMethod("runnel.ops.library.numbers:float_power")
        float_power_ = LateMethod("runnel.ops.library.numbers:float_power", updating)
        fmax = LateMethod("runnel.ops.library.numbers:fmax")
        fmin = LateMethod("runnel.ops.library.numbers:fmin")
        fmod = LateMethod("runnel.ops.library.numbers:fmod")
        fmod_ = LateMethod("runnel.ops.library.numbers:fmod", updating)
        frac = LateMethod("runnel.ops.library.numbers:frac")
        frac_ = LateMethod("runnel.ops.library.numbers:frac", updating)
        frexp = LateMethod("runnel.ops.library.binary_parts:frexp")
        gather = LateMethod("runnel.ops.library.scattering:gather")
        gcd = LateMethod("runnel.ops.library.divisors:gcd")
        gcd_ = LateMethod("runnel.ops.library.divisors:gcd", updating)
        geometric_ = LateMethod("runnel.random.filling:geometric_of", updating)
        geqrf = LateMethod("runnel.ops.library.reflections:geqrf")
        get_device = LateMethod("runnel.tensor.library.asking:get_device")
        hardshrink = LateMethod("runnel.nn.rare.activations:hardshrink")
        heaviside = LateMethod("runnel.ops.library.numbers:heaviside")
        heaviside_ = LateMethod("runnel.ops.library.numbers:heaviside", updating)
        histc = LateMethod("runnel.ops.library.histograms:histc")
        histogram = LateMethod("runnel.ops.library.histograms:histogram")
        hsplit = LateMethod("runnel.ops.library.joining:hsplit", another)
        hypot = LateMethod("runnel.ops.library.circular:hypot")
        hypot_ = LateMethod("runnel.ops.library.circular:hypot", updating)
        i0 = LateMethod("runnel.ops.library.special:i0")
        i0_ = LateMethod("runnel.ops.library.special:i0", updating)
        igamma = LateMethod("runnel.random.incomplete_gamma:gammainc")
        igamma_ = LateMethod("runnel.random.incomplete_gamma:gammainc", updating)
        igammac = LateMethod("runnel.random.incomplete_gamma:gammaincc")
        igammac_ = LateMethod("runnel.random.incomplete_gamma:gammaincc", updating)
        index_reduce = LateMethod("runnel.ops.library.scattering:index_reduce")
        index_reduce_ = LateMethod("runnel.ops.library.scattering:index_reduce", updating)
        index_select = LateMethod("runnel.ops.library.scattering:index_select")
        inner = LateMethod("runnel.ops.library.products:inner")
        inverse = LateMethod("runnel.ops.library.matrices:inv")
        is_coalesced = LateMethod("runnel.tensor.library.older_methods:is_distributed")
        is_complex = LateMethod("runnel.tensor.library.asking:is_complex")
        is_conj = LateMethod("runnel.tensor.library.asking:is_marked")
        is_contiguous = LateMethod("runnel.tensor.library.asking:is_contiguous")
        is_distributed = LateMethod("runnel.tensor.library.older_methods:is_distributed")
        is_floating_point = LateMethod("runnel.tensor.library.asking:is_floating_point")
        is_inference = LateMethod("runnel.tensor.library.asking:is_marked")
        is_neg = LateMethod("runnel.tensor.library.asking:is_marked")
        is_nonzero = LateMethod("runnel.tensor.library.asking:is_nonzero")
        is_pinned = LateMethod("runnel.tensor.library.asking:is_marked")
        is_same_size = LateMethod("runnel.tensor.library.asking:is_same_size")
        is_set_to = LateMethod("runnel.tensor.library.older_methods:is_set_to")
        is_signed = LateMethod("runnel.tensor.library.asking:is_signed")
        isclose = LateMethod("runnel.ops.library.numbers:isclose")
        isneginf = LateMethod("runnel.ops.library.numbers:isneginf")
        isposinf = LateMethod("runnel.ops.library.numbers:isposinf")
        isreal = LateMethod("runnel.ops.library.numbers:isreal")
        istft = LateMethod("runnel.ops.library.short_time:istft")
        kron = LateMethod("runnel.ops.library.joining:kron")
        kthvalue = LateMethod("runnel.ops.library.order:kthvalue")
        lcm = LateMethod("runnel.ops.library.divisors:lcm")
        lcm_ = LateMethod("runnel.ops.library.divisors:lcm", updating)
        ldexp = LateMethod("runnel.ops.library.numbers:ldexp")
        ldexp_ = LateMethod("runnel.ops.library.numbers:ldexp", updating)
        lgamma = LateMethod("runnel.ops.library.special:lgamma")
        lgamma_ = LateMethod("runnel.ops.library.special:lgamma", updating)
        log_normal_ = LateMethod("runnel.random.filling:log_normal_of", updating)
        logaddexp = LateMethod("runnel.ops.library.numbers:logaddexp")
        logaddexp2 = LateMethod("runnel.ops.library.numbers:logaddexp2")
        logcumsumexp = LateMethod("runnel.ops.library.cumulative:logcumsumexp")
        logdet = LateMethod("runnel.ops.library.matrices:logdet")
        logit = LateMethod("runnel.ops.library.numbers:logit")
        logit_ = LateMethod("runnel.ops.library.numbers:logit", updating)
        lu = LateMethod("runnel.ops.library.unchecked:packed_lu")
        lu_solve = LateMethod("runnel.ops.library.elimination:lu_solution")
        map2_ = LateMethod("runnel.tensor.library.reshaping:map2_")
        map_ = LateMethod("runnel.tensor.library.reshaping:map_")
        masked_scatter = LateMethod("runnel.ops.library.scattering:masked_scatter")
        masked_scatter_ = LateMethod("runnel.ops.library.scattering:masked_scatter", updating)
        masked_select = LateMethod("runnel.ops.library.sets:masked_select")
        matrix_exp = LateMethod("runnel.ops.library.matrices:matrix_exp")
        matrix_power = LateMethod("runnel.ops.library.matrices:matrix_power", another)
        matrix_transpose = LateMethod("runnel.tensor.library.asking:matrix_transpose")
        max = LateMethod("runnel.tensor.library.extremes:max")
        median = LateMethod("runnel.ops.library.order:median")
        min = LateMethod("runnel.tensor.library.extremes:min")
        mode = LateMethod("runnel.ops.library.order:mode")
        msort = LateMethod("runnel.ops.library.order:msort")
        multinomial = LateMethod("runnel.random.categories:multinomial")
        mvlgamma = LateMethod("runnel.ops.library.special:mvlgamma")
        mvlgamma_ = LateMethod("runnel.ops.library.special:mvlgamma", updating)
        nan_to_num = LateMethod("runnel.ops.library.numbers:nan_to_num")
        nan_to_num_ = LateMethod("runnel.ops.library.numbers:nan_to_num", updating)
        nanmean = LateMethod("runnel.ops.library.products:nanmean")
        nanmedian = LateMethod("runnel.ops.library.order:nanmedian")
        nanquantile = LateMethod("runnel.ops.library.order:nanquantile")
        nansum = LateMethod("runnel.ops.library.products:nansum")
        narrow_copy = LateMethod("runnel.tensor.library.older_methods:narrow_copy")
        ndimension = LateMethod("runnel.tensor.library.asking:dim")
        nelement = LateMethod("runnel.tensor.library.asking:numel")
        new = LateMethod("runnel.tensor.library.older_methods:new")
        new_empty = LateMethod("runnel.tensor.library.likeness:new_zeros")
        new_empty_strided = LateMethod("runnel.tensor.library.older_methods:new_empty_strided")
        new_full = LateMethod("runnel.tensor.library.likeness:new_full")
        new_ones = LateMethod("runnel.tensor.library.likeness:new_ones")
        new_tensor = LateMethod("runnel.tensor.library.likeness:new_tensor")
        new_zeros = LateMethod("runnel.tensor.library.likeness:new_zeros")
        nextafter = LateMethod("runnel.ops.library.circular:nextafter")
        nextafter_ = LateMethod("runnel.ops.library.circular:nextafter", updating)
        nonzero = LateMethod("runnel.tensor.library.likeness:nonzero")
        nonzero_static = LateMethod("runnel.ops.library.sets:nonzero_static")
        norm = LateMethod("runnel.tensor.library.moments:norm")
        normal_ = LateMethod("runnel.random.filling:normal_of", updating)
        numel = LateMethod("runnel.tensor.library.asking:numel")
        orgqr = LateMethod("runnel.ops.library.reflections:householder_product")
        ormqr = LateMethod("runnel.ops.library.reflections:ormqr")
        pin_memory = LateMethod("runnel.tensor.library.older_methods:as_it_is")
        pinverse = LateMethod("runnel.ops.library.matrices:pinv")
        polygamma = LateMethod("runnel.ops.library.special:polygamma_of")
        polygamma_ = LateMethod("runnel.ops.library.special:polygamma_of", updating)
        positive = LateMethod("runnel.ops.library.numbers:positive")
        prelu = LateMethod("runnel.nn.rare.activations:prelu")
        put = LateMethod("runnel.ops.library.flat:put_flat")
        put_ = LateMethod("runnel.ops.library.flat:put_flat", updating)
        qr = LateMethod("runnel.ops.library.older:qr")
        quantile = LateMethod("runnel.ops.library.order:quantile")
        rad2deg = LateMethod("runnel.ops.library.numbers:rad2deg")
        rad2deg_ = LateMethod("runnel.ops.library.numbers:rad2deg", updating)
        random_ = LateMethod("runnel.random.filling:random_of", updating)
        register_hook = LateMethod("runnel.tensor.library.hooks:register_hook")
        register_post_accumulate_grad_hook = LateMethod("runnel.tensor.library.hooks:register_post_hook")
        renorm = LateMethod("runnel.ops.library.rescaling:renorm")
        renorm_ = LateMethod("runnel.ops.library.rescaling:renorm", updating)
        repeat = LateMethod("runnel.ops.library.joining:tile", spread, another)
        repeat_interleave = LateMethod("runnel.ops.library.joining:repeat", another)
        reshape_as = LateMethod("runnel.tensor.library.asking:reshape_as", another)
        resize_ = LateMethod("runnel.tensor.library.reshaping:resize_")
        resize_as_ = LateMethod("runnel.tensor.library.reshaping:resize_as_")
        resolve_conj = LateMethod("runnel.ops.library.numbers:resolved", another)
        resolve_neg = LateMethod("runnel.ops.library.numbers:resolved", another)
        retain_grad = LateMethod("runnel.tensor.library.hooks:retain_grad")
        rot90 = LateMethod("runnel.ops.library.joining:rot90", another)
        scatter = LateMethod("runnel.ops.library.scattering:scatter")
        scatter_ = LateMethod("runnel.ops.library.scattering:scatter", updating)
        scatter_add = LateMethod("runnel.ops.library.scattering:scatter_add")
        scatter_add_ = LateMethod("runnel.ops.library.scattering:scatter_add", updating)
        scatter_reduce = LateMethod("runnel.ops.library.scattering:scatter_reduce")
        scatter_reduce_ = LateMethod("runnel.ops.library.scattering:scatter_reduce", updating)
        select = LateMethod("runnel.ops.library.scattering:select")
        select_scatter = LateMethod("runnel.ops.library.scattering:select_scatter")
        set_ = LateMethod("runnel.tensor.library.reshaping:set_")
        sgn = LateMethod("runnel.ops.library.numbers:sgn")
        sgn_ = LateMethod("runnel.ops.library.numbers:sgn", updating)
        signbit = LateMethod("runnel.ops.library.circular:signbit")
        sinc = LateMethod("runnel.ops.library.numbers:sinc")
        sinc_ = LateMethod("runnel.ops.library.numbers:sinc", updating)
        sinh = LateMethod("runnel.ops.library.circular:sinh")
        sinh_ = LateMethod("runnel.ops.library.circular:sinh", updating)
        slice_scatter = LateMethod("runnel.ops.library.scattering:slice_scatter", another)
        slogdet = LateMethod("runnel.ops.library.matrices:slogdet")
        sort = LateMethod("runnel.tensor.library.extremes:sort")
        sparse_dim = LateMethod("runnel.tensor.library.older_methods:sparse_dim")
        squeeze = LateMethod("runnel.tensor.library.likeness:squeeze", another)
        squeeze_ = LateMethod("runnel.tensor.library.reshaping:squeeze_")
        std = LateMethod("runnel.tensor.library.moments:std")
        stft = LateMethod("runnel.ops.library.short_time:stft")
        storage_offset = LateMethod("runnel.tensor.library.asking:storage_offset")
        stride = LateMethod("runnel.tensor.library.asking:stride")
        sum_to_size = LateMethod("runnel.ops.library.rescaling:sum_to_size", another)
        svd = LateMethod("runnel.ops.library.older:svd")
        swapaxes_ = LateMethod("runnel.tensor.library.reshaping:transpose_")
        swapdims_ = LateMethod("runnel.tensor.library.reshaping:transpose_")
        t = LateMethod("runnel.tensor.library.asking:t", another)
        t_ = LateMethod("runnel.tensor.library.reshaping:t_")
        take_along_dim = LateMethod("runnel.ops.library.along:take_along_dim")
        tan = LateMethod("runnel.ops.library.circular:tan")
        tan_ = LateMethod("runnel.ops.library.circular:tan", updating)
        tensor_split = LateMethod("runnel.ops.library.joining:tensor_split", another)
        tile = LateMethod("runnel.ops.library.joining:tile", spread, another)
        to_dense = LateMethod("runnel.tensor.library.older_methods:as_it_is")
        trace = LateMethod("runnel.ops.library.triangles:trace")
        transpose_ = LateMethod("runnel.tensor.library.reshaping:transpose_")
        triangular_solve = LateMethod("runnel.ops.library.older:triangular_solve")
        tril = LateMethod("runnel.ops.library.triangles:tril")
        tril_ = LateMethod("runnel.ops.library.triangles:tril", updating)
        triu = LateMethod("runnel.ops.library.triangles:triu")
        triu_ = LateMethod("runnel.ops.library.triangles:triu", updating)
        type = LateMethod("runnel.tensor.library.likeness:type_of")
        type_as = LateMethod("runnel.tensor.library.asking:type_as")
        unbind = LateMethod("runnel.ops.library.joining:unstack")
        unflatten = LateMethod("runnel.ops.library.joining:unflatten")
        unfold = LateMethod("runnel.ops.library.triangles:unfold")
        uniform_ = LateMethod("runnel.random.filling:uniform_of", updating)
        unique = LateMethod("runnel.ops.library.sets:unique")
        unique_consecutive = LateMethod("runnel.ops.library.sets:unique_consecutive")
        unsafe_chunk = LateMethod("runnel.tensor.library.older_methods:unsafe_chunk")
        unsafe_split = LateMethod("runnel.tensor.library.older_methods:unsafe_split")
        unsafe_split_with_sizes = LateMethod("runnel.tensor.library.older_methods:unsafe_split")
        unsqueeze_ = LateMethod("runnel.tensor.library.reshaping:unsqueeze_")
        unstack = LateMethod("runnel.ops.library.joining:unstack")
        var = LateMethod("runnel.tensor.library.moments:var")
        vdot = LateMethod("runnel.ops.library.products:vdot")
        view_as = LateMethod("runnel.tensor.library.asking:reshape_as", another)
        vsplit = LateMethod("runnel.ops.library.joining:vsplit", another)
        where = LateMethod("runnel.tensor.library.likeness:where")
        xlogy = LateMethod("runnel.ops.library.numbers:xlogy")
        xlogy_ = LateMethod("runnel.ops.library.numbers:xlogy", updating)
