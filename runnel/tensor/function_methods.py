"""The methods of Tensor and Variable that are functions of the array: each calls the one of that meaning."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar

from runnel.core import public
from runnel.core.dispatch import TensorLike
from runnel.ops import (
    arithmetic,
    broadcasting,
    comparison,
    logic,
    precision,
    reductions,
    sorting,
    statistics,
    transcendental,
    updates,
    views,
)
from runnel.ops.arguments import Array, Axis, Operand, gathered
from runnel.ops.sorting import TopK

ResultT = TypeVar("ResultT", bound=TensorLike)


@public.methods
class FunctionMethods(TensorLike, Generic[ResultT]):
    """Functions of an array as its methods."""

    __slots__ = ()

    def update(self, name: str, change: Callable[[Any], Any]) -> Self:
        """Give this array the value that ``change`` makes of its present one. ``name`` is for messages."""
        raise NotImplementedError

    def _other(self, view: ResultT) -> ResultT:
        """``view`` as a handle that is not this one, so that writing to it leaves this one."""
        raise NotImplementedError

    def abs(self) -> ResultT:
        """|x|; its derivative at 0 is 0."""
        return arithmetic.abs(self)

    def abs_(self) -> Self:
        """Give this array the value of ``abs`` of it and the arguments; returns the array itself."""
        return self.update("abs_", lambda x: arithmetic.abs(x))

    def add(self, other: Operand, *, alpha: float | Array = 1) -> ResultT:
        """x + alpha · other."""
        return updates.add_scaled(self, other, alpha=alpha)

    def add_(self, other: Operand, *, alpha: float | Array = 1) -> Self:
        """Give this array the value of ``add`` of it and the arguments; returns the array itself."""
        return self.update("add_", lambda x: updates.add_scaled(x, other, alpha=alpha))

    def addcdiv(self, a: Operand, b: Operand, *, value: Operand = 1) -> ResultT:
        """x + value · a / b."""
        return updates.addcdiv(self, a, b, value=value)

    def addcdiv_(self, a: Operand, b: Operand, *, value: Operand = 1) -> Self:
        """Give this array the value of ``addcdiv`` of it and the arguments; returns the array itself."""
        return self.update("addcdiv_", lambda x: updates.addcdiv(x, a, b, value=value))

    def addcmul(self, a: Operand, b: Operand, *, value: Operand = 1) -> ResultT:
        """x + value · a · b."""
        return updates.addcmul(self, a, b, value=value)

    def addcmul_(self, a: Operand, b: Operand, *, value: Operand = 1) -> Self:
        """Give this array the value of ``addcmul`` of it and the arguments; returns the array itself."""
        return self.update("addcmul_", lambda x: updates.addcmul(x, a, b, value=value))

    def all(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """Whether all elements over ``axis`` are non-zero."""
        return reductions.all(self, axis, keepdims)

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

    def ceil(self) -> ResultT:
        """x rounded up."""
        return arithmetic.ceil(self)

    def ceil_(self) -> Self:
        """Give this array the value of ``ceil`` of it and the arguments; returns the array itself."""
        return self.update("ceil_", lambda x: arithmetic.ceil(x))

    def clamp(self, low: Operand | None = None, high: Operand | None = None) -> ResultT:
        """``x`` kept within [low, high]; the gradient passes inside and at the bounds."""
        return statistics.clip(self, low, high)

    def clamp_(self, low: Operand | None = None, high: Operand | None = None) -> Self:
        """Give this array the value of ``clamp`` of it and the arguments; returns the array itself."""
        return self.update("clamp_", lambda x: statistics.clip(x, low, high))

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

    def clip(self, low: Operand | None = None, high: Operand | None = None) -> ResultT:
        """``x`` kept within [low, high]; the gradient passes inside and at the bounds."""
        return statistics.clip(self, low, high)

    def clip_(self, low: Operand | None = None, high: Operand | None = None) -> Self:
        """Give this array the value of ``clip`` of it and the arguments; returns the array itself."""
        return self.update("clip_", lambda x: statistics.clip(x, low, high))

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
        """``x`` repeated along axes of size 1, and along new leading axes, to ``shape``."""
        return self._other(broadcasting.broadcast_to(self, gathered(shape)))

    def expm1(self) -> ResultT:
        """exp(x) - 1, accurate near 0."""
        return transcendental.expm1(self)

    def expm1_(self) -> Self:
        """Give this array the value of ``expm1`` of it and the arguments; returns the array itself."""
        return self.update("expm1_", lambda x: transcendental.expm1(x))

    def fill_(self, value: float | Array) -> Self:
        """Give this array the value of ``fill`` of it and the arguments; returns the array itself."""
        return self.update("fill_", lambda x: updates.filled(x, value))

    def flatten(self, start: int = 0, end: int = -1) -> ResultT:
        """The axes ``start`` to ``end`` merged into one."""
        return self._other(views.flatten(self, start, end))

    def floor(self) -> ResultT:
        """x rounded down."""
        return arithmetic.floor(self)

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

    def gt(self, y: Operand) -> ResultT:
        """x > y."""
        return comparison.greater(self, y)

    def gt_(self, y: Operand) -> Self:
        """Give this array the value of ``gt`` of it and the arguments; returns the array itself."""
        return self.update("gt_", lambda x: comparison.greater(x, y))

    def index_add(self, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> ResultT:
        """``x`` with alpha times row i of ``source`` added to row ``index[i]`` along the axis ``dim``."""
        return updates.index_add_along(self, dim, index, source, alpha=alpha)

    def index_add_(self, dim: int, index: Array, source: Array, *, alpha: Operand = 1) -> Self:
        """Give this array the value of ``index_add`` of it and the arguments; returns the array itself."""
        return self.update("index_add_", lambda x: updates.index_add_along(x, dim, index, source, alpha=alpha))

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

    def le(self, y: Operand) -> ResultT:
        """x <= y."""
        return comparison.less_equal(self, y)

    def le_(self, y: Operand) -> Self:
        """Give this array the value of ``le`` of it and the arguments; returns the array itself."""
        return self.update("le_", lambda x: comparison.less_equal(x, y))

    def lerp(self, end: Operand, weight: Operand) -> ResultT:
        """x + weight · (end - x)."""
        return updates.lerp(self, end, weight)

    def lerp_(self, end: Operand, weight: Operand) -> Self:
        """Give this array the value of ``lerp`` of it and the arguments; returns the array itself."""
        return self.update("lerp_", lambda x: updates.lerp(x, end, weight))

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

    def max(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """The greatest element over ``axis``; NaN if there is one."""
        return reductions.max(self, axis, keepdims)

    def maximum(self, y: Operand) -> ResultT:
        """The greater of x and y; of equals, each takes half of the gradient."""
        return arithmetic.maximum(self, y)

    def maximum_(self, y: Operand) -> Self:
        """Give this array the value of ``maximum`` of it and the arguments; returns the array itself."""
        return self.update("maximum_", lambda x: arithmetic.maximum(x, y))

    def mean(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """The mean over ``axis``; of integers, in float32."""
        return precision.mean(self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> ResultT:
        """The smallest element over ``axis``; NaN if there is one."""
        return reductions.min(self, axis, keepdims)

    def minimum(self, y: Operand) -> ResultT:
        """The smaller of x and y; of equals, each takes half of the gradient."""
        return arithmetic.minimum(self, y)

    def minimum_(self, y: Operand) -> Self:
        """Give this array the value of ``minimum`` of it and the arguments; returns the array itself."""
        return self.update("minimum_", lambda x: arithmetic.minimum(x, y))

    def mul(self, y: Operand) -> ResultT:
        """x · y, elementwise."""
        return arithmetic.multiply(self, y)

    def mul_(self, y: Operand) -> Self:
        """Give this array the value of ``mul`` of it and the arguments; returns the array itself."""
        return self.update("mul_", lambda x: arithmetic.multiply(x, y))

    def multiply(self, y: Operand) -> ResultT:
        """x · y, elementwise."""
        return arithmetic.multiply(self, y)

    def multiply_(self, y: Operand) -> Self:
        """Give this array the value of ``multiply`` of it and the arguments; returns the array itself."""
        return self.update("multiply_", lambda x: arithmetic.multiply(x, y))

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

    def permute(self, *axes: Any) -> ResultT:
        """``x`` with its axes in the order ``axes``, each of them once."""
        return self._other(views.permute(self, gathered(axes)))

    def pow(self, y: Operand) -> ResultT:
        """x to the power y."""
        return transcendental.pow(self, y)

    def pow_(self, y: Operand) -> Self:
        """Give this array the value of ``pow`` of it and the arguments; returns the array itself."""
        return self.update("pow_", lambda x: transcendental.pow(x, y))

    def prod(self, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> ResultT:
        """The product over ``axis``, in the dtypes of :func:`sum`."""
        return precision.prod(self, axis, keepdims, dtype)

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

    def reshape(self, *shape: Any) -> ResultT:
        """``x`` under another shape; one size may be -1 and is then computed from the others."""
        return self._other(views.reshape(self, gathered(shape)))

    def round(self) -> ResultT:
        """x rounded to the nearest integer, ties to even."""
        return arithmetic.round(self)

    def round_(self) -> Self:
        """Give this array the value of ``round`` of it and the arguments; returns the array itself."""
        return self.update("round_", lambda x: arithmetic.round(x))

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
        """-1, 0 or 1 by the sign of x."""
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

    def softmax(self, axis: int = -1) -> ResultT:
        """exp(x) along ``axis``, divided by its sum."""
        return precision.softmax(self, axis)

    def sort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> ResultT:
        """The elements of ``x`` along ``axis`` in ascending (or ``descending``) order; of the flattened ``x`` for
        None."""
        return sorting.sort(self, axis, descending, stable)

    def sqrt(self) -> ResultT:
        """The square root; its derivative at 0 is infinite."""
        return transcendental.sqrt(self)

    def sqrt_(self) -> Self:
        """Give this array the value of ``sqrt`` of it and the arguments; returns the array itself."""
        return self.update("sqrt_", lambda x: transcendental.sqrt(x))

    def square(self) -> ResultT:
        """x · x."""
        return transcendental.square(self)

    def square_(self) -> Self:
        """Give this array the value of ``square`` of it and the arguments; returns the array itself."""
        return self.update("square_", lambda x: transcendental.square(x))

    def squeeze(self, axis: Axis = None) -> ResultT:
        """``x`` without the axes ``axis``, which must have size 1 (None: without all such axes)."""
        return self._other(views.squeeze(self, axis))

    def std(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> ResultT:
        """The square root of :func:`var`, with its arguments: over n - ``correction``, 0 by default as in the Array
        API."""
        return precision.std(self, axis, correction, keepdims)

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

    def trunc(self) -> ResultT:
        """x rounded toward zero."""
        return arithmetic.trunc(self)

    def trunc_(self) -> Self:
        """Give this array the value of ``trunc`` of it and the arguments; returns the array itself."""
        return self.update("trunc_", lambda x: arithmetic.trunc(x))

    def unsqueeze(self, axis: int | Sequence[int]) -> ResultT:
        """``x`` with new axes of size 1 at the places ``axis`` of the result."""
        return views.expand_dims(self, axis)

    def var(self, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> ResultT:
        """The mean square distance from the mean, over n - ``correction`` (1 for the unbiased estimate)."""
        return precision.var(self, axis, correction, keepdims)

    def view(self, *shape: Any) -> ResultT:
        """``x`` under another shape; one size may be -1 and is then computed from the others."""
        return self._other(views.reshape(self, gathered(shape)))

    def zero_(self) -> Self:
        """Give this array the value of ``zero`` of it and the arguments; returns the array itself."""
        return self.update("zero_", lambda x: updates.zeroed(x))
