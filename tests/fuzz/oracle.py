"""Eager execution by NumPy where NumPy computes the bits of compiled code.

Ops of ever other shapes and strides need a plan each, which takes longer than a small graph's compilation; most of them
round once or only move data, and need none this way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from runnel.compiler.passes.simplify import agrees
from runnel.core import tables
from runnel.core.switches import RESOLVED, State
from runnel.core.tables import Op
from runnel.graph.interpreter import evaluate
from runnel.graph.node import Result, applied
from runnel.graph.rewriting import placeholder
from runnel.tensor import eager
from runnel.tensor.tensor import Tensor, from_numpy


@contextlib.contextmanager
def numpy_where_exact() -> Iterator[None]:
    """In the block, single ops on which NumPy and compiled code agree are left to NumPy."""
    compiled = eager.execute
    nodes: dict[Any, Result | None] = {}

    def execute(op: Op, tensors: tuple[Tensor, ...], attrs: dict[str, Any]) -> Any:
        if op.multiple_results:
            return compiled(op, tensors, attrs)
        key = (op, *attrs.values(), *[x.aval for x in tensors])
        if key not in nodes:
            operands = tuple(placeholder(x.aval, "x") for x in tensors)
            node = applied(op, operands, attrs, tables.abstract_eval[op](*[x.aval for x in tensors], **attrs))
            nodes[key] = node if agrees(node) else None
        actual = nodes[key]
        if actual is None:
            return compiled(op, tensors, attrs)
        with np.errstate(all="ignore"):
            value = np.ascontiguousarray(evaluate(actual.node, [x.numpy() for x in tensors])[0])
        return from_numpy(value.reshape(actual.aval.shape), actual.aval.dtype, copy=False)

    RESOLVED.state = State()  # in which no op is ready
    eager.execute = execute
    try:
        yield
    finally:
        eager.execute = compiled
