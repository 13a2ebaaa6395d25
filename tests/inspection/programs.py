"""A small program with everything a report speaks of: products, reductions, a Variable that is updated, constants."""

from __future__ import annotations

import numpy as np

import runnel as rn
from runnel import ops
from runnel.compiler.passes.pipeline import USUAL
from runnel.inspection.inspection import Inspection
from runnel.tensor.variable import Variable
from tests.compiler.harness import Traced


def values(*shape: int, seed: int = 0) -> rn.Tensor:
    return rn.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def network(threads: int = 1, rows: int = 48) -> Inspection:
    """Two layers, a softmax and the update of a Variable, as planned for so many threads."""
    hidden = Variable(np.full((20, 32), 0.1, np.float32))
    last = Variable(np.full((32, 10), 0.1, np.float32))
    table = rn.asarray(np.arange(10, dtype=np.float32))

    def step(x: rn.Tensor) -> rn.Tensor:
        first = ops.relu(x @ hidden.read())
        scores = ops.softmax(first @ last.read()) + table
        last.assign(last.read() - ops.transpose(first) @ scores)
        return scores.sum()

    return inspect(Traced(step, (values(rows, 20),), threads=threads))


def inspect(traced: Traced) -> Inspection:
    """The reports on a program traced by hand."""
    return Inspection(traced.program, traced.graph, lambda: USUAL.run(traced.graph, keep=True)[1])
