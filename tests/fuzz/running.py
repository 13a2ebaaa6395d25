"""Run a function in every mode: eager, compiled on any number of threads, fused or not, and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import runnel as rn
from runnel.compiler.passes.pipeline import USUAL
from runnel.compiler.plan_ir.plan import Plan
from runnel.core import switches
from runnel.loops.formulas.table import ULP_BOUNDS
from runnel.loops.ir import Apply, Expr, For, Stmt
from tests.compiler.harness import Traced, same_bits
from tests.suites.plans import interpret

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class Choices:
    """The choices of a random program, by its seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def of(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)


def arrays_of(result: Any) -> list[Array]:
    """Return the tensors that a function returned, in NumPy."""
    results = result if isinstance(result, tuple) else (result,)
    return [np.array(r.numpy()) for r in results]


def outcomes(
    fn: Function, inputs: list[rn.Tensor], rng: np.random.Generator, interpreted: bool
) -> Iterator[tuple[str, list[Array]]]:
    """Yield the results of ``fn`` in each mode, the eager one first."""
    with switches.override(num_threads=1):
        yield "eager", arrays_of(fn(*inputs))
    threads = int(rng.integers(2, 5))
    with switches.override(num_threads=threads):
        yield f"eager on {threads} threads", arrays_of(fn(*inputs))
        yield f"compiled on {threads} threads", arrays_of(rn.compile(fn)(*inputs))
    with switches.override(num_threads=1):
        yield "compiled", arrays_of(rn.compile(fn)(*inputs))
    lone = Traced(fn, inputs, threads=threads, fuse=False, rewrite=optimized)
    yield f"unfused on {threads} threads", lone(*inputs)
    if interpreted:
        fused = Traced(fn, inputs, rewrite=optimized)
        if is_exact(fused.plan):
            dense = [np.ascontiguousarray(x.numpy()) for x in inputs]
            actual = interpret(fused.plan, dense)
            shaped = [actual[k].reshape(a.shape) for a, k in zip(fused.avals, fused.plan.output_of, strict=True)]
            yield "interpreted", shaped


def optimized(graph: Any) -> Any:
    return USUAL.run(graph)[0]


def is_exact(plan: Plan) -> bool:
    """Return True if the interpreter computes the bits of compiled code and arrays begin at their first positions."""
    if any(min(call.params, default=0) < 0 for call in plan.calls) or plan.regions:
        return False
    return all(_exact(e) for call in plan.calls for e in _expressions(call.kernel.body))


def _expressions(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    for stmt in body:
        if isinstance(stmt, For):
            yield from _expressions(stmt.body)
        elif hasattr(stmt, "value"):
            yield stmt.value


def _exact(expr: Expr) -> bool:
    return not isinstance(expr, Apply) or (expr.op not in ULP_BOUNDS and all(map(_exact, expr.args)))


def check(fn: Function, inputs: list[rn.Tensor], rng: np.random.Generator, interpreted: bool = False) -> list[Array]:
    """The results, after all modes have given the same bits (any NaN is like another)."""
    expected: list[Array] | None = None
    for mode, actual in outcomes(fn, inputs, rng, interpreted):
        if expected is None:
            expected = actual
            continue
        for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
            assert same_bits(a, b), f"result {number} {mode} differs from eager:\n{b}\n{a}"
    if expected is None:
        raise AssertionError("No mode ran.")
    return expected
