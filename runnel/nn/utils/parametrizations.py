"""Parametrizations: weights by length and direction, of spectral norm 1, or orthogonal."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core import public
from runnel.core.errors import ArgumentError, ShapeError
from runnel.nn.module import Module
from runnel.nn.utils.parametrize import register_parametrization
from runnel.nn.utils.reparametrized import as_matrix, norm_except, power_iteration, start_vectors
from runnel.ops.arguments import Array
from runnel.ops.linear_algebra.factorizations import qr, solve
from runnel.tensor.variable import Variable

__all__ = [
    "Orthogonal",
    "SpectralNorm",
    "WeightNorm",
    "orthogonal",
    "spectral_norm",
    "weight_norm",
]


def _require(module: Module, name: str, op: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Variable):
        raise ArgumentError(f"[{op}] {type(module).__name__} has no Parameter '{name}'.")
    return weight


class WeightNorm(Module):
    """Compute g · v / |v| (T. Salimans, D. Kingma, 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Return length and direction of ``weight``."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute ``module.name`` as g · v / |v|, with norms over all axes but ``dim``, or over all of them for None.

    The Parameters are ``parametrizations.weight.original0`` (g) and ``original1`` (v).
    """
    _require(module, name, "weight_norm")
    return register_parametrization(module, name, WeightNorm(dim), unsafe=True)


class SpectralNorm(Module):
    """Divide a weight by its largest singular value, estimated by power iterations (T. Miyato et al., 2018)."""

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations < 1:
            raise ValueError(f"[spectral_norm] n_power_iterations must be positive; got {n_power_iterations}.")
        self.dim = dim % weight.ndim if weight.ndim else dim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            u, v = start_vectors(as_matrix(weight.read().without_tape(), self.dim), eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return weight / ops.maximum(ops.norm(weight), self.eps)
        matrix = as_matrix(weight, self.dim)
        buffers: Any = self
        if self.training:
            u, v = power_iteration(matrix, buffers._u, buffers._v, self.n_power_iterations, self.eps)
            buffers._u.assign(u)
            buffers._v.assign(v)
        else:
            u, v = buffers._u.read(), buffers._v.read()
        return weight / ops.vecdot(u, ops.matmul(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        """Return ``value``, which should have norm 1."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide ``module.name`` by its largest singular value, as a matrix whose rows lie along ``dim``.

    By default ``dim`` is 1 for transposed convolutions, and otherwise 0. The buffers are
    ``parametrizations.weight.0._u`` and ``_v``.
    """
    weight = _require(module, name, "spectral_norm")
    if dim is None:
        dim = 1 if "Transpose" in type(module).__name__ else 0
    return register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, dim, eps))


class Orthogonal(Module):
    """Compute a matrix with orthogonal rows or columns, whichever are fewer: a base times a rotation.

    The rotation is a function of a skew-symmetric matrix, of the elements below the diagonal of the Parameter.
    """

    def __init__(self, weight: Any, kind: str, use_trivialization: bool) -> None:
        self.kind = kind
        self.shape = tuple(weight.shape)
        self.register_buffer("base", _base(weight.read().without_tape()) if use_trivialization else None)

    def forward(self, x: Array) -> Any:
        is_wide = self.shape[-2] < self.shape[-1]
        matrix = ops.transpose(x) if is_wide else x
        n, k = matrix.shape[-2:]
        below = ops.greater(ops.iota(matrix, (n, k), 0), ops.iota(matrix, (n, k), 1))
        lower = ops.where(below, matrix, 0)
        if n != k:
            lower = ops.pad(lower, ((0, 0),) * (lower.ndim - 1) + ((0, n - k),))
        skew = lower - ops.transpose(lower)
        identity = ops.cast(ops.equal(ops.iota(x, (n, n), 0), ops.iota(x, (n, n), 1)), x.dtype)
        if self.kind == "cayley":
            rotation = solve(identity - skew / 2, identity + skew / 2)
        else:
            rotation = _exponential(skew, identity)
        base: Any = self.base
        q = (rotation if base is None else ops.matmul(base, rotation))[..., :k]
        return ops.transpose(q) if is_wide else q

    def right_inverse(self, weight: Any) -> Any:
        """Return zeros, whose result is the base; without a base, ``weight``."""
        return weight if self.base is None else weight * 0


def _base(weight: Any) -> Any:
    """Return the orthogonal factor of a weight, as a square matrix."""
    tall = ops.transpose(weight) if weight.shape[-2] < weight.shape[-1] else weight
    n, k = tall.shape[-2:]
    q, r = qr(tall, "complete")
    diagonal = ops.equal(ops.iota(r, (n, k), 0), ops.iota(r, (n, k), 1))
    signs = ops.sign(ops.sum(ops.where(diagonal, r, 0), -2, keepdims=True))
    return ops.concat([q[..., :k] * ops.where(ops.equal(signs, 0), 1, signs), q[..., k:]], -1)


def _exponential(a: Any, identity: Any) -> Any:
    """Compute exp(a) by scaling and squaring, with the Taylor series of a / 2⁸ to order 18."""
    small = a / 256
    total = term = identity + a * 0
    for i in range(1, 19):
        term = ops.matmul(term, small) / i
        total = total + term
    for _ in range(8):
        total = ops.matmul(total, total)
    return total


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Compute ``module.name`` as an orthogonal matrix (M. Lezcano-Casado, 2019).

    Args:
        module: a module.
        name: the name of a Parameter.
        orthogonal_map: the function of a skew-symmetric matrix: its exponential "matrix_exp" (default), or the Cayley
            transform "cayley". Householder reflections are not supported.
        use_trivialization: multiply by the orthogonal factor of the present weight.
    """
    weight = _require(module, name, "orthogonal")
    if weight.ndim < 2:
        raise ShapeError(f"[orthogonal] '{name}' must have two axes or more; got shape {weight.shape}.")
    kind = "matrix_exp" if orthogonal_map is None else orthogonal_map
    if kind not in ("matrix_exp", "cayley"):
        raise ValueError(f"[orthogonal] orthogonal_map must be 'matrix_exp' or 'cayley'; got {orthogonal_map!r}.")
    return register_parametrization(module, name, Orthogonal(weight, kind, use_trivialization), unsafe=True)


public.offer(globals(), __all__)
