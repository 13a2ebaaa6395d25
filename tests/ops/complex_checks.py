"""Every function of complex numbers must have NumPy's values, gradients and tangents that are differences, the same
bits compiled, and under vmap what a loop gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import runnel as rn

Array = np.ndarray[Any, Any]
STEP = 1e-6


def drawn(*shape: int, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)


def reals(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def _like(x: Array, seed: int) -> Array:
    return drawn(*x.shape, seed=seed) if np.iscomplexobj(x) else reals(*x.shape, seed=seed)


def values(function: Callable[..., Any], *arrays: Array) -> Array:
    actual: Array = function(*map(rn.asarray, arrays)).numpy()
    return actual


def loss_of(function: Callable[..., Any], out: Array) -> Callable[..., Any]:
    """A real number of the result to which each part of it adds its own share."""
    weights = rn.asarray(_like(out, 9))
    return lambda *xs: rn.real(rn.sum(rn.conj(weights) * function(*xs)))


def check_values(function: Callable[..., Any], numpy: Callable[..., Any], *arrays: Array) -> None:
    actual, expected = values(function, *arrays), np.asarray(numpy(*arrays))
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


def check_compiled(function: Callable[..., Any], *arrays: Array) -> None:
    actual = rn.compile(lambda *xs: function(*xs))(*map(rn.asarray, arrays)).numpy()
    assert actual.tobytes() == values(function, *arrays).tobytes()


def gradient(loss: Callable[..., Any], arrays: tuple[Array, ...], place: int) -> Array:
    """∂L/∂Re x + i·∂L/∂Im x by differences."""
    actual = np.zeros_like(arrays[place])
    for index in np.ndindex(actual.shape):
        for unit in (1, 1j) if np.iscomplexobj(actual) else (1,):
            ends = []
            for step in (STEP, -STEP):
                moved = [x.copy() for x in arrays]
                moved[place][index] += step * unit
                ends.append(loss(*map(rn.asarray, moved)).item())
            actual[index] += unit * (ends[0] - ends[1]) / (2 * STEP)
    return actual


def check_derivatives(function: Callable[..., Any], *arrays: Array) -> None:
    loss = loss_of(function, values(function, *arrays))
    gradients = rn.grad(loss, argnums=tuple(range(len(arrays))))
    actual = gradients(*map(rn.asarray, arrays))
    for i, g in enumerate(actual):
        assert g.numpy().dtype == arrays[i].dtype
        np.testing.assert_allclose(g.numpy(), gradient(loss, arrays, i), rtol=1e-4, atol=1e-6)
    compiled = rn.compile(lambda *xs: gradients(*xs))(*map(rn.asarray, arrays))
    assert [g.numpy().tobytes() for g in compiled] == [g.numpy().tobytes() for g in actual]
    directions = [_like(x, 5 + i) for i, x in enumerate(arrays)]
    _, tangent = rn.jvp(function, tuple(map(rn.asarray, arrays)), tuple(map(rn.asarray, directions)))
    ahead, behind = (
        values(function, *(x + step * d for x, d in zip(arrays, directions, strict=True))) for step in (STEP, -STEP)
    )
    np.testing.assert_allclose(tangent.numpy(), (ahead - behind) / (2 * STEP), rtol=1e-4, atol=1e-6)


def check_mapped(function: Callable[..., Any], *arrays: Array) -> None:
    stacks = [np.stack([x, 0.5 * x + 0.1, 1.2 * x]) for x in arrays]
    mapped = rn.vmap(function)(*map(rn.asarray, stacks)).numpy()
    each = [values(function, *(x[i] for x in stacks)) for i in range(3)]
    np.testing.assert_allclose(mapped, np.stack(each), rtol=1e-12, atol=1e-12)


def check(function: Callable[..., Any], *arrays: Array) -> None:
    check_compiled(function, *arrays)
    check_derivatives(function, *arrays)
    check_mapped(function, *arrays)
