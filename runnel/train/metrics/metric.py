"""The base of metrics: sums that grow batch by batch, a value at the end, saving and loading."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np

from runnel.core.arrays import short_repr
from runnel.core.dtypes import from_numpy
from runnel.core.errors import ArgumentError, ShapeError, StateError
from runnel.tensor.methods import ArrayMethods


class Metric:
    """A value over many batches: call ``update(output, target)`` for each, then ``compute()``.

    The value is for all samples together, whatever the sizes of the batches. A subclass defines ``initial``, ``add``
    and ``compute``. Sums are float64 or int64 on the host, and a saved state has all of them.

    Attributes:
        sums: NumPy arrays by name.
    """

    name: ClassVar[str] = "metric"

    def __init__(self) -> None:
        self.sums: dict[str, np.ndarray] = self.initial()

    def initial(self) -> dict[str, np.ndarray]:
        """Return the sums before the first batch, by name."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        """Change ``sums`` for a batch."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def compute(self) -> Any:
        """Return the value since ``reset()``: a float or an array; NaN if there is none."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def update(self, output: Any, target: Any) -> Self:
        """Add a batch: the model's output and the target, both tensors or arrays."""
        kind = type(self).__name__
        self.add(as_array(kind, output), as_array(kind, target))
        return self

    def reset(self) -> None:
        """Start again."""
        self.sums = self.initial()

    def fresh(self) -> Self:
        """Return another metric with the same settings and no batches."""
        twin = deepcopy(self)
        twin.reset()
        return twin

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of the sums."""
        return {name: value.copy() for name, value in self.sums.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a result of ``state_dict``; StateError if it belongs to another metric."""
        initial = self.initial()
        if not isinstance(state, Mapping) or state.keys() != initial.keys():
            raise StateError(f"[load_state_dict] the state of {type(self).__name__} has {', '.join(initial)}.")
        self.sums = {name: np.array(state[name], initial[name].dtype) for name in initial}

    def require_equal_shapes(self, output: np.ndarray, target: np.ndarray) -> None:
        """Raise ShapeError unless both have the same shape."""
        if output.shape != target.shape:
            raise ShapeError(
                f"[{type(self).__name__}] output and target must have the same shape; got {output.shape} and "
                f"{target.shape}."
            )


def as_array(metric: str, value: Any) -> np.ndarray:
    """Return a tensor, array or number as a NumPy array; ArgumentError unless it has real numbers."""
    if isinstance(value, ArrayMethods):
        value = value.numpy()
    try:
        array = np.asarray(value)
        is_real = from_numpy(array.dtype).kind != "complex"
    except (TypeError, ValueError):
        is_real = False
    if not is_real:
        raise ArgumentError(f"[{metric}] output and target must hold real numbers; got {short_repr(value)}.")
    return array


def quotient(part: Any, whole: Any) -> float:
    """Return ``part / whole``; NaN if nothing was counted."""
    return float(part) / float(whole) if whole else float("nan")


class Mean(Metric):
    """The mean of ``output``, with each element counted ``weight`` times: Σ w·x / Σ w. It takes no target."""

    name = "mean"

    def initial(self) -> dict[str, np.ndarray]:
        return {"sum": np.zeros(()), "weight": np.zeros(())}

    def update(self, output: Any, target: Any = None, weight: float = 1.0) -> Self:
        if not weight:
            return self  # nothing, be it the NaN of an empty batch
        values = as_array(type(self).__name__, output).astype(np.float64)
        self.sums["sum"] = np.asarray(self.sums["sum"] + weight * values.sum())
        self.sums["weight"] = np.asarray(self.sums["weight"] + weight * values.size)
        return self

    def compute(self) -> float:
        return quotient(self.sums["sum"], self.sums["weight"])


def whole_labels(metric: str, target: np.ndarray) -> np.ndarray:
    """Return the labels as a vector of int64; ArgumentError unless all are integers."""
    if target.dtype.kind in "biu":
        return target.astype(np.int64).ravel()
    values = target.astype(np.float64).ravel()
    wrong = values[~np.isfinite(values) | (np.trunc(values) != values)]
    if wrong.size:
        raise ArgumentError(
            f"[{metric}] labels in target must be whole numbers; got {wrong[0]}, in {target.dtype.name}."
        )
    return values.astype(np.int64)


def labels(
    metric: str, output: np.ndarray, target: np.ndarray, axis: int, threshold: float, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted and the correct labels as vectors of int64, without ignored ones.

    ``output`` has one more axis than ``target``, with scores for each class; or the shape of ``target``, with labels,
    or with floats of two classes that are compared with ``threshold``.
    """
    if output.ndim == target.ndim + 1 and -output.ndim <= axis < output.ndim:
        if not output.shape[axis]:
            raise ShapeError(f"[{metric}] output has no classes: its shape is {output.shape}.")
        predicted = output.argmax(axis=axis)
    elif output.dtype.kind in "biu":
        predicted = output
    else:
        predicted = output.astype(np.float64) > threshold
    if predicted.shape != target.shape:
        raise ShapeError(
            f"[{metric}] output must have the shape of target, or one axis more, for the classes (axis={axis}); got "
            f"{output.shape} and {target.shape}."
        )
    chosen, right = predicted.astype(np.int64).ravel(), whole_labels(metric, target)
    if ignore_index is None:
        return chosen, right
    counted = right != ignore_index
    return chosen[counted], right[counted]
