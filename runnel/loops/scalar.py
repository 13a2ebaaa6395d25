"""The scalar operations of the loop IR, and the reductions of an ``Acc``: one row each.

Each scalar operation has its meaning in NumPy. ``formulas.table`` has a formula for each of them, which backends
evaluate; a test compares both tables. The verifier, the interpreter and code generation read the reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.core.dtypes import DType
from runnel.core.records import record


@record(eq=False)
class ScalarOp:
    """A scalar operation: ``numpy(*args, dtype)`` gives its value on arrays, in the NumPy dtype of the result.

    ``result`` is ``"same"`` (the dtype of the arguments), ``"bool"`` or ``"free"`` (the dtype of the Apply: casts).
    ``cost`` is in units of one addition. ``version`` identifies the formula of an operation from outside ``loops`` in
    the cache of machine code.
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    result: str = "same"
    cost: int = 1
    version: str = ""

    def __repr__(self) -> str:
        return f"{self.name} {self.version}" if self.version else self.name


SCALAR_OPS: list[ScalarOp] = []


def row(
    name: str, arity: int, numpy: Callable[..., Any], result: str = "same", cost: int = 1, version: str = ""
) -> ScalarOp:
    """Add a row to the table. ``formulas.table`` needs one, too."""
    op = ScalarOp(name, arity, numpy, result, cost, version)
    SCALAR_OPS.append(op)
    return op


def _erf(x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)) if x.size else x


def _sign(x: Any) -> Any:
    return np.sign(x)


def _floor_divide(a: Any, b: Any) -> Any:
    """Rounds toward minus infinity; an integer divided by zero gives 0, so that no input can trap. Infinities follow
    the Array API, which NumPy does not."""
    if np.issubdtype(np.asarray(a).dtype, np.integer):
        return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))
    return np.where(np.isfinite(a) & np.isfinite(b), np.floor_divide(a, b), np.floor(a / b))


def _remainder(a: Any, b: Any) -> Any:
    """Has the sign of the divisor (Python's %); an integer modulo zero gives 0."""
    if np.issubdtype(np.asarray(a).dtype, np.integer):
        return np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b)))
    return np.remainder(a, b)


def _maximum(a: Any, b: Any) -> Any:
    """maximum of IEEE 754-2019; NumPy does not define the sign of zero."""
    greater = np.maximum(a, b)
    if np.asarray(a).dtype.kind in "biu":
        return greater
    return np.where((a == 0) & (b == 0), a + b, greater)


def _minimum(a: Any, b: Any) -> Any:
    """Return the minimum as maximum does."""
    smaller = np.minimum(a, b)
    if np.asarray(a).dtype.kind in "biu":
        return smaller
    return np.where((a == 0) & (b == 0), -(-a - b), smaller)


def _shift_left(a: Any, b: Any) -> Any:
    bits = np.asarray(a).dtype.itemsize * 8
    return np.where((b >= 0) & (b < bits), np.left_shift(a, np.clip(b, 0, bits - 1)), 0)


def _shift_right(a: Any, b: Any) -> Any:
    bits = np.asarray(a).dtype.itemsize * 8
    return np.right_shift(a, np.where((b >= 0) & (b < bits), b, bits - 1))


def _mul_high(a: Any, b: Any) -> Any:
    """Return the high 32 bits of the product of two uint32, which Philox needs."""
    return ((np.asarray(a).astype(np.uint64) * np.asarray(b).astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


# arithmetic (ints wrap)
add = row("add", 2, np.add)
sub = row("sub", 2, np.subtract)
mul = row("mul", 2, np.multiply)
div = row("div", 2, np.divide, cost=4)  # floats only
floor_divide = row("floor_divide", 2, _floor_divide, cost=8)
remainder = row("remainder", 2, _remainder, cost=8)
neg = row("neg", 1, np.negative)
abs_ = row("abs", 1, np.abs)
maximum = row("maximum", 2, _maximum)  # NaN propagates, and -0 is less than +0
minimum = row("minimum", 2, _minimum)
sign = row("sign", 1, _sign)
sqrt = row("sqrt", 1, np.sqrt, cost=4)
fma = row("fma", 3, lambda a, b, c: a * b + c)  # one rounding when compiled; used inside rules only, never by fusion
# rounding
floor = row("floor", 1, np.floor)
ceil = row("ceil", 1, np.ceil)
trunc = row("trunc", 1, np.trunc)
rint = row("rint", 1, np.rint)  # half to even
# transcendental
exp = row("exp", 1, np.exp, cost=16)
expm1 = row("expm1", 1, np.expm1, cost=20)
log = row("log", 1, np.log, cost=40)
log1p = row("log1p", 1, np.log1p, cost=45)
log2 = row("log2", 1, np.log2, cost=42)
tanh = row("tanh", 1, np.tanh, cost=23)
sigmoid = row("sigmoid", 1, lambda x: 1 / (1 + np.exp(-x)), cost=20)
erf = row("erf", 1, _erf, cost=60)
sin = row("sin", 1, np.sin, cost=34)
cos = row("cos", 1, np.cos, cost=34)
pow_ = row("pow", 2, np.power, cost=60)
# comparison
lt = row("lt", 2, np.less, "bool")
le = row("le", 2, np.less_equal, "bool")
gt = row("gt", 2, np.greater, "bool")
ge = row("ge", 2, np.greater_equal, "bool")
eq = row("eq", 2, np.equal, "bool")
ne = row("ne", 2, np.not_equal, "bool")
isnan = row("isnan", 1, np.isnan, "bool")
isinf = row("isinf", 1, np.isinf, "bool")
# logic and bits: on bool these are and/or/xor/not
and_ = row("and", 2, np.bitwise_and)
or_ = row("or", 2, np.bitwise_or)
xor = row("xor", 2, np.bitwise_xor)
not_ = row("not", 1, np.invert)
shift_left = row("shift_left", 2, _shift_left)
shift_right = row("shift_right", 2, _shift_right)  # arithmetic on signed, logical on unsigned
mul_high = row("mul_high", 2, _mul_high)  # uint32 only
# choice and conversion
select = row("select", 3, np.where)  # (bool, x, y)
cast = row("cast", 1, lambda x: x, "free")  # C rules, but float → int saturates and NaN gives 0; x → bool is x != 0
bitcast = row("bitcast", 1, lambda x: x, "free")  # same size, other dtype


Identity = Callable[[DType], bool | int | float]


@record
class Reducer:
    """A reduction: ``combine(acc, value)`` is applied element by element, starting from ``identity(dtype)``.

    ``kinds`` are the kinds of dtype it is defined for; ``rounds`` says that floats are rounded at each step, so that
    the result depends on the order.
    """

    name: str
    combine: ScalarOp
    identity: Identity
    kinds: frozenset[str]
    rounds: bool = False

    def has_blocks(self, dtype: DType) -> bool:
        """Return whether long sequences of ``dtype`` are accumulated in blocks that are combined pairwise (``ir``)."""
        return self.rounds and dtype.is_float


def lowest(dtype: DType) -> bool | int | float:
    """Return the value below all others: -inf, the smallest integer, False."""
    if dtype.is_float:
        return -math.inf
    return int(np.iinfo(dtype.numpy).min) if dtype.is_integer else False


def highest(dtype: DType) -> bool | int | float:
    """Return the value above all others: inf, the largest integer, True."""
    if dtype.is_float:
        return math.inf
    return int(np.iinfo(dtype.numpy).max) if dtype.is_integer else True


_NUMBERS: Final = frozenset({"int", "uint", "float"})
_ORDERED: Final = frozenset({"int", "uint", "float", "bool"})
_TRUTHS: Final = frozenset({"bool"})

REDUCERS: Final = {
    row.name: row
    for row in (
        Reducer("sum", add, lambda dtype: 0, _NUMBERS, rounds=True),
        Reducer("prod", mul, lambda dtype: 1, _NUMBERS, rounds=True),
        Reducer("max", maximum, lowest, _ORDERED),
        Reducer("min", minimum, highest, _ORDERED),
        Reducer("any", or_, lambda dtype: False, _TRUTHS),
        Reducer("all", and_, lambda dtype: True, _TRUTHS),
    )
}
