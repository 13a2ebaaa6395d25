"""``gradcheck`` and ``gradgradcheck``: compare gradients with differences of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.core.errors import GradientError
from runnel.ops import zeros_like
from runnel.tensor.creation import asarray
from runnel.tensor.grad_mode import recording
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tensor import Tensor
from runnel.transforms.autograd import grad


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **ignored: Any,
) -> bool:
    """Return whether the gradients of ``func`` agree with central differences.

    They agree if |analytic - numeric| ≤ ``atol`` + ``rtol``·|numeric| for each element of the inputs that require a
    gradient. Use float64 inputs.

    Args:
        func: a function from the ``inputs`` to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of arguments.
        eps: the step of the differences.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        raise_exception: raise GradientError with both Jacobians if they differ, instead of returning False.
        ignored: other arguments of PyTorch's function, which have no effect.
    """
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    leaves = [i for i, x in enumerate(arguments) if isinstance(x, ArrayMethods) and x.read().requires_grad]
    if not leaves:
        raise GradientError("[gradcheck] at least one input must require a gradient; call requires_grad_() on it.")
    with recording(True):
        outs = [y for y in _several(func(*arguments)) if isinstance(y, Tensor) and y.dtype.is_float]
    for number, out in enumerate(outs):
        for i in leaves:
            analytic = _analytic(out, arguments[i])
            numeric = _numeric(func, arguments, i, number, eps)
            if np.allclose(analytic, numeric, rtol, atol):
                continue
            if not raise_exception:
                return False
            raise GradientError(
                f"[gradcheck] the gradient of result {number} by input {i} is\n{analytic}\nand the differences are\n"
                f"{numeric}; check the backward rule, or use float64 inputs away from kinks."
            )
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, **options: Any
) -> bool:
    """Return whether the second derivatives of ``func`` agree with differences of the first, by :func:`gradcheck`.

    Args:
        func: a function from the ``inputs`` to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of arguments.
        grad_outputs: the cotangents of the results; random ones by default.
        eps: the step of the differences.
        options: further options of :func:`gradcheck`.
    """
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    with recording(True):
        outs = [y for y in _several(func(*arguments)) if isinstance(y, Tensor) and y.dtype.is_float]
    rng = np.random.default_rng(0)
    given = [asarray(rng.normal(size=y.shape), y.dtype) for y in outs] if grad_outputs is None else grad_outputs
    seeds = [asarray(seed).without_tape().requires_grad_() for seed in _several(given)]

    places = [i for i, x in enumerate(arguments) if isinstance(x, ArrayMethods) and x.read().requires_grad]

    def gradients(*arguments_and_seeds: Any) -> tuple[Any, ...]:
        xs, along = arguments_and_seeds[: len(arguments)], arguments_and_seeds[len(arguments) :]
        with recording(True):
            taped = [x if i not in places or x.requires_grad else x.requires_grad_() for i, x in enumerate(xs)]
            results = [y for y in _several(func(*taped)) if isinstance(y, Tensor) and y.dtype.is_float]
            found = grad(results, [taped[i] for i in places], list(along), create_graph=True, allow_unused=True)
        return tuple(zeros_like(taped[i]) if g is None else g for i, g in zip(places, found, strict=True))

    return gradcheck(gradients, (*arguments, *seeds), eps=eps, **options)


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _analytic(out: Tensor, leaf: Any) -> np.ndarray:
    """Return the Jacobian, with a row for each element of the result."""
    if not out.requires_grad:
        return np.zeros((out.size, leaf.size))
    rows = []
    for k in range(out.size):
        seed = np.zeros(out.shape, out.dtype.numpy)
        seed.reshape(-1)[k] = 1
        (g,) = grad(out, [leaf], asarray(seed), retain_graph=True, allow_unused=True)
        rows.append(np.zeros(leaf.size) if g is None else g.numpy().reshape(-1))
    return np.stack(rows) if rows else np.zeros((0, leaf.size))


def _numeric(func: Callable[..., Any], arguments: Sequence[Any], i: int, number: int, eps: float) -> np.ndarray:
    """Return the Jacobian by central differences."""
    columns = []
    value = arguments[i].without_tape().numpy()
    for k in range(value.size):
        ends = []
        for step in (eps, -eps):
            moved = value.copy()
            moved.reshape(-1)[k] += step
            with recording(False):
                results = _several(func(*arguments[:i], asarray(moved), *arguments[i + 1 :]))
            floating = [y for y in results if isinstance(y, Tensor) and y.dtype.is_float]
            ends.append(floating[number].numpy().reshape(-1).astype(np.float64))
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.stack(columns, -1) if columns else np.zeros((0, 0))
