"""rn.tree and rn.tree_util: JAX's functions of nested containers, and classes that are registered as containers."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, tree, tree_util
from runnel.core.errors import ArgumentError, FileError

Point = namedtuple("Point", "x y")
TREE = {"b": 1, "a": (2, None, [3, Point(4, 5)]), "c": OrderedDict(k=6)}


def test_leaves_and_structures() -> None:
    leaves, treedef = tree.flatten(TREE)
    assert leaves == [1, 2, 3, 4, 5, 6] and treedef.num_leaves == 6
    assert tree.unflatten(treedef, leaves) == TREE and tree_util.tree_unflatten(treedef, leaves) == TREE
    assert tree.structure(TREE) == treedef and hash(tree.structure(TREE)) == hash(treedef)
    assert tree.structure((1, None)) != tree.structure((1, 2)) and tree.leaves(None) == []
    assert tree.leaves((1, None), is_leaf=lambda x: x is None) == [1, None]
    ordered = repr(OrderedDict(k=0)).replace("0", "*")  # which depends on the version of Python
    assert repr(treedef) == f"PyTreeDef({{'b': *, 'a': (*, None, [*, Point(x=*, y=*)]), 'c': {ordered}}})"
    with pytest.raises(ArgumentError, match="must have 6 items; got 2"):
        tree.unflatten(treedef, [1, 2])


def test_maps() -> None:
    assert tree.map(lambda x: 10 * x, TREE)["a"] == (20, None, [30, Point(40, 50)])
    assert tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10}) == {"a": 11, "b": [22]}
    assert tree.map(lambda x, part: (x, part), (1, 2), ([5], {"k": 6})) == ((1, [5]), (2, {"k": 6}))
    assert tree.map(len, {"a": [1, 2]}, is_leaf=lambda x: isinstance(x, list)) == {"a": 2}
    assert tree.reduce(lambda x, y: x + y, TREE) == 21 and tree.reduce(max, (), 7) == 7
    assert tree.all((True, [1])) and not tree.all((True, [0]))
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    assert tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": [1, 3], "b": [2, 4]}


def test_paths() -> None:
    paths = [tree_util.keystr(path) for path, _ in tree.leaves_with_path(TREE)]
    assert paths == ["['b']", "['a'][0]", "['a'][2][0]", "['a'][2][1].x", "['a'][2][1].y", "['c']['k']"]
    named = tree.map_with_path(lambda path, x: f"{tree_util.keystr(path)}={x}", {"w": [1]})
    assert named == {"w": ["['w'][0]=1"]}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((1, 2), (1, 2, 3), "all trees must have a tuple of 2 like the first; got a tuple of 3"),
        ({"a": [1]}, {"a": (1,)}, r"at \['a'\] all trees must have a list of 1 like the first; got a tuple of 1"),
        ({"a": 1}, {"b": 1}, r"the keys \['a'\].*the keys \['b'\]"),
        ((1, None), (1, 2), r"at \[1\] all trees must have None like the first; got a int"),
    ],
)
def test_unlike_trees_are_reported(first: Any, second: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=rf"\[tree_map\] .*{message}"):
        tree.map(lambda x, y: x, first, second)


@tree_util.register_pytree_node_class
class Scaled:
    """A tensor, another one, and a number that is static."""

    def __init__(self, a: Any, b: Any, scale: float) -> None:
        self.a, self.b, self.scale = a, b, scale

    def tree_flatten(self) -> tuple[tuple[Any, Any], dict[str, float]]:
        return (self.a, self.b), {"scale": self.scale}

    @classmethod
    def tree_unflatten(cls, static: dict[str, float], children: tuple[Any, Any]) -> Scaled:
        return cls(*children, static["scale"])

    def value(self) -> rn.Tensor:
        result: rn.Tensor = (self.a * self.b * self.scale).sum()
        return result

    def shown(self) -> tuple[Any, ...]:
        return self.a.tolist(), self.b.tolist(), self.scale


def scaled() -> Scaled:
    return Scaled(rn.asarray([1.0, 2.0]), rn.asarray([2.0, 3.0]), 3.0)


class Stretch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(rn.ones(2))

    def forward(self, x: Scaled) -> Scaled:
        return Scaled(x.a * self.factor, x.b, x.scale)


def grown(x: Scaled) -> Scaled:
    return Scaled(x.a + 1, x.b * 2, x.scale)


USES: dict[str, tuple[Any, Any]] = {
    "grad": (rn.grad(Scaled.value), ([6.0, 9.0], [3.0, 6.0], 3.0)),
    "vjp": (lambda x: rn.vjp(grown, x)[1](x)[0], ([1.0, 2.0], [4.0, 6.0], 3.0)),
    "jvp": (lambda x: rn.jvp(grown, (x,), (x,))[1], ([1.0, 2.0], [4.0, 6.0], 3.0)),
    "vmap": (rn.vmap(grown), ([2.0, 3.0], [4.0, 6.0], 3.0)),
    "scan": (
        lambda x: rn.scan(lambda c, _: (grown(c), c.a), x, None, length=2)[0], ([3.0, 4.0], [8.0, 12.0], 3.0),
    ),
    "cond": (lambda x: rn.cond(x.a.sum() > 0, grown, lambda y: y, x), ([2.0, 3.0], [4.0, 6.0], 3.0)),
    "while_loop": (lambda x: rn.while_loop(lambda y: y.a.sum() < 6, grown, x), ([3.0, 4.0], [8.0, 12.0], 3.0)),
    "checkpoint": (rn.grad(lambda x: rn.checkpoint(Scaled.value)(x)), ([6.0, 9.0], [3.0, 6.0], 3.0)),
    "functional_call": (
        lambda x: rn.functional_call(Stretch(), {"factor": rn.full(2, 5.0)}, (x,)), ([5.0, 10.0], [2.0, 3.0], 3.0),
    ),
    "tree.map": (lambda x: tree.map(lambda a, b: a + b, x, x), ([2.0, 4.0], [4.0, 6.0], 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_registered_classes_are_containers(name: str, is_compiled: bool) -> None:
    function, expected = USES[name]
    if is_compiled and name == "functional_call":
        model = Stretch()
        function = lambda x: rn.functional_call(model, {"factor": rn.full(2, 5.0)}, (x,))  # noqa: E731
    actual = (rn.compile(lambda x: function(x)) if is_compiled else function)(scaled())
    assert type(actual) is Scaled and actual.shown() == expected


def test_static_parts_are_compared_at_each_call() -> None:
    value = rn.compile(lambda x: x.value())
    assert [value(Scaled(rn.ones(2), rn.ones(2), scale)).item() for scale in (1.0, 2.0, 1.0)] == [2.0, 4.0, 2.0]
    assert tree.structure(scaled()) == tree.structure(scaled())
    other = scaled()
    other.scale = 4.0
    assert tree.structure(scaled()) != tree.structure(other)
    with pytest.raises(ArgumentError, match="other static parts"):
        tree.map(lambda x, y: x, scaled(), other)


def test_registered_classes_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rn.save({"state": [scaled()]}, tmp_path / "file")
    assert rn.load(tmp_path / "file")["state"][0].shown() == scaled().shown()
    monkeypatch.setattr("runnel.core.pytree._REGISTERED", {})
    with pytest.raises(FileError, match=r"no class tests\.transforms\.test_trees\.Scaled is registered here"):
        rn.load(tmp_path / "file")


def test_registration_by_functions_and_of_dataclasses() -> None:
    class Box:
        def __init__(self, item: Any) -> None:
            self.item = item

    tree_util.register_pytree_node(Box, lambda box: ((box.item,), None), lambda _, children: Box(*children))
    assert tree.map(lambda x: x + 1, [Box(1)])[0].item == 2

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        weight: Any
        name: str = dataclasses.field(metadata={"static": True})

    doubled = tree.map(lambda x: x * 2, State(rn.ones(2), "w"))
    assert doubled.weight.tolist() == [2.0, 2.0] and doubled.name == "w"
    assert tree.structure(State(1, "w")) != tree.structure(State(1, "v"))
    for again in (Box, dict):
        with pytest.raises(ArgumentError, match="a container already"):
            tree_util.register_pytree_node(again, lambda x: ((), None), lambda _, c: None)
    with pytest.raises(ArgumentError, match="must define the method tree_flatten"):
        tree_util.register_pytree_node_class(int)


def test_trees_in_a_training_step() -> None:
    @rn.compile
    def step(params: Any, x: rn.Tensor) -> Any:
        gradients = rn.grad(lambda p: (x @ p["w"] + p["b"][0]).sum())(params)
        return tree.map(lambda p, g: p - 0.5 * g, params, gradients)

    params = step({"w": rn.ones((2, 2)), "b": [rn.zeros(2)]}, rn.ones((3, 2)))
    np.testing.assert_array_equal(params["w"].numpy(), np.full((2, 2), -0.5))
    assert params["b"][0].tolist() == [-1.5, -1.5]
