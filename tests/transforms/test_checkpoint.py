"""Checkpointed functions: the same values and gradients to the bit, eager and compiled, and less memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import nn, optim
from runnel.core.errors import GradientError
from runnel.ops.conversion import optimization_barrier_p
from runnel.tensor import composing
from runnel.tensor.bound import CELLS
from tests.compiler.harness import same_bits

pytestmark = pytest.mark.suite


Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def plain(fn: Any) -> Any:
    """The reference for ``rn.checkpoint``."""
    return fn


class Block(nn.Module):
    """A residual block in which everything is used several times."""

    def __init__(self, size: int, p: float = 0.0) -> None:
        self.norm = nn.LayerNorm(size)
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)
        self.drop = nn.Dropout(p)

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        z = self.norm(x)
        return x * 0.5 + self.drop(self.down(rn.gelu(self.up(z)))) * rn.sigmoid(z)


def training(wrap: Make, compiled: bool, p: float = 0.0, depth: int = 3) -> tuple[nn.Module, Any]:
    rn.manual_seed(5)
    blocks = [Block(16, p) for _ in range(depth)]
    net = nn.Sequential(*blocks, nn.Linear(16, 4))
    opt = optim.AdamW(net.parameters(), lr=1e-2)
    layers = [wrap(b) for b in blocks]
    head = net[depth]

    def step(x: rn.Tensor, y: rn.Tensor) -> rn.Tensor:
        opt.zero_grad()
        h = x
        for layer in layers:
            h = layer(h)
        loss = rn.cross_entropy(head(h), y)
        loss.backward()
        opt.step()
        return loss

    return net, rn.compile(step) if compiled else step


def data(rows: int = 24) -> tuple[rn.Tensor, rn.Tensor]:
    rng = np.random.default_rng(0)
    return rn.asarray(rng.standard_normal((rows, 16)).astype(np.float32)), rn.asarray(rng.integers(0, 4, rows))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3])
def test_training_has_the_same_bits(compiled: bool, p: float) -> None:
    def trained(wrap: Make, compiled: bool) -> list[Any]:
        net, step = training(wrap, compiled, p)
        return [x.numpy() for x in (*[step(*data()) for _ in range(3)], *net.parameters())]

    for a, b in zip(trained(plain, False), trained(rn.checkpoint, compiled), strict=True):
        assert same_bits(a, b)


def test_a_program_with_checkpoints_needs_less_memory() -> None:
    """Shared subexpressions are not found again, and kernels that compute again come late."""
    _, step = training(plain, True, depth=8)
    _, checkpointed = training(rn.checkpoint, True, depth=8)
    saved, again = step.program(*data(512)), checkpointed.program(*data(512))
    assert any(node.op is optimization_barrier_p for node in again.plan.graph.nodes)
    assert again.memory.peak < 0.6 * saved.memory.peak
    assert again.memory.peak <= 1.05 * again.memory.lower_bound


def test_eager_intermediates_are_let_go() -> None:
    retained: list[weakref.ref[Any]] = []

    def fn(x: rn.Tensor) -> rn.Tensor:
        y = rn.exp(x)
        retained.append(weakref.ref(y._storage))
        return y * y

    x = rn.tensor([1.0, 2.0] * 10, requires_grad=True)  # more than fits a cell of a slab, which results share
    z = rn.checkpoint(fn, x)
    assert [ref() for ref in retained] == [None]
    z.sum().backward()
    assert len(retained) == 2
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([2.0, 4.0] * 10), rtol=1e-6)


def test_slabs_of_small_eager_intermediates_are_let_go() -> None:
    """All but the one that the next results are put into."""
    slabs: list[weakref.ref[Any]] = []

    def fn(x: rn.Tensor) -> rn.Tensor:
        y = rn.exp(x)
        slabs.append(weakref.ref(y._storage))
        return y * y

    x = rn.tensor([1.0, 2.0], requires_grad=True)
    results = [rn.checkpoint(fn, x) for _ in range(3 * CELLS)]
    assert len(results) == len(slabs) == 3 * CELLS
    assert len({id(slab) for ref in slabs if (slab := ref()) is not None}) <= 1


@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_variables_and_closures_get_gradients(compiled: bool) -> None:
    w = rn.Parameter(np.array([2.0, -1.0], np.float32))
    v = rn.Parameter(np.array([0.5, 4.0], np.float32))

    def run(wrap: Make) -> list[Any]:
        def step(x: rn.Tensor, flag: bool) -> tuple[Any, ...]:
            x = (x + 0.0).requires_grad_()
            w.grad = v.grad = None
            outer = v * x

            def inner(parts: dict[str, Any], scale: float = 1.0) -> tuple[Any, ...]:
                y = rn.tanh(parts["x"] * w + outer) * scale
                return y, parts["x"], {"sum": (y * w).sum(), "flag": parts["flag"]}

            y, same, more = wrap(inner)({"x": x, "flag": flag}, scale=3.0)
            (y * y + same).sum().backward(retain_graph=True)
            (y.sum() * more["sum"]).backward()
            return y, more["sum"] * more["flag"], x.grad, w.grad, v.grad

        fn = rn.compile(step) if compiled else step
        return [t.numpy() for t in fn(rn.asarray(np.array([0.3, 0.7], np.float32)), True)]

    for a, b in zip(run(plain), run(rn.checkpoint), strict=True):
        assert same_bits(a, b)


def test_checkpoints_nest() -> None:
    def inner(x: rn.Tensor) -> rn.Tensor:
        return rn.sin(x) * x

    def outer(x: rn.Tensor, wrap: Make) -> rn.Tensor:
        return wrap(inner)(wrap(inner)(x) + x) * x

    def loss(wrap: Make) -> Callable[[rn.Tensor], Any]:
        return lambda x: wrap(outer)(x, wrap).sum()

    x = rn.asarray(np.linspace(-2, 2, 9).astype(np.float32))
    expected = rn.grad(loss(plain))(x).numpy()
    assert same_bits(expected, rn.grad(loss(rn.checkpoint))(x).numpy())
    assert same_bits(expected, rn.compile(rn.grad(loss(rn.checkpoint)))(x).numpy())


def test_second_derivatives() -> None:
    def cube(x: rn.Tensor) -> rn.Tensor:
        return x * x * x

    x = rn.asarray(np.array([1.0, -2.0], np.float32))
    twice = rn.grad(lambda x: rn.grad(lambda x: rn.checkpoint(cube, x).sum())(x).sum())
    assert twice(x).tolist() == [6.0, -12.0]
    assert rn.compile(twice)(x).tolist() == [6.0, -12.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_random_state_continues_as_if_drawn_once(compiled: bool) -> None:
    generator = rn.Generator(3)
    weight = rn.Parameter(np.ones(50, np.float32))

    def run(wrap: Make) -> list[Any]:
        generator.seed(3)

        def step(x: rn.Tensor) -> tuple[Any, ...]:
            weight.grad = None
            y = wrap(lambda x: rn.dropout(x * weight, 0.5, generator=generator))(x)
            between = rn.rand(2, generator=generator)
            y.sum().backward()
            return y, weight.grad, between, rn.rand(3, generator=generator)

        fn = rn.compile(step) if compiled else step
        x = rn.asarray(np.arange(1, 51, dtype=np.float32))
        return [t.numpy() for t in (*fn(x), *fn(x))]

    first = run(rn.checkpoint)
    for a, b in zip(run(plain), first, strict=True):
        assert same_bits(a, b)
    assert same_bits(first[0], first[1])  # value and gradient use the same mask


def test_variables_that_changed_in_between_are_as_they_were() -> None:
    w = rn.Parameter(np.array([3.0], np.float32))
    x = rn.tensor([2.0], requires_grad=True)
    y = rn.checkpoint(lambda x: rn.square(x * w), x)
    w.assign(rn.tensor([100.0]))
    y.sum().backward()
    assert x.grad.tolist() == [36.0]
    assert w.grad.tolist() == [24.0]
    assert w.tolist() == [100.0]


def test_state_that_the_function_assigns_counts_once() -> None:
    count = rn.Variable(np.zeros((), np.float32))

    def fn(x: rn.Tensor) -> rn.Tensor:
        count.assign(count + 1.0)
        return x * count

    x = rn.tensor([2.0], requires_grad=True)
    (rn.checkpoint(fn, x) + rn.checkpoint(fn, x)).sum().backward()
    assert count.item() == 2.0
    assert x.grad.tolist() == [3.0]


def test_without_gradients_it_is_the_function() -> None:
    y = rn.checkpoint(lambda x, k: x * k, rn.tensor([2.0]), 3.0)
    assert y.tolist() == [6.0]
    assert not y.requires_grad


def test_as_a_decorator() -> None:
    @rn.checkpoint
    def fn(x: rn.Tensor) -> rn.Tensor:
        """Doc."""
        return x * x

    assert fn.__name__ == "fn"
    assert rn.grad(lambda x: fn(x).sum())(rn.tensor([3.0])).tolist() == [6.0]


def test_a_function_that_does_other_things_is_an_error() -> None:
    turns = iter((1, 2))

    def fn(x: rn.Tensor) -> rn.Tensor:
        return x * x if next(turns) == 1 else x * 2.0

    x = rn.tensor([2.0], requires_grad=True)
    with pytest.raises(GradientError, match="must compute the same"):
        rn.checkpoint(fn, x).sum().backward()


def test_values_that_are_changed_after_their_use() -> None:
    def fn(x: rn.Tensor, scale: rn.Tensor) -> rn.Tensor:
        y = x * 2.0
        z = y * y
        y[0] = 5.0
        scale[1] = scale[1] * 3.0
        x[0] = 0.0
        return z * scale + y + x

    x = rn.tensor([2.0, 3.0], requires_grad=True)
    scale = rn.asarray([1.0, 2.0])
    z = rn.checkpoint(fn, x, scale)
    assert scale.tolist() == [1.0, 2.0], "the function has separate handles"
    scale[0] = 100.0
    z.sum().backward()
    assert x.grad.tolist() == [16.0, 24.0 * 6.0 + 3.0]


def test_gradients_of_slices_are_put_together() -> None:
    def fn(x: rn.Tensor) -> rn.Tensor:
        return x[:2] * x[1:3] + x[2:] * 2.0

    x = rn.asarray(np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    expected = rn.grad(lambda x: (fn(x) * x[:2]).sum())(x)
    actual = rn.grad(lambda x: (rn.checkpoint(fn)(x) * x[:2]).sum())(x)
    assert same_bits(expected.numpy(), actual.numpy())


WEIGHT = rn.asarray(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5], [1.0, -1.0, 1.0]], np.float32))


def _tanh(x: Any) -> Any:
    return rn.tanh(x * x @ WEIGHT)


def _two(x: Any) -> Any:
    return rn.sin(x), rn.exp(x) * x


LEVELS: dict[str, Callable[[Make, rn.Tensor], Any]] = {
    "hessian": lambda wrap, x: rn.hessian(lambda v: wrap(_tanh)(v).sum())(x),
    "hessian_of_nested": lambda wrap, x: rn.hessian(lambda v: wrap(lambda u: wrap(_tanh)(u) * u)(v).sum())(x),
    "hessian_of_two": lambda wrap, x: rn.hessian(lambda v: rn.multiply(*wrap(_two)(v)).sum())(x),
    "jvp_of_gradient": lambda wrap, x: rn.jvp(rn.grad(lambda v: wrap(_two)(v)[1].sum()), (x,), (x,))[1],
    "jvp_of_hessian": lambda wrap, x: rn.jvp(rn.hessian(lambda v: (wrap(_tanh)(v) * v).sum()), (x,), (x,))[1],
    "gradient_of_hessian": lambda wrap, x: rn.grad(
        lambda y: rn.hessian(lambda v: (wrap(_two)(v)[0] * v).sum())(y).sum()
    )(x),
    "vmap_of_gradient": lambda wrap, x: rn.vmap(rn.grad(lambda v: wrap(_tanh)(v).sum()))(rn.stack([x, x * 2])),
    "vmap_of_jvp_of_gradient": lambda wrap, x: rn.vmap(
        lambda v: rn.jvp(rn.grad(lambda u: wrap(_tanh)(u).sum()), (v,), (v,))[1]
    )(rn.stack([x, x * 2])),
    "gradient_of_vmap": lambda wrap, x: rn.grad(lambda y: rn.vmap(wrap(_tanh))(rn.stack([y, y * y])).sum())(x),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_above_its_gradient(name: str) -> None:
    """Cotangents that are tensors of jvp and vmap: the second run starts behind what they are made of."""
    x = rn.asarray(np.array([0.5, 1.0, -0.3], np.float32))
    expected = LEVELS[name](plain, x).numpy()
    for run in (LEVELS[name], rn.compile(LEVELS[name])):
        assert same_bits(expected, run(rn.checkpoint, x).numpy())


def test_compositions_run_op_by_op_each_time() -> None:
    """From the third call on they are one program outside, whose record has its operands in another order."""
    rng = np.random.default_rng(3)
    block = Block(4)
    weights = list(block.parameters())
    x = rn.asarray(rng.standard_normal((5, 4)).astype(np.float32))

    def gradients(run: Any) -> list[bytes]:
        block.zero_grad()
        run(x).sum().backward()
        return [p.grad.numpy().tobytes() for p in weights if p.grad is not None]

    expected = gradients(block)
    for calls in range(4):  # one of them would make the program between a function and its repetition
        composing.clear()
        for _ in range(calls):
            gradients(block)
        assert gradients(lambda x: rn.checkpoint(block, x)) == expected
