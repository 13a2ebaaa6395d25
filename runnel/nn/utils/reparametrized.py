"""Weight and spectral normalization with PyTorch's older names; use ``parametrizations`` in new code."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.core.errors import ArgumentError
from runnel.nn.derived import Recipe, compute, compute_no_more, recipe_of
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter
from runnel.ops.arguments import Array
from runnel.tensor import random


def norm_except(v: Array, dim: int | None) -> Any:
    """Return the norms of ``v`` over all axes but ``dim``, which keep size 1; for None over all axes, as one number."""
    if dim is None or dim == -1:
        return ops.norm(v)
    axes = tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim)
    return ops.norm(v, 2.0, axes, keepdims=True) if axes else ops.abs(v)


def as_matrix(weight: Any, dim: int) -> Any:
    """Return ``weight`` with axis ``dim`` as rows and all others as columns."""
    return ops.reshape(ops.moveaxis(weight, dim, 0), (weight.shape[dim], -1))


def normalized(x: Any, eps: float) -> Any:
    """Return ``x`` scaled to norm 1."""
    return x / ops.maximum(ops.norm(x), eps)


def power_iteration(matrix: Any, u: Any, v: Any, times: int, eps: float) -> tuple[Any, Any]:
    """Return the left and right singular vectors after ``times`` iterations, without gradients."""
    matrix = ops.stop_gradient(matrix)
    for _ in range(times):
        u = normalized(ops.matmul(matrix, v), eps)
        v = normalized(ops.matmul(ops.transpose(matrix), u), eps)
    return ops.stop_gradient(u), ops.stop_gradient(v)


def start_vectors(matrix: Any, eps: float) -> tuple[Any, Any]:
    """Return random vectors, brought near the singular vectors by 15 iterations."""
    drawn = [ops.normal(random.next_key(None, matrix.device), (n,), matrix.dtype) for n in matrix.shape]
    u, v = (normalized(x, eps) for x in drawn)
    return power_iteration(matrix, u, v, 15, eps)


class _WeightNorm(Recipe):
    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def value(self, module: Any) -> Any:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))


def _parameter(module: Module, name: str, op: str) -> Parameter:
    weight = module.__dict__.get(name)
    if not isinstance(weight, Parameter):
        raise ArgumentError(f"[{op}] {type(module).__name__} has no Parameter '{name}' that is not computed already.")
    return weight


def _restored(module: Module, name: str, recipe: type[Recipe], op: str, parts: tuple[str, ...]) -> Module:
    if not isinstance(recipe_of(module, name), recipe):
        raise ArgumentError(f"[{op}] '{name}' of {type(module).__name__} is not computed in this way.")
    value = getattr(module, name).read().without_tape()
    compute_no_more(module, name)
    for part in parts:
        delattr(module, f"{name}_{part}")
    setattr(module, name, Parameter(value))
    return module


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute ``module.name`` as g · v / |v| from Parameters ``name_g`` and ``name_v`` (T. Salimans, D. Kingma, 2016).

    Norms are over all axes but ``dim``, or over all of them for None.
    """
    axis = -1 if dim is None else dim
    value = _parameter(module, name, "weight_norm").read().without_tape()
    compute(module, name, _WeightNorm(name, axis))
    setattr(module, f"{name}_g", Parameter(norm_except(value, axis)))
    setattr(module, f"{name}_v", Parameter(value))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make ``module.name`` a Parameter again, with the value it has."""
    return _restored(module, name, _WeightNorm, "remove_weight_norm", ("g", "v"))


class _SpectralNorm(Recipe):
    def __init__(self, name: str, times: int, eps: float, dim: int) -> None:
        self.name = name
        self.times = times
        self.eps = eps
        self.dim = dim

    def value(self, module: Any) -> Any:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        now = u.read(), v.read()
        if module.training:
            after = power_iteration(ops.transpose(matrix), now[1], now[0], self.times, self.eps)
            now = after[1], after[0]
            u.assign(now[0])
            v.assign(now[1])
        return weight / ops.vecdot(now[0], ops.matmul(matrix, now[1]))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide the Parameter ``name_orig`` by its largest singular value to compute ``module.name``.

    Power iterations in training mode estimate it, with buffers ``name_u`` and ``name_v`` (T. Miyato et al., 2018).

    Args:
        module: a module.
        name: the name of a Parameter.
        n_power_iterations: iterations at each call.
        eps: the smallest norm of a vector.
        dim: the axis of the rows; by default 1 for transposed convolutions, and otherwise 0.
    """
    if n_power_iterations < 1:
        raise ValueError(f"[spectral_norm] n_power_iterations must be positive; got {n_power_iterations}.")
    weight = _parameter(module, name, "spectral_norm")
    if dim is None:
        dim = 1 if "Transpose" in type(module).__name__ else 0
    u, v = start_vectors(as_matrix(weight.read().without_tape(), dim), eps)
    compute(module, name, _SpectralNorm(name, n_power_iterations, eps, dim))
    setattr(module, f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make ``module.name`` a Parameter again, with the value it has."""
    return _restored(module, name, _SpectralNorm, "remove_spectral_norm", ("orig", "u", "v"))
