"""Run a program eagerly and compiled, and compare what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import runnel as rn
from runnel.core.pytree import flatten

Run = Callable[[Callable[[Callable[..., Any]], Callable[..., Any]]], Any]


def numbers(seed: int, *shape: int) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def leaf(seed: int, *shape: int) -> rn.Tensor:
    return numbers(seed, *shape).requires_grad_()


def parameter(seed: int, *shape: int) -> rn.Parameter:
    return rn.Parameter(numbers(seed, *shape).numpy())


def bits(tree: Any) -> list[Any]:
    """Return the values of a tree of tensors, comparable by ``==``; None where a gradient is missing."""
    return [x if x is None else (x.shape, x.dtype.name, np.asarray(x).tobytes()) for x in flatten(tree)[0]]


def gradients(of: Sequence[Any]) -> list[Any]:
    return [x.grad for x in of]


def agree(run: Run) -> None:
    """``run(compiles)`` makes new objects, compiles its functions by ``compiles``, and gives what is to be the same
    bits without that. All that is compiled must run as programs."""
    eager = run(lambda function: function)
    results = []

    def compiles(function: Callable[..., Any]) -> Callable[..., Any]:
        results.append(rn.compile(function))
        return results[-1]

    assert bits(run(compiles)) == bits(eager)
    for function in results:
        assert all(executable.native is not None for executable in function.executables())


def programs(function: Any) -> list[Any]:
    """The programs of what was compiled; none where it runs eagerly."""
    return [executable.native for executable in function.executables() if executable.native is not None]
