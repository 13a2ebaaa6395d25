"""Promises of NNVM's passes and MXNet's planner, as facts about programs of Runnel: as much, or more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, passes
from runnel.nn import functional
from runnel.tensor.binding import Binding

from ..random_numbers import RNG
from .examples import example

ROOT = Path(__file__).resolve().parents[2]
REMOVABLE = [name for name in passes.USUAL.names if name not in ("decompose", "bodies")]


def normal(*shape: int) -> rn.Tensor:
    return rn.asarray(RNG.standard_normal(shape).astype(np.float32))


def calls(function: Callable[..., Any], *args: rn.Tensor, **options: Any) -> list[str]:
    """The kernels that a program calls: "map", "reduce", "contract", "copy"."""
    plan = rn.compile(function, **options).program(*args).plan
    return [call.kernel.name.split("_")[0] for call in plan.calls]


def arena(function: Callable[..., Any], *args: rn.Tensor) -> int:
    """The bytes of a program's intermediate values."""
    peak: int = rn.compile(function).program(*args).plan.arena.peak
    return peak


# Fusion ---------------------------------------------------------------------------------------------------------------


def test_elementwise_ops_are_one_kernel() -> None:
    x, y = normal(2, 3, 4), normal(2, 3, 4)
    assert calls(lambda x, y: rn.exp(y + x), x, y) == ["map"]
    assert calls(lambda x, y: rn.exp(y + x) * y - x, x, y) == ["map"]


def test_a_sum_takes_in_what_it_sums() -> None:
    x = normal(2, 3, 4)
    assert calls(lambda x: (x.reshape((2, -1)) + 1).sum(), x) == ["reduce"]


def test_several_readers_and_several_results_are_one_kernel() -> None:
    """Beyond NNVM, which computes every value that two nodes read into memory."""
    x = normal(5, 6)

    def f(x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        shared = rn.exp(x)
        return shared * 2, shared + 1

    assert calls(f, x) == ["map"]


def test_softmax_and_layer_norm_are_one_kernel() -> None:
    """Beyond NNVM, where they are opaque."""
    x, w = normal(5, 6), normal(6)
    assert calls(lambda x: rn.softmax(x, -1), x) == ["reduce"]
    assert calls(lambda x, w: functional.layer_norm(x, (6,), w), x, w) == ["reduce"]


def test_a_product_takes_in_what_reads_it() -> None:
    x, w, b = normal(6, 7), normal(7, 8), normal(8)
    assert calls(lambda x, w, b: rn.relu(x @ w + b) * 2, x, w, b) == ["contract"]


def test_a_convolution_takes_in_what_reads_it() -> None:
    x, w = normal(2, 3, 8, 8), normal(4, 3, 3, 3)
    alone = calls(lambda x, w: functional.conv2d(x, w), x, w)
    assert len(calls(lambda x, w: rn.relu(functional.conv2d(x, w) + 1), x, w)) == len(alone)
    assert alone.count("contract") == 1


def test_with_a_pass_from_outside_reshapes_split_no_kernel() -> None:
    sink = example("passes/sink_reshapes").SINK_RESHAPES
    own = passes.USUAL.insert(sink, after="simplify")

    def f(x: rn.Tensor) -> rn.Tensor:
        return rn.exp((x * 2).reshape((2, -1)) + 1).reshape((4, 6)) - 3

    x = normal(2, 3, 4)
    assert calls(f, x, passes=own) == ["map"]
    np.testing.assert_array_equal(rn.compile(f, passes=own)(x).numpy(), f(x).numpy())
    assert len(calls(f, x)) <= 3


# Memory ---------------------------------------------------------------------------------------------------------------


def test_elementwise_ops_need_no_memory_between_them() -> None:
    """MXNet's b·a + 1 needs one buffer instead of two; fused, it needs none."""
    assert arena(lambda a, b: b * a + 1, normal(20), normal(20)) == 0


def test_a_chain_of_layers_needs_two_buffers() -> None:
    x = normal(64, 64)

    def chain(length: int) -> Callable[[rn.Tensor], rn.Tensor]:
        def f(x: rn.Tensor) -> rn.Tensor:
            y = x
            for _ in range(length):
                y = rn.tanh(y @ x)
            return y

        return f

    assert [arena(chain(n), x) for n in (3, 6, 12)] == [2 * x.nbytes] * 3


def test_reshapes_share_their_operand_and_later_products_reuse_dead_memory() -> None:
    x = normal(32, 32)

    def f(x: rn.Tensor) -> rn.Tensor:
        y = (x @ x).reshape((16, 64))  # a view: no memory
        z = y @ x.reshape((64, 16))
        return ((z @ z) @ z) @ (z @ z)

    plan = rn.compile(f).program(x).plan
    assert {life.allocation.label for life in plan.arena.lives} <= {"matmul", "reshape"}
    assert not any(call.kernel.name.startswith(("copy", "map")) for call in plan.calls)
    assert plan.arena.peak < sum(life.nbytes for life in plan.arena.lives)


def test_a_value_that_is_read_again_is_not_overwritten() -> None:
    """MXNet's trap: B is read by sigmoid and, later, by another op."""
    a = normal(40, 40)

    def f(a: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        b = a @ a
        c = rn.sigmoid(b) @ a
        return c, b * (c @ a)

    for compiled, eager in zip(rn.compile(f)(a), f(a), strict=True):
        np.testing.assert_array_equal(compiled.numpy(), eager.numpy())


# Order of writes ------------------------------------------------------------------------------------------------------


def test_reads_come_before_the_write_and_after_it() -> None:
    """NNVM's OrderMutation: a read of a Variable is ordered by the versions that are read and written."""

    def f(w: rn.Variable, x: rn.Tensor) -> tuple[rn.Tensor, rn.Tensor]:
        before = w.read() @ x
        w.assign(w * 2 + 1)
        middle = w.read() @ x
        w.assign(w - before)
        return before + middle, w.read() * 3

    start, x = normal(30, 30), normal(30, 30)
    eager, own = rn.Variable(start), rn.Variable(start)
    compiled = rn.compile(lambda x: f(own, x))
    for _ in range(2):
        for one, other in zip(compiled(x), f(eager, x), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
        np.testing.assert_array_equal(own.numpy(), eager.numpy())


# What depends on parameters alone -------------------------------------------------------------------------------------


def test_the_part_that_depends_only_on_parameters_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """NNVM's PrecomputePrune, in the program itself: it runs again when a Variable has changed."""
    runs = []
    prepare = Binding._prepare
    monkeypatch.setattr(Binding, "_prepare", lambda self, *args: (runs.append(self), prepare(self, *args))[1])
    w = rn.Variable(normal(200, 100))
    f = rn.compile(lambda y: y + rn.exp(w * 2) + 1)
    y = normal(200, 100)
    inspection = f.program(y)
    assert inspection.hoisted_constants is not None
    assert [node.op.name for node in inspection.hoisted_constants.optimized.nodes] == ["mul", "exp"]
    assert [node.op.name for node in inspection.optimized.nodes] == ["add", "add"]
    for _ in range(3):
        np.testing.assert_array_equal(f(y).numpy(), (y + rn.exp(w * 2) + 1).numpy())
    assert len(runs) == 1
    w.assign(w + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(y).numpy(), (y + rn.exp(w * 2) + 1).numpy())
    assert len(runs) == 2


RESHAPES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], tuple[int, ...]]] = {  # NNVM's codes: here, shapes
    "(4, 0, 2)": (lambda x: x.reshape((4, x.shape[1], 2)), (2, 3, 4), (4, 3, 2)),
    "(2, 0, 0)": (lambda x: x.reshape((2, *x.shape[1:])), (2, 3, 4), (2, 3, 4)),
    "(6, 1, -1)": (lambda x: x.reshape((6, 1, -1)), (2, 3, 4), (6, 1, 4)),
    "(3, -1, 8)": (lambda x: x.reshape((3, -1, 8)), (2, 3, 4), (3, 1, 8)),
    "(-2, 1, 1)": (lambda x: x.reshape((*x.shape, 1, 1)), (2, 3, 4), (2, 3, 4, 1, 1)),
    "(-3, 4)": (lambda x: x.flatten(0, 1), (2, 3, 4), (6, 4)),
    "(-3, -3)": (lambda x: x.flatten(2, 3).flatten(0, 1), (2, 3, 4, 5), (6, 20)),
    "(0, -3)": (lambda x: x.flatten(1, 2), (2, 3, 4), (2, 12)),
    "(-4, 1, 2, -2)": (lambda x: x.unflatten(0, (1, 2)), (2, 3, 4), (1, 2, 3, 4)),
    "(2, -4, -1, 3, -2)": (lambda x: x.unflatten(1, (-1, 3)), (2, 3, 4), (2, 1, 3, 4)),
}


@pytest.mark.parametrize("codes", RESHAPES)
def test_what_reshape_codes_say_is_a_view(codes: str) -> None:
    """NNVM's 0 copies a size, -1 infers one, -2 copies the rest, -3 merges two and -4 splits one."""
    function, before, after = RESHAPES[codes]
    x = normal(*before)
    compiled = rn.compile(lambda x: function(x) * 2)
    assert compiled(x).numpy().tobytes() == (x.numpy().reshape(after) * 2).tobytes() and compiled(x).shape == after
    assert len(compiled.program(x).plan.calls) == 1


def test_a_loss_whose_gradient_is_blocked_adds_nothing() -> None:
    """NNVM's gradient of several losses, one of them behind block_grad."""
    x, w = normal(8, 4), normal(4, 4)

    def loss(w: Any, blocked: bool) -> Any:
        y = rn.tanh(x @ w)
        second = (y * y).sum()
        return y.sum() + (second.detach() if blocked else second)

    alone = rn.compile(rn.grad(lambda w: rn.tanh(x @ w).sum()))
    blocked = rn.compile(rn.grad(lambda w: loss(w, True)))
    assert blocked(w).numpy().tobytes() == alone(w).numpy().tobytes()
    assert blocked(w).numpy().tobytes() != rn.grad(lambda w: loss(w, False))(w).numpy().tobytes()
    assert len(blocked.program(w).plan.calls) == len(alone.program(w).plan.calls)


def test_dropout_is_gone_at_inference() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval()
    graph = rn.compile(lambda x: net(x)).program(normal(3, 4)).graph
    assert not {node.op.name for node in graph.nodes} & {"random_bits", "where"}


# Layout ---------------------------------------------------------------------------------------------------------------


def test_channels_last_and_channels_first_have_the_same_bits_and_kernels() -> None:
    x, w = normal(2, 8, 6, 6), normal(4, 8, 3, 3)
    last = rn.permute(x, (0, 2, 3, 1)).contiguous()

    def first(x: rn.Tensor, w: rn.Tensor) -> rn.Tensor:
        return rn.relu(functional.conv2d(x, w, padding=1)).mean((2, 3))

    def in_last(x: rn.Tensor, w: rn.Tensor) -> rn.Tensor:
        return first(rn.permute(x, (0, 3, 1, 2)), w)

    np.testing.assert_array_equal(rn.compile(first)(x, w).numpy(), rn.compile(in_last)(last, w).numpy())
    assert len(calls(in_last, last, w)) <= len(calls(first, x, w))


# Every pass can go ----------------------------------------------------------------------------------------------------


def program_results(x: rn.Tensor, filters: rn.Tensor, rows: rn.Tensor, **options: Any) -> list[np.ndarray]:
    """Some results of programs with loops, products, layouts, constants and gradients."""
    w = rn.tensor(filters.numpy(), requires_grad=True)

    @rn.compile(**options)
    def network(x: rn.Tensor) -> rn.Tensor:
        y = rn.relu(functional.conv2d(x, w) + rn.asarray([1.0]) * 2)
        return (y.mean((2, 3)) @ y.mean((2, 3)).mT).mT.sum()

    @rn.compile(**options)
    def loop(rows: rn.Tensor) -> Any:
        def step(c: rn.Tensor, row: rn.Tensor) -> tuple[rn.Tensor, tuple[rn.Tensor, rn.Tensor]]:
            y = rn.tanh(row @ row.mT + c) * 1.0
            return y, (y + y, rn.tanh(row @ row.mT + c))

        return rn.scan(step, rn.zeros((5, 5)), rows)[1][0]

    loss = network(x)
    loss.backward()
    return [loss.numpy(), w.grad.numpy(), loop(rows).numpy()]


@pytest.mark.parametrize("name", REMOVABLE)
def test_without_a_pass_everything_else_works(name: str) -> None:
    data = normal(2, 3, 8, 8), normal(4, 3, 3, 3), normal(4, 5, 6)
    usual, without = program_results(*data), program_results(*data, passes=passes.USUAL.without(name))
    for one, other in zip(usual, without, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.suite
def test_without_the_file_of_a_pass_everything_else_works(tmp_path: Path) -> None:
    """Three files are deleted with their lines of the list, and a fresh process trains to the same bits."""
    program = """
import numpy as np, runnel as rn
from runnel import nn, optim
rn.manual_seed(0)
net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
adam = optim.Adam(net.parameters())
@rn.compile
def step(x, y):
    adam.zero_grad()
    loss = rn.cross_entropy(net(x), y)
    loss.backward()
    adam.step()
    return loss
x = rn.asarray(np.random.default_rng(0).standard_normal((5, 2, 6, 6)).astype(np.float32))
y = rn.asarray(np.arange(5) % 3)
print([step(x, y).item().hex() for _ in range(3)])
"""
    copy = tmp_path / "runnel"
    shutil.copytree(ROOT / "runnel", copy, ignore=shutil.ignore_patterns("__pycache__"))
    gone = {"merge_rows": "merge_rows"}
    usual = copy / "compiler" / "passes" / "pipeline.py"
    text = usual.read_text(encoding="utf-8")
    for name, function in gone.items():
        (copy / "compiler" / "passes" / f"{name}.py").unlink()
        text = text.replace(f"from runnel.compiler.passes.{name} import {function}\n", "")
        entry = text[text.rindex("        _own(", 0, text.index(f"            {function},\n")) :]
        text = text.replace(entry[: entry.index("        ),\n") + len("        ),\n")], "")
    usual.write_text(text, encoding="utf-8")

    def printed(root: Path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=True).stdout

    assert printed(tmp_path) == printed(ROOT)
