"""Training in a declared graph: a step of one of ``rn.optim``'s optimizers as an operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.errors import ArgumentError, GradientError
from runnel.declarative.gradients import gradients
from runnel.declarative.graph import default_graph, whole
from runnel.declarative.operation import Declared, Operation, Run, closure, ordered
from runnel.declarative.state import Variable, VariableOperation
from runnel.optim.optimizer import Optimizer
from runnel.tensor.variable import Variable as LiveVariable


class Minimize(Operation):
    """One step of an optimizer with gradients that it reads.

    Each session has its own optimizer. Its state starts with its first step, and again when its variables are
    initialized.
    """

    __slots__ = ("hyperparameters", "optimizer", "variables")
    kind = "minimize"

    def __init__(
        self,
        name: str,
        optimizer: type[Optimizer],
        hyperparameters: dict[str, Any],
        variables: Sequence[VariableOperation],
        slopes: Sequence[Declared],
    ) -> None:
        self.optimizer: Final = optimizer
        self.hyperparameters: Final = dict(hyperparameters)
        self.variables: Final = tuple(variables)
        super().__init__(variables[0].graph, name, slopes, ())

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        run.train(self, values)
        return []

    @property
    def label(self) -> str:
        return self.optimizer.__name__

    def attributes(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.__name__,
            "hyperparameters": self.hyperparameters,
            "variables": [v.name for v in self.variables],
        }


@whole
def minimize(
    loss: Declared,
    optimizer: type[Optimizer],
    variables: Iterable[Variable] | None = None,
    *,
    name: str = "minimize",
    **hyperparameters: Any,
) -> Operation:
    """Declare one step down the gradient of ``loss``.

    Args:
        loss: the tensor to minimize; for several elements, their sum.
        optimizer: a class of ``rn.optim``, such as ``rn.optim.Adam``.
        variables: the variables to train; by default all floating ones that the loss depends on.
        name: name of the operation.
        hyperparameters: arguments of the optimizer: ``lr=0.01``.

    GradientError if the loss does not depend on one of ``variables``, or on none at all.
    """
    default_graph().require_outermost("minimize")
    if not (isinstance(optimizer, type) and issubclass(optimizer, Optimizer)):
        raise ArgumentError(f"[minimize] the optimizer must be a class of rn.optim; got {optimizer!r}.")
    if not isinstance(loss, Declared):
        raise ArgumentError(f"[minimize] the loss must be a declared tensor; got {type(loss).__name__}.")
    require_hyperparameters(optimizer, hyperparameters)
    trained = trainable(loss) if variables is None else list(variables)
    if not trained:
        raise GradientError(f"[minimize] '{loss.name}' depends on no variable that can be trained.")
    slopes = gradients(loss, trained)
    missing = [v.name for v, g in zip(trained, slopes, strict=True) if g is None]
    if missing:
        raise GradientError(f"[minimize] '{loss.name}' does not depend on {', '.join(map(repr, missing))}.")
    operations = [v.operation for v in trained if isinstance(v.operation, VariableOperation)]
    return Minimize(name, optimizer, hyperparameters, operations, [g for g in slopes if g is not None])


def require_hyperparameters(optimizer: type[Optimizer], hyperparameters: Mapping[str, Any]) -> None:
    """Raise the error of ``optimizer`` for invalid hyperparameters before anything is declared."""
    optimizer([LiveVariable(np.zeros(1, np.float32), requires_grad=True)], **hyperparameters)


def trainable(loss: Declared) -> list[Variable]:
    """Return the floating variables that ``loss`` depends on, in declaration order."""
    every = [x.variable for x in ordered(closure([loss.operation])) if isinstance(x, VariableOperation)]
    return [v for v in every if v.static.dtype is None or v.static.dtype.is_float]
