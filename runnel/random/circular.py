"""Angles."""

from __future__ import annotations

import math
from typing import Any

from runnel import ops
from runnel.core.dtypes import float64
from runnel.ops.arguments import Numbers
from runnel.ops.library.circular import acos
from runnel.random.drawing import drawn, open_unit, require_scale
from runnel.random.rejection import first_accepted
from runnel.tensor.tensor import Tensor


def vonmises(
    mu: Numbers, kappa: Numbers, size: Any = None, *, dtype: Any = None, generator: Any = None, key: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Angles in [-π, π) with a density proportional to exp(kappa·cos(x - mu)) (D. Best, N. Fisher, "Efficient
    simulation of the von Mises distribution", 1979). No gradient flows. ValueError if ``kappa`` is negative."""
    require_scale("vonmises", kappa=kappa)
    draw = drawn("vonmises", (mu, kappa), size, dtype, generator, key, device)
    centre, concentration = map(ops.stop_gradient, draw.in_float64())
    is_valid = ops.logical_and(ops.greater_equal(concentration, 0), ops.isfinite(concentration))
    known = ops.where(is_valid, concentration, 1)
    is_uniform = ops.less(known, 1e-6)  # where the constants cancel, and the density is flat to six digits
    is_tight = ops.greater(known, 1e12)  # where cosines cannot tell angles apart, and they are normal to twelve digits
    k = ops.where(ops.logical_or(is_uniform, is_tight), 1, known)
    tau = ops.sqrt(k * k * 4 + 1) + 1
    rho = (tau - ops.sqrt(tau * 2)) / (k * 2)
    precise = (rho * rho + 1) / (rho * 2)
    r = ops.where(ops.greater(k, 1e5), 1 / k + 1, precise)  # the first terms of a series where it cancels

    def attempt(of: Any) -> tuple[Any, Any]:
        z = ops.cos(open_unit(of, draw.shape, float64) * math.pi)
        f = (r * z + 1) / (r + z)
        c = k * (r - f)
        u = open_unit(of, draw.shape, float64, 2)
        accepts = ops.logical_or(ops.greater(c * (2 - c), u), ops.greater_equal(ops.log(c / u) + 1, c))
        return f, accepts

    f = ops.clip(first_accepted(ops.fold_in(draw.key, 0), draw.shape, attempt), -1.0, 1.0)
    side = ops.uniform(ops.fold_in(draw.key, 1), draw.shape, float64) - 0.5
    angle = ops.where(is_uniform, side * (2 * math.pi), ops.where(ops.less(side, 0), -acos(f), acos(f)))
    near = ops.normal(ops.fold_in(draw.key, 2), draw.shape, float64) * ops.rsqrt(known)
    turned = ops.where(is_tight, near, angle) + centre
    wrapped = turned - ops.floor((turned + math.pi) / (2 * math.pi)) * (2 * math.pi)
    return draw.result(ops.where(is_valid, wrapped, math.nan))
