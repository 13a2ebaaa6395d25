"""Primitives whose modules are imported at first use: oracle, number of operands, attributes, dtypes, other fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

import runnel.ops.elementwise.circular
import runnel.ops.elementwise.gamma
import runnel.ops.requirement
import runnel.special.bessel
import runnel.special.orthogonal  # noqa: F401 - all fill the tables
from runnel.core import dtypes as dt
from runnel.ops.elementwise.rows import NUMBERS

WIDE = (dt.float32, dt.float64)


def _legendre(x: Any, n: Any, *, kind: str, order: int) -> Any:
    return sp.eval_legendre(np.trunc(n), x)


INSIDE, ABOVE, POSITIVE = (-0.9, 0.9), (1.1, 4.0), (0.2, 6.0)

LIBRARY: dict[str, tuple[Any, int, dict[str, Any], Any, dict[str, Any]]] = {
    "tan": (np.tan, 1, {}, None, {"domain": (-1.2, 1.2)}),
    "asin": (np.arcsin, 1, {}, None, {"domain": INSIDE}), "acos": (np.arccos, 1, {}, None, {"domain": INSIDE}),
    "atan": (np.arctan, 1, {}, None, {}), "sinh": (np.sinh, 1, {}, None, {}), "cosh": (np.cosh, 1, {}, None, {}),
    "asinh": (np.arcsinh, 1, {}, None, {}), "acosh": (np.arccosh, 1, {}, None, {"domain": ABOVE}),
    "atanh": (np.arctanh, 1, {}, None, {"domain": INSIDE}),
    "atan2": (np.arctan2, 2, {}, None, {"domain": (0.3, 3.0)}),
    "hypot": (np.hypot, 2, {}, None, {"domain": (0.3, 3.0)}),
    "copysign": (np.copysign, 2, {}, None, {"domain": (0.3, 3.0)}),
    "signbit": (lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, 1, {}, NUMBERS, {"smooth": False}),
    "nextafter": (np.nextafter, 2, {}, (dt.float64,), {"smooth": False}),
    "erfc": (sp.erfc, 1, {}, None, {}), "erfcx": (sp.erfcx, 1, {}, None, {"domain": (-1.0, 3.0)}),
    "erfinv": (sp.erfinv, 1, {}, None, {"domain": INSIDE}), "ndtr": (sp.ndtr, 1, {}, None, {}),
    "ndtri": (sp.ndtri, 1, {}, None, {"domain": (0.1, 0.9)}), "log_ndtr": (sp.log_ndtr, 1, {}, None, {}),
    "lgamma": (sp.gammaln, 1, {}, WIDE, {"domain": POSITIVE}),
    "digamma": (sp.digamma, 1, {}, WIDE, {"domain": POSITIVE}),
    "polygamma": (lambda x, *, n: sp.polygamma(n, x), 1, {"n": 2}, WIDE, {"domain": (0.6, 6.0)}),
    "i0": (sp.i0, 1, {}, None, {}), "i0e": (sp.i0e, 1, {}, None, {"domain": (0.3, 9.0)}),
    "zeta": (lambda x, q, *, order: sp.zeta(x, q), 2, {"order": 0}, WIDE, {"domain": (1.3, 5.0)}),
    "polynomial": (_legendre, 2, {"kind": "legendre_p", "order": 0}, WIDE, {"domain": (0.3, 5.0)}),
    "bessel_j0": (sp.j0, 1, {}, None, {}), "bessel_j1": (sp.j1, 1, {}, None, {}),
    "bessel_y0": (sp.y0, 1, {}, WIDE, {"domain": POSITIVE}), "bessel_y1": (sp.y1, 1, {}, WIDE, {"domain": POSITIVE}),
    "modified_bessel_k0": (sp.k0, 1, {}, WIDE, {"domain": POSITIVE}),
    "modified_bessel_k1": (sp.k1, 1, {}, WIDE, {"domain": POSITIVE}),
    "scaled_modified_bessel_k0": (sp.k0e, 1, {}, WIDE, {"domain": POSITIVE}),
    "scaled_modified_bessel_k1": (sp.k1e, 1, {}, WIDE, {"domain": POSITIVE}),
    "airy": (lambda x, *, order: sp.airy(x)[order], 1, {"order": 0}, WIDE, {"domain": (-9.0, 3.0)}),
    "spherical_bessel": (
        lambda x, *, n: sp.spherical_jn(n, np.abs(x)) / np.abs(x) ** n, 1, {"n": 1}, WIDE, {"domain": (0.3, 9.0)},
    ),
    "i1": (sp.i1, 1, {}, None, {}), "i1e": (sp.i1e, 1, {}, None, {"domain": (0.3, 9.0)}),
}  # fmt: skip
