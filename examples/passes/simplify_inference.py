"""Batch normalization at inference as one multiplication and one addition.

(x - mean)·scale + bias becomes x·scale + (bias - mean·scale): what is in brackets depends on the Variables alone. It is
rounded otherwise, so a program with this pass gives other bits than eager code.

    passes.USUAL.insert(SIMPLIFY_INFERENCE, before="decompose")
"""

from __future__ import annotations

from typing import Any

from runnel import passes
from runnel.passes import anything, applied

x, mean, scale, bias = (anything(name) for name in ("x", "mean", "scale", "bias"))


def are_vectors(x: passes.Value, **vectors: passes.Value) -> bool:
    """Return whether ``vectors`` have elements along only one axis, besides copies along others: x has more axes."""
    return all(x.aval.size > y.aval.size and unbroadcast(y).aval.size in y.aval.shape for y in vectors.values())


def unbroadcast(value: passes.Value) -> passes.Value:
    return value.inputs[0] if value.op is passes.op("broadcast") else value


def scaled_and_shifted(x: Any, mean: Any, scale: Any, bias: Any) -> Any:
    return x * scale + (bias - mean * scale)


SIMPLIFY_INFERENCE = passes.rewriting(
    "simplify_inference",
    "batch normalization with known moments is a scale and a shift",
    passes.Rule(
        applied("add", applied("mul", applied("sub", x, mean), scale, any_order=True), bias, any_order=True),
        scaled_and_shifted,
        when=are_vectors,
    ),
)
