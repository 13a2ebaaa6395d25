"""What all metrics share: sums that grow batch by batch, a value at the end, saving and loading."""

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
    """A figure over many batches: ``update(output, target)`` for each of them, then ``compute()``.

    The value is that of all samples together, whatever the sizes of the batches. A subclass defines ``initial``,
    ``add`` and ``compute``. Sums are float64 or int64, on the host, and a saved state holds them all.

    Attributes:
        sums: what has been added up, by name: NumPy arrays.
    """

    name: ClassVar[str] = "metric"

    def __init__(self) -> None:
        self.sums: dict[str, np.ndarray] = self.initial()

    def initial(self) -> dict[str, np.ndarray]:
        """The sums before the first batch, by name."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def add(self, output: np.ndarray, target: np.ndarray) -> None:
        """Change ``sums`` for a batch."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def compute(self) -> Any:
        """The value for everything since ``reset()``: a float, or an array; nan where there is none."""
        raise NotImplementedError(f"[{type(self).__name__}] a Metric defines initial(), add() and compute().")

    def update(self, output: Any, target: Any) -> Self:
        """Take in a batch: what the model gave, and what is right. Both are tensors or arrays."""
        kind = type(self).__name__
        self.add(as_array(kind, output), as_array(kind, target))
        return self

    def reset(self) -> None:
        """Begin anew."""
        self.sums = self.initial()

    def fresh(self) -> Self:
        """Another metric of the same settings, without a batch."""
        twin = deepcopy(self)
        twin.reset()
        return twin

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of the sums."""
        return {name: value.copy() for name, value in self.sums.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave. StateError if it is not the state of such a metric."""
        initial = self.initial()
        if not isinstance(state, Mapping) or state.keys() != initial.keys():
            raise StateError(f"[load_state_dict] the state of {type(self).__name__} has {', '.join(initial)}.")
        self.sums = {name: np.array(state[name], initial[name].dtype) for name in initial}

    def require_equal_shapes(self, output: np.ndarray, target: np.ndarray) -> None:
        """ShapeError unless they have the same shape."""
        if output.shape != target.shape:
            raise ShapeError(
                f"[{type(self).__name__}] output and target have the same shape; received {output.shape} and "
                f"{target.shape}."
            )


def as_array(metric: str, value: Any) -> np.ndarray:
    """A tensor, array or number as a NumPy array; ArgumentError for anything that is not made of real numbers."""
    if isinstance(value, ArrayMethods):
        value = value.numpy()
    try:
        array = np.asarray(value)
        is_real = from_numpy(array.dtype).kind != "complex"
    except (TypeError, ValueError):
        is_real = False
    if not is_real:
        raise ArgumentError(f"[{metric}] output and target hold real numbers; received {short_repr(value)}.")
    return array


def quotient(part: Any, whole: Any) -> float:
    """``part / whole``; nan where nothing was counted."""
    return float(part) / float(whole) if whole else float("nan")


class Mean(Metric):
    """The mean of ``output``, each of its elements counted ``weight`` times: Σ w·x / Σ w. Takes no target."""

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
    """The labels as a vector of int64; ArgumentError where one is not a whole number."""
    if target.dtype.kind in "biu":
        return target.astype(np.int64).ravel()
    values = target.astype(np.float64).ravel()
    wrong = values[~np.isfinite(values) | (np.trunc(values) != values)]
    if wrong.size:
        raise ArgumentError(
            f"[{metric}] target holds labels, which are whole numbers; received {wrong[0]}, in {target.dtype.name}."
        )
    return values.astype(np.int64)


def labels(
    metric: str, output: np.ndarray, target: np.ndarray, axis: int, threshold: float, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The predicted and the right labels as vectors of int64, without those to be ignored.

    ``output`` has an axis of scores for each class beside those of ``target``; or the shape of ``target``, and then it
    holds labels, or floats of two classes that are compared with ``threshold``.
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
            f"[{metric}] output has the shape of target, or one axis more, for the classes (axis={axis}); received "
            f"{output.shape} and {target.shape}."
        )
    chosen, right = predicted.astype(np.int64).ravel(), whole_labels(metric, target)
    if ignore_index is None:
        return chosen, right
    counted = right != ignore_index
    return chosen[counted], right[counted]
