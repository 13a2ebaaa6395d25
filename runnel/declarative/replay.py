"""Operations carried out one after another, on tensors: recorded in a trace, that is a program; without one, eager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from runnel.core.errors import GraphError
from runnel.declarative.calls import Call
from runnel.declarative.gradients import Gradient, pullback
from runnel.declarative.operation import Declared, Operation
from runnel.declarative.state import VariableOperation
from runnel.declarative.training import Minimize
from runnel.optim.optimizer import Optimizer
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import Variable


class Replay:
    """One run of operations in ``order``. ``live`` are the variables that have a value in the session, ``optimizers``
    those of its training operations. ``fresh`` are the values that variables without one were given."""

    def __init__(
        self,
        order: Iterable[Operation],
        live: Mapping[VariableOperation, Variable],
        optimizers: Mapping[Minimize, Optimizer],
    ) -> None:
        self._order: Final = list(order)
        self._live = live
        self._optimizers = optimizers
        self._pullbacks: dict[Operation, Callable[..., Any]] = {}
        self._differentiated = {x.of for x in self._order if isinstance(x, Gradient)}
        self.fresh: dict[VariableOperation, Tensor] = {}

    def __call__(self, fed: Mapping[Declared, Tensor]) -> dict[Declared, Tensor]:
        """The value of every tensor, with those that are ``fed``."""
        values: dict[Declared, Any] = dict(fed)
        for operation in self._order:
            inputs = [values[x] for x in operation.inputs]
            try:
                outputs = self._computed(operation, inputs)
            except Exception as error:
                error.add_note(f"in operation '{operation.name}', declared at {operation.where}")
                raise
            for x, value in zip(operation.outputs, outputs, strict=True):
                values.setdefault(x, value)
        return values

    def _computed(self, operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        if isinstance(operation, (Call, Gradient)) and operation in self._differentiated:
            leaves, self._pullbacks[operation] = pullback(operation.evaluate, inputs)
            return leaves
        return operation.compute(inputs, self)

    # What operations ask ----------------------------------------------------------------------------------------------

    def read(self, variable: VariableOperation) -> Tensor:
        """The present value of a variable."""
        if variable in self.fresh:
            return self.fresh[variable]
        if variable not in self._live:
            raise GraphError(
                f"[session] the variable '{variable.name}', declared at {variable.where}, has no value in this "
                "session; run its initializer, or assign something, first."
            )
        return self._live[variable].read().detach()

    def assign(self, variable: VariableOperation, value: Tensor) -> None:
        """Give a variable another value."""
        if variable in self._live:
            self._live[variable].assign(value)
        else:
            self.fresh[variable] = value.detach()

    def train(self, operation: Minimize, gradients: Sequence[Tensor]) -> None:
        """One step of the optimizer of ``operation``."""
        trained = [self._live[v] for v in operation.variables]
        for parameter, g in zip(trained, gradients, strict=True):
            parameter.grad = g.detach()
        self._optimizers[operation].step()
        for parameter in trained:
            parameter.grad = None

    def pullback(self, operation: Operation) -> Callable[..., Any] | None:
        """What takes cotangents of the results of ``operation`` to those of its inputs, if it ran before."""
        return self._pullbacks.get(operation)
