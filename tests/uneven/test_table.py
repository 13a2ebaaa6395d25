"""Each row of the table against dense batches of one row: the same bits, forward and in gradients, whatever the other
rows are; and the same bits in compiled functions, which serve new lengths without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from tests.uneven.records import RECORDS, Record, rows_of

LENGTHS = (5, 1, 70, 2, 17)


def parts_of(result: Any, rows: int) -> list[np.ndarray]:
    parts = result.unbind() if isinstance(result, rn.Ragged) else list(result)
    assert len(parts) == rows
    return [part.numpy() for part in parts]


def results(record: Record, rows: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the rows of the result, and of the gradient of the sum of its squares."""
    x = rn.ragged(rows)
    if not record.smooth:
        return parts_of(record.function(x), len(rows)), []
    x.requires_grad_()
    result = record.function(x)
    flat = result.values if isinstance(result, rn.Ragged) else result
    (flat * flat).sum().backward()
    return parts_of(result.detach(), len(rows)), parts_of(x.grad, len(rows))


def alone(record: Record, row: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    x = rn.asarray(row)
    if not record.smooth:
        return record.function(x[None])[0].numpy(), None
    x.requires_grad_()
    result = record.function(x[None])[0]
    (result * result).sum().backward()
    return result.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", RECORDS)
def test_rows_are_what_they_are_alone(name: str) -> None:
    record = RECORDS[name]
    rows = rows_of(record, LENGTHS, np.random.default_rng(0))
    values, gradients = results(record, rows)
    for i, row in enumerate(rows):
        value, gradient = alone(record, row)
        np.testing.assert_array_equal(values[i], value, strict=True)
        if gradient is not None:
            np.testing.assert_array_equal(gradients[i], gradient, strict=True)


def together(names: list[str]) -> Callable[[Any], list[Any]]:
    return lambda x: [RECORDS[name].function(x) for name in names]


@pytest.mark.suite
def test_compiled_functions_serve_new_lengths() -> None:
    names = [
        n for n, r in RECORDS.items() if r.features and r.features[0] > 1 and "stride" not in n and "short" not in n
    ]
    compiled = rn.compile(together(names))
    rng = np.random.default_rng(1)
    with rn.no_grad():
        for _ in range(6):
            x = rn.ragged(rows_of(Record(None, least=3), rng.integers(3, 12, 4), rng))  # type: ignore[arg-type]
            for name, actual, expected in zip(names, compiled(x), together(names)(x), strict=True):
                for a, b in zip(parts_of(actual, 4), parts_of(expected, 4), strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=name)
    assert compiled.statistics["traces"] <= 4


@pytest.mark.parametrize("name", [n for n in RECORDS if "ttention" in n or "ncoder" in n] or list(RECORDS)[:1])
def test_compiled_gradients_are_those_of_eager_calls(name: str) -> None:
    """Include self-attention, in which query, key and value are the same Ragged."""
    record = RECORDS[name]
    rows = rn.ragged(rows_of(record, LENGTHS, np.random.default_rng(2)))

    def loss(values: Any, offsets: Any) -> Any:
        result = record.function(rn.Ragged(values, offsets))
        flat = result.values if isinstance(result, rn.Ragged) else result
        return (flat * flat).sum()

    eager, compiled = rn.grad(loss), rn.compile(rn.grad(loss))
    a, b = eager(rows.values, rows.offsets), compiled(rows.values, rows.offsets)
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_training_with_new_lengths() -> None:
    rn.manual_seed(0)
    model = rn.nn.Sequential(rn.nn.Embedding(20, 8), rn.nn.LayerNorm(8), rn.nn.Linear(8, 3))
    optimizer = rn.optim.SGD(model.parameters(), lr=0.1)

    @rn.compile
    def step(tokens: rn.Ragged, labels: rn.Ragged) -> rn.Tensor:
        loss = rn.nn.functional.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    rng = np.random.default_rng(0)
    losses = []
    for _ in range(30):
        sentences = [rng.integers(0, 20, n) for n in rng.integers(2, 9, 6)]
        losses.append(step(rn.ragged(sentences), rn.ragged([s % 3 for s in sentences])).item())
    assert losses[-1] < losses[0] and step.statistics["traces"] <= 3
