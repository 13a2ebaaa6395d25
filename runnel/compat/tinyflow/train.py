"""TinyFlow's optimizers, whose steps are assignments declared by the public functions."""

from __future__ import annotations

from typing import Any

from runnel import ops
from runnel.compat.tinyflow.base import Variable, assign, gradients, group, variables_of
from runnel.compat.tinyflow.functions import Symbol, declared, zeros, zeros_like
from runnel.declarative.graph import whole
from runnel.declarative.operation import Operation


class GradientDescentOptimizer:
    """v - learning_rate · g for each variable v with the gradient g."""

    def __init__(self, learning_rate: float, name: str = "GradientDescent") -> None:
        self.learning_rate = learning_rate
        self.name = name

    @whole
    def minimize(self, obj: Symbol) -> Operation:
        """Return an operation that takes one step down the gradient of ``obj``."""
        variables = variables_of(obj)
        slopes = gradients(obj, variables)
        return group(
            *[
                assign(v, declared(descended, v, g, rate=self.learning_rate))
                for v, g in zip(variables, slopes, strict=True)
            ]
        )


class AdamOptimizer:
    """Adam (D. Kingma, J. Ba, 2014) with the corrections in the rate, lr · √(1 - β₂ᵗ) / (1 - β₁ᵗ), and ε = 10⁻⁴.

    Its moments are variables, which :func:`initialize_all_variables` initializes.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-4,
        name: str = "Adam",
    ) -> None:
        self.name = name
        self._rates: dict[str, Any] = {"rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    @whole
    def minimize(self, obj: Symbol) -> Operation:
        """Return an operation that takes one step for all variables of ``obj``."""
        variables = variables_of(obj)
        slopes = gradients(obj, variables)
        count = Variable(zeros([1]), f"{self.name}_t")
        time = assign(count, declared(ops.add, count, 1.0))
        steps = [time]
        for v, g in zip(variables, slopes, strict=True):
            # Read after the assignment that initializes ``v``, which may be in the same run.
            moments = [Variable(zeros_like(v.read()), f"{v.name}_{self.name}_{part}") for part in ("m", "v")]
            new = declared(adapted, v, g, *moments, time, **self._rates)
            steps += [assign(x, value) for x, value in zip((v, *moments), new, strict=True)]
        return group(*steps)


def descended(v: Any, g: Any, *, rate: float) -> Any:
    return v - rate * g


def adapted(
    x: Any, g: Any, m: Any, v: Any, t: Any, *, rate: float, beta1: float, beta2: float, epsilon: float
) -> tuple[Any, Any, Any]:
    """Return the new value and the new moments."""
    now = rate * ops.sqrt(1 - ops.pow(beta2, t)) / (1 - ops.pow(beta1, t))
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    step = ops.reshape(now, (1,) * x.ndim) * m / (ops.sqrt(v) + epsilon)
    return x - step, m, v
