"""Checks passes that readers of docs/internals/from_scratch.md write: ``python -m tests.docs.homework FILE``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.docs.pages import ROOT


def loaded(name: str, path: Path) -> ModuleType:
    """The file as the module ``name``, so that others can import it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, f"{path} is no Python file"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fs: Any = loaded("from_scratch", ROOT / "docs" / "internals" / "from_scratch.py")
Node = Any


class Training:
    """A small network, and a step of its training."""

    def __init__(self, differentiate: Callable[..., Any] = fs.gradients) -> None:
        rng = np.random.default_rng(0)
        self.x, self.label = fs.placeholder(32, 2), fs.placeholder(32, 1)
        self.model = [fs.variable(rng.standard_normal(shape)) for shape in ((2, 8), (8,), (8, 1))]
        w, b, v = self.model
        score = fs.tanh(self.x @ w + b) @ v
        self.loss = fs.mean(fs.log(fs.exp(score * self.label * -1.0) + 1.0))
        self.step = fs.descend(self.loss, self.model, 0.1, differentiate=differentiate)
        points = rng.uniform(-1, 1, (32, 2))
        self.feeds = {self.x: points, self.label: np.sign(points[:, :1] * points[:, 1:])}

    def losses(self, session: Any, steps: int = 5) -> list[float]:
        return [session.run([self.loss], self.feeds, self.step)[0].item() for _ in range(steps)]

    def program(self, session: Any) -> Any:
        """The program of a step."""
        self.losses(session, 1)
        return session.programs[(self.loss,), (*self.step.items(),)]


# Differentiation ------------------------------------------------------------------------------------------------------


def check_gradients(gradients: Callable[[Node, Sequence[Node]], Sequence[Node]]) -> str:
    """Raise AssertionError if the derivatives are wrong."""
    x = fs.placeholder(3, 4)
    for name, function in {
        "x · x": lambda x: x * x,
        "x": lambda x: x,
        "tanh(x) / (x · x + 1)": lambda x: fs.tanh(x) / (x * x + 1.0),
        "exp(x) + log(exp(x) + 1) - x": lambda x: fs.exp(x) + fs.log(fs.exp(x) + 1.0) - x,
        "x @ xᵀ": lambda x: x @ x.T,
        "x · mean(x)": lambda x: x * fs.mean(x),
        "x - x summed over rows": lambda x: x - fs.sum_to(x, (4,)),
        "x + x": lambda x: x + x,
    }.items():
        y = function(x)
        (slope,) = gradients(y, [x])
        compare(f"the derivative of {name}", x, y, slope)
        (second,) = gradients(slope * x, [x])
        compare(f"the second derivative of {name}", x, slope * x, second)
    unused, start = fs.placeholder(2), fs.as_node(2.0) * fs.placeholder(1)
    _, by_unused = gradients(x * x, [x, unused])
    assert by_unused.shape == (2,), f"a derivative has the shape of what it is by, (2,); received {by_unused}"
    (zero,) = fs.Session().run([by_unused])
    assert not zero.any(), f"the derivative by a node that y does not depend on is 0; received {zero}"
    y = start
    for _ in range(40):
        y = y + y
    (slope,) = gradients(y, [start])
    count = len(fs.ordered([slope]))
    assert fs.Session().run([slope])[0].item() == 2.0**40, "a node that is reached over many paths has their sum"
    right, passed = Training(), Training(gradients)
    expected, losses = right.losses(fs.Session()), passed.losses(fs.Session())
    assert np.allclose(losses, expected, rtol=1e-4), f"training goes another way: {losses}, and not {expected}"
    return f"right; the derivative over 2⁴⁰ paths has {count} nodes"


def compare(what: str, x: Node, y: Node, slope: Node) -> None:
    """``slope`` along a direction, beside the difference of ``y`` along it."""
    assert slope.shape == x.shape, f"{what} has the shape {x.shape}; received {slope}"
    rng = np.random.default_rng(1)
    point, direction = rng.uniform(0.5, 1.5, x.shape), rng.standard_normal(x.shape)
    session, h = fs.Session(), 1e-2
    above, below = (session.run([y], {x: point + way * direction})[0].sum(dtype=float) for way in (h, -h))
    along = float((session.run([slope], {x: point})[0] * direction).sum())
    assert np.isclose(along, (above - below) / (2 * h), rtol=2e-2, atol=2e-2), (
        f"{what}: a difference of values is {(above - below) / (2 * h):.4f} along a direction; received {along:.4f}"
    )


# Memory ---------------------------------------------------------------------------------------------------------------


def check_plan_memory(plan_memory: Callable[[Sequence[tuple[int, int, int]]], Sequence[int]]) -> str:
    """AssertionError if values that live at the same time overlap."""
    rng = np.random.default_rng(0)
    for count in (0, 1, 2, 5, 40):
        for _ in range(20):
            firsts = np.sort(rng.integers(0, 12, count)).tolist()
            lives = [(int(rng.integers(1, 30)), first, first + int(rng.integers(1, 5))) for first in firsts]
            check_places(lives, plan_memory(list(lives)))
    training = Training()
    alone = fs.Session(plan_memory=lambda lives: np.cumsum([0, *[x[0] for x in lives]])[:-1].tolist())
    planned = fs.Session(plan_memory=plan_memory)
    expected, losses = training.losses(alone), training.losses(planned)
    assert losses == expected, f"training goes another way: {losses}, and not {expected}"
    sizes = [training.program(session).arena.size for session in (planned, alone)]
    return f"right; an arena of {sizes[0]} elements, and {sizes[1]} if every value has its own place"


def check_places(lives: Sequence[tuple[int, int, int]], places: Sequence[int]) -> None:
    assert len(places) == len(lives), f"{len(lives)} values have {len(lives)} places; received {len(places)}"
    ends = [place + size for place, (size, _, _) in zip(places, lives, strict=True)]
    assert all(place >= 0 for place in places), f"the arena begins at 0; received {min(places)}"
    for i, (_, first, last) in enumerate(lives):
        for j, (_, other_first, other_last) in enumerate(lives[:i]):
            together = first <= other_last and other_first <= last
            assert not (together and places[i] < ends[j] and places[j] < ends[i]), (
                f"{lives[j]} at {places[j]} and {lives[i]} at {places[i]} live at the same time and overlap"
            )


# Fusion ---------------------------------------------------------------------------------------------------------------


def check_fuse(fuse: Callable[[Sequence[Node]], Sequence[Sequence[Node]]]) -> str:
    """AssertionError if a group cannot be one kernel, or comes before what it reads."""
    training = Training()
    x = fs.placeholder(4, 4)
    crossing = fs.tanh(x.T * 2.0) + fs.exp(x) @ fs.exp(x * 2.0)
    for tops in ([training.loss, *training.step.values()], [crossing, x.T + 1.0], [fs.as_node(1.0)], [x]):
        order = [node for node in fs.ordered(tops) if node.op is not fs.source]
        check_groups(order, fuse(list(order)))
    single, fused = fs.Session(fuse=lambda order: [[node] for node in order]), fs.Session(fuse=fuse)
    expected, losses = training.losses(single), training.losses(fused)
    assert losses == expected, f"training goes another way: {losses}, and not {expected}"
    mine, alone = (training.program(session) for session in (fused, single))
    return (
        f"right; {len(mine.steps)} steps and {len(mine.values)} stored values, "
        f"and {len(alone.steps)} and {len(alone.values)} if every node is a group"
    )


def check_groups(order: Sequence[Node], groups: Sequence[Sequence[Node]]) -> None:
    flat = [node for group in groups for node in group]
    assert len(flat) == len(order) and set(flat) == set(order), (
        f"each of the {len(order)} nodes is in one group; received {len(set(flat) & set(order))} of them in groups of "
        f"{len(flat)} nodes in all"
    )
    computed = {x for node in order for x in node.inputs if x.op is fs.source}
    for group in groups:
        if len(group) > 1:
            assert all(node.op.code for node in group), f"{group} has a node that is not elementwise"
            assert len({node.shape for node in group}) == 1, f"{group} has nodes of several shapes"
        for node in group:
            missing = [x for x in node.inputs if x not in computed]
            assert not missing, f"{node} comes before {missing}, which it reads"
            computed.add(node)


CHECKS = {"gradients": check_gradients, "plan_memory": check_plan_memory, "fuse": check_fuse}


def main(path: Path) -> int:
    """Check the passes that ``path`` defines; the number of those that are wrong."""
    passes = loaded("passes", path)
    wrong = 0
    for name, check in CHECKS.items():
        if name in vars(passes):
            try:
                print(f"{name}: {check(getattr(passes, name))}")
            except AssertionError as error:
                wrong += 1
                print(f"{name}: wrong: {error}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
