"""Parameters: the Variables that training changes. Layers make them; optimizers and ``backward()`` find them."""

from __future__ import annotations

from typing import Any

from runnel.core.dtypes import DType, as_dtype, float32
from runnel.tensor.notebook import variable_html
from runnel.tensor.variable import Variable


class Parameter(Variable):
    """A Variable with a gradient. As an attribute of a Module it is one of the module's ``parameters()``.

    ``is_sparse``: its gradient names few rows, and only optimizers take it that leave the other rows alone.
    """

    __slots__ = ("is_sparse",)

    _repr_html_ = variable_html

    def __init__(
        self, data: Any, requires_grad: bool = True, *, name: str = "", dtype: Any = None, device: Any = None
    ) -> None:
        super().__init__(data, requires_grad=requires_grad, name=name, dtype=dtype, device=device)
        self.is_sparse = False


class Buffer(Variable):
    """A Variable that is state and not trained. As an attribute of a Module it is one of its ``buffers()``; unless it
    is ``persistent``, ``state_dict()`` leaves it out."""

    __slots__ = ("persistent",)

    _repr_html_ = variable_html

    def __init__(self, data: Any, *, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent


def named_in(variable: Variable, name: str) -> None:
    """Give ``variable`` the name it has in its module, unless it has one: a shared Variable keeps its first name."""
    if not variable.name:
        variable.name = name


def parameter_dtype(dtype: Any) -> DType:
    """The dtype of a layer's Parameters: float32 unless another one is asked for."""
    return float32 if dtype is None else as_dtype(dtype)
