"""L-BFGS: Newton's method with a curvature learnt from the last steps (D. Liu, J. Nocedal, 1989)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runnel import ops
from runnel.core import tracebacks
from runnel.core.errors import CaptureError
from runnel.optim import leaves
from runnel.optim.hyperparameters import hyperparameters_in
from runnel.optim.line_search import Point, strong_wolfe
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tracing
from runnel.tensor.grad_mode import enable_grad
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import counted
from runnel.tensor.variable import Variable, assign_together


class LBFGS(Optimizer):
    """``step(closure)`` makes up to ``max_iter`` steps p ← p + t·d.

    ``closure`` clears the gradients, computes the loss, calls ``backward()`` and returns the loss.

    d = -H·gradient, with H the inverse curvature of the last ``history_size`` steps (the two-loop recursion, from
    (y·s)/(y·y)·I). t is lr, in the first step of all lr·min(1, 1/\\|gradient\\|₁); with
    ``line_search_fn="strong_wolfe"`` it is searched for from there. It ends after ``max_eval`` calls of the closure
    (None: 1.25·max_iter), when no gradient is greater than ``tolerance_grad``, or when the loss or the Parameters
    change by less than ``tolerance_change``.

    One group of Parameters, all of one dtype. What the steps do depends on values, so they are no part of compiled
    functions; the closure may call one.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, hyperparameters_in(locals()))

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("[LBFGS] has one group of Parameters, for all of which it makes one step.")
        super().add_param_group(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to ``max_iter`` steps; returns the loss before the first."""
        if closure is None:
            raise TypeError("[LBFGS] step(closure) needs a function that computes the loss and its gradients.")
        if tracing.ACTIVE.trace is not None:
            raise counted(
                CaptureError(
                    f"[LBFGS] step() decides by the loss how often it computes it, at {tracebacks.user_line()}, which "
                    "no compiled function can; compile the closure, and call step() outside."
                )
            )
        leaves.take(self._leaves)
        try:
            return _Search(self, self._exchanging(closure)).run()
        finally:
            leaves.give(self._leaves)

    def _exchanging(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """The closure, for which tensors among the Parameters have their present values."""

        def call() -> Any:
            leaves.give(self._leaves)
            loss = closure()
            leaves.take(self._leaves)
            return loss

        return call if self._leaves else closure


class _Search:
    """One call of ``step``."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        group = optimizer.param_groups[0]
        self.params = group.params
        self.options = group.plain
        self.state = optimizer.state[self.params[0]]
        self.closure = closure
        self.evaluations = 1
        self.start = [p.value for p in self.params]

    def run(self) -> Any:
        state, options = self.state, self.options
        first = self._loss()
        loss, gradient = float(first), self._gradient()
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        if _greatest(gradient) <= options["tolerance_grad"]:
            return first
        direction, size = state.get("d"), state.get("t")
        for iteration in range(1, options["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient, direction, size)
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            size = options["lr"]
            if state["n_iter"] == 1:
                size = min(1.0, 1.0 / float(ops.sum(ops.abs(gradient)))) * options["lr"]
            slope = _dot(gradient, direction)
            if slope > -options["tolerance_change"]:
                break
            before, calls = loss, 1
            if options["line_search_fn"] == "strong_wolfe":
                point, calls = self._searched(Point(0.0, loss, gradient, slope), size, direction)
                size, loss, gradient = point.size, point.loss, point.gradient
                self._move(size, direction)
            else:
                self._move(size, direction)
                if iteration == options["max_iter"]:
                    break
                loss, gradient = float(self._loss()), self._gradient()
            self.evaluations += calls
            state["func_evals"] += calls
            if (
                self.evaluations >= options["max_eval"]
                or _greatest(gradient) <= options["tolerance_grad"]
                or _greatest(direction) * abs(size) <= options["tolerance_change"]
                or abs(loss - before) < options["tolerance_change"]
            ):
                break
        state["d"], state["t"] = direction, size
        return first

    def _direction(self, gradient: Tensor, last: Tensor | None, size: Any) -> Tensor:
        """Minus the gradient times the inverse curvature, which learns from the last step."""
        state = self.state
        if state["n_iter"] == 1 or last is None:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], last * size
        agreement = _dot(change, moved)
        changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if agreement > 1e-10:
            if len(changes) == self.options["history_size"]:
                del changes[0], moves[0], inverses[0]
            changes.append(change)
            moves.append(moved)
            inverses.append(1.0 / agreement)
            state["H_diag"] = agreement / _dot(change, change)
        direction, weights = -gradient, []
        for y, s, inverse in zip(reversed(changes), reversed(moves), reversed(inverses), strict=True):
            weights.append(_dot(s, direction) * float(inverse))
            direction = direction - y * weights[-1]
        direction = direction * float(state["H_diag"])
        for y, s, inverse, weight in zip(changes, moves, inverses, reversed(weights), strict=True):
            direction = direction + s * (weight - _dot(y, direction) * float(inverse))
        return direction

    def _searched(self, at: Point, size: float, direction: Tensor) -> tuple[Point, int]:
        start = [p.value for p in self.params]

        def evaluate(size: float) -> Point:
            self._move(size, direction)
            loss, gradient = float(self._loss()), self._gradient()
            assign_together(list(zip(self.params, start, strict=True)))
            return Point(size, loss, gradient, _dot(gradient, direction))

        limit = self.options["max_eval"] - self.evaluations
        return strong_wolfe(evaluate, at, size, limit, _greatest(direction), self.options["tolerance_change"])

    def _loss(self) -> Any:
        with enable_grad():
            return self.closure()

    def _gradient(self) -> Tensor:
        """All gradients in one vector; a Parameter without one counts with zeros."""
        return _flat([ops.zeros_like(p.value) if p.grad is None else ops.cast(p.grad, p.dtype) for p in self.params])

    def _move(self, size: float, direction: Tensor) -> None:
        values: list[tuple[Variable, Tensor]] = []
        begin = 0
        for p in self.params:
            part = ops.reshape(direction[begin : begin + p.size], p.shape)
            values.append((p, p.value + part * size))
            begin += p.size
        assign_together(values)


def _flat(tensors: list[Tensor]) -> Tensor:
    vector: Tensor = ops.concat([ops.reshape(t.detach(), (-1,)) for t in tensors])
    return vector


def _dot(a: Tensor, b: Tensor) -> float:
    return float(ops.sum(a * b))


def _greatest(x: Tensor) -> float:
    return float(ops.max(ops.abs(x)))
