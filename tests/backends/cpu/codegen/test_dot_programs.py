"""Whole steps under autocast as they are planned for machines with dot instructions, and run where that is emulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aarch64
import numpy as np
import pytest
from images import Array, Image, native
from nest_harness import machine_code

import runnel as rn
from runnel import ops
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.backends.cpu.target import NEON_BF16
from runnel.compiler.passes import hoisted
from runnel.compiler.passes.pipeline import EXPANSION, USUAL
from runnel.compiler.plan import plan_graph
from runnel.compiler.plan_ir.plan import Plan
from runnel.core import switches
from runnel.core.avals import aval
from runnel.core.dtypes import bfloat16, float32
from runnel.graph.graph import Graph
from runnel.graph.node import InputKind
from runnel.loops.ir import Contract
from runnel.nn import functional as F
from runnel.tensor import tensor as tensors, tracing
from tests.compiler.harness import same_bits

DOTS = [row.name for row in target.TARGETS if row.dot]


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    return F.linear(rn.relu(F.linear(x, w1, b1)), w2)


def convolutions(x: Any, w1: Any, b1: Any, w2: Any, w3: Any, w4: Any) -> Any:
    """Three by three, where Winograd's algorithm would be chosen for float32; strided; grouped; depthwise."""
    x = rn.relu(ops.conv(x, w1, b1, padding=1))
    x = rn.relu(ops.conv(x, w2, stride=2, dilation=2))
    return ops.conv(ops.conv(x, w3, groups=2), w4, groups=8, padding=1)


def batched(x: Any, w: Any) -> Any:
    return rn.tensordot(rn.relu(x @ w), w, ([2, 0], [2, 0]))


def recurrence(x: Any, w: Any, u: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = rn.cast(rn.tanh(F.linear(x, w) + F.linear(h, u)), rn.float32)
        return h, h

    return F.linear(rn.scan(body, rn.zeros((4, 6)), x)[1], u)


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(len(shapes))
    return [(rng.standard_normal(shape) * 0.3).astype(np.float32) for shape in shapes]


CASES: dict[str, tuple[Callable[..., Any], list[Array]]] = {
    "mlp": (mlp, arrays((33, 20), (41, 20), (41,), (7, 41))),
    "convolutions": (
        convolutions,
        arrays((2, 16, 12, 11), (16, 16, 3, 3), (16,), (24, 16, 3, 3), (8, 12, 1, 1), (8, 1, 3, 3)),
    ),
    "batched": (batched, arrays((3, 5, 9), (3, 9, 12))),
    "recurrence": (recurrence, arrays((5, 4, 7), (6, 7), (6, 6))),
}
ONE_AFTER_THE_OTHER = [name for name in CASES if name != "recurrence"]  # images hold no loops


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """The result, the gradients, and the second operand after a step."""

    def program(*xs: rn.Tensor) -> tuple[rn.Tensor, ...]:
        for x in xs:
            x.requires_grad_()
        with rn.autocast():
            y = function(*xs)
        (rn.cast(y, rn.float32) ** 2).sum().backward()
        grads = [x.grad for x in xs if x.grad is not None]
        return (y, *grads, xs[1] - 0.1 * grads[1])

    return program


def planned(name: str, row: str, threads: int = 1, *, fused: bool = True) -> Plan:
    """A step's plan, after all passes or after the expansion alone, as eager ops have it."""
    function, values = CASES[name]
    with switches.override(target=row, verify=True):
        trace = tracing.Trace(tensors.serial_now())
        with tracing.activate(trace):
            nodes = [trace.input(aval(a.shape, float32), InputKind.ARGUMENT, f"x{i}") for i, a in enumerate(values)]
            results = step(function)(*[tensors.symbolic(n) for n in nodes])
            graph: Graph = trace.graph([tensors.node_of(y, trace) for y in results], {}, name)
        rewritten = USUAL.run(graph)[0] if fused else EXPANSION.run(graph)[0]
        return plan_graph(rewritten, threads)


def contracts(plan: Plan) -> list[Contract]:
    first = [call.kernel.body[0] for call in plan.calls if call.kernel.body]
    return [stmt for stmt in first if isinstance(stmt, Contract)]


@pytest.mark.parametrize("name", CASES)
def test_products_are_of_bfloat16_where_there_are_dot_instructions(name: str) -> None:
    here = contracts(planned(name, "avx2"))
    assert here and all(c.operand_dtype is None for c in here)
    for row in DOTS:
        products = contracts(planned(name, row))
        assert len(products) >= len(here) and all(c.operand_dtype is bfloat16 for c in products)


@pytest.mark.parametrize("row", DOTS)
@pytest.mark.parametrize("name", CASES)
def test_kernels_compile(name: str, row: str) -> None:
    kernels = {call.kernel.name: call.kernel for call in planned(name, row).calls}
    for kernel in kernels.values():
        assert machine_code(nest.emit_kernel(kernel, target.by_name(row)), target.by_name(row))


@pytest.mark.skipif(bool(aarch64.missing(NEON_BF16)), reason=f"no emulator: {aarch64.missing(NEON_BF16)}")
@pytest.mark.parametrize("name", ONE_AFTER_THE_OTHER)
def test_steps_run_emulated(name: str, tmp_path: Path) -> None:
    """Bits do not depend on fusion or the number of threads; values are close to float32 products."""
    values = CASES[name][1]
    image = Image()
    ways = [planned(name, NEON_BF16.name, threads) for threads in (1, 3)]
    ways.append(planned(name, NEON_BF16.name, fused=False))
    slots = [image.put_plan(plan, values) for plan in ways]
    results = aarch64.emulated(image, tmp_path, NEON_BF16)
    first = [results[slot] for slot in slots[0]]
    for other in slots[1:]:
        assert all(same_bits(a, results[slot]) for a, slot in zip(first, other, strict=True))
    own = Image()
    without = own.put_plan(planned(name, "host"), values)
    here = native(own)
    for a, slot in zip(first, without, strict=True):
        exact = here[slot].astype(np.float64)
        np.testing.assert_allclose(a.astype(np.float64), exact, rtol=2.0**-7, atol=2.0**-8 * np.abs(exact).max())


@pytest.mark.parametrize("inner", [130, 171])
@pytest.mark.skipif(bool(aarch64.missing(NEON_BF16)), reason=f"no emulator: {aarch64.missing(NEON_BF16)}")
def test_weights_that_serve_lie_in_panels_of_pairs(inner: int, tmp_path: Path) -> None:
    x, w = arrays((9, inner), (150, inner))

    def plans(*, panels: bool) -> list[Plan]:
        trace = tracing.Trace(tensors.serial_now())
        with tracing.activate(trace):
            kinds = (InputKind.ARGUMENT, InputKind.VARIABLE)
            nodes = [trace.input(aval(a.shape, float32), kind, "x") for a, kind in zip((x, w), kinds, strict=True)]
            with rn.autocast():
                y = rn.relu(F.linear(*[tensors.symbolic(n) for n in nodes]))
            graph = USUAL.run(trace.graph([tensors.node_of(y, trace)], {}, "serving"))[0]
        if not panels:
            return [plan_graph(graph, 2)]
        split = hoisted.split(graph)
        assert split is not None
        return [plan_graph(part, 2) for part in (split.hoisted_constants, split.main)]

    with switches.override(target=NEON_BF16.name, verify=True):
        (plain,), (before, main) = plans(panels=False), plans(panels=True)
    assert [c.panels is not None for c in contracts(main)] == [True]
    image = Image()
    slots = [image.put_plan(plain, [x], [w])[0], image.put_plan(before, [], [w])[0]]
    results = aarch64.emulated(image, tmp_path, NEON_BF16)
    second = Image()
    shared = {id(place): value for place, value in zip(main.inputs, [x, results[slots[1]]], strict=True)}
    slot = second.put_plan(main, [shared[id(place)] for place in main.inputs], [w][: len(main.variables)])[0]
    assert same_bits(aarch64.emulated(second, tmp_path, NEON_BF16)[slot], results[slots[0]])
