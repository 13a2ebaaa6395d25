"""Tracing a function by hand and running its plan, so that lowering is tested without guards and caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.backends.host import memory
from runnel.compiler.passes.decompose import decompose
from runnel.compiler.plan import plan_graph
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.program import Program
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import TracedVariables, Variable


class Traced:
    """A function's graph, its plan for some number of threads, and the program."""

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Sequence[Tensor],
        *,
        threads: int = 1,
        fuse: bool = True,
        rewrite: Callable[[Graph], Graph] | None = None,
    ) -> None:
        trace = tracing.Trace(tensors.serial_now())
        with tracing.activate(trace):
            nodes = [trace.input(a.aval, InputKind.ARGUMENT, f"arg{i}") for i, a in enumerate(args)]
            result = fn(*[tensors.symbolic(n) for n in nodes])
            results = result if isinstance(result, tuple) else (result,)
            outputs = [tensors.node_of(r.read(), trace) for r in results]
        traced = trace.facet(TracedVariables)
        updates = {traced.nodes[v]: tensors.node_of(traced.values[v], trace) for v in traced.written}
        graph = trace.graph(outputs, updates, "traced")
        self.graph = decompose(rewrite(graph) if rewrite is not None else graph)
        self.avals = [o.aval for o in outputs]
        self.reads_others = len(graph.inputs) != len(args) + len(traced.nodes)
        self.plan: Plan = plan_graph(self.graph, threads, fuse=fuse)
        self.variables: list[Variable] = [
            next(v for v, n in traced.nodes.items() if n is node) for node in self.plan.variables
        ]
        self.program = Program(self.plan, [v.private_address() for v in self.variables])

    def __call__(self, *args: Tensor) -> list[np.ndarray]:
        if self.reads_others:
            raise ValueError("The function reads tensors that are not among its arguments.")
        storages = [memory.allocate(p.nbytes) for p in self.plan.outputs]
        dense = [a.contiguous() for a in args]
        self.program.run([a.address for a in dense], [s.address for s in storages])
        return [
            tensors.from_storage(a, storages[k]).numpy() for a, k in zip(self.avals, self.plan.output_of, strict=True)
        ]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal shape, dtype and bits (a NaN equals a NaN)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.size == 0 or a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind in "biu":
        return False
    bits = np.dtype(f"u{a.dtype.itemsize}")
    equal = np.atleast_1d(a).view(bits) == np.atleast_1d(b).view(bits)
    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return bool((equal | nan).all())
