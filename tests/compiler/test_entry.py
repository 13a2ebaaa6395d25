"""There is one way into the compiler, and everybody takes it."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.backends import context
from runnel.compiler import plan
from runnel.compiler.entry import compile_graph
from runnel.compiler.options import Bindings, Options
from runnel.core.errors import ArgumentError
from runnel.declarative.graph_function import GraphFunction
from runnel.graph.building import Builder
from runnel.graph.graph import Graph
from runnel.tensor import eager
from tests.test_house import import_graph, modules, parsed

INSIDE = "runnel.compiler."
ENTRY = "runnel.compiler.entry.compile_graph"
PRODUCTS = {"Plan", "Program", "CommandBuffer"}  # what the compiler makes


def gives_product(node: ast.AST) -> bool:
    """Return whether this is a function that makes one of the products, by its annotation."""
    if not isinstance(node, ast.FunctionDef) or node.returns is None:
        return False
    words = {name.id for name in ast.walk(node.returns) if isinstance(name, ast.Name)}
    return bool(words & PRODUCTS)


def makers() -> set[str]:
    """Functions of the compiler that give one of its products, and classes that are one or have a method that does."""
    names = set()
    for module, path in modules().items():
        for node in parsed(path).body if module.startswith(INSIDE) else ():
            is_class = isinstance(node, ast.ClassDef) and (node.name in PRODUCTS or any(map(gives_product, node.body)))
            if is_class or gives_product(node):
                names.add(f"{module}.{node.name}")  # type: ignore[attr-defined]
    return names


def called(tree: ast.Module) -> set[str]:
    """Return the functions that a module calls by imported names."""
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def full(node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{full(node.value)}.{node.attr}"
        return names.get(node.id, "") if isinstance(node, ast.Name) else ""

    return {full(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.suite
def test_nobody_calls_past_the_entry() -> None:
    products = makers()
    assert {f"{INSIDE}plan.plan_graph", f"{INSIDE}program.Program", f"{INSIDE}entry.Recipe"} <= products
    callers = {
        f"{module} calls {name}"
        for module, path in modules().items()
        if not module.startswith(INSIDE)
        for name in called(parsed(path)) & (products - {ENTRY})
    }
    assert callers == set()


@pytest.mark.parametrize("line", ["plan_graph(graph, 1)", "plan.plan_graph(graph, 1)", "p(graph)"])
def test_such_a_call_is_found(line: str) -> None:
    imports = "from runnel.compiler import plan\nfrom runnel.compiler.plan import plan_graph, plan_graph as p\n"
    assert called(ast.parse(imports + line)) & makers() == {f"{INSIDE}plan.plan_graph"}


@pytest.mark.suite
def test_nobody_but_reports_looks_into_a_backend() -> None:
    """Other modules ask the protocol."""
    own = ("runnel.backends.cpu", "runnel.backends.interpreter")
    allowed = (*own, "runnel.inspection.")  # reports show machine code, and time it
    offenders = {
        f"{module} imports {target}"
        for module, targets in import_graph().items()
        if module != "runnel.backends" and not module.startswith(allowed)
        for target in targets
        if target.startswith(own)
    }
    assert offenders == set()


def single_op() -> None:
    rn.ones((3, 47)) + 1.0


def op_of_several_results() -> None:
    rn.topk(rn.ones((3, 47)), 2)


def compiled_function() -> None:
    rn.compile(lambda x: rn.exp(x) @ x.mT)(rn.ones((3, 47)))


def forward_and_backward() -> None:
    layer = nn.Linear(47, 3)
    rn.compile(layer)(rn.ones((5, 47))).sum().backward()


def step_of_an_optimizer() -> None:
    w = nn.Parameter(rn.ones((47,)))
    w.grad = rn.ones((47,))
    optim.SGD([w], 0.1).step()


def loop() -> None:
    rn.scan(lambda total, y: (total + y, total), rn.zeros(()), rn.ones((47,)))


def graph_by_hand() -> None:
    graph = Builder("by hand")
    x = graph.argument((3, 47))
    GraphFunction(graph.build(ops.add(x, x)), {})(rn.ones((3, 47)))


WAYS: list[Callable[[], None]] = [
    single_op, op_of_several_results, compiled_function, forward_and_backward, step_of_an_optimizer, loop,
    graph_by_hand,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_plan_is_made_behind_the_entry(way: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    made, behind = plan.Plan, []

    def noted(*parts: Any) -> plan.Plan:
        frame = sys._getframe()
        while frame is not None and frame.f_code is not compile_graph.__code__:
            frame = frame.f_back  # type: ignore[assignment]
        behind.append(frame is not None)
        return made(*parts)

    monkeypatch.setattr(plan, "Plan", noted)
    eager.clear()
    way()
    assert behind and all(behind)


def transposed() -> Graph:
    graph = Builder("transposed")
    x = graph.argument((3, 4), name="x")
    return graph.build(ops.transpose(ops.add(x, 1.0)))


def run(graph: Graph, x: np.ndarray, bindings: Bindings, options: Options) -> np.ndarray:
    """The one result, as a NumPy array with the strides it has."""
    compiled = compile_graph(graph, bindings, context.current(), options)
    (nbytes,), (result,), (strides,) = compiled.program.outputs, graph.outputs, compiled.strides
    storage = compiled.program.backend.allocate(nbytes)
    compiled.program.run([x.__array_interface__["data"][0]], [storage.address])
    return storage.ndarray(result.aval.shape, np.float32, strides_bytes=tuple(4 * s for s in strides))


@pytest.mark.parametrize("any_order", [False, True])
def test_results_lie_as_the_strides_say(any_order: bool) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    actual = run(transposed(), x, Bindings(), Options(any_order=any_order))
    assert actual.flags.c_contiguous is not any_order
    np.testing.assert_array_equal(actual, x.T + 1)


def test_arguments_lie_as_the_strides_say() -> None:
    graph = transposed()
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    bindings = Bindings(strides={graph.inputs[0]: (1, 3)})
    np.testing.assert_array_equal(run(graph, np.asfortranarray(x), bindings, Options()), x.T + 1)


def test_a_plan_that_is_not_kept_is_made_again() -> None:
    keeping, forgotten = (
        compile_graph(transposed(), Bindings(), context.current(), Options(keeps_plan=keeps)).program
        for keeps in (True, False)
    )
    assert keeping.plan is keeping.plan
    assert forgotten.plan is not forgotten.plan
    assert [c.kernel.name for c in forgotten.plan.calls] == [c.kernel.name for c in keeping.plan.calls]


def test_a_budget_is_for_dense_arguments() -> None:
    graph = transposed()
    with pytest.raises(ArgumentError, match=r"\[compile_graph\] 'transposed' has a memory budget"):
        bindings = Bindings(strides={graph.inputs[0]: (1, 3)})
        compile_graph(graph, bindings, context.current(), Options(memory_budget=1 << 20))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_compilations_leave_the_garbage_collector_as_it_was(is_enabled: bool) -> None:
    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        rn.compile(lambda x: x * 2 + 1)(rn.ones(3))
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
