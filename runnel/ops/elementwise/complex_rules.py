"""Ops of complex numbers, which NumPy computes: one op represents all of them, and this is their table.

Gradients are PyTorch's: the gradient of a real L by z is ∂L/∂Re z + i·∂L/∂Im z. For a holomorphic op it is
g·conj(f'(z)), the rule for real numbers conjugated: ``conj(rule(conj(g)))``. Tangents are the transposes of
gradients (docs/train/complex.md).
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from runnel.core import tables
from runnel.core.avals import ShapedArray, aval
from runnel.core.axes import AxisRule
from runnel.core.dtypes import DType, complex_of, real_of
from runnel.core.errors import AxisError, DTypeError
from runnel.core.rules import HOLOMORPHIC, LINEAR, NATIVE, TRANSPOSED, ByNumPy
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array
from runnel.ops.conversion import cast
from runnel.ops.elementwise.arithmetic import abs, divide, multiply, sign, subtract
from runnel.ops.elementwise.comparison import equal, logical_and, where
from runnel.ops.elementwise.complex_parts import conj, conjugated_rule, real
from runnel.ops.elementwise.exponential import log, pow
from runnel.ops.shapes.broadcasting import unbroadcast

Attrs = tuple[tuple[str, Any], ...]

complex_p: Final = Op(
    "complex", "*operands, name, attrs", "The op of that name, with its attrs, of complex operands.", is_late=True
)
lower.register(complex_p, HostCall())
jvp.register(complex_p, TRANSPOSED)
complex_rules.register(complex_p, NATIVE)


def applied(op: Op, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Apply ``op`` to operands of which at least one is complex, or with a complex result."""
    return operands[0].apply_op(complex_p, operands, {"name": op.name, "attrs": tuple(attrs.items())})


def _rule(op: Op, *avals: ShapedArray) -> ByNumPy:
    rule = complex_rules.get(op)
    if isinstance(rule, ByNumPy):
        return rule
    names = ", ".join(x.dtype.name for x in avals)
    raise DTypeError(
        f"[{op.name}] operands must not be complex; got {names}. Take real(z), imag(z) or abs(z) of them first."
    )


@abstract_eval.rule(complex_p)
def _abstract_eval(*operands: ShapedArray, name: str, attrs: Attrs) -> ShapedArray:
    """Infer as for floats, then make the result complex again."""
    inner = Op.registry[name]
    rule = _rule(inner, *operands)
    floats = [aval(x.shape, real_of(x.dtype)) for x in operands]
    result: ShapedArray = abstract_eval[inner](
        *floats, **{k: real_of(v) if isinstance(v, DType) else v for k, v in attrs}
    )
    return result if rule.is_real or not result.dtype.is_float else aval(result.shape, complex_of(result.dtype))


@reference.rule(complex_p)
def _reference(*arrays: Any, name: str, attrs: Attrs) -> Any:
    """Compute with dense arrays, because NumPy's sums depend on the layout of their operands."""
    inner = Op.registry[name]
    function = _rule(inner).numpy or reference[inner]
    with np.errstate(all="ignore"):
        return function(*(np.asarray(x, order="C") for x in arrays), **dict(attrs))


@vjp.rule(complex_p)
def _vjp(g: Array, out: Array, *operands: Array, name: str, attrs: Attrs) -> tuple[Any, ...]:
    inner = Op.registry[name]
    rule = _rule(inner)
    if rule.vjp is not None:
        return tuple(rule.vjp(g, out, *operands, **dict(attrs)))
    if rule.is_linear:
        return tuple(vjp[inner](g, out, *operands, **dict(attrs)))
    return conjugated_rule(vjp[inner], g, out, *operands, **dict(attrs))


@cost.rule(complex_p)
def _cost(*operands: ShapedArray, name: str, attrs: Attrs) -> int:
    """Count a product of complex numbers as four real ones."""
    return 4 * int(cost[Op.registry[name]](*operands, **dict(attrs)))


class _AsItself(AxisRule):
    """With a new axis the op is what it is for real numbers."""

    def batched(self, op: Op, size: int, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        inner = Op.registry[attrs["name"]]
        rule = axes.get(inner)
        return None if rule is None else rule.batched(inner, size, operands, dict(attrs["attrs"]))


axes.register(complex_p, _AsItself())

# --- ops whose rules of real numbers serve ------------------------------------------------------------------------

for _name in (
    "neg", "add", "sub", "where", "sum", "reshape", "permute", "slice", "broadcast", "concat", "pad", "scatter_add",
    "contiguous", "im2col", "stop_gradient", "eq", "ne", "isnan", "isinf", "segment_sums", "round", "write_rows",
):  # fmt: skip
    complex_rules.register(Op.registry[_name], LINEAR)

for _name in (
    "mul", "div", "exp", "log", "log1p", "log2", "sqrt", "sin", "cos", "sigmoid", "prod",
    "cast_reduce", "matmul", "tensordot",
):  # fmt: skip
    complex_rules.register(Op.registry[_name], HOLOMORPHIC)


# --- ops that are others ------------------------------------------------------------------------------------------


def _abs_vjp(g: Array, out: Array, x: Array) -> tuple[Array]:
    return (multiply(g, sign(x)),)


def _sign(x: Any) -> Any:
    """Return x / |x|, and 0 at 0."""
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _sign_vjp(g: Array, out: Array, x: Array) -> tuple[Array]:
    """Return the part of g orthogonal to x, over |x|."""
    size = abs(x)
    across = subtract(g, multiply(out, real(multiply(conj(out), g))))
    return (where(equal(size, 0), 0, divide(across, where(equal(size, 0), 1, size))),)


def _cast(x: Any, *, dtype: DType) -> Any:
    return x != 0 if dtype.kind == "bool" else x.astype(dtype.numpy)


def _cast_vjp(g: Array, out: Array, x: Array, *, dtype: DType) -> tuple[Any]:
    if not (dtype.is_inexact and x.dtype.is_inexact):
        return (None,)
    return (cast(g if x.dtype.is_complex else real(g), x.dtype),)


def _expm1(z: Any) -> Any:
    """Return exp(z) - 1, accurate near 0: e^x·cos y - 1 = (e^x - 1)·cos y - 2·sin²(y/2)."""
    x, y = z.real, z.imag
    result = np.asarray(np.exp(z) - 1)
    is_finite = np.isfinite(x) & np.isfinite(y)
    result.real = np.where(is_finite, np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2 + 0.0, result.real)
    result.real = np.where(y == 0, np.expm1(x) + 0.0, result.real)
    result.imag = np.where(y == 0, y, result.imag)
    return result


def _tanh(z: Any) -> Any:
    """Return tanh z; at infinity, zeros have the sign of the imaginary part (Array API)."""
    result = np.asarray(np.tanh(z))
    result.imag = np.where(np.isinf(z.real) & np.isfinite(z.imag), np.copysign(0.0, z.imag), result.imag)
    return result


def _pow(g: Array, out: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Differentiate as a holomorphic function of both operands."""
    return unbroadcast(_pow_by_base(g, x, y), x.shape), unbroadcast(_pow_by_exponent(g, out, x, y), y.shape)


def _pow_by_base(g: Array, x: Array, y: Array) -> Array:
    return where(equal(y, 0), 0, multiply(g, multiply(y, pow(x, subtract(y, 1)))))


def _pow_by_exponent(g: Array, out: Array, x: Array, y: Array) -> Array:
    vanishes = logical_and(equal(x, 0), equal(out, 0))
    return where(vanishes, 0, multiply(g, multiply(out, log(where(vanishes, 1, x)))))


def _take(x: Any, indices: Any, *, axis: int) -> Any:
    n = x.shape[axis]
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        raise AxisError(f"[take] index {indices[outside][0]} lies outside [0, {n}).")
    return np.take(x, indices.astype(np.int64), axis=axis)


complex_rules.register(Op.registry["abs"], ByNumPy(_abs_vjp, np.abs, is_real=True))
complex_rules.register(Op.registry["pow"], ByNumPy(functools.partial(conjugated_rule, _pow)))
complex_rules.register(Op.registry["expm1"], ByNumPy(numpy=_expm1))
complex_rules.register(Op.registry["tanh"], ByNumPy(numpy=_tanh))
complex_rules.register(Op.registry["sign"], ByNumPy(_sign_vjp, _sign))
complex_rules.register(Op.registry["cast"], ByNumPy(_cast_vjp, _cast))
complex_rules.register(Op.registry["take"], ByNumPy(tables.vjp[Op.registry["take"]], _take))
