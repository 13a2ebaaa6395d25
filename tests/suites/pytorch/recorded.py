"""PyTorch's results for the cases, and the same computed by Runnel."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import runnel as rn
import runnel.compat.torch as torch
from tests.suites.pytorch import made


@cache
def recorded() -> dict[str, Any]:
    """All that ``record.py`` wrote."""
    return json.loads(gzip.decompress(Path(__file__).with_name("pytorch.json.gz").read_bytes()))


def tensors(arrays: Mapping[str, str], case: str, dtype: str = "float64") -> dict[str, rn.Tensor]:
    results = {}
    for name, text in arrays.items():
        values = made.array(text, f"{case} {name}")
        values = values.astype(dtype) if values.dtype.kind == "f" else values
        results[name] = rn.tensor(values, requires_grad=made.has_gradient(text))
    return results


def leaves(value: Any) -> list[rn.Tensor]:
    if isinstance(value, rn.Tensor | rn.Variable):
        return [torch.view_as_real(value) if value.dtype.is_complex else value.read()]
    if isinstance(value, bool | int | float):
        return [rn.asarray(value)]
    if hasattr(value, "batch_sizes"):
        return [value.data]
    return [leaf for part in value if part is not None for leaf in leaves(part)]


def backward(outputs: list[rn.Tensor]) -> None:
    """Gradients of the loss in which each element of ``outputs`` counts in its own way."""
    terms = [(x * rn.asarray(made.weights(x.shape).astype(x.dtype.numpy))).sum() for x in outputs if x.requires_grad]
    if terms:
        sum(terms[1:], terms[0]).backward()


def assert_like(actual: Any, expected: list[Any], tolerance: float, what: str) -> None:
    shape, values = expected
    assert list(actual.shape) == shape, what
    np.testing.assert_allclose(actual.numpy().reshape(-1), values, rtol=tolerance, atol=tolerance, err_msg=what)


def assert_gradient(leaf: Any, expected: list[Any], tolerance: float, what: str) -> None:
    """None is as good as zeros."""
    if leaf.grad is None:
        assert not any(expected[1]), what
    else:
        assert_like(leaf.grad, expected, tolerance, what)
