"""Parameters: the Variables that training changes. Layers make them; optimizers and ``backward()`` find them."""

from __future__ import annotations

from typing import Any

from runnel.core.surface import offered
from runnel.tensor.variable import Variable


@offered("rn", "nn")
class Parameter(Variable):
    """A Variable with a gradient. As an attribute of a Module it is one of the module's ``parameters()``.

    ``is_sparse``: its gradient names few rows, and only optimizers take it that leave the other rows alone.
    """

    __slots__ = ("is_sparse",)

    def __init__(
        self, value: Any, requires_grad: bool = True, *, name: str = "", dtype: Any = None, device: Any = None
    ) -> None:
        super().__init__(value, requires_grad=requires_grad, name=name, dtype=dtype, device=device)
        self.is_sparse = False


def named_in(variable: Variable, name: str) -> None:
    """Give ``variable`` the name it has in its module, unless it has one: a shared Variable keeps its first name."""
    if not variable.name:
        variable.name = name
