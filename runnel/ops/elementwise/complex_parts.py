"""Complex numbers and their parts: real, imaginary, conjugate, and the number of two parts.

Gradients are PyTorch's: the gradient of a real L by z is ∂L/∂Re z + i·∂L/∂Im z. NumPy computes the ops
(docs/train/complex.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from runnel.core.avals import Shape, ShapedArray, aval
from runnel.core.axes import ELEMENTWISE
from runnel.core.dispatch import ViewStep, apply
from runnel.core.dtypes import COMPLEX, complex_of, float32, float64, real_of
from runnel.core.errors import DTypeError
from runnel.core.rules import NATIVE, Tangents, linear
from runnel.core.tables import Op, abstract_eval, axes, complex_rules, cost, jvp, lower, reference, vjp
from runnel.loops.rules import HostCall
from runnel.ops.arguments import Array, Operand, require_dtype
from runnel.ops.conversion import cast
from runnel.ops.creation_like import zeros_like
from runnel.ops.elementwise.rows import meeting_shape, per_element
from runnel.ops.promotion import anchor, meet
from runnel.ops.shapes.broadcasting import unbroadcast

_PARTS: Final = (float32, float64)


def _part(op: Op, function: Callable[[Any], Any], back: Callable[[Array, Array], Array]) -> None:
    """Register the rules of an op of complex numbers with as many results.

    ``back`` maps the gradient of the result, and the operand, to the gradient of the operand."""
    gives_real = op is not conj_p

    def abstract_eval_rule(x: ShapedArray) -> ShapedArray:
        require_dtype(op.name, x.dtype, COMPLEX)
        return aval(x.shape, real_of(x.dtype)) if gives_real else x

    abstract_eval.register(op, abstract_eval_rule)
    reference.register(op, function)
    lower.register(op, HostCall())
    cost.register(op, per_element)
    axes.register(op, ELEMENTWISE)
    jvp.register(op, linear(op))
    vjp.register(op, lambda g, out, x: (back(g, x),))
    complex_rules.register(op, NATIVE)


real_p = Op("real", "z", "The real part of complex z.")
imag_p = Op("imag", "z", "The imaginary part of complex z.")
conj_p = Op("conj", "z", "The conjugate of complex z.")
pair_p = Op("pair", "x, y", "x + i·y, of real x and y.")

_part(real_p, np.real, lambda g, z: apply(pair_p, g, zeros_like(g)))
_part(imag_p, np.imag, lambda g, z: apply(pair_p, zeros_like(g), g))
_part(conj_p, np.conj, lambda g, z: apply(conj_p, g))

lower.register(pair_p, HostCall())
cost.register(pair_p, per_element)
axes.register(pair_p, ELEMENTWISE)
complex_rules.register(pair_p, NATIVE)


@abstract_eval.rule(pair_p)
def _pair_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    require_dtype("complex", x.dtype, _PARTS)
    return aval(meeting_shape(pair_p, x, y), complex_of(x.dtype))


@reference.rule(pair_p)
def _pair_reference(x: Any, y: Any) -> Any:
    z = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_of_numpy(x.dtype))
    z.real, z.imag = x, y
    return z


def complex_of_numpy(dtype: Any) -> Any:
    """Return NumPy's complex dtype with parts of ``dtype``."""
    return np.complex64 if dtype == np.float32 else np.complex128


@vjp.rule(pair_p)
def _pair_vjp(g: Array, out: Array, x: Array, y: Array) -> tuple[Callable[[], Array], Callable[[], Array]]:
    return (
        lambda: unbroadcast(apply(real_p, g), x.shape),
        lambda: unbroadcast(apply(imag_p, g), y.shape),
    )


@jvp.rule(pair_p)
def _pair_jvp(tangents: Tangents, out: Array, x: Array, y: Array) -> list[Array]:
    return [apply(pair_p, *(zeros_like(z) if t is None else t for t, z in zip(tangents, (x, y), strict=True)))]


def _every_second(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
    return shape, tuple(2 * step for step in strides)


_REAL = ViewStep(lambda x: apply(real_p, x), lambda x, new: apply(pair_p, new, apply(imag_p, x)), _every_second)
_IMAG = ViewStep(lambda x: apply(imag_p, x), lambda x, new: apply(pair_p, apply(real_p, x), new), _every_second)

# --- functions ----------------------------------------------------------------------------------------------------


def real(x: Array) -> Array:
    """Return the real part, a view; a real array is returned as it is."""
    return x.view_by(_REAL) if x.dtype.is_complex else x


def imag(x: Array) -> Array:
    """Return the imaginary part of complex numbers; DTypeError for a real array."""
    if not x.dtype.is_complex:
        raise DTypeError(f"[imag] x must be complex; got {x.dtype.name}, whose imaginary part is zeros_like(x).")
    return x.view_by(_IMAG)


def conj(x: Array) -> Array:
    """Return the complex conjugate; a real array is returned as it is."""
    return apply(conj_p, x) if x.dtype.is_complex else x


def complex(real: Operand, imag: Operand) -> Array:
    """Return real + i·imag for float arrays that broadcast: complex128 if one is float64, else complex64."""
    like = anchor(pair_p, (real, imag))
    x, y = meet(pair_p, real, imag)
    if not x.dtype.is_float:
        raise DTypeError(f"[complex] operands must be floats; got {x.dtype.name}. Cast the operands first.")
    wide = real_of(complex_of(x.dtype))
    return like.apply_op(pair_p, (cast(x, wide), cast(y, wide)), {})


def conjugated_rule(rule: Callable[..., Any], g: Array, out: Array, *inputs: Array, **attrs: Any) -> tuple[Any, ...]:
    """Return the gradients g·conj(f') of a holomorphic op, from a ``rule`` that returns g·f'."""
    return tuple(map(_conjugated, rule(conj(g), out, *inputs, **attrs)))


def _conjugated(cotangent: Any) -> Any:
    if cotangent is None:
        return None
    return (lambda: conj(cotangent())) if callable(cotangent) else conj(cotangent)
