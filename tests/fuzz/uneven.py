"""Random programs on ragged values against the same programs on each row alone: the same bits, also of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import runnel as rn
from tests.uneven.records import FEATURES, RECORDS, Record

MOST: Final = 6  # operations of a program
_KEEPS: Final = {  # functions of (rows, length, FEATURES) to the same axes
    name: record.function
    for name, record in RECORDS.items()
    if record.features == (FEATURES,) and record.least == 1 and record.smooth
    and name not in ("power", "exp", "stack", "convolution with stride")
}  # fmt: skip


def _is_kept(function: Callable[[Any], Any]) -> bool:
    """Return whether ``function`` keeps the lengths and the features."""
    result = function(rn.Ragged.from_lengths(rn.ones((3, FEATURES)), [1, 2]))
    return isinstance(result, rn.Ragged) and result.lengths.tolist() == [1, 2] and result.values.shape == (3, FEATURES)


def draw(rng: np.random.Generator) -> list[str]:
    """Return the names of a program's operations; the last may be any that takes features."""
    inner = [name for name, function in _KEEPS.items() if _is_kept(function)]
    last = [n for n, r in RECORDS.items() if r.features == (FEATURES,) and r.least == 1 and r.smooth and n != "exp"]
    return [str(name) for name in (*rng.choice(inner, rng.integers(1, MOST)), rng.choice(last))]


def run(seed: int) -> str:
    """Run the program of ``seed``, eagerly or compiled, and return it as text; AssertionError if a bit differs."""
    rng = np.random.default_rng(seed)
    names = draw(rng)

    def program(x: Any) -> Any:
        for name in names:
            x = RECORDS[name].function(x) * 0.5
        return x

    rows = [rng.normal(size=(n, FEATURES)).astype(np.float32) for n in rng.integers(1, 40, rng.integers(1, 7))]
    record = Record(program)
    text = f"{' → '.join(names)} of lengths {[len(row) for row in rows]}"
    values, gradients = together(record, rows, compiled=seed % 4 == 0)
    for i, row in enumerate(rows):
        value, gradient = alone(record, row)
        np.testing.assert_array_equal(values[i], value, err_msg=f"{text}: row {i}")
        np.testing.assert_array_equal(gradients[i], gradient, err_msg=f"{text}: gradient of row {i}")
    return text


def together(record: Record, rows: list[np.ndarray], compiled: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the rows of the result and of the gradient of the sum of its squares."""
    offsets = rn.ragged(rows).offsets

    def loss(values: Any) -> tuple[Any, Any]:
        result = record.function(rn.Ragged(values, offsets))
        flat = result.values if isinstance(result, rn.Ragged) else result
        return (flat * flat).sum(), (flat, result.offsets if isinstance(result, rn.Ragged) else None)

    both = rn.value_and_grad(loss, has_aux=True)
    (_, (flat, inner)), gradient = (rn.compile(both) if compiled else both)(rn.asarray(np.concatenate(rows)))
    results = list(flat) if inner is None else rn.Ragged(flat, inner).unbind()
    return [x.numpy() for x in results], [x.numpy() for x in rn.Ragged(gradient, offsets).unbind()]


def alone(record: Record, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for a dense batch of one row."""

    def loss(x: Any) -> tuple[Any, Any]:
        result = record.function(x[None])[0]
        return (result * result).sum(), result

    (_, value), gradient = rn.value_and_grad(loss, has_aux=True)(rn.asarray(row))
    return value.numpy(), gradient.numpy()
