"""All Parameters as one vector, and back; and functions of PyTorch that need no work here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel import ops
from runnel.core.errors import ShapeError
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


def parameters_to_vector(parameters: Iterable[Variable]) -> Tensor:
    """Return the elements of all ``parameters``, one after the other."""
    result: Tensor = ops.concat([ops.reshape(p, (-1,)) for p in parameters])
    return result


def vector_to_parameters(vec: Any, parameters: Iterable[Variable]) -> None:
    """Assign the elements of a vector to ``parameters``, in their order."""
    listed = list(parameters)
    size = sum(p.size for p in listed)
    if vec.shape != (size,):
        raise ShapeError(
            f"[vector_to_parameters] {len(listed)} Parameters have {size} elements; received shape {vec.shape}."
        )
    at = 0
    for parameter in listed:
        part = ops.narrow(vec.read().detach(), 0, at, parameter.size)
        parameter.assign(ops.cast(ops.reshape(part, parameter.shape), parameter.dtype))
        at += parameter.size


def skip_init(module_cls: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)``, whose values will be loaded or set."""
    return module_cls(*args, **kwargs)


def unchanged(module: Any, memory_format: Any = None) -> Any:
    """Return ``module``, since each program decides how weights lie in memory."""
    return module
