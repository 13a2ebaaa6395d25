"""L-BFGS, with a line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from runnel import ops
from runnel.core import tracebacks
from runnel.core.errors import CaptureError
from runnel.optim.optimizer import Optimizer
from runnel.tensor import tracing
from runnel.tensor.grad_mode import enable_grad
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import counted
from runnel.tensor.variable import Variable, assign_together


class LBFGS(Optimizer):
    """L-BFGS (D. Liu, J. Nocedal, 1989): Newton's method with a curvature estimated from the last steps.

    ``step(closure)`` makes up to ``max_iter`` steps p ← p + t·d with d = -H·gradient, where H is the inverse curvature
    of the last ``history_size`` steps (the two-loop recursion, from (y·s)/(y·y)·I). t is lr, and in the very first step
    lr·min(1, 1/\\|gradient\\|₁). It stops early when no gradient is larger than ``tolerance_grad``, or when the loss or
    the Parameters change by less than ``tolerance_change``.

    All Parameters are in one group and have one dtype. The number of steps depends on values, so ``step`` cannot be
    compiled; the closure may call a compiled function.

    Args:
        params: Parameters.
        lr: the step size t, or the first one that the line search tries.
        max_iter: the largest number of steps in one call of ``step``.
        max_eval: the largest number of calls of the closure; None is 1.25·max_iter.
        tolerance_grad: the gradient at which to stop.
        tolerance_change: the change at which to stop.
        history_size: the number of steps that H remembers.
        line_search_fn: "strong_wolfe", or None for steps of fixed size.

    Example:
        >>> optimizer = optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = loss_of(model)
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure)
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
        super().__init__(
            params,
            {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
             "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
             "line_search_fn": line_search_fn},
        )  # fmt: skip

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("[LBFGS] all Parameters must be in one group, since it makes one step for all of them.")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to ``max_iter`` steps; return the loss before the first."""
        if closure is None:
            raise TypeError("[LBFGS] step(closure) must get a function that computes the loss and its gradients.")
        if tracing.ACTIVE.trace is not None:
            raise counted(
                CaptureError(
                    f"[LBFGS] step() cannot be compiled (at {tracebacks.user_line()}): how often it computes the loss "
                    "depends on the loss. Compile the closure, and call step() outside."
                )
            )
        for leaf in self._leaves:
            leaf.copy_in()
        try:
            return _Search(self, self._exchanging(closure)).run()
        finally:
            for leaf in self._leaves:
                leaf.copy_out()

    def _exchanging(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Return the closure, before which tensors among the Parameters get their present values."""

        def call() -> Any:
            for leaf in self._leaves:
                leaf.copy_out()
            loss = closure()
            for leaf in self._leaves:
                leaf.copy_in()
            return loss

        return call


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
        if _largest(gradient) <= options["tolerance_grad"]:
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
                or _largest(gradient) <= options["tolerance_grad"]
                or _largest(direction) * abs(size) <= options["tolerance_change"]
                or abs(loss - before) < options["tolerance_change"]
            ):
                break
        state["d"], state["t"] = direction, size
        return first

    def _direction(self, gradient: Tensor, last: Tensor | None, size: Any) -> Tensor:
        """Add the last step to the inverse curvature; return its product with minus the gradient."""
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
        return _strong_wolfe(evaluate, at, size, limit, _largest(direction), self.options["tolerance_change"])

    def _loss(self) -> Any:
        with enable_grad():
            return self.closure()

    def _gradient(self) -> Tensor:
        """Return all gradients in one vector, with zeros for a Parameter without a gradient."""
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
    vector: Tensor = ops.concat([ops.reshape(t.without_tape(), (-1,)) for t in tensors])
    return vector


def _dot(a: Tensor, b: Tensor) -> float:
    return float(ops.sum(a * b))


def _largest(x: Tensor) -> float:
    return float(ops.max(ops.abs(x)))


# Line search ----------------------------------------------------------------------------------------------------------

_DECREASE: Final = 1e-4  # the smallest decrease, as a share of what the first slope promises
_CURVATURE: Final = 0.9  # the largest slope that may remain, as a share of the first


class Point(NamedTuple):
    """The loss at one step length, its gradient, and its slope along the direction."""

    size: float
    loss: float
    gradient: Any
    slope: float


def _strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, size: float, limit: int, largest: float, tolerance: float
) -> tuple[Point, int]:
    """Find a point whose loss and slope are sufficiently smaller than at ``start``.

    The conditions are in J. Nocedal, S. Wright, "Numerical optimization", 3.5 and 3.6; the bounds are M. Schmidt's in
    minFunc, as in PyTorch.

    Args:
        evaluate: computes the point at a step length.
        start: the point at step length 0.
        size: the first step length to try.
        limit: the largest number of further trials.
        largest: the largest element of the direction.
        tolerance: the width of a bracket, times ``largest``, at which the search stops with the best point so far.

    Returns:
        The point, and how often ``evaluate`` was called.
    """
    bracket, trials = _bracketed(evaluate, start, size, limit)
    if len(bracket) == 1:
        return bracket[0], trials
    return _zoomed(evaluate, start, bracket, trials, limit, (largest, tolerance))


def _is_flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -_CURVATURE * start.slope


def _is_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + _DECREASE * point.size * start.slope


def _bracketed(evaluate: Callable[[float], Point], start: Point, size: float, limit: int) -> tuple[list[Point], int]:
    """Lengthen the step until a point is right, which is then the only one, or until one lies between two points."""
    before, now, trials = start, evaluate(size), 1
    for trial in range(limit):
        if _is_high(now, start) or (trial > 1 and now.loss >= before.loss):
            return [before, now], trials
        if _is_flat(now, start):
            return [now], trials
        if now.slope >= 0:
            return [before, now], trials
        least, most = now.size + 0.01 * (now.size - before.size), now.size * 10
        size = _interpolated(before, now, (least, most))
        before, now, trials = now, evaluate(size), trials + 1
    return [start, now], trials


def _zoomed(
    evaluate: Callable[[float], Point],
    start: Point,
    bracket: list[Point],
    trials: int,
    limit: int,
    narrow: tuple[float, float],
) -> tuple[Point, int]:
    """Narrow the bracket until its better end satisfies the conditions."""
    low, stuck = _better(bracket), False
    for _ in range(trials - 1, limit):
        left, right = sorted(point.size for point in bracket)
        if (right - left) * narrow[0] < narrow[1]:
            break
        size = _interpolated(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        is_near = min(right - size, size - left) < margin
        if is_near and (stuck or size >= right or size <= left):
            size = right - margin if abs(size - right) < abs(size - left) else left + margin
            is_near = False
        stuck = is_near
        now = evaluate(size)
        trials += 1
        if _is_high(now, start) or now.loss >= bracket[low].loss:
            bracket[1 - low] = now
            low = _better(bracket)
        elif _is_flat(now, start):
            return now, trials
        else:
            if now.slope * (bracket[1 - low].size - bracket[low].size) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = now
    return bracket[low], trials


def _better(bracket: list[Point]) -> int:
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _interpolated(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return where the cubic through both points, with their slopes, has its minimum; the middle if it has none."""
    left, right = bounds or (min(a.size, b.size), max(a.size, b.size))
    if a.size > b.size:
        a, b = b, a
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.size - b.size)
    square = bend**2 - a.slope * b.slope
    root = math.sqrt(square) if square >= 0 else math.nan
    across = b.slope - a.slope + 2 * root
    if not abs(across) > 0:
        return (left + right) / 2
    place = b.size - (b.size - a.size) * ((b.slope + root - bend) / across)
    return min(max(place, left), right)
