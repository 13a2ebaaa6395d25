"""PyTorch's transforms of functions whose arguments or results differ from those of the same name in ``runnel``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runnel.transforms import gradients
from runnel.transforms.vmap import vmap as vectorized

Function = Callable[..., Any]


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """``func`` of each element along the axes ``in_dims`` of the arguments, with results along ``out_dims``. Draws of
    random numbers differ from element to element, whatever ``randomness`` says."""
    return vectorized(func, in_dims, out_dims)


def grad_and_value(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of ``func`` and its value; with ``has_aux`` the gradient and the pair of value
    and anything else."""
    both = gradients.value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return differentiated
