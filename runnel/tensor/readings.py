"""What Variables held when a stretch of eager code began, which is what it finds when it runs again."""

from __future__ import annotations

from runnel.core.dispatch import TensorLike
from runnel.tensor.active import Readings
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class FirstReadings:
    """The values that Variables had when they were first read or assigned, outside of a trace."""

    def __init__(self) -> None:
        self.values: dict[Variable, Tensor] = {}

    def note(self, variable: TensorLike, value: TensorLike) -> None:
        if isinstance(variable, Variable) and isinstance(value, Tensor):
            self.values.setdefault(variable, value)

    def tell(self, other: Readings | None) -> None:
        """Let another one know what is known here."""
        if other is not None:
            for variable, value in self.values.items():
                other.note(variable, value)
