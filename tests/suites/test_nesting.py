"""Nesting is no limit: modules in modules, lists in lists and objects that hang on one another, thousands deep."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn
from runnel.core import pytree
from runnel.core.errors import ArgumentError, CaptureWarning
from runnel.nn.module import Module

DEPTH = 2 * sys.getrecursionlimit()


class Scaled(nn.Module):
    """x times a weight; what it holds below is not called."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        self.weight = nn.Parameter(np.full(1, 0.5, np.float32))
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return x * self.weight


@pytest.fixture(scope="module")
def deep_module() -> Module:
    module = Scaled()
    for _ in range(DEPTH - 1):
        module = Scaled(module)
    return module


def nested(leaf: Any) -> list[Any]:
    tree = [leaf]
    for _ in range(DEPTH):
        tree = [tree]
    return tree


def innermost(tree: Any) -> Any:
    while isinstance(tree, list):
        tree = tree[0]
    return tree


def test_the_walks_over_modules(deep_module: Module) -> None:
    paths = [path for path, _ in deep_module.named_parameters()]
    assert len(paths) == DEPTH and paths[2] == "inner.inner.weight"
    state = deep_module.state_dict()
    assert len(state) == DEPTH and not deep_module.load_state_dict(state).missing_keys
    assert deep_module.num_parameters() == DEPTH
    assert not deep_module.eval().inner.training  # type: ignore[union-attr]


def test_the_text_of_a_module(deep_module: Module) -> None:
    lines = repr(deep_module).splitlines()
    assert len(lines) == 2 * DEPTH - 1
    assert lines[0] == f"Scaled(  # {DEPTH:,} parameters" and lines[DEPTH - 1].strip().endswith("# 1 parameters")


def test_the_text_of_a_module_that_holds_itself() -> None:
    module = Scaled()
    module.inner = module
    assert repr(module).splitlines() == ["Scaled(  # 1 parameters", "  (inner): Scaled(...)  # 1 parameters", ")"]


def test_shared_parts_are_counted_once_in_each_module() -> None:
    part = nn.Linear(2, 2)
    first, second = nn.Sequential(part), nn.Sequential(part, nn.Linear(1, 1))
    lines = repr(nn.Sequential(first, second)).splitlines()
    assert [line.rpartition("# ")[2] for line in lines if "#" in line] == [
        "8 parameters", "6 parameters", "6 parameters", "8 parameters", "6 parameters", "2 parameters",
    ]  # fmt: skip


def test_names_of_variables_far_down_are_cut(deep_module: Module) -> None:
    names = [p.name for p in deep_module.parameters()]
    assert names[:3] == ["weight", "inner.weight", "inner.inner.weight"]
    assert max(map(len, names)) < 300


def test_a_deep_module_compiles(deep_module: Module) -> None:
    x = rn.ones(3)
    assert rn.compile(deep_module)(x).tolist() == deep_module(x).tolist()


def test_trees() -> None:
    tree = nested(7)
    leaves, structure = pytree.flatten(tree)
    again, other = pytree.flatten(nested(8))
    assert leaves == [7] and again == [8]
    assert structure == other and hash(structure) == hash(other)
    assert structure != pytree.flatten(tree[0])[1]
    assert innermost(pytree.unflatten(structure, [9])) == 9
    assert pytree.paths(structure) == ["[0]" * (DEPTH + 1)]


def test_trees_of_every_kind_come_back() -> None:
    tree = {"a": (1, [2, {"b": 3}], ()), "c": [], "d": {}}
    leaves, structure = pytree.flatten(tree)
    assert leaves == [1, 2, 3] and pytree.unflatten(structure, leaves) == tree
    assert pytree.paths(structure) == ["['a'][0]", "['a'][1][0]", "['a'][1][1]['b']"]
    assert pytree.unflatten(pytree.flatten(5)[1], [6]) == 6


def test_a_list_that_holds_itself_is_reported() -> None:
    tree: list[Any] = [1]
    tree.append(tree)
    with pytest.raises(ArgumentError, match=r"\[tree\] a container.*holds itself"):
        pytree.flatten(tree)
    assert rn.compile(lambda t: t[0])(tree) == 1


def test_arguments_and_results() -> None:
    double = rn.compile(lambda tree: innermost(tree) * 2.0)
    for _ in range(2):
        assert double(nested(rn.ones(2))).tolist() == [2.0, 2.0]
    deep = rn.compile(lambda x: nested(x * 2.0))
    with pytest.warns(CaptureWarning, match="nested more than 100 deep"):
        assert innermost(deep(rn.ones(2))).tolist() == [2.0, 2.0]
    gradient = rn.grad(lambda tree: (innermost(tree) ** 2).sum())(nested(rn.ones(2)))
    assert innermost(gradient).tolist() == [2.0, 2.0]


class Link:
    """A node of a linked list."""

    def __init__(self, value: float, after: Link | None) -> None:
        self.value = value
        self.after = after


def test_a_linked_list_that_a_step_holds() -> None:
    head = None
    for i in range(DEPTH):
        head = Link(float(i % 2), head)

    @rn.compile
    def total(x: Any) -> Any:
        link, actual = head, 0.0
        while link is not None:
            actual += link.value
            link = link.after
        return x * actual

    assert total(rn.ones(1)).tolist() == [DEPTH / 2]
    assert head is not None and head.after is not None
    head.after.value = 5.0
    assert total(rn.ones(1)).tolist() == [DEPTH / 2 + 5.0]
    assert "head.after.value changed from 0.0 to 5.0" in total.retraces[-1]


def test_thousands_of_layers_in_a_row() -> None:
    model = nn.Sequential(*[Scaled() for _ in range(DEPTH)])
    for layer in model:
        layer.weight.assign(np.ones(1, np.float32))  # type: ignore[union-attr]
    model(rn.ones(2)).sum().backward()
    assert model[0].weight.grad.tolist() == [2.0]

    def step(x: Any) -> Any:
        return model(x)

    with rn.no_grad():
        step = rn.compile(step)
        assert step(rn.ones(2)).tolist() == [1.0, 1.0]
        model[DEPTH // 2].weight.requires_grad = False
        assert step(rn.ones(2)).tolist() == [1.0, 1.0]
